"""The topics whose very many subscriptions the flushes touch, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import length_hint

from headgate.base.fair_queue import FairQueue
from headgate.base.work_units import WOKEN_PER_UNIT
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic


class WakingTopics:
    """Topics, of which tenants take turns."""

    __slots__ = ("_again", "_left", "_turns")

    def __init__(self) -> None:
        self._left: dict[Topic, Iterator[Subscription]] = {}
        """The subscriptions that are not touched yet."""
        self._turns: FairQueue[Topic] = FairQueue()
        self._again: set[Topic] = set()
        """Those that got entries since this round over their subscriptions began."""

    def __len__(self) -> int:
        return len(self._left)

    def add(self, topic: Topic) -> None:
        """Touch all subscriptions of a topic; if a round over them has begun, in another one: a
        round that begins anew might reach nobody at its end."""
        if topic in self._left:
            self._again.add(topic)
            return
        self._left[topic] = iter(list(topic.subscriptions.values()))
        self._turns.add(topic.name.tenant, topic)

    def wake_some(self, units_max: int) -> int:
        """Touch subscriptions for up to ``units_max``; returns how many of them that took."""
        used = 0
        while self._left and used < units_max:
            topic = self._turns.take()
            subscriptions = self._left[topic]
            for subscription in islice(subscriptions, WOKEN_PER_UNIT):
                if not (subscription.throttled or subscription.removed):
                    subscription.wake()
            used += 1
            if length_hint(subscriptions):
                self._turns.add(topic.name.tenant, topic)
                continue
            del self._left[topic]
            if topic in self._again:
                self._again.discard(topic)
                self.add(topic)
        return used
