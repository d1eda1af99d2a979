"""Names of topics, namespaces and subscriptions, parsed and checked.

``persistent://tenant/namespace/local`` is a topic; ``local-partition-3`` is partition 3 of the
partitioned topic ``local``. ``tenant/namespace/local`` and ``local`` alone are short forms, as in
every Pulsar client; the latter is in ``public/default``. Source: Pulsar's TopicName and
NamespaceName; the error texts are those of a real broker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from headgate.base.errors import InputError

PERSISTENT: Final = "persistent"
NON_PERSISTENT: Final = "non-persistent"
DOMAINS: Final = (PERSISTENT, NON_PERSISTENT)

PARTITION_SUFFIX: Final = "-partition-"

NAME_CHARACTERS_MAX: Final = 512
"""Longest tenant, namespace, topic or subscription name. Pulsar has no such limit; without one, a
single name could fill a frame, an index and every metrics page."""

REMEMBERED_CHARACTERS_MAX: Final = 160
"""Longer names are read each time: 16,384 of the longest would take 105 MB."""

_ENTITY = re.compile(r"[-=:.\w]+\Z", re.ASCII)
_PARTITION = re.compile(r"^(?P<base>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})$", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_RESOLVED = re.compile(r"(?:^|[/\\])\.{1,2}(?:[/\\]|$)")


class InvalidNameError(InputError):
    """A name that no topic, namespace, tenant or subscription may have."""


def check_entity(kind: str, name: str) -> str:
    """Return ``name`` if it may name a tenant or namespace (``kind`` says which, for the text).

    Raises:
        InvalidNameError: it is empty, too long, or has characters outside ``[-=:.\\w]``.
    """
    if not _ENTITY.match(name) or len(name) > NAME_CHARACTERS_MAX:
        raise InvalidNameError(
            f"Invalid {kind} name {name[:80]!r}: 1 to {NAME_CHARACTERS_MAX} letters, digits "
            "or any of -=:._ are allowed"
        )
    return name


def is_short_line(text: str) -> bool:
    """Whether a text is no longer than a name may be and has no control characters."""
    return len(text) <= NAME_CHARACTERS_MAX and not _CONTROL.search(text)


def check_subscription(name: str) -> str:
    """Return ``name`` if it may name a subscription.

    Raises:
        InvalidNameError: it is empty, too long, or has control characters.
    """
    if not name or not is_short_line(name):
        raise InvalidNameError(
            f"Invalid subscription name {name[:80]!r}: 1 to {NAME_CHARACTERS_MAX} characters, "
            "none of them a control character, are allowed"
        )
    return name


def check_new_subscription(name: str) -> None:
    """Check a name of which there is no subscription yet.

    Browsers, proxies and ``curl`` resolve ``..`` in the path of a URL: a request to delete such a
    subscription would be one to delete its topic. Proxies, such as nginx with a path in
    ``proxy_pass``, decode ``%2F`` before that, so ``a/../..`` is another such name.

    Raises:
        InvalidNameError: a part of it, between slashes of either kind, is ``.`` or ``..``.
    """
    if _RESOLVED.search(name):
        raise InvalidNameError(
            f"Invalid subscription name {name!r}: in a URL it would stand for something else"
        )


@dataclass(frozen=True, slots=True, order=True)
class NamespaceName:
    """``tenant/namespace``."""

    tenant: str
    local: str
    full: str = field(init=False, compare=False, repr=False)
    """``tenant/namespace``: the one spelling used as a key anywhere."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "full", f"{self.tenant}/{self.local}")

    def __str__(self) -> str:
        return self.full

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        """Read ``tenant/namespace``.

        Raises:
            InvalidNameError: it has another number of parts, or a part is not allowed.
        """
        parts = text.split("/")
        if len(parts) != 2:
            raise InvalidNameError(f"Invalid namespace {text[:80]!r}: tenant/namespace is allowed")
        return _namespace(*parts)


@lru_cache(maxsize=4_096)
def _namespace(tenant: str, local: str) -> NamespaceName:
    """A checked name: one object, which all topics of a namespace share."""
    return NamespaceName(check_entity("tenant", tenant), check_entity("namespace", local))


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic's full name, taken apart. ``partition`` is -1 unless it names one partition."""

    domain: str
    namespace: NamespaceName
    local: str
    """The name inside the namespace, with the partition suffix if there is one."""
    partition: int
    full: str
    """``persistent://tenant/namespace/local``: the one spelling used as a key anywhere."""

    def __str__(self) -> str:
        return self.full

    @property
    def tenant(self) -> str:
        """The tenant of its namespace."""
        return self.namespace.tenant

    @property
    def is_persistent(self) -> bool:
        """Whether its messages are stored."""
        return self.domain == PERSISTENT

    @property
    def base(self) -> TopicName:
        """The partitioned topic this is a partition of; itself otherwise."""
        if self.partition < 0:
            return self
        return make_topic(self.domain, self.namespace, self.local.rsplit(PARTITION_SUFFIX, 1)[0])

    def partition_name(self, index: int) -> TopicName:
        """The name of partition ``index`` of this (base) topic."""
        local = f"{self.local}{PARTITION_SUFFIX}{index}"
        if len(local) > NAME_CHARACTERS_MAX:
            return make_topic(self.domain, self.namespace, local)  # which refuses it
        # What is checked is not checked anew: a topic may have thousands of partitions.
        full = f"{self.full}{PARTITION_SUFFIX}{index}"
        return TopicName(self.domain, self.namespace, local, index, full)


def tenant_of(name: str) -> str:
    """The tenant of a topic, a namespace or a tenant, by its full name; empty for the broker, which
    has none."""
    return without_domain(name).partition("/")[0]


def without_domain(name: str) -> str:
    """A full name without the domain of a topic. A local name may have another ``://``."""
    domain, separator, rest = name.partition("://")
    return rest if separator else domain


def make_topic(domain: str, namespace: NamespaceName, local: str) -> TopicName:
    """Build a topic name from its parts.

    Raises:
        InvalidNameError: the domain is unknown, or the local name is empty, too long, has
            control characters or a ``/``.
    """
    if domain not in DOMAINS:
        raise InvalidNameError(
            f"Invalid topic domain {domain[:80]!r}: {' or '.join(DOMAINS)} is allowed"
        )
    if not local or "/" in local or not is_short_line(local):
        raise InvalidNameError(
            f"Invalid topic name {local[:80]!r}: 1 to {NAME_CHARACTERS_MAX} characters, none of "
            "them '/' or a control character, are allowed"
        )
    match = _PARTITION.match(local)
    partition = int(match["index"]) if match else -1
    return TopicName(domain, namespace, local, partition, f"{domain}://{namespace}/{local}")


def parse_topic(text: str) -> TopicName:
    """Read a full or short topic name.

    Raises:
        InvalidNameError: it is none of ``domain://tenant/namespace/topic``,
            ``tenant/namespace/topic`` and ``topic``, or a part is not allowed.
    """
    return _remembered(text) if len(text) <= REMEMBERED_CHARACTERS_MAX else _parsed(text)


def _parsed(text: str) -> TopicName:
    domain, separator, rest = text.partition("://")
    if not separator:
        domain, rest = PERSISTENT, text
    parts = rest.split("/")
    if not separator and len(parts) == 1:
        parts = ["public", "default", rest]
    if len(parts) != 3:
        raise InvalidNameError(
            f"Invalid topic name {text[:80]!r}: domain://tenant/namespace/topic, "
            "tenant/namespace/topic and topic are allowed"
        )
    namespace = _namespace(parts[0], parts[1])
    return make_topic(domain, namespace, parts[2])


_remembered = lru_cache(maxsize=16_384)(_parsed)
