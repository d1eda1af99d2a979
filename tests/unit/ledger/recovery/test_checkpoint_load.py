"""Which of several checkpoint files a start goes by."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger import TopicLog
from headgate.ledger.format.records import checkpoint_names
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.state import LogState
from headgate.ledger.recovery.checkpoint_load import LoadedCheckpoint, load_checkpoint


def written(fs: MemFs, segment: int) -> None:
    topic = TopicLog(1)
    topic.restart_at(segment, TopicTotals(0, 0, 0, 0))
    builder = CheckpointBuilder(segment, segment)
    builder.add_topic(topic)
    builder.add_topic(TopicLog(2))
    builder.add_counters(Counters(1, 2, 3, segment + 1))
    builder.write(fs, "/d")


def both(first: int, second: int) -> MemFs:
    """Two checkpoints, as a crash before the older one was removed leaves them."""
    fs = MemFs()
    fs.make_directory("/d")
    written(fs, first)
    older = {name: fs.open(f"/d/{name}").read_at(0, 9999) for name in checkpoint_names(first)}
    written(fs, second)
    for name, data in older.items():
        fs.create(f"/d/{name}").write_at(0, [data])
    return fs


def load(fs: MemFs) -> tuple[LoadedCheckpoint, LogState]:
    state = LogState()
    return load_checkpoint(fs, "/d", fs.list_directory("/d"), [1], state), state


def spoil(fs: MemFs, name: str) -> None:
    fs.open(f"/d/{name}", writable=True).write_at(20, [b"\xee\xee"])


def test_the_newest_is_taken_with_what_it_says_of_known_topics() -> None:
    loaded, state = load(both(5, 7))
    assert (loaded.is_found, loaded.is_older, loaded.unreadable, loaded.next_segment) == (
        True,
        False,
        [],
        8,
    )
    assert list(loaded.topics) == list(state.topics) == [1]
    assert (state.checkpoint_segment, state.last_batch, state.next_segment) == (7, 7, 8)


def test_a_copy_stands_in_and_a_line_says_so(caplog: pytest.LogCaptureFixture) -> None:
    fs = both(5, 7)
    spoil(fs, checkpoint_names(7)[0])
    loaded, state = load(fs)
    assert (state.checkpoint_segment, loaded.is_older) == (7, False)
    (line,) = caplog.messages
    assert line.endswith(f"in /d: restored from {checkpoint_names(7)[1]}")
    caplog.clear()
    fs.remove(f"/d/{checkpoint_names(7)[0]}")
    load(fs)
    assert caplog.messages[0].startswith(f"{checkpoint_names(7)[0]} is missing in /d")


def test_an_older_one_stands_in_for_both() -> None:
    fs = both(5, 7)
    for name in checkpoint_names(7):
        spoil(fs, name)
    loaded, state = load(fs)
    assert (state.checkpoint_segment, loaded.is_older, len(loaded.unreadable)) == (5, True, 2)
    assert loaded.next_segment == 8


def test_when_none_can_be_read_nothing_is_taken() -> None:
    fs = both(5, 7)
    for segment in (5, 7):
        for name in checkpoint_names(segment):
            spoil(fs, name)
    loaded, state = load(fs)
    assert (loaded.is_found, len(loaded.unreadable), loaded.next_segment) == (False, 4, 8)
    assert (state.topics, state.checkpoint_segment) == ({}, 1)


def test_a_new_directory_has_none() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    assert load(fs)[0] == LoadedCheckpoint()
