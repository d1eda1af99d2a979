"""Index rows of several files, in any order and with overlaps."""

from __future__ import annotations

import random
import tracemalloc
from array import array

from headgate.ledger.index.columns import Columns, TopicTotals
from headgate.ledger.index.state import LogState
from headgate.ledger.index.stored_run import StoredRun, file_id
from headgate.ledger.recovery.index_rows import (
    IndexRow,
    PackedRows,
    place_rows,
    without_overlaps,
)

TOPIC = 3


def row(first: int, stop: int, segment: int, *, topic: int = TOPIC) -> IndexRow:
    """Entries of 10 bytes with 2 messages each, received at their ordinal, 100 bytes apart."""
    entries = range(first, stop)
    befores = range(first, stop + 1)
    columns = Columns(
        array("I", [100 * o for o in entries]),
        array("q", befores),
        array("I", [0 for _ in befores]),
        array("q", [2 * o for o in befores]),
        array("q", [10 * o for o in befores]),
    )
    return IndexRow(topic, first, segment, columns)


def stored_rows(segment: int, topics: int) -> list[IndexRow]:
    """A file with a run of three entries of each topic."""
    sparse = row(0, topics, segment).columns
    assert isinstance(sparse, Columns)
    runs = [
        StoredRun(
            topic, 1_000 * segment, 3, file_id(segment, 0), 2**40 + topic, sparse, topic,
            TopicTotals(2**40 + topic, 2**50, 2**41, topic), 128,
        )
        for topic in range(topics)
    ]  # fmt: skip
    return [IndexRow(run.topic_number, run.first, segment, run) for run in runs]


def test_packed_rows_come_back_as_they_were() -> None:
    first, second = stored_rows(5, 4), stored_rows(6, 3)
    cut = first[1].cut(5_001, 5_002)
    other_file = second[0]._replace(segment=7)
    rows = [*first, row(0, 5, 4), *second, cut, other_file, first[2]._replace(knows_totals=False)]
    packed = PackedRows(rows[:3])
    packed.add(rows[3:])
    assert [packed.row(at) for at in range(len(packed))] == rows
    for at, one in enumerate(rows):
        assert packed.topic_and_stop(at) == (one.topic_number, one.stop)


def test_a_start_with_very_many_rows_takes_little_more_than_their_index() -> None:
    """A million of them took 650 MB, where the broker needs 125 afterwards."""
    packed = PackedRows()
    tracemalloc.start()
    try:
        for segment in range(20):
            packed.add(stored_rows(segment, 500))
        size_bytes = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert size_bytes < 150 * len(packed)


def state_with(end: int) -> LogState:
    """A state as a checkpoint gives it: the topic is known, its entries are not indexed."""
    state = LogState()
    topic = state.enter_topic(TOPIC)
    topic.restart_at(end, row(end, end, 1).columns.totals_before())
    topic.first = 0
    return state


def test_rows_of_files_in_any_order_continue_their_topic() -> None:
    rows = [row(0, 5, 7), row(5, 6, 2), row(6, 30, 9), row(30, 31, 1)]
    for seed in range(9):
        state = state_with(31)
        random.Random(seed).shuffle(rows)
        assert place_rows(rows, state) == []
        topic = state.topics[TOPIC]
        assert (topic.base, topic.end) == (0, 31)
        assert [topic.run_of(o)[0] for o in (0, 4, 5, 6, 29, 30)] == [7, 7, 2, 9, 9, 1]
        assert list(topic.columns(0, 31).offsets) == [100 * o for o in range(31)]
        assert topic.messages_before(31) == 62


def test_a_gap_between_rows_is_a_loss() -> None:
    state = state_with(9)
    (loss,) = place_rows([row(6, 9, 2), row(0, 4, 1)], state)
    assert (loss.topic, loss.first, loss.stop) == (TOPIC, 4, 6)
    assert loss.place == "before 0000000000000002.log"
    topic = state.topics[TOPIC]
    assert (topic.end, topic.bytes_before(9), topic.messages_before(9)) == (9, 90, 18)


def test_trimmed_rows_and_those_of_other_topics_are_left_out() -> None:
    state = state_with(9)
    state.topics[TOPIC].first = 5
    assert place_rows([row(0, 5, 1), row(5, 9, 2), row(0, 3, 2, topic=8)], state) == []
    assert state.topics[TOPIC].base == 5
    assert state.orphans.counts == {2: {8: (3, 30)}}
    assert state.orphans.number_seen == 8


def test_totals_that_a_row_lacks_come_from_the_checkpoint() -> None:
    state = state_with(9)
    place_rows([row(4, 9, 2)._replace(knows_totals=False)], state)
    topic = state.topics[TOPIC]
    assert (topic.base, topic.end) == (4, 9)
    assert topic.bytes_before(9) - topic.bytes_before(4) == 50
    assert topic.bytes_before(4) == 90


def test_of_two_rows_with_an_entry_the_one_of_the_higher_file_wins() -> None:
    chance = random.Random(1)
    for _ in range(300):
        rows = []
        for segment in chance.sample(range(1, 50), chance.randrange(1, 7)):
            first = chance.randrange(20)
            rows.append(row(first, first + chance.randrange(1, 12), segment))
        expected = {}
        for one in sorted(rows, key=lambda one: one.segment):
            expected.update(dict.fromkeys(range(one.first, one.stop), one.segment))
        parts = list(without_overlaps(rows))
        found = [(o, part.segment) for part in parts for o in range(part.first, part.stop)]
        assert found == sorted(expected.items())
        for part in parts:
            assert part.columns == row(part.first, part.stop, part.segment).columns
