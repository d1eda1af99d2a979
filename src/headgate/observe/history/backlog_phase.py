"""When a subscription's backlog began, or since when it has had none."""

from __future__ import annotations

from typing import NamedTuple

from headgate.base.units import NS_PER_S
from headgate.flow.account.verdict import IN_FLIGHT_NS, YOUNG_NS
from headgate.flow.limits.rate_limit import Level
from headgate.observe.history.points import Point, changed_levels

RISING_NS = 5 * NS_PER_S
"""A young backlog without a new peak for this long counts as not growing."""

RATE_NS_MIN = NS_PER_S // 2
"""Points closer together than this give no rate."""

RESTART_NS = 10 * NS_PER_S
"""A level whose limit changes again within this time does not restart the judged time."""


class BacklogPhase(NamedTuple):
    """Whether a subscription is calm (has only messages in flight) or has a backlog.

    It is calm while its oldest message is young and its backlog exceeds the lowest one of this
    phase by no more than the present rate puts in flight. A backlog that stays young and sets no
    new peak for five seconds is calm again, on a higher level. The judged time begins at the last
    calm point or the last change of the limits: what an earlier limit did is no evidence about the
    present one.
    """

    is_calm: bool
    was_old: bool
    """Whether the oldest message was not young at the last point."""
    since_ns: int
    """When the phase began; a backlog begins at the last calm point."""
    begin_ns: int
    """Start of the time that the verdict is about."""
    changed_ns: int
    """When a change of the limits last moved ``begin_ns``."""
    changed: frozenset[Level]
    """Levels whose limits did so, each within :data:`RESTART_NS` of the one before."""
    low: int
    """The lowest backlog of this phase."""
    peak: int
    peak_ns: int
    in_flight: float
    """Messages that the last known publish rate puts in flight."""
    before: Point
    """The last point."""

    def after(self, point: Point) -> BacklogPhase:
        """The phase after a later point."""
        following = self._replace(before=point)
        if point.age_ns >= YOUNG_NS:
            return following._with_backlog(self.before)._replace(was_old=True)
        if self.was_old:
            return calm_phase(point)
        elapsed_ns = max(point.at_ns - self.before.at_ns, IN_FLIGHT_NS)
        in_flight = (point.appended - self.before.appended) * IN_FLIGHT_NS / elapsed_ns
        if elapsed_ns < RATE_NS_MIN and self.in_flight > in_flight:
            in_flight = self.in_flight  # too short a time for a rate
        following = following._replace(in_flight=in_flight)
        if point.backlog <= self.low + max(1.0, in_flight):
            if not self.is_calm:
                return calm_phase(point, in_flight)
            return following._replace(low=min(self.low, point.backlog))
        following = following._with_backlog(self.before)
        if point.at_ns - following.peak_ns >= RISING_NS:
            return calm_phase(point, in_flight)
        return following

    def _with_backlog(self, before: Point) -> BacklogPhase:
        """The phase with a backlog that the new point shows; ``before`` is the point before it."""
        point, at_ns = self.before, self.before.at_ns
        if self.is_calm:
            return self._replace(
                is_calm=False,
                since_ns=before.at_ns,
                begin_ns=before.at_ns,
                peak=point.backlog,
                peak_ns=at_ns,
            )
        following = self
        levels = changed_levels(before, point)
        recent = self.changed if at_ns - self.changed_ns < RESTART_NS else frozenset()
        if levels - recent:
            following = following._replace(
                begin_ns=at_ns, changed_ns=at_ns, changed=levels | recent
            )
        if point.backlog > self.peak:
            following = following._replace(peak=point.backlog, peak_ns=at_ns)
        return following


def calm_phase(point: Point, in_flight: float = 0.0) -> BacklogPhase:
    """The phase that begins at a point: the first one of a subscription, or of a new calm."""
    old = point.age_ns >= YOUNG_NS
    return BacklogPhase(
        is_calm=not old,
        was_old=old,
        since_ns=point.at_ns,
        begin_ns=point.at_ns,
        changed_ns=point.at_ns - RESTART_NS,
        changed=frozenset(),
        low=point.backlog,
        peak=point.backlog,
        peak_ns=point.at_ns,
        in_flight=in_flight,
        before=point,
    )
