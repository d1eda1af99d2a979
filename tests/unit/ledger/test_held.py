"""What waits for room: one thing of each cursor, whatever happened to it."""

from __future__ import annotations

import pytest

from headgate.ledger.format import KIND_ACKS, KIND_CREATE, KIND_DELETE, KIND_TRIM
from headgate.ledger.held import Control, Held

MADE, ACKED, ENDED = KIND_CREATE, KIND_ACKS, KIND_DELETE


@pytest.mark.parametrize(
    ("kinds", "left"),
    [
        ([MADE], [MADE]),
        ([ACKED, ACKED], [ACKED]),
        ([MADE, ACKED], [MADE]),
        ([ACKED, MADE], [MADE]),
        ([MADE, ENDED], []),
        ([MADE, ACKED, ENDED], []),
        ([ENDED, MADE], []),
        ([ACKED, ENDED], [ENDED]),
        ([ENDED, ACKED], [ENDED]),
    ],
)
def test_of_a_cursor_only_what_holds_in_the_end_is_kept(kinds: list[int], left: list[int]) -> None:
    held = Held()
    for kind in kinds:
        held.add(Control(kind, 7))
    assert [held.take() for _ in range(len(held))] == [Control(kind, 7) for kind in left]


def test_of_a_topic_the_furthest_trim_is_kept() -> None:
    held = Held()
    for first in (5, 9, 3):
        held.add(Control(KIND_TRIM, 7, first))
    held.add(Control(ACKED, 7))
    assert len(held) == 2
    assert {held.take(), held.take()} == {Control(KIND_TRIM, 7, 9), Control(ACKED, 7)}
    assert not held


def test_what_goes_with_its_topic_is_forgotten() -> None:
    held = Held()
    held.add(Control(MADE, 1))
    held.add(Control(KIND_TRIM, 2, 5))
    for _ in range(2):
        held.forget_cursor(1)
        held.forget_trim(2)
    assert not held
