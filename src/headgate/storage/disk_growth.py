"""Samples of what fills the disk, and the forecast from them.

The file system and the logs are read at slightly different times. So a segment that is prepared or
deleted between the two shows for one reading as another file that comes or goes. The median of
three readings removes that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from headgate.base.units import NS_PER_S
from headgate.flow.disk_forecast import (
    LONG_NS,
    SAMPLE_PERIOD_NS,
    DiskForecast,
    DiskSample,
    disk_forecast,
    is_soon,
)
from headgate.ledger import CommitLog, Space

READINGS: Final = 3
STALE_NS: Final = 60 * NS_PER_S
"""An older forecast is not shown: the file system does not answer."""


class DiskGrowth:
    """The growth of the files on one broker's disk, in memory: a start begins anew."""

    def __init__(self, log: CommitLog, logs: Sequence[CommitLog]) -> None:
        """``log`` is the main log, for whose room SENDs wait; ``logs`` are the others."""
        self._log = log
        self._logs = logs
        self.samples: deque[DiskSample] = deque()
        """Those of the last hour, oldest first."""
        self._forecast = DiskForecast()
        self._is_soon = False
        self._readings: deque[int] = deque(maxlen=READINGS)
        """The last readings of the bytes of other files."""
        self._size_bytes = 0
        self._step_bytes = 0
        """By how much the bytes of other files changed with the size of the file system, which has
        parts for itself and for root: no growth."""

    def forecast(self, now_ns: int) -> DiskForecast:
        """The forecast from the last sample; unknown without a recent one."""
        is_stale = now_ns - self._forecast.at_ns > STALE_NS
        return DiskForecast() if is_stale else self._forecast

    def is_soon(self, now_ns: int) -> bool:
        """Whether the disk is full so soon that reports say so without being asked about it."""
        return self._is_soon and self.forecast(now_ns).full_in_s is not None

    @property
    def is_held_for_backup(self) -> bool:
        """Whether a running backup holds the files of the logs, which frees none meanwhile."""
        return any(log.files_hold.is_held for log in (self._log, *self._logs))

    def add(self, space: Space, reserve_bytes: int, now_ns: int) -> None:
        """Take an answer of the file system, in which the reserve of the metadata has
        ``reserve_bytes``."""
        uses = [log.space_use() for log in (self._log, *self._logs)]
        files_bytes = sum(use.file_bytes for use in uses)
        other_bytes = space.size_bytes - space.free_bytes - files_bytes - reserve_bytes
        if self._readings and space.size_bytes != self._size_bytes:
            self._step_bytes += other_bytes - sorted(self._readings)[len(self._readings) // 2]
            self._readings = deque([other_bytes] * READINGS, maxlen=READINGS)
        self._size_bytes = space.size_bytes
        self._readings.append(other_bytes)
        is_due = not self.samples or now_ns - self.samples[-1].at_ns >= SAMPLE_PERIOD_NS
        if len(self._readings) < READINGS or not is_due:
            return
        other_bytes = sorted(self._readings)[READINGS // 2]
        written_bytes = sum(use.written_bytes for use in uses)
        unused_bytes = sum(use.unused_bytes for use in uses[1:])
        taken_bytes = other_bytes + reserve_bytes + written_bytes + unused_bytes
        # SENDs wait when the segment after the next one does not fit.
        room_bytes = space.size_bytes - taken_bytes - 2 * self._log.segment_bytes
        self._sampled(
            DiskSample(
                at_ns=now_ns,
                retained_bytes=sum(use.live_bytes for use in uses),
                log_bytes=written_bytes,
                other_bytes=other_bytes - self._step_bytes,
                room_bytes=room_bytes,
            )
        )

    def _sampled(self, sample: DiskSample) -> None:
        samples = self.samples
        samples.append(sample)
        while len(samples) > 2 and samples[1].at_ns <= sample.at_ns - LONG_NS:
            samples.popleft()
        self._forecast = disk_forecast(samples, self._forecast)
        self._is_soon = is_soon(self._forecast.full_in_s, was_soon=self._is_soon)
