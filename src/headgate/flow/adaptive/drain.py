"""Law drain: a publish limit that follows what consumers drain, towards a set point.

The target is the measured drain rate, plus what is missing to the set point, spread over the
horizon. The law needs no watermarks: it acts before the quota is full and holds the backlog at the
set point. The floor does not apply, because a floor cannot hold a topic whose consumers have
stopped (law 5.5).

The estimate of the drain rate falls at once and rises slowly. An estimate that is too low costs
nothing: the backlog settles a little below the set point. One that is too high exceeds the quota.
The more room is left to the set point, the more the typical drain rate counts instead, so that
consumers that acknowledge in batches do not look like consumers that stop.
"""

from __future__ import annotations

import math
from typing import Final

from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Rule, TopicSignals
from headgate.flow.adaptive.natural_rate import SAMPLE_NS_MIN
from headgate.flow.quota.backlog_quota import BREACH_S_MAX

DRAIN_RISE: Final = 0.20
"""The weight of a sample above the estimate."""
DRAIN_FALL: Final = 0.70
"""The weight of a sample below the estimate. It is less than 1, because consumers that acknowledge
in batches have samples without any."""
TYPICAL_WEIGHT: Final = 0.05
"""The weight of a sample in the typical drain rate."""
SAMPLE_TIMES_MAX: Final = 4.0
"""A sample counts at most this many times the largest earlier rate, because a consumer that skips a
backlog has not drained it."""
SETTLED_SAMPLES: Final = 6
"""With fewer samples, the law does not slow a topic that has half of its room left."""
LARGEST_SAMPLE_DECAY: Final = 0.8
"""The factor by which the largest sample decays with each further sample."""
DRAINED_BACKLOG_S: Final = 0.2
"""With a backlog of fewer seconds of drain than this, consumers could have drained more."""
HORIZON_INTERVALS_MIN: Final = 2
"""With a shorter horizon, a cycle would overshoot the set point."""
UNNEEDED_CYCLES: Final = 3
"""Cycles in a row in which nothing waited for a limit, before it begins to end."""


class DrainRate:
    """How fast a topic's slowest subscription drains its backlog."""

    __slots__ = (
        "_largest_sample",
        "_mark_bytes",
        "_mark_ns",
        "bytes_per_s",
        "samples",
        "typical_bytes_per_s",
    )

    def __init__(self) -> None:
        self.bytes_per_s: float | None = None
        """The estimate; None while nothing is known."""
        self.typical_bytes_per_s = 0.0
        """A mean of about the last twenty samples, which a pause changes little."""
        self.samples = 0
        """Samples taken."""
        self._largest_sample = 0.0
        self._mark_ns: int | None = None
        self._mark_bytes = 0

    def observe(self, done_bytes: int, backlog_bytes: int, now_ns: int) -> None:
        """Take a sample of ``done_bytes``, the counter of drained bytes, and of the backlog.

        A sample in which the counter fell (a seek, another slowest subscription) does not count. A
        sample that left hardly any backlog shows only a lower bound of the drain rate.
        """
        mark_ns = self._mark_ns
        if mark_ns is None or done_bytes < self._mark_bytes:
            self._mark_ns, self._mark_bytes = now_ns, done_bytes
            return
        span_ns = now_ns - mark_ns
        if span_ns < SAMPLE_NS_MIN:
            return
        sample = (done_bytes - self._mark_bytes) * NS_PER_S / span_ns
        self._mark_ns, self._mark_bytes = now_ns, done_bytes
        self.samples += 1
        known = self.bytes_per_s
        if known is None:
            if sample > 0.0 or backlog_bytes > 0:
                self.bytes_per_s = self.typical_bytes_per_s = sample
        elif sample > known or backlog_bytes > known * DRAINED_BACKLOG_S:
            bounded = min(
                sample,
                SAMPLE_TIMES_MAX * max(known, self.typical_bytes_per_s, self._largest_sample),
            )
            weight = DRAIN_RISE if bounded > known else DRAIN_FALL
            self.bytes_per_s = known + weight * (bounded - known)
            weight = max(TYPICAL_WEIGHT, 1.0 / self.samples)
            self.typical_bytes_per_s += weight * (bounded - self.typical_bytes_per_s)
        largest = self._largest_sample * LARGEST_SAMPLE_DECAY
        self._largest_sample = sample if sample > largest else largest


def drain_target(signals: TopicSignals, drain: DrainRate, settings: AdaptiveSettings) -> float:
    """Bytes a second that may be published, given that the drain rate is known.

    It is below 0 if the backlog must shrink faster than it does, and infinite without a quota. A
    time quota counts as the bytes that are typically drained within it, while consumers work as
    usual, or once the oldest message is half as old as the set point.
    """
    known, typical = drain.bytes_per_s or 0.0, drain.typical_bytes_per_s
    limit = math.inf if signals.size_limit is None else float(signals.size_limit)
    age_limit_ms = signals.age_limit_ms
    if age_limit_ms is not None:
        works = typical > 0.0 and 2.0 * known >= typical
        if works or 2 * signals.age_ms >= settings.drain_set_point * age_limit_ms:
            limit = min(limit, typical * age_limit_ms / MS_PER_S)
    if limit == math.inf:
        return limit
    full = settings.drain_set_point * limit
    missing = full - signals.backlog_bytes
    if drain.samples < SETTLED_SAMPLES and 2.0 * missing > full:
        return math.inf
    if typical > known and missing > 0.0:
        # While half of the room is left, a pause of the consumers does not matter.
        known += (typical - known) * (2.0 * missing / full if 2.0 * missing < full else 1.0)
    horizon_ns = settings.drain_horizon_ns
    if horizon_ns < HORIZON_INTERVALS_MIN * settings.interval_ns:
        horizon_ns = HORIZON_INTERVALS_MIN * settings.interval_ns
    return known + missing * NS_PER_S / horizon_ns


def seconds_to_breach(
    signals: TopicSignals, published_bytes_per_s: float, drain_bytes_per_s: float | None
) -> float | None:
    """Seconds until the size quota is reached at these rates; 0 if it is reached. None without a
    quota, if the backlog does not grow, or if it takes more than a day."""
    limit = signals.size_limit
    if limit is None:
        return None
    left = limit - signals.backlog_bytes
    if left <= 0:
        return 0.0
    growth = published_bytes_per_s - (drain_bytes_per_s or 0.0)
    return left / growth if growth * BREACH_S_MAX >= left else None


class DrainLimit:
    """The limit that law drain sets on one topic."""

    __slots__ = ("_unneeded_cycles", "bytes")

    def __init__(self, target: float) -> None:
        """Begin at the target."""
        self.bytes = max(1.0, target)
        """Bytes a second."""
        self._unneeded_cycles = 0

    def follow(
        self, target: float | None, natural: float, is_needed: bool, settings: AdaptiveSettings
    ) -> Rule:
        """Move the limit by one cycle; returns why it has its value.

        ``target`` is the target of the law, None if it has none any more. ``natural`` is the larger
        of the rates that the topic publishes and its consumers drain, in bytes a second.
        ``is_needed`` says that something waits for the limit, or would. :attr:`Rule.CLEAR` says
        that the limit has ended. A limit falls at once and rises step by step; to end, it rises
        beyond the target in such steps.
        """
        step = natural * settings.max_rate_change_factor
        self._unneeded_cycles = 0 if is_needed else self._unneeded_cycles + 1
        if target is None or self._unneeded_cycles >= UNNEEDED_CYCLES:
            self.bytes += step
            return Rule.CLEAR if self.bytes >= natural else Rule.RAMP
        risen = self.bytes + step
        self.bytes = max(1.0, min(target, risen))
        if target <= 1.0:
            return Rule.MINIMUM
        return Rule.STEP if risen < target else Rule.TARGET
