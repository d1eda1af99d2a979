"""Points of a history for tests."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.explain.points import Point
from headgate.flow.account.account import CELL_COUNT, Cell

S = NS_PER_S
START = 1_000 * S


def point(at_s: float, *, appended: int = 0, done: int = 0, age_s: float = 0, **more: int) -> Point:
    cells = [0] * CELL_COUNT
    cells[Cell.DISPATCHING] = round(at_s * S)
    figures = dict.fromkeys(
        ("sent", "sent_bytes", "acked", "skipped", "rewound", "expired", "evicted", "redelivered",
         "in_flight", "delayed", "limits"), 0,
    )  # fmt: skip
    age = round(age_s * S)
    return Point(
        cell=Cell.DISPATCHING,
        cells_ns=tuple(cells),
        at_ns=START + round(at_s * S),
        appended=appended,
        done=done,
        age_ns=age,
        age_ns_max=age,
        **(figures | more),
    )
