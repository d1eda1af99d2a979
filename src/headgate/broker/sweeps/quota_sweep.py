"""The periodic work on backlog quotas (law 4.6).

The engine enforces quotas as messages are appended and grow old. The check counts everything
again; a difference would be a defect, which it repairs and counts. Samples show how fast topics
fill.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from headgate.base.clock import Clock
from headgate.base.units import NS_PER_S
from headgate.broker.quota_logger import QuotaLogger
from headgate.broker.slices import Turns, live_topic_slices
from headgate.engine.engine import Engine
from headgate.policy.settings import Settings

SLICE_SAMPLES: Final = 50
"""Topics that one slice samples."""

BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the histogram's buckets, Pulsar's from 5 s on; one more bucket has no bound."""


class CheckDurations:
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
    """Checks and samples the quotas of one broker."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        clock: Clock,
        quota_logger: QuotaLogger,
        turns: Turns,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._clock = clock
        self._quota_logger = quota_logger
        self._turns = turns
        self.durations = CheckDurations()

    async def check(self) -> None:
        """Verify all topics, in slices, if quotas are enforced."""
        if not self._settings.backlogQuotaCheckEnabled:
            return
        began_ns = self._clock.monotonic_ns()
        self._turns.begin_turn()
        async for topics in live_topic_slices(self._engine, self._turns):
            self._engine.quotas.verify(topics)
        self.durations.observe(self._clock.monotonic_ns() - began_ns)

    async def sample(self) -> None:
        """Sample how fast topics with a backlog fill, in slices; write due log lines."""
        left = self._engine.quotas.sample_count()
        while left > 0:
            await self._turns.give_way(SLICE_SAMPLES)
            self._engine.quotas.sample(min(left, SLICE_SAMPLES))
            left -= SLICE_SAMPLES
        now_ns, full = self._engine.now_ns, self._engine.tenant_storage.full_tenants()
        self._quota_logger.tenants_full(full, now_ns)
        self._quota_logger.flush(now_ns)
