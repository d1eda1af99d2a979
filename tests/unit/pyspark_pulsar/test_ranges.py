from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar.offsets import Position, earliest, parse_position
from pyspark_pulsar.ranges import (
    DueEntries,
    LedgerSpan,
    ReadRange,
    TopicSnapshot,
    admit,
    batch_start,
    due_entries,
    end_position,
    plan_ranges,
    position_after,
    replaced_topic,
    stored_end,
    unread_loss,
)

T = "persistent://public/default/t"
U = "persistent://public/default/u"
START = earliest(T)


def snapshot(
    *ledgers: tuple[int, int], last: tuple[int, int] | None = None, per_entry: float = 1.0
) -> TopicSnapshot:
    """Ledgers as (id, entries), 100 bytes an entry; the last message is the last entry."""
    filled = [each for each in ledgers if each[1] > 0]
    if last is None and filled:
        last = (filled[-1][0], filled[-1][1] - 1)
    return TopicSnapshot(
        tuple(LedgerSpan(ledger, entries, 100 * entries) for ledger, entries in ledgers),
        last,
        per_entry,
    )


def entries_of(due: tuple[DueEntries, ...]) -> list[tuple[int, int]]:
    return [
        (part.ledger_id, entry)
        for part in due
        for entry in range(part.first_entry, part.last_entry + 1)
    ]


class TestEnd:
    def test_the_end_in_an_open_ledger_is_its_last_entry(self) -> None:
        assert end_position(T, snapshot((3, 6), (4, 2))) == Position(4, 1)

    def test_the_end_after_a_closed_ledger_is_the_next_ledgers_start(self) -> None:
        assert end_position(T, snapshot((3, 6), (4, 0))) == Position(4, -1)
        assert end_position(T, snapshot((3, 6), (4, 0), (7, 0))) == Position(7, -1)

    def test_the_end_of_a_fully_trimmed_topic_is_the_open_ledgers_start(self) -> None:
        assert end_position(T, snapshot((9, 0), last=(8, 19))) == Position(9, -1)

    def test_the_end_may_be_before_all_entries_of_a_ledger(self) -> None:
        assert end_position(T, snapshot((3, 6), (4, 2), last=(4, -1))) == Position(4, -1)
        assert end_position(T, snapshot((3, 6), (4, 2), last=(3, 5))) == Position(4, -1)

    def test_the_stored_end_is_behind_open_transactions(self) -> None:
        held = replace(snapshot((3, 6), (4, 2), last=(3, 2)), last_stored=(4, 0))
        assert (end_position(T, held), stored_end(T, held)) == (Position(3, 2), Position(4, 0))
        assert stored_end(T, snapshot((3, 6), last=(3, 2))) == Position(3, 2)

    def test_the_end_of_an_unused_topic_is_earliest(self) -> None:
        assert end_position(T, TopicSnapshot((LedgerSpan(3, 0, 0),), None)) == earliest(T)
        assert end_position(T, TopicSnapshot((), None)) == earliest(T)

    def test_the_end_never_passes_the_listed_entries(self) -> None:
        assert end_position(T, snapshot((3, 6), last=(3, 9))) == Position(3, 5)
        assert end_position(T, snapshot((3, 6), last=(4, 0))) == Position(3, 5)

    def test_the_end_may_lie_before_entries_hidden_from_readers(self) -> None:
        assert end_position(T, snapshot((3, 6), last=(3, 3))) == Position(3, 3)

    def test_the_end_has_the_partitions_index(self) -> None:
        assert end_position("x-partition-2", snapshot((3, 6))) == Position(3, 5, 2)


class TestDue:
    def test_a_whole_topic_is_due(self) -> None:
        due = due_entries(snapshot((3, 2), (4, 0), (5, 3)), START, Position(5, 2))
        assert entries_of(due) == [(3, 0), (3, 1), (5, 0), (5, 1), (5, 2)]

    def test_start_is_left_out_and_end_included(self) -> None:
        due = due_entries(snapshot((3, 9)), Position(3, 2), Position(3, 4))
        assert entries_of(due) == [(3, 3), (3, 4)]

    def test_partly_read_entries_at_both_ends_are_due(self) -> None:
        due = due_entries(snapshot((3, 9)), Position(3, 2, -1, 5), Position(3, 4, -1, 0))
        assert entries_of(due) == [(3, 2), (3, 3), (3, 4)]

    def test_a_trimmed_start_leaves_the_retained_entries(self) -> None:
        due = due_entries(snapshot((5, 2)), Position(3, 2), Position(5, 1))
        assert entries_of(due) == [(5, 0), (5, 1)]

    def test_an_end_at_a_ledgers_start_includes_nothing_of_it(self) -> None:
        due = due_entries(snapshot((3, 2), (5, 2)), START, Position(5, -1))
        assert entries_of(due) == [(3, 0), (3, 1)]


class TestLoss:
    def test_nothing_is_lost_while_the_starts_ledger_is_retained(self) -> None:
        held = snapshot((3, 6), (4, 2))
        assert unread_loss(T, held, Position(3, 2), Position(4, 1)) is None
        assert unread_loss(T, held, START, Position(4, 1)) is None

    def test_a_trimmed_start_may_be_a_loss(self) -> None:
        found = unread_loss(T, snapshot((4, 2)), Position(3, 2), Position(4, 1))
        assert found is not None
        assert "up to 3:2:-1:-1" in found
        assert "oldest ledger it still holds is 4" in found

    def test_a_trimmed_start_at_the_last_message_is_no_loss(self) -> None:
        idle = snapshot((9, 0), last=(8, 19))
        assert unread_loss(T, idle, Position(8, 19), Position(9, -1)) is None
        assert unread_loss(T, idle, Position(8, 18), Position(9, -1)) is not None

    def test_trimmed_messages_behind_an_open_transaction_are_a_loss(self) -> None:
        """The query read up to its first message, and never what was behind."""
        held = replace(snapshot((4, 2), last=(3, 4)), last_stored=(4, 1))
        assert unread_loss(T, held, Position(3, 4), Position(4, -1)) is not None

    def test_the_start_of_the_oldest_ledger_is_no_loss(self) -> None:
        assert unread_loss(T, snapshot((4, 2)), Position(4, -1), Position(4, 1)) is None

    def test_a_place_behind_the_end_means_another_topic(self) -> None:
        found = unread_loss(T, snapshot((3, 6)), Position(3, 2), Position(8, 0))
        assert found is not None
        assert "not the same topic" in found
        assert unread_loss(T, snapshot((3, 6)), Position(3, 6), Position(3, 7)) is not None

    def test_a_missing_topic_is_a_loss(self) -> None:
        assert unread_loss(T, None, Position(3, 2), Position(3, 4)) == (
            f"{T} no longer exists; the query read it up to 3:2:-1:-1"
        )


class TestOtherTopic:
    HELD = snapshot((3, 6), (5, 2), (9, 4))

    @pytest.mark.parametrize(
        "place",
        ["-1:-1", "1:7", "3:-1", "3:5", "4:-1", "5:1", "9:-1", "9:3"],
    )
    def test_retained_or_trimmed_positions_belong_to_the_topic(self, place: str) -> None:
        assert replaced_topic(T, self.HELD, parse_position(place, T)) is None

    @pytest.mark.parametrize("place", ["3:6", "4:0", "5:2", "6:3", "9:4", "10:-1", "10:0"])
    def test_unknown_positions_belong_to_another_topic(self, place: str) -> None:
        found = replaced_topic(T, self.HELD, parse_position(place, T))
        assert found is not None
        assert f"up to {place}:-1:-1, a position that it never had" in found
        assert "it ends at ledger 9 with 4 entries" in found

    def test_an_unused_topic_is_not_replaced(self) -> None:
        assert replaced_topic(T, TopicSnapshot((), None), Position(9, 4)) is None

    def test_a_batch_of_another_topic_begins_at_its_first_message(self) -> None:
        for start, end in (("10:0", "5:1"), ("6:3", "9:1"), ("10:0", "9:-1")):
            own = parse_position(start, T), parse_position(end, T)
            assert batch_start(T, self.HELD, *own) == START

    def test_a_batch_of_this_or_the_former_topic_begins_as_planned(self) -> None:
        for start, end in (("3:2", "9:1"), ("1:0", "5:-1"), ("10:0", "10:5"), ("6:3", "6:9")):
            own = parse_position(start, T), parse_position(end, T)
            assert batch_start(T, self.HELD, *own) == own[0]


class TestAdmit:
    def test_without_limits_everything_is_read(self) -> None:
        held = {T: snapshot((3, 6))}
        assert admit({}, {T: Position(3, 5)}, held, None, None) == {T: Position(3, 5)}

    def test_row_limits_are_exact_for_single_messages(self) -> None:
        held = {T: snapshot((3, 3000)), U: snapshot((4, 1000))}
        ends = {name: end_position(name, each) for name, each in held.items()}
        admitted = admit({}, ends, held, 1000, None)
        assert admitted == {T: Position(3, 749), U: Position(4, 249)}

    def test_an_indivisible_row_limit_is_used_completely(self) -> None:
        held = {T: snapshot((3, 10)), U: snapshot((4, 10))}
        ends = {name: end_position(name, each) for name, each in held.items()}
        admitted = admit({}, ends, held, 7, None)
        assert sorted(each.entry_id + 1 for each in admitted.values()) == [3, 4]

    def test_batched_entries_count_by_their_mean(self) -> None:
        held = {T: snapshot((3, 100), per_entry=50.0)}
        assert admit({}, {T: Position(3, 99)}, held, 500, None) == {T: Position(3, 9)}

    def test_byte_limits_hold(self) -> None:
        held = {T: snapshot((3, 10), (4, 100))}
        assert admit({}, {T: Position(4, 99)}, held, None, 2_000) == {T: Position(4, 9)}

    def test_the_tighter_limit_holds(self) -> None:
        held = {T: snapshot((3, 100))}
        end = {T: Position(3, 99)}
        assert admit({}, end, held, 5, 2_000) == {T: Position(3, 4)}
        assert admit({}, end, held, 50, 2_000) == {T: Position(3, 19)}

    def test_at_least_one_entry_is_read(self) -> None:
        held = {T: snapshot((3, 100), per_entry=1000.0), U: snapshot((4, 2))}
        ends = {T: Position(3, 99), U: Position(4, 1)}
        assert admit({}, ends, held, 1, 1) == {T: Position(3, 0), U: Position(4, 0)}

    def test_a_partition_without_new_entries_stays(self) -> None:
        held = {T: snapshot((3, 100)), U: snapshot((4, 200))}
        ends = {T: Position(3, 99), U: Position(4, 199)}
        assert admit({T: Position(3, 99)}, ends, held, 10, None)[T] == Position(3, 99)

    @given(
        st.lists(st.integers(0, 40), min_size=1, max_size=4),
        st.integers(1, 50),
        st.one_of(st.none(), st.integers(1, 5_000)),
    )
    def test_repeated_triggers_reach_the_end_within_the_limit(
        self, entries: list[int], rows_max: int, bytes_max: int | None
    ) -> None:
        held = {T: snapshot(*((3 + n, count) for n, count in enumerate(entries)))}
        end = end_position(T, held[T])
        reached = {T: START}
        for _ in range(sum(entries) + 1):
            following = admit(reached, {T: end}, held, rows_max, bytes_max)
            read = len(entries_of(due_entries(held[T], reached[T], following[T])))
            assert read <= rows_max
            assert bytes_max is None or read <= max(1, bytes_max // 100)
            reached = following
        assert reached == {T: end}


class TestPlan:
    def test_each_partition_with_due_entries_gets_one_range(self) -> None:
        held = {T: snapshot((3, 6)), U: snapshot((4, 2))}
        ends = {T: Position(3, 5), U: Position(4, 1)}
        plan = plan_ranges({U: Position(4, 1)}, ends, held, 1)
        assert plan.losses == ()
        assert plan.ranges == (ReadRange(T, START, Position(3, 5), (DueEntries(3, 0, 5, 100.0),)),)

    def test_losses_are_reported_and_the_rest_is_planned(self) -> None:
        plan = plan_ranges(
            {T: Position(3, 2), U: Position(4, 0)},
            {T: Position(5, 1), U: Position(4, 1)},
            {T: snapshot((5, 2)), U: None},
            1,
        )
        assert len(plan.losses) == 2
        assert [work.topic for work in plan.ranges] == [T]

    @pytest.mark.parametrize("pieces", [1, 2, 3, 7, 100])
    def test_ranges_have_no_gap_and_no_overlap(self, pieces: int) -> None:
        held = {T: snapshot((3, 5), (4, 0), (6, 9)), U: snapshot((4, 3))}
        ends = {T: Position(6, 7, -1, 4), U: Position(4, 2)}
        starts = {T: Position(3, 1, -1, 2), U: earliest(U)}
        plan = plan_ranges(starts, ends, held, pieces)
        assert min(pieces, 15) <= len(plan.ranges) <= max(2, pieces + 2)
        for topic in (T, U):
            own = [work for work in plan.ranges if work.topic == topic]
            assert own[0].start == starts[topic]
            assert own[-1].end == ends[topic]
            assert all(one.end == two.start for one, two in pairwise(own))
            due = [entry for work in own for entry in entries_of(work.due)]
            assert due == entries_of(due_entries(held[topic], starts[topic], ends[topic]))

    def test_position_after_never_passes_the_end(self) -> None:
        due = (DueEntries(3, 0, 4, 1.0),)
        assert position_after(due, 5, Position(3, 4, -1, 2)) == Position(3, 4, -1, 2)
        assert position_after(due, 2, Position(3, 4, -1, 2)) == Position(3, 1)
        assert position_after(due, 9, Position(3, 4)) == Position(3, 4)
