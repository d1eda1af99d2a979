"""The names of tenants, namespaces, topics, subscriptions and producers in records: plain or
hashed.

A hashed name is the first :data:`HASH_DIGITS` hexadecimal digits of HMAC-SHA-256 over the name in
UTF-8. Each part of a topic's name is hashed separately, and a partition keeps its number: topics of
one namespace still share a part, and a holder of the key can compute a name's hash. With one key a
name has the same hash forever and in every broker.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Final

from headgate.base.names import PARTITION_SUFFIX, TopicName

HASH_DIGITS: Final = 16
"""64 bits: among a million names two share a hash once in 37 million keys."""

NAMES_REMEMBERED: Final = 65_536
"""Hashes kept from window to window."""

_NAMESPACE_POLICY: Final = "namespace policy "
"""Prefix of the one source of a limit that contains a name."""


class Names:
    """Plain names."""

    def part(self, name: str) -> str:
        """A tenant, a namespace without its tenant, a topic in its namespace, a subscription, a
        producer."""
        return name

    def topic(self, name: TopicName) -> str:
        """A topic's full name."""
        return name.full

    def limit_source(self, source: str) -> str:
        """The source of a limit; only that of a namespace policy contains a name."""
        return source


PLAIN: Final = Names()


class HashedNames(Names):
    """Names replaced by their keyed hashes."""

    def __init__(self, key: bytes) -> None:
        def hashed(name: str) -> str:
            data = name.encode("utf-8", "surrogatepass")
            return hmac.digest(key, data, "sha256").hex()[:HASH_DIGITS]

        self._hashed = lru_cache(NAMES_REMEMBERED)(hashed)

    def part(self, name: str) -> str:
        return self._hashed(name)

    def topic(self, name: TopicName) -> str:
        namespace = name.namespace
        parts = (namespace.tenant, namespace.local, name.base.local)
        partition = f"{PARTITION_SUFFIX}{name.partition}" if name.partition >= 0 else ""
        return f"{name.domain}://{'/'.join(map(self._hashed, parts))}{partition}"

    def limit_source(self, source: str) -> str:
        # Messages and bytes may have two sources; no name has a blank.
        return " and ".join(map(self._one_source, source.split(" and ")))

    def _one_source(self, source: str) -> str:
        if not source.startswith(_NAMESPACE_POLICY):
            return source
        namespace = source.removeprefix(_NAMESPACE_POLICY)
        return _NAMESPACE_POLICY + "/".join(map(self._hashed, namespace.split("/")))
