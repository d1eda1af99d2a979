"""Backlog quotas: which quota is effective, and when a topic exceeds it (law 4, PIP-323).

There are two types, each with its own policy, and both are always evaluated. The *size* quota
bounds the largest backlog of a durable subscription, in bytes. The *time* quota bounds the age of
the oldest message that a durable subscription has not acknowledged. The functions are arithmetic
over exact numbers; the caller owns the producers and cursors and acts on the results.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from math import exp
from typing import NamedTuple

from headgate.base.units import MS_PER_S, NS_PER_MS, NS_PER_S
from headgate.flow.limits.precedence import TOPIC_POLICY, most_specific, namespace_policy_source
from headgate.flow.quota.pace_band import Band, PaceBand

RELEASE_PERCENT = 95
"""A hold ends at this part of the limit, so that producers do not stop and start in quick turns."""

EVICTION_PERCENT = 90
"""Eviction brings the backlog down to this part of the limit, and not one entry further."""

APPROACH_NS = 20 * NS_PER_S
"""The time constant of the exponential smoothing of an approach's speed."""

APPROACH_NS_MIN = 2 * NS_PER_S
"""A shorter observation gives no speed."""

STANDSTILL_NS = 5 * NS_PER_S
"""A level that has not risen for this long stands still."""

BREACH_S_MAX = 24 * 3_600
"""A breach that is more than a day away is not reported: it is the noise of a backlog that stands
still."""


class QuotaType(IntEnum):
    """What a quota bounds. The values index lists."""

    SIZE = 0
    TIME = 1

    @property
    def label(self) -> str:
        """Its name in metrics and telemetry: ``size`` or ``time`` (PIP-323)."""
        return self.name.lower()

    @property
    def pulsar_name(self) -> str:
        """Its name in Pulsar's admin API."""
        return ("destination_storage", "message_age")[self]


class SlowedBy(IntEnum):
    """What slows the producers that make a level rise."""

    NOTHING = 0
    LIMIT = 1
    """A publish limit."""
    CONTROLLER = 2
    """Adaptive throttling, which slows them more as the level rises."""


class QuotaPolicy(StrEnum):
    """What happens at the limit; the values are Pulsar's names."""

    HOLD = "producer_request_hold"
    """Producers stay connected; their messages wait until there is room."""
    EXCEPTION = "producer_exception"
    """Producers are closed, and refused until there is room."""
    EVICTION = "consumer_backlog_eviction"
    """Subscriptions lose their oldest unacknowledged messages."""

    @property
    def stops_producers(self) -> bool:
        """Whether producers wait or are refused, so that subscriptions keep their messages."""
        return self is not QuotaPolicy.EVICTION


class QuotaSetting(NamedTuple):
    """One quota as an administrator set it."""

    limit: int | None
    """Bytes of a size quota, seconds of a time quota; None if it was left out."""
    policy: QuotaPolicy


@dataclass(frozen=True, slots=True)
class Quota:
    """One effective quota."""

    type: QuotaType
    limit: int
    """Bytes of a size quota, at least 0; milliseconds of a time quota, at least 1."""
    policy: QuotaPolicy
    source: str
    """Where it is set: ``topic policy``, ``namespace policy acme/ns``, ``broker setting ...``."""


class Quotas(NamedTuple):
    """The effective quotas of a topic, indexed by :class:`QuotaType`."""

    size: Quota | None
    time: Quota | None

    @property
    def any(self) -> bool:
        """Whether there is any quota."""
        return self.size is not None or self.time is not None


NO_QUOTAS = Quotas(None, None)


class EffectiveQuota(NamedTuple):
    """The quota of one type that the most specific policy or setting defines, with that setting."""

    setting: QuotaSetting | None
    source: str
    """Empty if nothing is set."""
    quota: Quota | None
    """None if there is no quota, also because the setting says so."""


def effective_quota(
    kind: QuotaType,
    *,
    topic: QuotaSetting | None = None,
    namespace: QuotaSetting | None = None,
    namespace_name: str = "",
    broker: QuotaSetting | None = None,
    broker_key: str = "",
) -> EffectiveQuota:
    """The quota of one type: the topic's setting, else the namespace's, else the broker's.

    A setting wins as a whole, also if it says "no limit": by a negative limit, by none, or, for a
    time quota, by 0. A size limit of 0 stops all producers, as in Pulsar, because every backlog
    reaches it.
    """
    found = most_specific(
        (topic, TOPIC_POLICY),
        (namespace, namespace_policy_source(namespace_name)),
        (broker, f"broker setting {broker_key}"),
    )
    if found is None:
        return EffectiveQuota(None, "", None)
    setting, source = found
    limit = -1 if setting.limit is None else setting.limit
    if kind is QuotaType.TIME:
        limit = limit * MS_PER_S if limit > 0 else -1
    quota = Quota(kind, limit, setting.policy, source) if limit >= 0 else None
    return EffectiveQuota(setting, source, quota)


def size_exceeded(backlog_bytes: int, limit_bytes: int) -> bool:
    """Whether nothing more may be appended; staged entries count."""
    return backlog_bytes >= limit_bytes


def size_released(backlog_bytes: int, limit_bytes: int, entry_bytes: int) -> bool:
    """Whether a hold ends: at 95 % of the limit, or one entry below it if that is lower.

    ``entry_bytes`` is the size of the next entry, 0 if none waits. An entry that is larger than the
    limit goes when the backlog is empty.
    """
    mark = min(limit_bytes * RELEASE_PERCENT // 100, limit_bytes - entry_bytes)
    return backlog_bytes < limit_bytes and backlog_bytes <= max(mark, 0)


def size_after_eviction(limit_bytes: int) -> int:
    """The largest backlog that eviction leaves."""
    return limit_bytes * EVICTION_PERCENT // 100


def age_exceeded(age_ms: int, limit_ms: int) -> bool:
    """Whether the oldest unacknowledged message is too old; ``age_ms`` is -1 without one."""
    return age_ms >= limit_ms


def age_released(age_ms: int, limit_ms: int) -> bool:
    """Whether a hold ends: at 95 % of the limit."""
    return age_ms < limit_ms and age_ms * 100 <= limit_ms * RELEASE_PERCENT


def age_evicted_ms(limit_ms: int) -> int:
    """The age from which eviction takes messages once the oldest is too old: 90 % of the limit."""
    return -(-limit_ms * EVICTION_PERCENT // 100)


class Approach:
    """How fast a level approaches its limit: a smoothed speed from samples at any times."""

    __slots__ = (
        "_at_ns",
        "_band",
        "_level",
        "_rose_ns",
        "_since_ns",
        "_slowed_by",
        "_slowed_ns",
        "_speed",
    )  # fmt: skip

    def __init__(self, level: float, now_ns: int) -> None:
        """Begin at ``level``, in any unit."""
        self._band = PaceBand(level, now_ns)
        self._slowed_by, self._slowed_ns = SlowedBy.NOTHING, now_ns
        self._begin(level, now_ns)

    def _begin(self, level: float, now_ns: int) -> None:
        self._level = level
        self._at_ns = self._since_ns = self._rose_ns = now_ns
        self._speed = 0.0

    def observe(self, level: float, now_ns: int, slowed_by: SlowedBy = SlowedBy.NOTHING) -> None:
        """Take a sample of the level. At first the speed is the mean over all samples; later each
        sample weighs its part of :data:`APPROACH_NS`. What slowed the producers counts for as
        long: at single samples none may wait.

        A smoothed speed never fades to 0. So the speed is 0 after :data:`STANDSTILL_NS` without a
        rise, and the observation starts over when the level falls to half.
        """
        elapsed_ns = now_ns - self._at_ns
        if elapsed_ns <= 0:
            return
        if slowed_by >= self._slowed_by or now_ns - self._slowed_ns >= APPROACH_NS:
            self._slowed_by, self._slowed_ns = slowed_by, now_ns
        if 2 * level < self._level:
            self._band = PaceBand(level, now_ns)
            self._begin(level, now_ns)
            return
        self._band.observe(level, now_ns)
        if level > self._level:
            self._rose_ns = now_ns
        elif now_ns - self._rose_ns >= STANDSTILL_NS:
            self._begin(level, now_ns)
            return
        speed = (level - self._level) * NS_PER_S / elapsed_ns
        # Otherwise the first sample would also weigh for the time before it.
        known = elapsed_ns / (now_ns - self._since_ns)
        weight = max(known, 1.0 - exp(-elapsed_ns / APPROACH_NS))
        self._speed += weight * (speed - self._speed)
        self._level, self._at_ns = level, now_ns

    def seconds_to(self, limit: float, level: float) -> float | None:
        """Seconds until ``level``, the present level, reaches ``limit`` at the smoothed speed; 0 if
        it has reached it.

        None if the level does not approach the limit: it stands still or falls, was observed too
        briefly, or would need more than :data:`BREACH_S_MAX`. While something slows the producers,
        a speed within the noise of the last minutes is a standstill
        (:meth:`PaceBand.keeps_rising`).
        """
        if level >= limit:
            return 0.0
        if self._at_ns - self._since_ns < APPROACH_NS_MIN or self._speed <= 0.0:
            return None
        is_controlled = self._slowed_by is SlowedBy.CONTROLLER
        if self._slowed_by and not self._band.keeps_rising(
            self._speed, is_controlled=is_controlled
        ):
            return None
        seconds = (limit - level) / self._speed
        return None if seconds > BREACH_S_MAX else seconds

    def band_to(self, limit: float, level: float, speed_max: float | None = None) -> Band | None:
        """Between which seconds from now ``level`` reaches ``limit``; an end that is more than
        :data:`BREACH_S_MAX` away counts as never. ``speed_max`` is what the level grows by in a
        second at most.

        None if it does not approach the limit, has reached it, or was observed for less than a
        minute.
        """
        if not self.seconds_to(limit, level):
            return None
        left = limit - level
        band = self._band.around(left, self._speed)
        if band is None:
            return None
        earliest_s, latest_s = band
        if speed_max is not None:
            earliest_s = max(earliest_s, left / speed_max)
        if latest_s is not None:
            latest_s = None if latest_s > BREACH_S_MAX else max(latest_s, earliest_s)
        return Band(earliest_s, latest_s)


def age_ms(log_ms: int, received_ms: int | None) -> int:
    """The age of the oldest unacknowledged message at the log time ``log_ms``; -1 without one."""
    return -1 if received_ms is None else max(log_ms - received_ms, 0)


def due_ns(received_ms: int, limit_ms: int, log_ms: int, now_ns: int) -> int:
    """The monotonic instant at which a message received at ``received_ms`` is too old."""
    return now_ns + (received_ms + limit_ms - log_ms) * NS_PER_MS
