"""The periodic check of backlog quotas, and how fast topics fill (law 4.6).

Quotas are enforced as messages are appended and grow old. The check counts everything once more,
finds nothing, and says how long that took; what it did find would be a defect, mended and counted.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from headgate.base.units import NS_PER_S
from headgate.broker.slices import live_topics

if TYPE_CHECKING:
    from headgate.broker.service import Broker

SLICE_LOOKS: Final = 100
"""Topics whose speed is noted before other work has its turn."""

BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Longest check of each bucket: Pulsar's from 5 s on. One more bucket takes what took longer."""


class Durations:
    """How long checks took: a histogram."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """Checks by bucket, each in one only."""
        self.sum_ns = 0

    def observe(self, took_ns: int) -> None:
        """One check took so long."""
        self.counts[bisect_left(BOUNDS_S, took_ns / NS_PER_S)] += 1
        self.sum_ns += took_ns


class QuotaSweep:
    """Checks the quotas of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.durations = Durations()

    async def check(self) -> None:
        """Verify all topics, in slices. Nothing happens where quotas are not enforced."""
        broker = self._broker
        if not broker.settings.backlogQuotaCheckEnabled:
            return
        began_ns = broker.clock.monotonic_ns()
        broker.begin_turn()
        async for topic in live_topics(broker.engine, broker):
            broker.engine.quotas.verify(topic)
        self.durations.observe(broker.clock.monotonic_ns() - began_ns)

    async def look(self) -> None:
        """Note how fast those topics fill that owe something, and write the log's lines that are
        due."""
        broker = self._broker
        left = broker.engine.quotas.look_round()
        while left > 0:
            await asyncio.sleep(0)
            broker.begin_turn()
            broker.engine.quotas.look(min(left, SLICE_LOOKS))
            left -= SLICE_LOOKS
        broker.quota_log.flush(broker.engine.now_ns)
