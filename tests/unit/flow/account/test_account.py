"""Every instant is booked once."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InvariantError
from headgate.flow.account.account import (
    CELL_COUNT,
    LABELS,
    Account,
    Cell,
    State,
    difference,
    is_hungry,
    throttled_cell,
)
from headgate.flow.limits.rate_limit import Dimension, Level


@given(st.lists(st.tuples(st.sampled_from(list(Cell)), st.integers(0, 10**12)), max_size=50))
def test_the_cells_add_up_to_the_elapsed_time(moves: list[tuple[Cell, int]]) -> None:
    now_ns, account = 17, Account(17)
    before = account.snapshot(17)
    for cell, gap_ns in moves:
        now_ns += gap_ns
        account.move(cell, now_ns)
        after = account.snapshot(now_ns)
        assert min(difference(after, before)) >= 0
        before = after
    assert sum(account.snapshot(now_ns + 5)) == now_ns + 5 - account.opened_ns


def test_time_never_goes_back() -> None:
    account = Account(10)
    with pytest.raises(InvariantError):
        account.move(Cell.STORAGE, 9)


def test_retelling_moves_only_what_no_snapshot_has_shown() -> None:
    account = Account(0, Cell.SUBSCRIPTION_MESSAGES_HUNGRY)
    shown = account.snapshot(10)
    account.reassign(Cell.TOPIC_MESSAGES_HUNGRY)
    account.move(Cell.DISPATCHING, 25)
    final = account.snapshot(25)
    assert shown[Cell.SUBSCRIPTION_MESSAGES_HUNGRY] == 10
    assert final[Cell.SUBSCRIPTION_MESSAGES_HUNGRY] == 10
    assert final[Cell.TOPIC_MESSAGES_HUNGRY] == 15


def test_a_part_of_the_present_stretch_may_be_given_away() -> None:
    account = Account(0, Cell.TOPIC_BYTES_HUNGRY)
    shown = account.snapshot(10)
    account.reassign_part(Cell.DISPATCHING, 6, 20)
    assert account.cell is Cell.TOPIC_BYTES_HUNGRY
    assert account.entered_ns == 0
    # No more than what no snapshot has shown.
    account.reassign_part(Cell.DISPATCHING, 1_000, 25)
    account.reassign_part(Cell.DISPATCHING, 1_000, 25)
    final = account.snapshot(30)
    assert final[Cell.DISPATCHING] == 11
    assert final[Cell.TOPIC_BYTES_HUNGRY] == shown[Cell.TOPIC_BYTES_HUNGRY] + 4 + 5


def test_it_remembers_since_when_the_present_cell_lasts() -> None:
    account = Account(5, Cell.NO_CONSUMER)
    account.move(Cell.DISPATCHING, 10)
    account.move(Cell.DISPATCHING, 20)
    account.snapshot(30)
    assert account.entered_ns == 10
    account.move(Cell.CAUGHT_UP, 40)
    assert account.entered_ns == 40


def test_an_idle_account_is_small() -> None:
    assert sys.getsizeof(Account(0)) < 100


def test_every_cell_has_its_own_labels() -> None:
    assert len(set(LABELS)) == CELL_COUNT
    assert {labels.state for labels in LABELS} == set(State)
    for level in Level:
        for dimension in Dimension:
            for hungry in (True, False):
                labels = LABELS[throttled_cell(level, dimension, hungry=hungry)]
                assert labels.state.value == f"throttled_{level.name.lower()}"
                assert labels.dimension == dimension.name.lower()
                assert labels.consumer == ("hungry" if hungry else "busy")
                assert labels.level is level
    assert LABELS[Cell.CAUGHT_UP].dimension == LABELS[Cell.CAUGHT_UP].consumer == ""


def test_half_of_the_window_free_is_hungry() -> None:
    assert is_hungry(500, 1000)
    assert not is_hungry(499, 1000)
    assert not is_hungry(0, 0)


def test_a_passing_look_books_nothing() -> None:
    account = Account(100, Cell.CAUGHT_UP)
    assert account.peek(130)[Cell.CAUGHT_UP] == 30
    assert account.since_ns == 100
    account.move(Cell.NO_CONSUMER, 150)
    assert (account.since_ns, account.cell) == (150, Cell.NO_CONSUMER)
    assert account.peek(175) == account.snapshot(175)
    assert account.since_ns == 175
