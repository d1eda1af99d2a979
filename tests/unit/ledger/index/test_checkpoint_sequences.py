"""The producers of topics with deduplication, slice by slice into a checkpoint."""

from __future__ import annotations

from headgate.base.sequence_table import SequenceRow, SequenceTable
from headgate.fs import MemFs
from headgate.ledger.format.records import checkpoint_names
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters, read_checkpoint
from headgate.ledger.index.checkpoint_sequences import add_sequences
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.state import LogState


def collected(state: LogState, slice_items: int) -> tuple[dict[int, object], int]:
    """What a checkpoint holds, by topic number, and in how many slices it was collected."""
    fs = MemFs()
    fs.make_directory("/d")
    builder = CheckpointBuilder(5, 9)
    for number in list(state.topics)[:-1]:
        builder.add_topic(state.topics[number])
    slices = sum(1 for _ in add_sequences(builder, state, slice_items))
    builder.add_counters(Counters(1, 2, 3, 4))
    builder.write(fs, "/d")
    found = read_checkpoint(fs, "/d", checkpoint_names(5)[0])
    return {number: topic.sequences for number, topic in found.topics.items()}, slices


def test_all_producers_are_there_and_topics_without_stay_without() -> None:
    state = LogState()
    rows = [SequenceRow(f"p{at}", at - 2, 7 * at) for at in range(10)]
    state.enter_topic(1).sequences = SequenceTable(rows)
    state.enter_topic(2)
    state.enter_topic(3).sequences = SequenceTable()
    state.enter_topic(4).sequences = SequenceTable(rows)  # made after the topics were collected
    found, slices = collected(state, 4)
    assert found == {1: rows, 2: None, 3: []}
    assert slices == 3 + 1 + 3


def test_many_topics_without_take_many_slices() -> None:
    state = LogState()
    for number in range(1, 101):
        state.enter_topic(number)
    assert collected(state, 2)[1] == 3


def test_what_is_durable_counts_and_what_is_staged_does_not() -> None:
    state = LogState()
    topic = state.enter_topic(1)
    state.enter_topic(2)
    topic.sequences = SequenceTable([SequenceRow("p", 1, 0)])
    topic.sequences.entry_staged(0, "p", 2)
    topic.sequences.entry_staged(1, "p", 3)
    topic.restart_at(1, TopicTotals(1, 1, 1, 0))
    assert collected(state, 9)[0] == {1: [SequenceRow("p", 2, 0)]}
