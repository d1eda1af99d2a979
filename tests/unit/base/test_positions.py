"""Positions sort as Pulsar's do, with the special ones at the ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.positions import EARLIEST, LATEST, Position

IDS = st.integers(min_value=0, max_value=2**62)


def test_it_reads_as_admin_tools_print_it() -> None:
    assert str(Position(12, 7)) == "12:7"


@given(IDS, IDS)
def test_every_entry_lies_between_the_special_ones(ledger_id: int, entry_id: int) -> None:
    assert EARLIEST < Position(ledger_id, entry_id) < LATEST


@given(IDS, IDS, IDS, IDS)
def test_the_ledger_decides_before_the_entry(a: int, b: int, c: int, d: int) -> None:
    assert (Position(a, b) < Position(c, d)) == ((a, b) < (c, d))
