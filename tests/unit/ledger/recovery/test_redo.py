"""Single records applied to the state, and what they show to be lost."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError
from headgate.ledger import CursorState
from headgate.ledger.format.records import (
    ACCEPT,
    CURSOR_ID,
    KIND_ACCEPT,
    KIND_ACKS,
    KIND_CREATE,
    KIND_DELETE,
    KIND_PROPERTIES,
    KIND_TRIM,
    ORDINALS,
    RUN,
    TRIM,
)
from headgate.ledger.index.cursors import encode_change_of_properties, encode_cursor
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.loss_assessment import Doubt, LossAssessment
from headgate.ledger.recovery.redo import Redo


def records(*, without_checkpoint: bool = False) -> tuple[LogState, LossAssessment, Redo]:
    state = LogState()
    assessment = LossAssessment(state, [1])
    found = Redo(state, [1], assessment)
    found.segment = 4
    found.without_checkpoint = without_checkpoint
    return state, assessment, found


def run(number: int, ordinal: int, ledger_id: int = 3) -> bytes:
    return RUN.pack(number, 0, ordinal, 2 * ordinal, 9 * ordinal, 1000, ledger_id, 0, 5)


def test_a_run_that_begins_later_than_its_topic_has_is_a_loss() -> None:
    state, assessment, found = records()
    found.run(run(1, 0), 100)
    state.topics[1].append(1, 5, 900, 0, 180)
    found.segment = 5
    found.run(run(1, 4), 64)
    (loss,) = assessment.losses
    assert (loss.topic, loss.first, loss.stop) == (1, 1, 4)
    assert loss.place == "before 0000000000000005.log offset 64"
    topic = state.topics[1]
    assert (topic.end, topic.messages_before(4), topic.bytes_before(4)) == (4, 8, 36)


def test_without_a_checkpoint_what_came_before_the_first_run_was_nobodys() -> None:
    state, assessment, found = records(without_checkpoint=True)
    found.run(run(1, 40), 100)
    assert not assessment.losses
    assert (state.topics[1].first, state.topics[1].end) == (40, 40)


def test_records_of_topics_that_do_not_exist_are_garbage() -> None:
    state, assessment, found = records()
    found.run(run(9, 0), 100)
    assert found.entry_out_of_sequence(9, 7, 100) is None
    found.control(KIND_TRIM, TRIM.pack(9, 0, 5), 100)
    found.control(KIND_ACCEPT, ACCEPT.pack(9, 0), 100)
    assert (state.topics, assessment.doubts, found.trims) == ({}, {}, {})
    assert state.next_ledger_id == 4


def test_an_entry_without_its_run_is_a_doubt() -> None:
    state, assessment, found = records()
    topic = found.entry_out_of_sequence(1, 7, 200)
    assert topic is state.topics[1]
    assert (topic.staged_end, topic.segment) == (7, 4)
    what = "before 0000000000000004.log offset 200: what belongs before entry 7 is lost"
    assert assessment.doubts == {1: [Doubt(what, 7)]}


def test_an_entry_that_was_taken_for_another_goes_again() -> None:
    state, _, found = records()
    found.run(run(1, 0), 100)
    topic = state.topics[1]
    for offset in (180, 300):
        topic.append(1, 5, 900, 0, offset)
        topic.end = topic.staged_end
    assert found.entry_out_of_sequence(1, 1, 400) is topic
    assert topic.staged_end == 1


def test_whole_acknowledgements_heal_a_cursor_and_changes_do_not() -> None:
    state, assessment, found = records()
    live = AckSet()
    state.put_cursor(CursorState(6, 1, "s", AckSet(), {}, "somewhere"))
    assessment.note_unreadable("here")
    live.ack(3)
    changes = live.take_changes()
    assert changes is not None
    found.control(KIND_ACKS, CURSOR_ID.pack(6) + changes.to_bytes(), 100)
    assert 6 in assessment.cursors
    found.control(KIND_ACKS, CURSOR_ID.pack(6) + live.whole().to_bytes(), 100)
    assert (state.cursors[6].damage, assessment.cursors) == ("", {})


def test_an_acceptance_says_what_is_lost_and_heals_the_rest() -> None:
    state, assessment, found = records()
    state.enter_topic(1).damage = "somewhere"
    state.put_cursor(CursorState(6, 1, "s", AckSet(), {}, "somewhere"))
    assessment.note_doubt(1, Doubt("here"))
    found.control(KIND_ACCEPT, ACCEPT.pack(1, 1) + ORDINALS.pack(3, 5), 100)
    assert (state.topics[1].damage, state.topics[1].lost) == ("", [(3, 5)])
    assert (state.cursors[6].damage, assessment.doubts) == ("", {})


def test_an_unknown_kind_is_named() -> None:
    _, _, found = records()
    with pytest.raises(CorruptionError, match=r"0004\.log offset 100: a record of unknown kind 77"):
        found.control(77, b"", 100)


def test_a_restated_cursor_is_replaced_and_is_no_new_one() -> None:
    state, _, found = records()
    acks = AckSet()
    found.control(KIND_CREATE, encode_cursor(CursorState(3, 1, "s", acks, {"a": "b"})), 100)
    acks.ack(0)
    found.control(KIND_CREATE, encode_cursor(CursorState(3, 1, "s", acks, {})), 200)
    assert found.cursors_made == 1
    assert state.next_cursor_id == 4
    (cursor,) = state.cursors_of(1)
    assert (cursor.properties, cursor.ack_set.mark_delete) == ({}, 0)


def test_properties_are_replaced_and_the_rest_of_a_cursor_stays() -> None:
    state, _, found = records()
    acks = AckSet()
    acks.ack(0)
    found.control(KIND_CREATE, encode_cursor(CursorState(3, 1, "s", acks, {"a": "b"})), 100)
    found.control(KIND_PROPERTIES, encode_change_of_properties(3, {"c": "\u20ac"}), 200)
    found.control(KIND_PROPERTIES, encode_change_of_properties(9, {"c": "d"}), 300)
    (cursor,) = state.cursors_of(1)
    assert (cursor.properties, cursor.ack_set.mark_delete) == ({"c": "\u20ac"}, 0)
    with pytest.raises(CorruptionError, match="a change of properties is damaged"):
        found.control(KIND_PROPERTIES, b"\xff" * 3, 400)


@pytest.mark.parametrize("kind", [KIND_ACCEPT, KIND_ACKS, KIND_DELETE, KIND_TRIM])
def test_a_record_without_the_content_of_its_kind_is_an_error_of_the_log(kind: int) -> None:
    _, _, found = records()
    with pytest.raises(CorruptionError, match="not the content of its kind"):
        found.control(kind, b"\xff" * 3, 100)
    with pytest.raises(CorruptionError, match=r"0000000000000004\.log offset 100"):
        found.run(b"", 100)
