"""When the disk is full, at the growth that its samples show.

The *used bytes* are what the logs have written and not freed, plus all other files. With ``growth``
bytes between the first and the last sample of a window of ``span`` seconds, and ``room`` bytes
until SENDs wait, the disk is full after ``room * span / growth`` seconds. An example: 7.2 GB in ten
minutes are 12 MB/s; with a room of 144 GB that is 12,000 s, or 3 h 20 min.

Where retention or consumers free as much as is published, the used bytes are a sawtooth: they rise,
and fall by a segment or a ledger at a time. A window may end at a peak, so growth up to the
amplitude means nothing. The amplitude is the second largest fall of the last hour, since a single
fall, such as a deleted topic, is no sawtooth. A quarter is added, since samples may miss the peak.
If the growth of the last ten minutes is more than that, or if there is no sawtooth, it is the
growth that counts.

Otherwise a slow growth shows in the peaks. If the highest sample of the last ten minutes is higher
than all before in the hour, by more than an eighth of the amplitude, the growth is that from the
highest sample between 20 and 40 minutes ago. If it is not, there is no forecast: the disk was as
full already. Once there is a forecast, any new highest sample in the last twenty minutes keeps it,
so that it does not come and go at the edge.

A start that writes files looks like growth. Until the first two minutes are no longer in the window
of ten, growth counts only if both halves of the known time show it, the slower at least half as
fast as the other, or if the disk would be full before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from headgate.base.units import NS_PER_S, S_PER_DAY, S_PER_MINUTE

SAMPLE_PERIOD_NS: Final = 10 * NS_PER_S
"""Time between two samples, at least."""
SHORT_NS: Final = 10 * S_PER_MINUTE * NS_PER_S
PEAKS_NS: Final = 20 * S_PER_MINUTE * NS_PER_S
LONG_NS: Final = 60 * S_PER_MINUTE * NS_PER_S
SPAN_NS_MIN: Final = 2 * S_PER_MINUTE * NS_PER_S
"""The shortest time from which there is a forecast."""
STEADY_SHARE: Final = 0.5
"""Growth is steady if one half of the time has at least this part of the speed of the other."""
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
    def used_bytes(self) -> int:
        """What must stop growing for the disk not to be full."""
        return self.log_bytes + self.other_bytes


class Growth(NamedTuple):
    """Bytes a second by which the disk fills. The parts add up to the total."""

    span_s: float
    """The growth is that of the last so many seconds."""
    retained_per_s: float
    """Retained messages."""
    unneeded_per_s: float
    """Records of the logs that no topic needs, and what stands beside records."""
    other_per_s: float
    """All other files on the file system."""

    @property
    def total_per_s(self) -> float:
        """The growth of the used bytes."""
        return self.retained_per_s + self.unneeded_per_s + self.other_per_s

    def by_content(self) -> dict[str, float]:
        """The parts by what grows."""
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
    """While unknown: the time after which it is known at the latest, or steady growth may be; None
    without a sample."""
    full_in_s: float | None = None
    """Seconds from ``at_ns`` until SENDs wait; None without a forecast."""
    growth: Growth | None = None
    """Of the window that the answer follows from; None while unknown."""
    amplitude_bytes: int = 0
    """Amplitude of the sawtooth: what is freed at a time, again and again; 0 without one."""

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
    amplitude_bytes = repeated_fall([sample.used_bytes for sample in samples])
    growth = _growth(_since(samples, last.at_ns - SHORT_NS), last, last.at_ns)
    is_growing = growth.total_per_s * growth.span_s > amplitude_bytes * 5 // 4
    if not is_growing and amplitude_bytes:
        slow = (
            _peaks_growth(samples, PEAKS_NS, 0)
            if was_filling
            else _peaks_growth(samples, SHORT_NS, amplitude_bytes // 8)
        )
        is_growing, growth = slow is not None, slow or growth
    if is_growing:
        full_in_s = max(last.room_bytes, 0) / growth.total_per_s
        unseen_s = (SPAN_NS_MIN + SHORT_NS - span_ns) / NS_PER_S
        if 0 < unseen_s < full_in_s and not _is_steady(samples):
            return DiskForecast(at_ns=last.at_ns, known_in_s=unseen_s)
        if full_in_s <= FULL_IN_S_MAX * (2 if was_filling else 1):
            return DiskForecast(
                Filling.FILLING, last.at_ns, None, full_in_s, growth, amplitude_bytes
            )
    is_sawtooth = not is_growing and amplitude_bytes > 0 and _swing(samples) > amplitude_bytes // 2
    filling = Filling.STEADY if is_sawtooth else Filling.NOT_FILLING
    return DiskForecast(filling, last.at_ns, growth=growth, amplitude_bytes=amplitude_bytes)


def _is_steady(samples: Sequence[DiskSample]) -> bool:
    """Whether the used bytes grow in both halves of the samples' time, about as fast."""
    first, last = samples[0], samples[-1]
    middle = _since(samples, (first.at_ns + last.at_ns) // 2)
    if middle is first:
        return True  # the file system did not answer meanwhile
    speeds = [
        (end.used_bytes - begin.used_bytes) / (end.at_ns - begin.at_ns)
        for begin, end in ((first, middle), (middle, last))
    ]
    return 0 < STEADY_SHARE * max(speeds) <= min(speeds)


def repeated_fall(amounts: Sequence[int]) -> int:
    """The second largest fall of these amounts, from a top to the bottom that follows; 0 if they
    fall less than twice.

    A fall ends with the first rise, or when half of it is risen again, whichever gives more: of two
    sawtooths together the small one interrupts the falls of the large one, and after a single large
    fall a small one never rises by half of it.
    """
    return max(_second(_falls(amounts, 0)), _second(_falls(amounts, 2)))


def _falls(amounts: Sequence[int], part: int) -> list[int]:
    """All falls, each of which ends with a rise; of a half if ``part`` is 2."""
    falls: list[int] = []
    top = bottom = amounts[0] if amounts else 0
    for amount in amounts:
        if amount < bottom:
            bottom = amount
        elif amount > bottom and (not part or part * (amount - bottom) > top - bottom):
            falls.append(top - bottom)
            top = bottom = amount
    return [*falls, top - bottom]


def _second(values: Sequence[int]) -> int:
    return sorted(values)[-2] if len(values) > 1 else 0


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


def _peaks_growth(samples: Sequence[DiskSample], recent_ns: int, more_bytes: int) -> Growth | None:
    """The growth from peak to peak of a sawtooth.

    None if the highest sample of the last ``recent_ns`` is not above all before by more than
    ``more_bytes``, or if no sample of 40 minutes ago is known.
    """
    now_ns = samples[-1].at_ns
    ages = [(now_ns - sample.at_ns, sample) for sample in samples]
    if ages[0][0] < 2 * PEAKS_NS:
        return None
    peak = _highest([sample for age_ns, sample in ages if age_ns < recent_ns])
    highest = _highest([sample for age_ns, sample in ages if age_ns >= recent_ns])
    if peak.used_bytes - highest.used_bytes <= more_bytes:
        return None
    # The file system may not have answered for twenty minutes.
    before = [sample for age_ns, sample in ages if PEAKS_NS <= age_ns < 2 * PEAKS_NS] or [highest]
    return _growth(_highest(before), peak, now_ns)


def _highest(samples: Sequence[DiskSample]) -> DiskSample:
    return max(samples, key=lambda sample: sample.used_bytes)


def _swing(samples: Sequence[DiskSample]) -> int:
    """By how much the used bytes of the last ten minutes differ."""
    since_ns = samples[-1].at_ns - SHORT_NS
    amounts = [sample.used_bytes for sample in samples if sample.at_ns >= since_ns]
    return max(amounts) - min(amounts)


def _growth(first: DiskSample, last: DiskSample, now_ns: int) -> Growth:
    """The growth between two samples, as that since ``first``."""
    passed_s = (last.at_ns - first.at_ns) / NS_PER_S
    retained_bytes = last.retained_bytes - first.retained_bytes
    log_bytes = last.log_bytes - first.log_bytes
    other_bytes = last.other_bytes - first.other_bytes
    return Growth(
        span_s=(now_ns - first.at_ns) / NS_PER_S,
        retained_per_s=retained_bytes / passed_s,
        unneeded_per_s=(log_bytes - retained_bytes) / passed_s,
        other_per_s=other_bytes / passed_s,
    )
