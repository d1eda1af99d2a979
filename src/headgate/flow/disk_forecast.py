"""When the disk is full, at the growth that its samples show.

The *level* is what the logs have written and not freed, plus all other files. With ``growth`` bytes
between the first and the last sample of a window of ``span`` seconds, and ``room`` bytes until
SENDs wait, the disk is full after ``room * span / growth`` seconds. An example: 7.2 GB in ten
minutes are 12 MB/s; with a room of 144 GB that is 12,000 s, or 3 h 20 m.

Where retention or consumers free as much as is published the level is a saw: it rises, and falls
by a segment or a ledger at a time. A window may end on a tooth, so growth up to the height of a
tooth means nothing. That height is the second largest fall of the last hour, since a single fall,
such as a deleted topic, is no saw. The growth that counts is that of the last ten minutes if it is
more than a tooth, else that of the last hour if that is more, which shows a slow growth under a
saw. If neither is, there is no forecast. In a period that repeats itself within the hour no two
levels differ by more than a tooth, so a steady broker gets none.

Once there is a forecast, half a tooth keeps it, so that it does not come and go at the edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from headgate.base.units import NS_PER_S, S_PER_DAY, S_PER_MINUTE

SAMPLE_PERIOD_NS: Final = 10 * NS_PER_S
"""Time between two samples, at least."""
SHORT_NS: Final = 10 * S_PER_MINUTE * NS_PER_S
LONG_NS: Final = 60 * S_PER_MINUTE * NS_PER_S
SPAN_NS_MIN: Final = 2 * S_PER_MINUTE * NS_PER_S
"""The shortest time from which there is a forecast."""
FULL_IN_S_MAX: Final = 7.0 * S_PER_DAY
"""Nothing is forecast beyond; an existing forecast stays up to twice that."""
SOON_S: Final = 4.0 * 60 * S_PER_MINUTE
"""A disk that is full within this time is reported without being asked about."""
SOON_END_S: Final = 5.0 * 60 * S_PER_MINUTE
"""A disk that was reported so stays reported up to this time."""


class DiskSample(NamedTuple):
    """The use of the disk at one instant."""

    at_ns: int
    """Time of the monotonic clock."""
    retained_bytes: int
    """Records of retained messages in the logs."""
    log_bytes: int
    """All that the logs have written and not freed. Without unused room: that of open and prepared
    segments, and files of deleted segments that become new ones."""
    other_bytes: int
    """All other files on the file system, without the reserve of the metadata."""
    room_bytes: int
    """What can be written until SENDs wait; below 0 if that is to be expected at any moment."""

    @property
    def level_bytes(self) -> int:
        """What must stop to grow for the disk not to be full."""
        return self.log_bytes + self.other_bytes


class Growth(NamedTuple):
    """Bytes a second by which the disk fills, over one window. The parts add up to the total."""

    span_s: float
    retained_per_s: float
    """Retained messages."""
    unneeded_per_s: float
    """Records of the logs that no topic needs, and what stands beside records."""
    other_per_s: float
    """All other files on the file system."""

    @property
    def total_per_s(self) -> float:
        """The growth of the level."""
        return self.retained_per_s + self.unneeded_per_s + self.other_per_s

    def by_part(self) -> dict[str, float]:
        """The parts by name."""
        return {
            "retained": self.retained_per_s,
            "unneeded": self.unneeded_per_s,
            "other": self.other_per_s,
        }


class Filling(StrEnum):
    """Whether the disk fills up."""

    UNKNOWN = "unknown"
    """There are too few samples."""
    FILLING = "filling"
    """It is full at a known time."""
    STEADY = "steady"
    """It grows and is freed in turn, and does not grow beyond that."""
    NOT_FILLING = "not_filling"
    """It does not grow, or is not full within a week."""


@dataclass(frozen=True, slots=True)
class DiskForecast:
    """The forecast from the samples up to ``at_ns``."""

    filling: Filling = Filling.UNKNOWN
    at_ns: int = 0
    known_in_s: float | None = None
    """While unknown: the time after which it is known; None without a sample."""
    full_in_s: float | None = None
    """Seconds from ``at_ns`` until SENDs wait; None without a forecast."""
    growth: Growth | None = None
    """Of the window that the answer follows from; None while unknown."""
    step_bytes: int = 0
    """Height of a tooth: what is freed at a time, again and again; 0 if nothing is."""

    def full_in_s_from(self, now_ns: int) -> float | None:
        """Seconds from ``now_ns`` until SENDs wait, at least 0; None without a forecast."""
        if self.full_in_s is None:
            return None
        return max(self.full_in_s - (now_ns - self.at_ns) / NS_PER_S, 0.0)


def disk_forecast(samples: Sequence[DiskSample], previous: DiskForecast) -> DiskForecast:
    """The forecast from the samples of the last hour, oldest first, as the module says.

    ``previous`` is the forecast before the last sample, or an empty one.
    """
    if not samples:
        return DiskForecast()
    last = samples[-1]
    span_ns = last.at_ns - samples[0].at_ns
    if span_ns < SPAN_NS_MIN:
        return DiskForecast(at_ns=last.at_ns, known_in_s=(SPAN_NS_MIN - span_ns) / NS_PER_S)
    was_filling = previous.filling is Filling.FILLING
    step_bytes = repeated_fall([sample.level_bytes for sample in samples])
    threshold_bytes = step_bytes // 2 if was_filling else step_bytes
    short = _since(samples, last.at_ns - SHORT_NS)
    growth_bytes = last.level_bytes - short.level_bytes
    first = short
    if step_bytes and growth_bytes <= threshold_bytes:
        growth_bytes, first = last.level_bytes - samples[0].level_bytes, samples[0]
    growth = _growth(first, last)
    if growth_bytes <= threshold_bytes:
        saws = step_bytes > 0 and max(growth_bytes, last.level_bytes - short.level_bytes) > 0
        filling = Filling.STEADY if saws else Filling.NOT_FILLING
        return DiskForecast(filling, last.at_ns, growth=growth, step_bytes=step_bytes)
    full_in_s = max(last.room_bytes, 0) * growth.span_s / growth_bytes
    if full_in_s > FULL_IN_S_MAX * (2 if was_filling else 1):
        return DiskForecast(Filling.NOT_FILLING, last.at_ns, growth=growth, step_bytes=step_bytes)
    return DiskForecast(
        Filling.FILLING, last.at_ns, full_in_s=full_in_s, growth=growth, step_bytes=step_bytes
    )


def repeated_fall(levels: Sequence[int]) -> int:
    """The second largest fall of a level from a top to the bottom that follows; 0 if it falls less
    than twice."""
    falls: list[int] = []
    top: int | None = None
    for before, level in pairwise(levels):
        if level < before:
            top = before if top is None else top
        elif level > before and top is not None:
            falls.append(top - before)
            top = None
    if top is not None:
        falls.append(top - levels[-1])
    return sorted(falls)[-2] if len(falls) > 1 else 0


def is_soon(full_in_s: float | None, *, was_soon: bool) -> bool:
    """Whether a disk that is full after this time is reported without being asked about."""
    return full_in_s is not None and full_in_s <= (SOON_END_S if was_soon else SOON_S)


def _since(samples: Sequence[DiskSample], begin_ns: int) -> DiskSample:
    """The last sample at or before ``begin_ns``, or the oldest one."""
    found = samples[0]
    for sample in samples:
        if sample.at_ns > begin_ns:
            break
        found = sample
    return found


def _growth(first: DiskSample, last: DiskSample) -> Growth:
    span_s = (last.at_ns - first.at_ns) / NS_PER_S
    retained_bytes = last.retained_bytes - first.retained_bytes
    log_bytes = last.log_bytes - first.log_bytes
    other_bytes = last.other_bytes - first.other_bytes
    unneeded_bytes = log_bytes - retained_bytes
    return Growth(span_s, retained_bytes / span_s, unneeded_bytes / span_s, other_bytes / span_s)
