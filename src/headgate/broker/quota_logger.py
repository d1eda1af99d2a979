"""Logs what backlog quotas do: at most one line a minute for each topic and kind of action.

A topic may reach its quota many times a second. The broker logs the first action at once and later
ones together, at the end of each minute.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headgate.base.stored_total import StoredTotal
from headgate.base.units import NS_PER_MINUTE
from headgate.engine.eviction import Eviction
from headgate.engine.tenant_storage import full_text
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy

logger = logging.getLogger("headgate.quotas")

QUIET_NS: Final = NS_PER_MINUTE
"""Shortest time between two lines about one topic."""

TOPICS_MAX: Final = 10_000
"""How many topics may have lines in one minute; others get none."""

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


class QuotaLogger:
    """Writes the log lines about the quotas of one broker."""

    def __init__(self) -> None:
        self._stops: dict[str, _Stops] = {}
        self._evictions: dict[str, _Evictions] = {}
        self._tenants: dict[str, int] = {}
        """When it was logged that a tenant stores all that it may."""

    def quota_state_changed(self, topic: Topic, quota: Quota, *, exceeded: bool) -> None:
        """A topic reached a quota that stops producers, or fell below it again."""
        if not exceeded:
            return
        name, now_ns = topic.name.full, topic.now_ns
        stops = self._stops.get(name)
        if stops is not None:
            stops.count += 1
            stops.topic, stops.quota = topic, quota
        elif len(self._stops) < TOPICS_MAX:
            stops = self._stops[name] = _Stops(topic, quota, now_ns, 1)
            stops.log()

    def evicted(self, topic: Topic, eviction: Eviction) -> None:
        """A quota evicted messages from subscriptions."""
        name, now_ns = topic.name.full, topic.now_ns
        evictions = self._evictions.get(name)
        is_first = evictions is None
        if evictions is None:
            if len(self._evictions) >= TOPICS_MAX:
                return
            evictions = self._evictions[name] = _Evictions(topic, eviction, now_ns)
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
        for known in (self._stops, self._evictions):
            due = [name for name, each in known.items() if now_ns - each.logged_ns >= QUIET_NS]
            for name in due:
                each = known[name]
                if each.count:
                    each.log()
                    each.logged_ns = now_ns
                else:
                    del known[name]
