"""Who may have been robbed by a hole, and what proves that somebody was not."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.ledger import CursorState, TopicLog
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.loss_assessment import Doubt, Loss, LossAssessment


def state_of(*cursor_ids: int) -> LogState:
    state = LogState(topics={1: TopicLog(1), 2: TopicLog(2)})
    for cursor_id in cursor_ids:
        state.put_cursor(CursorState(cursor_id, 1, f"s{cursor_id}", AckSet(), {}))
    return state


def damaged(state: LogState) -> set[int]:
    return {number for number, topic in state.topics.items() if topic.damage}


def test_without_a_hole_nobody_is_damaged() -> None:
    state = state_of(3)
    assessment = LossAssessment(state, [1, 2])
    assessment.batch_ended(99, 0)
    assert not assessment.mark_damaged()
    assert not damaged(state)


def test_who_is_proven_complete_is_not_damaged() -> None:
    state = state_of(3, 4)
    assessment = LossAssessment(state, [1, 2])
    assessment.batch_ended(5, 0)
    assessment.note_unreadable("here")
    assessment.topic_is_complete(2)
    assessment.cursor_is_complete(4)
    assessment.batch_ended(5, 0)
    assert assessment.mark_damaged()
    assert damaged(state) == {1}
    assert state.topics[1].damage.startswith("here: messages of this topic may have been there")
    assert [cursor.cursor_id for cursor in state.cursors.values() if cursor.damage] == [3]


def test_an_index_clears_the_topics_but_not_the_cursors() -> None:
    state = state_of(3)
    assessment = LossAssessment(state, [1, 2])
    assessment.batch_ended(4, 0)
    assessment.note_unreadable("here", entries=False)
    assessment.batch_ended(4, 0)
    assert assessment.mark_damaged()
    assert not damaged(state)
    assert (
        state.cursors[3].damage == "here: acknowledgements of this subscription may have been there"
    )


def test_a_subscription_that_was_made_in_the_hole_shows_by_its_id() -> None:
    for made, expected in ((2, set()), (1, {1, 2})):
        state = state_of()
        assessment = LossAssessment(state, [1, 2])
        assessment.batch_ended(5, 0)
        assessment.note_unreadable("here", entries=False)
        assessment.batch_ended(7, made)
        assessment.mark_damaged()
        assert damaged(state) == expected


def test_a_hole_at_the_end_may_have_had_anything() -> None:
    state = state_of()
    assessment = LossAssessment(state, [1])
    assessment.note_unreadable("here", entries=False)
    assert assessment.mark_damaged()
    assert damaged(state) == {1}


def test_a_loss_of_what_is_trimmed_is_none() -> None:
    state = state_of()
    assessment = LossAssessment(state, [1, 2])
    state.topics[1].first, state.topics[2].first = 20, 12
    assessment.losses = [Loss(1, 10, 20, "here"), Loss(2, 10, 20, "here")]
    assert assessment.mark_damaged()
    assert damaged(state) == {2}
    assert state.topics[2].damage == "here: entries 12 to 19 are lost"
    assert state.topics[2].lost == [(12, 20)]


def test_a_damaged_entry_that_was_rewritten_is_not_lost() -> None:
    """A start refused its topic, where ``verify`` said that the copy is sound."""
    state = state_of()
    topic = state.topics[1]
    for ordinal, segment in enumerate((5, 7, 6)):
        topic.open_run(segment)
        topic.append(1, 10, 0, 0, 64 + ordinal)
    topic.end = topic.staged_end
    assessment = LossAssessment(state, [1])
    assessment.losses = [Loss(1, at, at + 1, "here", segment=6) for at in (1, 2)]
    assert assessment.mark_damaged()
    assert topic.damage == "here: entry 2 is lost"
    assert topic.lost == [(2, 3)]


def test_what_was_accepted_is_over() -> None:
    state = state_of(3)
    assessment = LossAssessment(state, [1, 2])
    assessment.batch_ended(4, 0)
    assessment.note_unreadable("here")
    assessment.note_doubt(1, Doubt("something"))
    assessment.losses = [Loss(1, 0, 9, "here")]
    assessment.batch_ended(4, 0)
    assessment.loss_accepted(1, [(0, 99)])
    assessment.mark_damaged()
    assert damaged(state) == {2}
    assert not state.cursors[3].damage
    assert not assessment.mark_damaged()


def test_what_was_known_before_is_not_lost_again() -> None:
    """Each start finds it again; a checkpoint or a record says that it is accepted."""
    state = state_of()
    state.topics[1].lost, state.topics[2].lost = [(4, 6)], [(4, 6)]
    assessment = LossAssessment(state, [1, 2])
    assessment.losses = [Loss(1, 4, 6, "here"), Loss(2, 3, 6, "here"), Loss(2, 5, 8, "there")]
    assert assessment.mark_damaged()
    assert damaged(state) == {2}
    assert state.topics[2].damage == "here: entry 3 is lost"
    assert (state.topics[1].lost, state.topics[2].lost) == ([(4, 6)], [(3, 8)])


def test_a_loss_names_message_ids_only_where_the_ledgers_are_known() -> None:
    state = state_of()
    for number in (1, 2):
        topic = state.topics[number]
        topic.open_ledger(7, 0, 0)
        topic.open_ledger(9, 5, 0)
    assessment = LossAssessment(state, [1, 2])
    assessment.losses = [Loss(1, 4, 7, "here", knows_ledgers=True), Loss(2, 4, 7, "here")]
    assessment.mark_damaged()
    assert state.topics[1].damage == "here: entries 4 to 6 are lost (message ids 7:4 to 9:1)"
    assert state.topics[2].damage == "here: entries 4 to 6 are lost"
    single = LossAssessment(state_of(), [1])
    single.losses = [Loss(1, 4, 5, "here", knows_ledgers=True)]
    single._state.topics[1].open_ledger(7, 0, 0)
    single.mark_damaged()
    assert single._state.topics[1].damage == "here: entry 4 is lost (message id 7:4)"
