"""What waits for room: one thing of each cursor, whatever happened to it."""

from __future__ import annotations

import pytest

from headgate.ledger.format.records import (
    KIND_ACKS,
    KIND_CREATE,
    KIND_DELETE,
    KIND_PROPERTIES,
    KIND_SEQUENCES,
    KIND_TRIM,
)
from headgate.ledger.write.deferred_controls import RESTATED, Control, DeferredControls

MADE, ACKED, ENDED, PROPERTIES = KIND_CREATE, KIND_ACKS, KIND_DELETE, KIND_PROPERTIES


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
        ([RESTATED], [RESTATED]),
        ([RESTATED, ACKED], [RESTATED]),
        ([ACKED, RESTATED], [RESTATED]),
        ([MADE, RESTATED], [MADE]),
        ([RESTATED, MADE], [MADE]),
        ([RESTATED, ENDED], [ENDED]),
        ([ENDED, RESTATED], [ENDED]),
        ([MADE, RESTATED, ENDED], []),
        ([PROPERTIES], [RESTATED]),
        ([PROPERTIES, ACKED], [RESTATED]),
        ([MADE, PROPERTIES], [MADE]),
        ([ENDED, PROPERTIES], [ENDED]),
    ],
)
def test_of_a_cursor_only_what_holds_in_the_end_is_kept(kinds: list[int], left: list[int]) -> None:
    deferred = DeferredControls()
    for kind in kinds:
        deferred.add(Control(kind, 7))
    assert [deferred.take() for _ in range(len(deferred))] == [Control(kind, 7) for kind in left]


def test_of_a_topic_the_furthest_trim_is_kept() -> None:
    deferred = DeferredControls()
    for first in (5, 9, 3):
        deferred.add(Control(KIND_TRIM, 7, first))
    deferred.add(Control(ACKED, 7))
    assert len(deferred) == 2
    assert {deferred.take(), deferred.take()} == {Control(KIND_TRIM, 7, 9), Control(ACKED, 7)}
    assert not deferred


def test_what_goes_with_its_topic_is_forgotten() -> None:
    deferred = DeferredControls()
    deferred.add(Control(MADE, 1))
    deferred.add(Control(KIND_TRIM, 2, 5))
    deferred.add(Control(KIND_SEQUENCES, 2))
    deferred.add(Control(KIND_SEQUENCES, 2))
    assert len(deferred) == 3
    for _ in range(2):
        deferred.forget_cursor(1)
        deferred.forget_topic(2)
    assert not deferred


def test_that_deduplication_began_or_ended_is_kept_once() -> None:
    deferred = DeferredControls()
    for _ in range(2):
        deferred.add(Control(KIND_SEQUENCES, 7))
    assert [deferred.take() for _ in range(len(deferred))] == [Control(KIND_SEQUENCES, 7)]


def test_a_restated_cursor_has_the_record_of_a_new_one() -> None:
    assert Control(RESTATED, 1).record_kind == KIND_CREATE
    assert [Control(kind, 1).record_kind for kind in (MADE, ACKED, ENDED)] == [MADE, ACKED, ENDED]


def test_trims_come_first_and_creations_are_known() -> None:
    deferred = DeferredControls()
    for control in (Control(KIND_SEQUENCES, 7), Control(KIND_TRIM, 7, 3), Control(MADE, 1)):
        deferred.add(control)
    deferred.add(Control(ENDED, 2))
    deferred.add(Control(RESTATED, 3))
    assert deferred.creations() == {1}
    assert deferred.take() == Control(KIND_TRIM, 7, 3)
    assert len(deferred) == 4
