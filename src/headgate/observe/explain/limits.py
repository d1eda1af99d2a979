"""The report on all limits in force: which of them hold anything, and where each is set."""

from __future__ import annotations

from typing import Any

from headgate.base.instants import iso_time
from headgate.base.largest import Largest
from headgate.broker.slices import Pace, Turns, live_topics
from headgate.engine.engine import Engine
from headgate.explain.reports import LimitsReport
from headgate.explain.states import LimitState
from headgate.observe.explain.topic import plain
from headgate.observe.states.limits import (
    broker_limit,
    publish_limits,
    subscription_limit,
    topic_limit,
)
from headgate.policy.current_limits import (
    PUBLISH_BROKER,
    CurrentDispatchLimits,
    CurrentPublishLimits,
)


class LimitReports:
    """Reports on the limits of one broker."""

    def __init__(
        self,
        engine: Engine,
        turns: Turns,
        dispatch: CurrentDispatchLimits,
        publish: CurrentPublishLimits,
    ) -> None:
        self._engine = engine
        self._turns = turns
        self._dispatch = dispatch
        self._publish = publish

    async def report(self, count: int, broker: str) -> dict[str, Any]:
        """The ``count`` limits at which most waits, as plain values."""
        worst = Largest[LimitState](count)
        total = 0
        of_all: dict[str, LimitState] = {}
        pace = Pace(self._turns)
        async for topic in live_topics(self._engine, self._turns):
            if topic.is_system:
                continue
            own = (topic_limit(self._dispatch, topic), *publish_limits(self._publish, [topic]))
            for limit in filter(None, own):
                if limit.level == PUBLISH_BROKER:
                    of_all[limit.level] = limit
                    continue
                total += 1
                worst.add(_rank(limit, total), limit)
            for subscription in list(topic.subscriptions.values()):
                of_subscription = subscription_limit(self._dispatch, subscription)
                if of_subscription is not None:
                    total += 1
                    worst.add(_rank(of_subscription, total), of_subscription)
                if pace.spent(1):
                    await pace.give_way()
        found = broker_limit(self._dispatch, self._engine)
        for limit in filter(None, (found, *of_all.values())):
            total += 1
            worst.add(_rank(limit, total), limit)
        report = LimitsReport(
            at=iso_time(self._engine.now_ms),
            broker=broker,
            limits_total=total,
            limits=worst.items(),
        )
        return plain(report)


def _rank(limit: LimitState, number: int) -> tuple[int, float, int]:
    """Those at which something waits now come first, then those that held for the longest time."""
    return min(limit.waiters, 1), limit.waiting_s, -number
