"""Divides the snapshots of a demo into a few spans of time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol, TypeVar

SNAPSHOT_PERIOD_S: Final = 0.5
"""Time between two snapshots."""
SPANS: Final = 12
"""Approximate number of spans: few enough to read, enough to show a fall."""


class Timed(Protocol):
    """A snapshot with its instant."""

    @property
    def at_s(self) -> float:
        """By the broker's clock, since the epoch."""


_Snapshot = TypeVar("_Snapshot", bound=Timed)


class Span(NamedTuple):
    """A few seconds, since the first look."""

    begin_s: float
    end_s: float

    @property
    def text(self) -> str:
        """``15-20 s``."""
        return f"{self.begin_s:.0f}-{self.end_s:.0f} s"


def spans(snapshots: Sequence[_Snapshot], seconds: float) -> list[tuple[Span, Sequence[_Snapshot]]]:
    """The spans that are complete, of a demo of ``seconds``, each with its looks (at least two,
    its end is the next one's begin); the last one may be short."""
    if len(snapshots) < 2:
        return []
    span_s = max(1.0, round(seconds / SPANS))
    begin_s, last_s = snapshots[0].at_s, snapshots[-1].at_s - snapshots[0].at_s
    edges_s: list[float] = []
    while (edge_s := min(span_s * len(edges_s), seconds)) <= last_s + SNAPSHOT_PERIOD_S / 2:
        edges_s.append(edge_s)
        if edge_s == seconds:
            break
    at = [closest(snapshots, begin_s + edge_s) for edge_s in edges_s]
    return [
        (Span(begin, end), snapshots[first : last + 1])
        for (first, last), (begin, end) in zip(pairwise(at), pairwise(edges_s), strict=True)
        if snapshots[last].at_s > snapshots[first].at_s
    ]


def closest(snapshots: Sequence[Timed], at_s: float) -> int:
    """Which of the looks (at least one) was closest to an instant."""
    after = bisect_left(snapshots, at_s, key=lambda snapshot: snapshot.at_s)
    around = range(max(0, after - 1), min(after + 1, len(snapshots)))
    return min(around, key=lambda number: abs(snapshots[number].at_s - at_s))


def mean_over_time(points: Sequence[tuple[float, float]]) -> float:
    """The mean of what was seen at some instants (at least two, ``(seconds, value)``) and moves
    evenly enough from one to the next."""
    area = sum(
        (one + other) / 2 * (end_s - begin_s) for (begin_s, one), (end_s, other) in pairwise(points)
    )
    return area / (points[-1][0] - points[0][0])
