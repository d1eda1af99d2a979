"""Pasts of subscriptions for tests: what each second of it was like."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.explain.points import Point
from headgate.explain.track import Track
from headgate.explain.window import Past
from headgate.flow.account.account import CELL_COUNT, Cell
from tests.unit.explain.made_points import START, S


def past(
    seconds: Sequence[Cell],
    *,
    appended_per_s: int = 100,
    acked_per_s: int = 0,
    start: int = 0,
    begin_s: int = 0,
) -> Past:
    """A past with one second in each of the cells; ``start`` messages waited before it, and
    it begins ``begin_s`` after :data:`START`."""
    cells = [0] * CELL_COUNT
    points = []
    for second in range(len(seconds) + 1):
        if second:
            cells[seconds[second - 1]] += S
        acked = acked_per_s * second
        appended = start + appended_per_s * second
        points.append(
            Point(
                cell=seconds[min(second, len(seconds) - 1)],
                cells_ns=tuple(cells),
                at_ns=START + (begin_s + second) * S,
                appended=appended,
                done=acked,
                sent=acked,
                sent_bytes=10 * acked,
                acked=acked,
                skipped=0,
                rewound=0,
                expired=0,
                evicted=0,
                redelivered=0,
                in_flight=0,
                delayed=0,
                age_ns=second * S if appended > acked else 0,
                age_ns_max=second * S if appended > acked else 0,
                limits=0,
            )
        )
    track = Track(points[0])
    for point in points[1:]:
        track.add(point)
    return Past(points, points[-2], points[-2].at_ns, track.phase)
