"""The periodic check of backlog quotas, and how fast topics fill (law 4.6).

The engine enforces quotas as messages are appended and grow old. The check counts everything again
and is expected to find no difference; it repairs and counts a difference, which would be a defect.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from typing import Final

from headgate.base.clock import Clock
from headgate.base.units import NS_PER_S
from headgate.broker.quota_log import QuotaLog
from headgate.broker.slices import Turns, live_topic_slices
from headgate.engine.engine import Engine
from headgate.policy.settings import Settings

SLICE_LOOKS: Final = 100
"""Topics in one slice of noting how fast they fill."""

BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the histogram's buckets, Pulsar's from 5 s on; one more bucket has no bound."""


class Durations:
    """A histogram of how long checks took."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """Checks in each bucket; buckets are not cumulative."""
        self.sum_ns = 0

    def observe(self, took_ns: int) -> None:
        """Add the duration of one check."""
        self.counts[bisect_left(BOUNDS_S, took_ns / NS_PER_S)] += 1
        self.sum_ns += took_ns


class QuotaSweep:
    """Checks the quotas of one broker."""

    def __init__(
        self, engine: Engine, settings: Settings, clock: Clock, log: QuotaLog, turns: Turns
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._log = log
        self._turns = turns
        self.durations = Durations()

    async def check(self) -> None:
        """Verify all topics, in slices, if quotas are enforced."""
        if not self._settings.backlogQuotaCheckEnabled:
            return
        began_ns = self._clock.monotonic_ns()
        self._turns.begin_turn()
        async for topics in live_topic_slices(self._engine, self._turns):
            self._engine.quotas.verify(topics)
        self.durations.observe(self._clock.monotonic_ns() - began_ns)

    async def look(self) -> None:
        """Note how fast topics with a backlog fill, in slices; write the log lines that are due."""
        left = self._engine.quotas.sample_count()
        while left > 0:
            await asyncio.sleep(0)
            self._turns.begin_turn()
            self._engine.quotas.sample(min(left, SLICE_LOOKS))
            left -= SLICE_LOOKS
        self._log.flush(self._engine.now_ns)
