"""The points of a subscription's history between two instants, summed over its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.base.units import NS_PER_S
from headgate.explain.backlog_phase import BacklogPhase
from headgate.explain.points import Point, later
from headgate.flow.account.account import difference


@dataclass(frozen=True, slots=True)
class Window:
    """What happened between two instants, summed over partitions."""

    start: Sequence[Point]
    """Of each partition."""
    end: Sequence[Point]
    """Of each partition."""
    cells_ns: tuple[int, ...]
    """Time in each state of the account."""
    age_ns_max: int
    """The largest age of the oldest message."""

    @property
    def length_ns(self) -> int:
        """The longest of the partitions' windows, at least 1."""
        return max(1, *(b.at_ns - a.at_ns for a, b in zip(self.start, self.end, strict=True)))

    def gained(self, field: str) -> int:
        """Growth of a counter."""
        return self.total_end(field) - self.total_start(field)

    def total_start(self, field: str) -> int:
        """A figure of :class:`Point` at the start."""
        return sum(getattr(point, field) for point in self.start)

    def total_end(self, field: str) -> int:
        """A figure of :class:`Point` at the end."""
        return sum(getattr(point, field) for point in self.end)

    def per_second(self, field: str) -> float:
        """A counter's mean rate."""
        return self.gained(field) * NS_PER_S / self.length_ns


@dataclass(frozen=True, slots=True)
class Past:
    """One partition's part of a subscription, in the last hour and now."""

    hour: Sequence[Point]
    """The kept points, ending with the present; at least two."""
    last: Point
    """The newest kept point."""
    seen_ns: int
    """Nothing happened from ``last`` up to this instant."""
    phase: BacklogPhase

    @property
    def now(self) -> Point:
        """The point of this instant."""
        return self.hour[-1]

    def points(self, start_ns: int) -> Sequence[Point]:
        """The points from ``start_ns`` (less than an hour ago) on, ending with the present."""
        points = [point for point in self.hour if point.at_ns >= start_ns]
        if len(points) > 1:
            return points
        return [later(self.last, max(self.last.at_ns, min(start_ns, self.seen_ns))), self.now]


def window(parts: Sequence[Past], length_ns: int) -> Window:
    """The last ``length_ns`` (at most an hour), or as much of it as is known."""
    begin_ns = max(part.now.at_ns for part in parts) - length_ns
    return window_over([part.points(begin_ns) for part in parts])


def window_over(series: Sequence[Sequence[Point]]) -> Window:
    """The window over the points of each partition, from the first to the last."""
    changes = [difference(points[-1].cells_ns, points[0].cells_ns) for points in series]
    return Window(
        start=[points[0] for points in series],
        end=[points[-1] for points in series],
        cells_ns=tuple(sum(column) for column in zip(*changes, strict=True)),
        age_ns_max=max(max(point.age_ns_max for point in points[1:]) for points in series),
    )
