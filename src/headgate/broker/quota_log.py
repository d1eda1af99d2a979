"""What backlog quotas do, as lines of the log: each topic at most once a minute.

A quota that holds a producer beside a slow consumer turns over and over: the log says that it
began, and with the next line how often it did.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from headgate.base.units import NS_PER_S, S_PER_MINUTE
from headgate.engine.eviction import Eviction
from headgate.engine.topic import Topic
from headgate.flow.quota import Quota, QuotaPolicy

logger = logging.getLogger("headgate.quotas")

QUIET_NS: Final = S_PER_MINUTE * NS_PER_S
"""Between two lines about one topic."""

TOPICS_MAX: Final = 10_000
"""Topics that are remembered; of more, some may be told about more often."""

_ACTIONS: Final = {
    QuotaPolicy.HOLD: "producers are held",
    QuotaPolicy.EXCEPTION: "producers are closed and refused",
}


@dataclass(slots=True)
class _Told:
    """What was said about a topic, and what was not."""

    at_ns: int
    turns: int = 0
    acts: int = 0
    messages: int = 0
    bytes: int = 0


class QuotaLog:
    """Writes the lines of one broker."""

    def __init__(self) -> None:
        self._topics: dict[str, _Told] = {}

    def turned(self, topic: Topic, quota: Quota, *, exceeded: bool) -> None:
        """A topic reached a quota that stops producers, or has room again."""
        if not exceeded:
            return
        told, is_due = self._told(topic)
        told.turns += 1
        if is_due and topic.quota is not None:
            again = f", {told.turns} times since the last line" if told.turns > 1 else ""
            why = topic.quota.why(quota)
            logger.warning("%s: %s: %s%s", topic.name, why, _ACTIONS[quota.policy], again)
            told.turns = 0

    def evicted(self, topic: Topic, act: Eviction) -> None:
        """A quota took messages from subscriptions."""
        told, is_due = self._told(topic)
        told.acts += 1
        told.messages += act.messages
        told.bytes += act.bytes
        if is_due:
            quota, acts = act.quota, f" in {told.acts} acts" if told.acts > 1 else ""
            logger.warning(
                "%s: the %s quota (%s) took %d messages, %d bytes, from subscriptions%s, the last "
                "of them from %s",
                topic.name,
                quota.type.label,
                quota.source,
                told.messages,
                told.bytes,
                acts,
                act.taken[0].subscription,
            )
            told.acts = told.messages = told.bytes = 0

    def _told(self, topic: Topic) -> tuple[_Told, bool]:
        """What is known of a topic, and whether a line about it is due now."""
        now_ns, name = topic.engine.now_ns, topic.name.full
        told = self._topics.get(name)
        if told is None:
            if len(self._topics) >= TOPICS_MAX:
                self._topics.clear()
            told = self._topics[name] = _Told(now_ns)
            return told, True
        if now_ns - told.at_ns < QUIET_NS:
            return told, False
        told.at_ns = now_ns
        return told, True
