"""Follows the backlog quotas of all topics, and says which of them deserve a closer look.

A law: looks come with their time. A survey tells how large a topic's backlog is and nothing of its
quota. The quota of its namespace (:class:`headgate.agent.looks.QuotaLook`) stands in until a close
look tells the topic's own. So each topic of a survey has a forecast once its backlog takes
:data:`FOLLOWED_SHARE` of its quota, by the growth from survey to survey; what comes near its quota
is looked at closely. A quota that only the topic has is found out by close looks at the largest
backlogs in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from headgate.agent.looks import QuotaLook, TopicLook
from headgate.agent.quota_forecast import Level, QuotaForecast
from headgate.agent.taking_turns import taking_turns
from headgate.base.largest import Largest
from headgate.base.names import tenant_of
from headgate.base.owner_shares import OWNERS_BOUNDS, OwnerShares
from headgate.base.units import NS_PER_HOUR, NS_PER_S

FOLLOWED_SHARE: Final = 0.1
"""Part of a quota from which on a topic of a survey has a forecast."""
NEAR_SHARE: Final = 0.5
"""A backlog of this part of its quota is near it ..."""
NEAR_S: Final = 3_600.0
"""... as is one that reaches it within this time."""
QUOTAS_NS: Final = 300 * NS_PER_S
"""Quotas of a namespace that were read longer ago may have changed."""
CHECKED_NS: Final = NS_PER_HOUR
"""As may a topic's own."""
NAMESPACES_MAX: Final = 10_000
"""Namespaces that surveys show and whose quotas are kept. Tenants that have fewer than others go on
up to twice the number: one may have very many."""
NEAR_PART: Final = 4
"""Of the topics that are looked at closely one in so many may be there for its quota ..."""
UNCHECKED_PART: Final = 20
"""... and one in so many because its own quota is not known yet."""


class KnownTopic(Protocol):
    """What a history keeps of a topic."""

    @property
    def look(self) -> TopicLook | None:
        """The last one."""
        ...


class QuotaGuard:
    """The quotas of one cluster."""

    def __init__(self) -> None:
        self.forecast = QuotaForecast()
        self._quotas: dict[str, QuotaLook] = {}
        """By namespace."""
        self._backlogs: dict[str, int] = {}
        """The largest backlog in bytes that surveys showed in each namespace."""
        self._shown_ns: dict[str, int] = {}
        """When a survey showed a topic of each of these."""
        self._shares = OwnerShares()
        """How many of these each tenant has."""
        self._checked_ns: dict[str, int] = {}
        """When a close look at a topic last told its quotas."""
        self._own: set[str] = set()
        """Topics whose size quota was another than their namespace's then."""

    # -- what looks show ---------------------------------------------------------------------

    def note_look(self, look: TopicLook, before: TopicLook | None = None) -> None:
        """Take a look at a topic, ``before`` which there was another."""
        namespace = _namespace(look.topic)
        quotas = self._quotas.get(namespace)
        if not look.is_survey:
            self._checked_ns[look.topic] = look.at_ns
            if quotas is None or quotas.size_bytes != look.quota_size_bytes:
                self._own.add(look.topic)
            else:
                self._own.discard(look.topic)
            self.forecast.note_look(look)
            return
        used = look.backlog_bytes
        if used is None:
            return
        self._note_backlog(namespace, used, look.at_ns)
        limit = None if quotas is None else quotas.size_bytes
        if look.topic in self._own or (limit is None and look.topic in self._checked_ns):
            self.forecast.note_look(look)  # with the quotas that the close look told
            return
        if limit is None:
            self.forecast.note_gone(look.topic)
            return
        if look.topic not in self.forecast:
            if used < FOLLOWED_SHARE * limit:
                return
            if before is not None and before.is_survey:
                self.forecast.note_look(replace(before, quota_size_bytes=limit))
        self.forecast.note_look(replace(look, quota_size_bytes=limit))

    def _note_backlog(self, namespace: str, used: int, at_ns: int) -> None:
        """A survey shows a topic of a namespace with a backlog of so many bytes."""
        known = self._backlogs.get(namespace)
        if known is None:
            count, tenant = len(self._backlogs), _tenant(namespace)
            is_small = count < OWNERS_BOUNDS * NAMESPACES_MAX and not self._shares.takes_most(
                tenant
            )
            if used < 0 or (count >= NAMESPACES_MAX and not is_small):
                return
            self._shares.count(tenant, 1)
        self._backlogs[namespace] = max(used, known or 0)
        self._shown_ns[namespace] = at_ns

    def note_quotas(self, quotas: QuotaLook) -> None:
        """Take the quotas of a namespace."""
        self._quotas[quotas.namespace] = quotas
        if quotas.namespace in self._backlogs:
            self._backlogs[quotas.namespace] = 0  # what surveys show from now on counts

    def note_gone(self, topic: str) -> None:
        """A topic was deleted or unloaded."""
        self._checked_ns.pop(topic, None)
        self._own.discard(topic)
        self.forecast.note_gone(topic)

    def forget(self, before_ns: int, topics: Mapping[str, KnownTopic]) -> None:
        """Forget what was not seen since an instant, and topics that are not in ``topics``."""
        self.forecast.forget(before_ns)
        for topic in [topic for topic in self._checked_ns if topic not in topics]:
            del self._checked_ns[topic]
            self._own.discard(topic)
        for name in [name for name, each in self._quotas.items() if each.at_ns < before_ns]:
            del self._quotas[name]
        # Not those whose quotas were read long ago: they are asked for as long as they are here.
        for name in [name for name, at_ns in self._shown_ns.items() if at_ns < before_ns]:
            del self._shown_ns[name], self._backlogs[name]
            self._quotas.pop(name, None)
            self._shares.count(_tenant(name), -1)

    # -- what is worth a look ----------------------------------------------------------------

    def quotas_wanted(self, count: int, now_ns: int) -> list[str]:
        """Namespaces whose quotas are not known, or were read long ago: the largest backlogs
        first."""
        wanted = Largest[str](count)
        for namespace, size in self._backlogs.items():
            known = self._quotas.get(namespace)
            if known is None or now_ns - known.at_ns >= QUOTAS_NS:
                wanted.add((known is None, size), namespace)
        return wanted.items()

    def suspects(self, count: int, now_ns: int, topics: Mapping[str, KnownTopic]) -> list[str]:
        """Topics to look at closely among ``count``: those that are near their quota, and the
        largest backlogs whose own quota is not known. Tenants take turns: one may have very many
        quotas that are reached."""
        near = (
            (tenant_of(level.topic), _nearness(level), level.topic)
            for level in self.forecast.all()
            if _is_near(level) and level.topic in topics
        )
        unchecked = self._unchecked(count // UNCHECKED_PART, now_ns, topics.items())
        return list(dict.fromkeys([*taking_turns(near, count // NEAR_PART), *unchecked]))

    def _unchecked(
        self, count: int, now_ns: int, topics: Iterable[tuple[str, KnownTopic]]
    ) -> list[str]:
        never: list[tuple[str, int, str]] = []
        long_ago: list[tuple[str, int, str]] = []
        for name, topic in topics:
            look = topic.look
            if look is None or not look.is_survey or not look.backlog_bytes:
                continue
            checked_ns = self._checked_ns.get(name)
            if checked_ns is None:
                never.append((tenant_of(name), look.backlog_bytes, name))
            elif now_ns - checked_ns >= CHECKED_NS:
                long_ago.append((tenant_of(name), look.backlog_bytes, name))
        return [*taking_turns(never, count), *taking_turns(long_ago, count)][:count]


def _is_near(level: Level) -> bool:
    seconds = level.seconds_to_breach
    return level.used >= NEAR_SHARE * level.limit or (seconds is not None and seconds <= NEAR_S)


def _nearness(level: Level) -> tuple[bool, float, float]:
    seconds = level.seconds_to_breach
    return seconds is not None, -(seconds or 0.0), level.used / level.limit


def _tenant(namespace: str) -> str:
    return namespace.partition("/")[0]


def _namespace(topic: str) -> str:
    return "/".join(topic.partition("://")[2].split("/", 2)[:2])
