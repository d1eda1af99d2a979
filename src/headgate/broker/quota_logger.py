"""Logs what backlog quotas do: at most one line a minute for each topic and kind of action.

A topic may reach its quota many times a second. The broker logs the first action at once and later
ones together, at the end of each minute. Of very many topics some have lines, and tenants have
shares of them: all lines are written in one turn of the loop, and a tenant that fills the log hides
what others lose. The actions on the others are counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from headgate.base.sparse_counter import SparseCounter
from headgate.base.stored_total import StoredTotal
from headgate.base.units import NS_PER_MINUTE
from headgate.engine.eviction import Eviction
from headgate.engine.tenant_storage import full_text
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy

logger = logging.getLogger("headgate.quotas")

QUIET_NS: Final = NS_PER_MINUTE
"""Shortest time between two lines about one topic."""

TOPICS_MAX: Final = 1_000
"""How many topics may have lines of one kind in a minute."""

TENANT_TOPICS_MAX: Final = 100
"""The same of one tenant."""

_ACTIONS: Final = {
    QuotaPolicy.HOLD: "held",
    QuotaPolicy.EXCEPTION: "closed and refused",
}


@dataclass(slots=True)
class _Stops:
    """How often a quota stopped the producers of one topic since its last log line."""

    topic: Topic
    quota: Quota
    logged_ns: int
    count: int = 0

    def log(self) -> None:
        found, quota, topic = self.topic.quota, self.quota, self.topic.name
        again = f"{self.count} times since the last line" if self.count > 1 else ""
        if found is not None and found.exceeded == quota:
            why = found.why(quota)
            action = f"{_ACTIONS[quota.policy]}{', ' if again else ''}{again}"
            logger.warning("%s: %s: producers are %s", topic, why, action)
        else:
            # The quota is not exceeded any more, so its present figures would mislead.
            label, action = quota.type.label, _ACTIONS[quota.policy]
            what = f"the {label} quota ({quota.source}) was reached {again or 'once more'}"
            logger.warning("%s: %s: producers were %s", topic, what, action)
        self.count = 0


@dataclass(slots=True)
class _Evictions:
    """The evictions of one topic that are not logged yet."""

    topic: Topic
    last: Eviction
    logged_ns: int
    count: int = 0
    messages: int = 0
    bytes: int = 0

    def log(self) -> None:
        quota, times = self.last.quota, f" in {self.count} evictions" if self.count > 1 else ""
        logger.warning(
            "%s: the %s quota (%s) evicted %s messages, %s bytes%s, most of the latest from %s",
            self.topic.name,
            quota.type.label,
            quota.source,
            f"{self.messages:,}",
            f"{self.bytes:,}",
            times,
            self.last.losses[0].subscription,
        )
        self.count = self.messages = self.bytes = 0


_Act = TypeVar("_Act", _Stops, _Evictions)


class _Topics(dict[str, _Act], Generic[_Act]):
    """The topics that have lines of one kind, by name."""

    def __init__(self) -> None:
        super().__init__()
        self._of_tenants: SparseCounter[str] = SparseCounter()

    def has_room(self, tenant: str) -> bool:
        """Whether a further topic of a tenant may have lines."""
        return len(self) < TOPICS_MAX and self._of_tenants[tenant] < TENANT_TOPICS_MAX

    def add(self, act: _Act) -> None:
        """The topic of ``act`` has lines from now on."""
        self[act.topic.name.full] = act
        self._of_tenants[act.topic.name.tenant] += 1

    def forget(self, name: str) -> None:
        """A topic had no news for a minute."""
        self._of_tenants[self.pop(name).topic.name.tenant] -= 1


class QuotaLogger:
    """Writes the log lines about the quotas of one broker."""

    def __init__(self) -> None:
        self._stops: _Topics[_Stops] = _Topics()
        self._evictions: _Topics[_Evictions] = _Topics()
        self._tenants: dict[str, int] = {}
        """When it was logged that a tenant stores all that it may."""
        self._left_out: Counter[str] = Counter()
        """Actions on topics without lines since these were logged, by tenant."""
        self._left_out_ns = 0
        """When they were logged."""

    def quota_state_changed(self, topic: Topic, quota: Quota, *, exceeded: bool) -> None:
        """A topic reached a quota that stops producers, or fell below it again."""
        if not exceeded:
            return
        name, now_ns = topic.name.full, topic.now_ns
        stops = self._stops.get(name)
        if stops is not None:
            stops.count += 1
            stops.topic, stops.quota = topic, quota
        elif self._stops.has_room(topic.name.tenant):
            stops = _Stops(topic, quota, now_ns, 1)
            self._stops.add(stops)
            stops.log()
        else:
            self._left_out[topic.name.tenant] += 1

    def evicted(self, topic: Topic, eviction: Eviction) -> None:
        """A quota evicted messages from subscriptions."""
        name, now_ns = topic.name.full, topic.now_ns
        evictions = self._evictions.get(name)
        is_first = evictions is None
        if evictions is None:
            if not self._evictions.has_room(topic.name.tenant):
                self._left_out[topic.name.tenant] += 1
                return
            evictions = _Evictions(topic, eviction, now_ns)
            self._evictions.add(evictions)
        evictions.topic, evictions.last = topic, eviction
        evictions.count += 1
        evictions.messages += eviction.messages
        evictions.bytes += eviction.bytes
        if is_first:
            evictions.log()

    def tenants_full(self, full: Iterable[StoredTotal], now_ns: int) -> None:
        """Log which tenants store all that they may, and which have room again: at most one line
        of each kind a minute for each. Call about once a second."""
        still_full = set()
        for stored in full:
            still_full.add(stored.owner)
            if stored.owner not in self._tenants:
                self._tenants[stored.owner] = now_ns
                logger.warning("%s: its producers are closed and refused", full_text(stored))
        for tenant, logged_ns in list(self._tenants.items()):
            if tenant not in still_full and now_ns - logged_ns >= QUIET_NS:
                del self._tenants[tenant]
                logger.warning("tenant %s has room again: its producers are accepted", tenant)

    def flush(self, now_ns: int) -> None:
        """Log what happened since the last line of each topic, if that is a minute ago. A topic
        without news is forgotten: its next action is logged at once. Call about once a second."""
        kinds: tuple[_Topics[Any], ...] = (self._stops, self._evictions)
        for known in kinds:
            due = [name for name, each in known.items() if now_ns - each.logged_ns >= QUIET_NS]
            for name in due:
                each = known[name]
                if each.count:
                    each.log()
                    each.logged_ns = now_ns
                else:
                    known.forget(name)
        if self._left_out and now_ns - self._left_out_ns >= QUIET_NS:
            (tenant, most), *_ = self._left_out.most_common(1)
            logger.warning(
                "quotas acted %d times on topics that have no line here, %d of them of tenant %s",
                self._left_out.total(), most, tenant,
            )  # fmt: skip
            self._left_out.clear()
            self._left_out_ns = now_ns
