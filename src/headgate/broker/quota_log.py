"""What backlog quotas do, as lines of the log: each topic at most once a minute for each kind.

A quota that holds a producer beside a slow consumer turns over and over, and one that evicts beside
a quick producer acts as often. The log says at once that it began, and at the end of each minute
what came after that.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from headgate.base.units import NS_PER_MINUTE
from headgate.engine.eviction import Eviction
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy

logger = logging.getLogger("headgate.quotas")

QUIET_NS: Final = NS_PER_MINUTE
"""Between two lines about one topic."""

TOPICS_MAX: Final = 10_000
"""Topics that are told about in one minute; of more nothing is told."""

_ACTIONS: Final = {
    QuotaPolicy.HOLD: "held",
    QuotaPolicy.EXCEPTION: "closed and refused",
}


@dataclass(slots=True)
class _Turns:
    """What was not told yet of a quota that stops producers."""

    topic: Topic
    quota: Quota
    told_ns: int
    count: int = 0

    def tell(self) -> None:
        found, quota, topic = self.topic.quota, self.quota, self.topic.name
        again = f"{self.count} times since the last line" if self.count > 1 else ""
        if found is not None and found.over == quota:
            why = found.why(quota)
            action = f"{_ACTIONS[quota.policy]}{', ' if again else ''}{again}"
            logger.warning("%s: %s: producers are %s", topic, why, action)
        else:
            # What it is now says nothing of then.
            label, action = quota.type.label, _ACTIONS[quota.policy]
            what = f"the {label} quota ({quota.source}) was reached {again or 'once more'}"
            logger.warning("%s: %s: producers were %s", topic, what, action)
        self.count = 0


@dataclass(slots=True)
class _Losses:
    """What was not told yet of a quota that evicts."""

    topic: Topic
    act: Eviction
    told_ns: int
    count: int = 0
    messages: int = 0
    bytes: int = 0

    def tell(self) -> None:
        quota, acts = self.act.quota, f" in {self.count} acts" if self.count > 1 else ""
        logger.warning(
            "%s: the %s quota (%s) took %s messages, %s bytes%s, most of them at last from %s",
            self.topic.name,
            quota.type.label,
            quota.source,
            f"{self.messages:,}",
            f"{self.bytes:,}",
            acts,
            self.act.losses[0].subscription,
        )
        self.count = self.messages = self.bytes = 0


class QuotaLog:
    """Writes the lines of one broker."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turns] = {}
        self._losses: dict[str, _Losses] = {}

    def turned(self, topic: Topic, quota: Quota, *, exceeded: bool) -> None:
        """A topic reached a quota that stops producers, or has room again."""
        if not exceeded:
            return
        name, now_ns = topic.name.full, topic.engine.now_ns
        turns = self._turns.get(name)
        if turns is not None:
            turns.count += 1
            turns.topic, turns.quota = topic, quota
        elif len(self._turns) < TOPICS_MAX:
            turns = self._turns[name] = _Turns(topic, quota, now_ns, 1)
            turns.tell()

    def evicted(self, topic: Topic, act: Eviction) -> None:
        """A quota took messages from subscriptions."""
        name, now_ns = topic.name.full, topic.engine.now_ns
        losses = self._losses.get(name)
        is_first = losses is None
        if losses is None:
            if len(self._losses) >= TOPICS_MAX:
                return
            losses = self._losses[name] = _Losses(topic, act, now_ns)
        losses.topic, losses.act = topic, act
        losses.count += 1
        losses.messages += act.messages
        losses.bytes += act.bytes
        if is_first:
            losses.tell()

    def flush(self, now_ns: int) -> None:
        """Call about once a second: tell what came since the last line, if that is a minute ago.
        A topic of which there is nothing to tell begins anew."""
        for known in (self._turns, self._losses):
            due = [name for name, each in known.items() if now_ns - each.told_ns >= QUIET_NS]
            for name in due:
                each = known[name]
                if each.count:
                    each.tell()
                    each.told_ns = now_ns
                else:
                    del known[name]
