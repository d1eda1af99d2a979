"""Sums up two looks a second into a few spans of time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, Protocol, TypeVar

LOOK_EVERY_S: Final = 0.5
"""Between two looks."""
SPANS: Final = 12
"""Spans of a demo, or a few more; few enough to be read, enough to see a fall."""


class Timed(Protocol):
    """A look at something."""

    @property
    def at_s(self) -> float:
        """By the broker's clock, since the epoch."""


_Look = TypeVar("_Look", bound=Timed)


class Span(NamedTuple):
    """A few seconds, since the first look."""

    begin_s: float
    end_s: float

    @property
    def text(self) -> str:
        """``15-20 s``."""
        return f"{self.begin_s:.0f}-{self.end_s:.0f} s"


def spans(looks: Sequence[_Look], seconds: float) -> list[tuple[Span, Sequence[_Look]]]:
    """The spans that are complete, of a demo of ``seconds``, each with its looks (at least two,
    its end is the next one's begin); the last one may be short."""
    if len(looks) < 2:
        return []
    span_s = max(1.0, round(seconds / SPANS))
    begin_s, last_s = looks[0].at_s, looks[-1].at_s - looks[0].at_s
    edges_s: list[float] = []
    while (edge_s := min(span_s * len(edges_s), seconds)) <= last_s + LOOK_EVERY_S / 2:
        edges_s.append(edge_s)
        if edge_s == seconds:
            break
    at = [closest(looks, begin_s + edge_s) for edge_s in edges_s]
    return [
        (Span(begin, end), looks[first : last + 1])
        for (first, last), (begin, end) in zip(pairwise(at), pairwise(edges_s), strict=True)
        if looks[last].at_s > looks[first].at_s
    ]


def closest(looks: Sequence[Timed], at_s: float) -> int:
    """Which of the looks (at least one) was closest to an instant."""
    after = bisect_left(looks, at_s, key=lambda look: look.at_s)
    around = range(max(0, after - 1), min(after + 1, len(looks)))
    return min(around, key=lambda number: abs(looks[number].at_s - at_s))


def mean_over_time(points: Sequence[tuple[float, float]]) -> float:
    """The mean of what was seen at some instants (at least two, ``(seconds, value)``) and moves
    evenly enough from one to the next."""
    area = sum(
        (one + other) / 2 * (end_s - begin_s) for (begin_s, one), (end_s, other) in pairwise(points)
    )
    return area / (points[-1][0] - points[0][0])
