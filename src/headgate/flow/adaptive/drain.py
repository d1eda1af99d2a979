"""Law drain: a publish limit that follows what consumers drain, towards a set point.

The target is the measured drain plus what is missing to the set point, spread over the horizon. It
needs no watermarks: it looks ahead, and holds a backlog where it is told to. The floor does not
bind it, because a floor cannot hold a topic whose consumers have stopped (law 5.5).

The drain is thought to fall at once and to rise slowly: too low an estimate costs nothing, for the
backlog then settles a little below the set point; one that is too high passes the quota. The more
room there is to the set point, the more the typical drain counts instead, so that consumers that
acknowledge in lumps are not taken for consumers that stop.
"""

from __future__ import annotations

import math
from typing import Final

from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.flow.adaptive.cycle import AdaptiveSettings, Rule, TopicSignals
from headgate.flow.adaptive.natural_rate import SAMPLE_NS_MIN
from headgate.flow.quota.backlog_quota import BREACH_S_MAX

DRAIN_RISE: Final = 0.20
"""What a sample above the estimate counts."""
DRAIN_FALL: Final = 0.70
"""What a sample below it counts: one of consumers that acknowledge in lumps is no stop."""
TYPICAL_WEIGHT: Final = 0.05
"""What a sample counts for the typical drain."""
SAMPLE_TIMES_MAX: Final = 4.0
"""A sample counts up to so many times what was known or seen before: whoever skips a backlog has
not drained it."""
SETTLED_SAMPLES: Final = 6
"""With fewer the law slows nobody while half of the room is left."""
LARGEST_SAMPLE_DECAY: Final = 0.8
"""What the largest sample counts after another one."""
DRAINED_BACKLOG_S: Final = 0.2
"""With less backlog than so many seconds of drain, consumers could have done more."""
HORIZON_INTERVALS_MIN: Final = 2
"""With a horizon of less than that a cycle would overshoot the set point."""
UNNEEDED_CYCLES: Final = 3
"""So many cycles in a row in which nothing waited for a limit before it begins to end."""


class DrainRate:
    """How fast a topic's slowest subscription gets on."""

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
        """The estimate to go by; None while nothing is known."""
        self.typical_bytes_per_s = 0.0
        """A mean of about the last twenty samples, to which a pause is not the end."""
        self.samples = 0
        """So many were taken."""
        self._largest_sample = 0.0
        self._mark_ns: int | None = None
        self._mark_bytes = 0

    def observe(self, done_bytes: int, backlog_bytes: int, now_ns: int) -> None:
        """The counter stands so now, and so much is still to be done.

        A sample in which it went back (a seek, another slowest subscription) says nothing. One
        that left hardly anything to do says only that consumers can do at least as much.
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
    """Bytes a second that may be published; below 0 where the backlog has to shrink faster than
    it does, infinite without a quota. The drain is known.

    A time quota counts as the bytes that are typically drained within it: while consumers work
    as usual, and otherwise when the oldest message is half as old as the set point.
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
        # While half of the room is left, a pause of consumers is none that matters.
        known += (typical - known) * (2.0 * missing / full if 2.0 * missing < full else 1.0)
    horizon_ns = settings.drain_horizon_ns
    if horizon_ns < HORIZON_INTERVALS_MIN * settings.interval_ns:
        horizon_ns = HORIZON_INTERVALS_MIN * settings.interval_ns
    return known + missing * NS_PER_S / horizon_ns


def seconds_to_breach(
    signals: TopicSignals, published_bytes_per_s: float, drain_bytes_per_s: float | None
) -> float | None:
    """Until the size quota is reached at these rates; 0 where it is. None without one, where the
    backlog does not grow, or where it takes longer than a day."""
    limit = signals.size_limit
    if limit is None:
        return None
    left = limit - signals.backlog_bytes
    if left <= 0:
        return 0.0
    growth = published_bytes_per_s - (drain_bytes_per_s or 0.0)
    return left / growth if growth * BREACH_S_MAX >= left else None


class DrainLimit:
    """The limit that law drain sets on one topic, from its beginning to its end."""

    __slots__ = ("_unneeded_cycles", "bytes")

    def __init__(self, target: float) -> None:
        """Begin at once at the target."""
        self.bytes = max(1.0, target)
        """A second."""
        self._unneeded_cycles = 0

    def follow(
        self, target: float | None, natural: float, is_needed: bool, settings: AdaptiveSettings
    ) -> Rule:
        """One cycle on. ``target``: what the law wants; None: it wants nothing of this topic any
        more. ``natural``: bytes a second that the topic is known to publish or consumers to drain.
        ``is_needed``: something waits for the limit, or would. :attr:`Rule.CLEAR`: it has ended.

        A limit falls at once and rises by a step; the ramp is such steps beyond the target.
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
