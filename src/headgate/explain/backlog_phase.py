"""When a subscription's backlog began, or since when it has had none."""

from __future__ import annotations

from typing import NamedTuple

from headgate.base.units import NS_PER_S
from headgate.explain.points import Point, changed_levels
from headgate.flow.account.verdict import IN_FLIGHT_NS, YOUNG_NS
from headgate.flow.limits.rate_limit import Level

RISING_NS = 5 * NS_PER_S
"""A young backlog without a new peak for this long counts as not growing."""

RATE_NS_MIN = NS_PER_S // 2
"""Points closer together than this give no rate."""

RECHANGE_NS = 10 * NS_PER_S
"""A limit that changes again within this time does not begin the judged time again."""


class BacklogPhase(NamedTuple):
    """Whether a subscription has a backlog, or only messages in flight. Messages that are not due
    yet are in neither.

    It has none while its oldest message is young and what waits exceeds the lowest number of this
    phase by no more than the present rate puts in flight. A backlog that stays young and sets no
    new peak for five seconds ends: the phase after it begins on a higher level. The judged time
    begins at the last point without backlog or at the last change of the limits: what an earlier
    limit did is no evidence about the present one.
    """

    has_backlog: bool
    was_old: bool
    """Whether the oldest message was not young at the last point."""
    since_ns: int
    """When the phase began; a backlog begins at the last point without one."""
    begin_ns: int
    """Start of the time that the verdict is about."""
    changed_ns: int
    """When a change of the limits last moved ``begin_ns``."""
    changed: frozenset[Level]
    """Levels whose limits did so, each within :data:`RECHANGE_NS` of the one before."""
    low: int
    """The lowest backlog of this phase."""
    peak: int
    peak_ns: int
    in_flight: float
    """Messages that the last known publish rate puts in flight."""
    last: Point

    def after(self, point: Point) -> BacklogPhase:
        """The phase after a later point."""
        if point.age_ns >= YOUNG_NS:
            following = self._replace(last=point, was_old=True)
            return following._with_backlog(self.last, point)
        if self.was_old:
            return first_phase(point)
        elapsed_ns = max(point.at_ns - self.last.at_ns, IN_FLIGHT_NS)
        in_flight = (point.appended - self.last.appended) * IN_FLIGHT_NS / elapsed_ns
        if elapsed_ns < RATE_NS_MIN and self.in_flight > in_flight:
            in_flight = self.in_flight  # too short a time for a rate
        backlog, low = point.appended - point.done - point.delayed, self.low
        if backlog <= low + (in_flight if in_flight > 1.0 else 1.0):
            if self.has_backlog:
                return first_phase(point, in_flight)
            # The usual case, made by place: a call of _replace takes three times as long.
            return BacklogPhase(
                False,
                False,
                self.since_ns,
                self.begin_ns,
                self.changed_ns,
                self.changed,
                backlog if backlog < low else low,
                self.peak,
                self.peak_ns,
                in_flight,
                point,
            )
        following = self._replace(last=point, in_flight=in_flight)._with_backlog(self.last, point)
        if point.at_ns - following.peak_ns >= RISING_NS:
            return first_phase(point, in_flight)
        return following

    def _with_backlog(self, previous: Point, point: Point) -> BacklogPhase:
        """The phase with the backlog that ``point`` shows, the first one after ``previous``."""
        at_ns = point.at_ns
        if not self.has_backlog:
            return self._replace(
                has_backlog=True,
                since_ns=previous.at_ns,
                begin_ns=previous.at_ns,
                peak=point.deliverable,
                peak_ns=at_ns,
            )
        following = self
        levels = changed_levels(previous, point)
        recent = self.changed if at_ns - self.changed_ns < RECHANGE_NS else frozenset()
        if levels - recent:
            following = following._replace(
                begin_ns=at_ns, changed_ns=at_ns, changed=levels | recent
            )
        if point.deliverable > self.peak:
            following = following._replace(peak=point.deliverable, peak_ns=at_ns)
        return following


def first_phase(point: Point, in_flight: float = 0.0) -> BacklogPhase:
    """The phase that begins at a point, of a subscription of which nothing earlier counts."""
    old = point.age_ns >= YOUNG_NS
    return BacklogPhase(
        has_backlog=old,
        was_old=old,
        since_ns=point.at_ns,
        begin_ns=point.at_ns,
        changed_ns=point.at_ns - RECHANGE_NS,
        changed=frozenset(),
        low=point.deliverable,
        peak=point.deliverable,
        peak_ns=point.at_ns,
        in_flight=in_flight,
        last=point,
    )
