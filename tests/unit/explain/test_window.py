"""The points of a past between two instants."""

from __future__ import annotations

from headgate.base.units import NS_PER_MINUTE, NS_PER_S
from headgate.explain.window import window
from headgate.flow.account.account import Cell
from tests.unit.explain.made_past import past

BUSY = [Cell.DISPATCHING] * 20


def test_a_window_begins_where_it_is_asked_to() -> None:
    seen = window([past(BUSY, appended_per_s=10)], 5 * NS_PER_S)
    assert seen.length_ns == 5 * NS_PER_S
    assert seen.gained("appended") == 50
    assert seen.per_second("appended") == 10
    assert seen.cells_ns[Cell.DISPATCHING] == 5 * NS_PER_S


def test_it_is_as_long_as_is_known_and_sums_over_the_parts() -> None:
    seen = window([past(BUSY), past(BUSY[:8])], NS_PER_MINUTE)
    assert seen.length_ns == 20 * NS_PER_S
    assert seen.cells_ns[Cell.DISPATCHING] == 28 * NS_PER_S
    assert seen.total_end("backlog") == 2_800
    assert seen.age_ns_max == 20 * NS_PER_S
