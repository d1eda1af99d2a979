"""A fluid model of a topic: bytes that arrive, wait, drain, and are evicted or refused.

Rates are constant over an interval. So the model is exact from one event to the next. An event is
that the parked bytes reach zero, or that the backlog reaches zero or its quota. A size quota that
holds is a ceiling: producers may add what consumers take, which is the mean effect of its release
at 95 %. A time quota holds between its limit and its release mark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, inf

from headgate.base.units import MS_PER_S
from headgate.flow.quota.backlog_quota import (
    QuotaPolicy,
    age_evicted_ms,
    age_exceeded,
    age_released,
    size_after_eviction,
)

NO_AGE_S = -1.0
"""Age of the oldest byte without a backlog."""
CHECK_S = 1.0
"""A time quota acts within a second (law 4.2)."""


@dataclass(frozen=True, slots=True)
class QuotaRule:
    """A quota in force: bytes of a size quota, milliseconds of a time quota."""

    limit: int
    policy: QuotaPolicy


@dataclass(frozen=True, slots=True)
class FlowConditions:
    """The rates and limits of one interval, in bytes per second."""

    arrivals: float
    capacity: float
    set_limit: float
    """The configured publish limit; infinite without one."""
    adaptive_limit: float
    """The limit of the controller; infinite without one."""
    size: QuotaRule | None
    time: QuotaRule | None


@dataclass(slots=True)
class Totals:
    """Sums over a whole replay."""

    over_s: float = 0.0
    quota_s: float = 0.0
    offered_bytes: float = 0.0
    """Bytes that consumers could drain while producers waited."""
    wasted_bytes: float = 0.0
    """The part of these that they did not drain."""
    parked_s: float = 0.0
    parked_max: float = 0.0
    backlog_max: float = 0.0
    evicted_bytes: float = 0.0


@dataclass(slots=True)
class FluidModel:
    """The state of one topic's flow."""

    backlog: float
    """Bytes that are not acknowledged."""
    first_age_s: float
    """Age of the oldest byte at the beginning."""
    tracks_age: bool
    """Whether the model tracks ages, which costs memory."""
    parked: float = 0.0
    """Bytes that wait for a limit or quota."""
    published: float = 0.0
    """Bytes accepted since the beginning."""
    age_s: float = NO_AGE_S
    was_parked: bool = False
    """Whether bytes were parked since this was last set to False."""
    was_slowed: bool = False
    """Whether parked bytes waited for the controller's limit."""
    totals: Totals = field(default_factory=Totals)
    _now_s: float = 0.0
    _is_held: bool = False
    """Whether the time quota holds producers."""
    _start_backlog: float = 0.0
    _at_s: list[float] = field(default_factory=list)
    _stored: list[float] = field(default_factory=list)
    """Bytes ever stored at each of these instants, the first backlog included."""
    _oldest: int = 0
    """Index of the interval in which the oldest byte was stored."""

    def __post_init__(self) -> None:
        self._start_backlog = self.backlog
        self.totals.backlog_max = self.backlog
        self._at_s = [-self.first_age_s, 0.0]
        self._stored = [0.0, self.backlog]
        if self.tracks_age:
            self._update_age()

    @property
    def done(self) -> float:
        """Bytes that were ever acknowledged or evicted."""
        return self._start_backlog + self.published - self.backlog

    def run(self, seconds: float, conditions: FlowConditions) -> None:
        """Advance the model by ``seconds``."""
        left = seconds
        if conditions.time is None or not conditions.time.policy.stops_producers:
            # The quota that held producers no longer exists.
            self._is_held = False
        while left > 0.0:
            span = left
            if conditions.time is not None and self.tracks_age:
                # The age grows by at most a second per second.
                room_s = conditions.time.limit / MS_PER_S - max(self.age_s, 0.0)
                span = min(span, CHECK_S if self._is_held else max(CHECK_S, room_s))
            self._run_span(span, conditions)
            self._now_s += span
            left -= span
            if self.tracks_age:
                self._at_s.append(self._now_s)
                self._stored.append(self._start_backlog + self.published)
                self._update_age()
                self._apply_time_quota(conditions.time)

    def _run_span(self, span: float, conditions: FlowConditions) -> None:
        totals, size = self.totals, conditions.size
        if size is not None or conditions.time is not None:
            totals.quota_s += span
        while span > 0.0:
            span -= self._to_next_event(span, conditions)
            if size is not None and not size.policy.stops_producers:
                self._evict_size(size.limit)
            totals.parked_max = max(totals.parked_max, self.parked)
            totals.backlog_max = max(totals.backlog_max, self.backlog)

    def _to_next_event(self, span: float, conditions: FlowConditions) -> float:
        """Advance to the next event, at most ``span`` seconds; returns the seconds."""
        arrivals, capacity = conditions.arrivals, conditions.capacity
        limit = inf
        if conditions.size is not None and conditions.size.policy.stops_producers:
            limit = float(conditions.size.limit)
        ceiling = min(conditions.set_limit, conditions.adaptive_limit)
        is_full = self.backlog >= limit
        is_stopped = self._is_held or self.backlog > limit or limit <= 0.0
        refuses = _refuses(conditions, self._is_held, is_full)
        if refuses:
            self.parked = 0.0
        if is_stopped:
            ceiling = 0.0
        elif is_full:
            ceiling = min(ceiling, capacity)
        elif ceiling == inf and self.parked > 0.0:
            # No limit holds the parked bytes any more: they enter at once, up to the quota.
            jump = min(self.parked, limit - self.backlog)
            self.parked -= jump
            self.published += jump
            self.backlog = limit if jump == limit - self.backlog else self.backlog + jump
            return 0.0
        inflow = ceiling if self.parked > 0.0 else min(arrivals, ceiling)
        gain = arrivals - inflow
        growth = inflow - capacity
        served = capacity
        if self.backlog <= 0.0 and growth <= 0.0:
            growth, served = 0.0, inflow
        until, to_backlog, to_parked = span, -1.0, -1.0
        if self.parked > 0.0 and gain < 0.0 and self.parked < -gain * until:
            until, to_parked = self.parked / -gain, 0.0
        if self.backlog > limit and growth < 0.0 and self.backlog - limit < -growth * until:
            until, to_backlog, to_parked = (self.backlog - limit) / -growth, limit, -1.0
        elif self.backlog < limit and growth > 0.0 and limit - self.backlog < growth * until:
            until, to_backlog, to_parked = (limit - self.backlog) / growth, limit, -1.0
        elif growth < 0.0 and self.backlog < -growth * until:
            until, to_backlog, to_parked = self.backlog / -growth, 0.0, -1.0
        waits = self.parked > 0.0 or gain > 0.0
        if waits:
            self._note_wait(until, served, conditions, is_stopped, is_full)
        if is_stopped or (is_full and growth >= 0.0):
            self.totals.over_s += until
        self.published += inflow * until
        self.backlog = to_backlog if to_backlog >= 0.0 else max(0.0, self.backlog + growth * until)
        if not refuses:
            self.parked = to_parked if to_parked >= 0.0 else max(0.0, self.parked + gain * until)
        return until

    def _note_wait(
        self,
        seconds: float,
        served: float,
        conditions: FlowConditions,
        is_stopped: bool,
        is_full: bool,
    ) -> None:
        totals = self.totals
        totals.parked_s += seconds
        totals.offered_bytes += conditions.capacity * seconds
        totals.wasted_bytes += (conditions.capacity - served) * seconds
        self.was_parked = True
        by_quota = is_stopped or (is_full and conditions.capacity < conditions.adaptive_limit)
        is_adaptive = conditions.adaptive_limit < inf and not by_quota
        if is_adaptive and conditions.adaptive_limit <= conditions.set_limit:
            self.was_slowed = True

    def _evict_size(self, limit: int) -> None:
        if self.backlog < limit:
            return
        unit = max(1, limit - size_after_eviction(limit))
        acts = floor((self.backlog - limit) / unit) + 1
        evicted = min(self.backlog, float(acts * unit))
        self.totals.evicted_bytes += evicted
        self.backlog -= evicted

    def _update_age(self) -> None:
        if self.backlog <= 0.0:
            self.age_s = NO_AGE_S
            return
        done, stored, last = self.done, self._stored, len(self._stored) - 1
        while self._oldest < last - 1 and stored[self._oldest + 1] <= done:
            self._oldest += 1
        self.age_s = max(0.0, self._now_s - self._stored_at(done))

    def _stored_at(self, amount: float) -> float:
        """When byte number ``amount`` was stored, within the interval of the oldest byte."""
        place, stored = self._oldest, self._stored
        gain = stored[place + 1] - stored[place]
        share = (amount - stored[place]) / gain if gain > 0.0 else 1.0
        return self._at_s[place] + share * (self._at_s[place + 1] - self._at_s[place])

    def _apply_time_quota(self, time: QuotaRule | None) -> None:
        if time is None:
            return
        age_ms = -1 if self.age_s < 0.0 else floor(self.age_s * MS_PER_S)
        if time.policy.stops_producers:
            if self._is_held:
                self._is_held = not age_released(age_ms, time.limit)
            else:
                self._is_held = age_exceeded(age_ms, time.limit)
            return
        if age_exceeded(age_ms, time.limit):
            self._evict_older(self._now_s - age_evicted_ms(time.limit) / MS_PER_S)

    def _evict_older(self, than_s: float) -> None:
        """Evict the bytes that were stored before an instant."""
        place, at_s, stored = self._oldest, self._at_s, self._stored
        while place < len(at_s) - 2 and at_s[place + 1] <= than_s:
            place += 1
        span_s = at_s[place + 1] - at_s[place]
        share = (than_s - at_s[place]) / span_s if span_s > 0.0 else 1.0
        before = stored[place] + share * (stored[place + 1] - stored[place])
        evicted = min(self.backlog, max(0.0, before - self.done))
        self.totals.evicted_bytes += evicted
        self.backlog -= evicted
        self._update_age()


def _refuses(conditions: FlowConditions, is_held: bool, is_full: bool) -> bool:
    """Whether a quota refuses producers, so that their messages are not parked."""
    if is_full and conditions.size is not None:
        return conditions.size.policy is QuotaPolicy.EXCEPTION
    return (
        is_held and conditions.time is not None and conditions.time.policy is QuotaPolicy.EXCEPTION
    )
