"""How the records name tenants, namespaces, topics, subscriptions and producers: as they are, or
hashed.

A hashed name is the first :data:`HASH_DIGITS` hexadecimal digits of HMAC-SHA-256 over the name in
UTF-8. Each part of a topic's name is hashed by itself, and a partition keeps its number: what
belongs together is still seen to, and whoever has the key can find a name's hash. With the same key
a name has the same hash for ever and in every broker.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Final

from headgate.base.names import PARTITION_SUFFIX, TopicName

HASH_DIGITS: Final = 16
"""64 bits: among a million names two share a hash once in 37 million keys."""

NAMES_REMEMBERED: Final = 65_536
"""Hashes kept, so that windows do not make them anew."""

_NAMESPACE_POLICY: Final = "namespace policy "
"""How an :class:`~headgate.flow.limits.precedence.EffectiveLimit` begins a source with a name."""


class Names:
    """Names as they are."""

    def part(self, name: str) -> str:
        """A tenant, a namespace without its tenant, a topic in its namespace, a subscription, a
        producer."""
        return name

    def topic(self, name: TopicName) -> str:
        """A topic's full name."""
        return name.full

    def limit_source(self, source: str) -> str:
        """Where a limit is set: of all sources, a namespace's policy names something."""
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
        # Messages and bytes may come from two places; no name has a blank.
        return " and ".join(map(self._one_source, source.split(" and ")))

    def _one_source(self, source: str) -> str:
        if not source.startswith(_NAMESPACE_POLICY):
            return source
        namespace = source.removeprefix(_NAMESPACE_POLICY)
        return _NAMESPACE_POLICY + "/".join(map(self._hashed, namespace.split("/")))
