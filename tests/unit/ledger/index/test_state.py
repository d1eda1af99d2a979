"""Segments and what pins them."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.ledger.index.cursors import CursorState
from headgate.ledger.index.state import LogState, SpaceTotals
from headgate.ledger.index.topic_log import Released


def test_a_segment_is_entered_once() -> None:
    state = LogState()
    info = state.enter_segment(4)
    assert state.enter_segment(4) is info
    assert list(state.unsealed) == [4]


def test_a_question_after_a_topic_makes_none() -> None:
    state = LogState()
    with pytest.raises(KeyError):
        state.topic(7)
    assert not state.topics
    topic = state.enter_topic(7)
    assert state.enter_topic(7) is state.topic(7) is topic


def test_a_sealed_segment_is_dead_once_its_last_run_is_released() -> None:
    state = LogState()
    info = state.enter_segment(4)
    info.live_runs = 2
    state.seal(info, 500)
    state.release_runs([4, 99])
    assert not state.dead
    state.release_runs([4])
    assert list(state.dead) == [4]
    state.forget_segment(4)
    assert not state.dead
    assert state.space == SpaceTotals()


def test_a_segment_with_live_bytes_or_runs_is_not_dead() -> None:
    state = LogState()
    for segment in (4, 5, 6):
        state.enter_segment(segment)
    state.born(state.segments[4], 7)
    state.segments[5].live_runs = 1
    for info in state.segments.values():
        state.seal(info, 500)
    assert list(state.dead) == [6]
    state.raise_counts(state.segments[6], 7, 1)
    assert not state.dead
    state.raise_counts(state.segments[6], 0, 0)
    assert (state.segments[6].live_bytes, state.segments[6].live_runs) == (7, 1)
    state.release([Released(4, 7, False)])
    state.release_runs([5])
    assert list(state.dead) == [5]
    state.release([Released(6, 7, True)])
    assert list(state.dead) == [5, 6]


def test_the_last_batch_before_a_segment() -> None:
    state = LogState(checkpoint_last_batch=3)
    assert state.last_batch_before(5) == 3
    state.enter_segment(4).last_batch = 10
    state.enter_segment(5).last_batch = 20
    assert state.last_batch_before(5) == 10
    assert state.last_batch_before(6) == 20
    assert state.last_batch_before(4) == 3


def test_the_last_batch_stays_known_when_its_segment_is_deleted() -> None:
    state = LogState()
    state.enter_segment(4).last_batch = 10
    last = state.enter_segment(5)
    last.last_batch = 20
    state.seal(last, 500)
    state.checkpoint_segment, state.checkpoint_last_batch = 6, 20
    state.forget_segment(5)
    assert state.last_batch_before(6) == 20


def test_cursors_are_found_by_their_topic_in_the_order_of_their_making() -> None:
    state = LogState()
    first, other, second = [
        CursorState(cursor_id, topic, f"c{cursor_id}", AckSet(), {})
        for cursor_id, topic in ((3, 1), (4, 2), (5, 1))
    ]
    for cursor in (first, other, second):
        state.put_cursor(cursor)
    replaced = CursorState(3, 1, "c3", AckSet(7), {})
    state.put_cursor(replaced)
    assert [*state.topic_cursors[1].values()] == [replaced, second]
    assert state.drop_cursor(4) is other
    assert state.drop_cursor(4) is None
    assert state.drop_cursor(3) is replaced
    assert state.topic_cursors == {1: {5: second}}
    assert state.cursors == {5: second}
