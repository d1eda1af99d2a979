"""The stored form of a checkpoint."""

from __future__ import annotations

import errno
import itertools

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CursorState, TopicLog
from headgate.ledger.format.directory import read_file
from headgate.ledger.format.records import checkpoint_names, segment_of_checkpoint
from headgate.ledger.index import checkpoint
from headgate.ledger.index.checkpoint import CheckpointBuilder, Counters, read_checkpoint
from headgate.ledger.index.columns import TopicTotals


def test_there_and_back() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    topic = TopicLog(6)
    topic.restart_at(50, TopicTotals(70, 90, 1000, 30))
    topic.first = 40
    topic.open_ledger(3, 10, 1)
    topic.open_ledger(5, 45, 2)
    builder = CheckpointBuilder(12, 99)
    topic.damage = "0000.log offset 7: lost"
    topic.lost = [(3, 9), (41, 43)]
    builder.add_topic(topic)
    builder.add_topic(TopicLog(7))
    acks = AckSet(44)
    acks.ack_messages(47, 0b10, 3)
    builder.add_cursor(CursorState(8, 6, "s", acks, {"a": "b"}))
    builder.add_cursor(CursorState(9, 6, "t", AckSet(), {}, "0000.log offset 9: lost"))
    builder.add_counters(Counters(1, 2, 3, 4))
    builder.write(fs, "/d")
    names = [name for name in fs.crash_clone().list_directory("/d") if "checkpoint" in name]
    assert names == [*checkpoint_names(12)]
    back, copy = (read_checkpoint(fs.crash_clone(), "/d", name) for name in names)
    assert (copy.topics, copy.counters) == (back.topics, back.counters)
    assert (back.segment, back.last_batch, back.counters) == (12, 99, Counters(1, 2, 3, 4))
    saved = back.topics[6]
    assert (saved.first, saved.end) == (40, 50)
    assert saved.totals == TopicTotals(70, 90, 1000, 30)
    assert saved.ledgers == ((3, 10, 1), (5, 45, 2))
    assert (saved.damage, saved.lost) == ("0000.log offset 7: lost", ((41, 43),))
    assert (back.topics[7].damage, back.topics[7].lost) == ("", ())
    assert (back.cursors[8].damage, back.cursors[9].damage) == ("", "0000.log offset 9: lost")
    assert back.cursors[8].ack_set.mark_delete == 44
    assert list(back.cursors[8].ack_set.partial_entries()) == [(47, 0b10, 3)]


def test_it_is_collected_in_few_parts_of_a_bounded_size() -> None:
    """An object for each of 200,000 items took the loop tens of milliseconds to free."""
    fs = MemFs()
    fs.make_directory("/d")
    builder = CheckpointBuilder(12, 99)
    for number in range(5_000):
        builder.add_topic(TopicLog(number))
    builder.add_counters(Counters(1, 2, 3, 4))
    assert len(builder._parts) <= builder.size_bytes // checkpoint.ITEMS_PART_BYTES + 1
    assert max(map(len, builder._parts)) < checkpoint.ITEMS_PART_BYTES + 1_000
    builder.write(fs, "/d")
    assert len(read_checkpoint(fs, "/d", checkpoint_names(12)[0]).topics) == 5_000


def filled(builder: CheckpointBuilder, at: range) -> CheckpointBuilder:
    for number in at:
        builder.add_topic(TopicLog(number))
    return builder


def test_what_is_stored_in_parts_is_the_same_file() -> None:
    fs, parted = MemFs(), MemFs()
    for each in (fs, parted):
        each.make_directory("/d")
    whole, builder = CheckpointBuilder(12, 99), CheckpointBuilder(12, 99)
    for begin in range(0, 4_000, 1_000):
        filled(whole, range(begin, begin + 1_000))
        filled(builder, range(begin, begin + 1_000))
        assert builder.collected_bytes > 40_000
        builder.store_part(parted, "/d")
        assert builder.collected_bytes < 10
        assert all(name.endswith(".tmp") for name in parted.list_directory("/d"))
    for each, place in ((whole, fs), (builder, parted)):
        each.add_counters(Counters(1, 2, 3, 4))
        each.write(place, "/d")
    assert whole.size_bytes == builder.size_bytes
    assert parted.list_directory("/d") == fs.list_directory("/d") == [*checkpoint_names(12)]
    for name in checkpoint_names(12):
        stored = read_file(parted.crash_clone(), f"/d/{name}")
        assert stored == read_file(fs, f"/d/{name}")
        assert len(stored) == builder.size_bytes


def operations_of(stored: int) -> list[Operation]:
    """What storing a checkpoint in so many parts does to the disk."""
    found: list[Operation] = []
    disk = MemFs()
    disk.make_directory("/d")
    store_in_parts(FaultyFs(disk, found.append), stored)
    return found


def store_in_parts(fs: FaultyFs, parts: int) -> None:
    builder = CheckpointBuilder(12, 99)
    for part in range(parts):
        filled(builder, range(part * 10, part * 10 + 10))
        builder.store_part(fs, "/d")
    builder.add_counters(Counters(1, 2, 3, 4))
    builder.write(fs, "/d")


@pytest.mark.parametrize("parts", [0, 1, 3])
def test_an_error_in_any_step_leaves_no_temporary_file(parts: int) -> None:
    for at in range(len(operations_of(parts))):
        disk, seen = MemFs(), itertools.count()
        disk.make_directory("/d")

        def plan(operation: Operation, at: int = at, seen: itertools.count[int] = seen) -> None:
            if next(seen) == at:
                raise OSError(errno.EIO, "as planned", operation.path)

        with pytest.raises(OSError, match="as planned"):
            store_in_parts(FaultyFs(disk, plan), parts)
        assert not [name for name in disk.list_directory("/d") if name.endswith(".tmp")]


def test_without_counters_it_is_damaged() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    CheckpointBuilder(1, 0).write(fs, "/d")
    with pytest.raises(CorruptionError, match="no counters"):
        read_checkpoint(fs, "/d", checkpoint_names(1)[0])


@pytest.mark.parametrize("version", [1, 4])
def test_another_version_is_refused(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fs = MemFs()
    fs.make_directory("/d")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "CHECKPOINT_VERSION", version)
        builder = CheckpointBuilder(1, 0)
    builder.add_counters(Counters(1, 1, 1, 1))
    builder.write(fs, "/d")
    with pytest.raises(CorruptionError, match="not a checkpoint of version 3"):
        read_checkpoint(fs, "/d", checkpoint_names(1)[0])


def test_under_another_name_it_is_refused() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    builder = CheckpointBuilder(1, 0)
    builder.add_counters(Counters(1, 1, 1, 1))
    builder.write(fs, "/d")
    fs.rename(f"/d/{checkpoint_names(1)[0]}", f"/d/{checkpoint_names(2)[0]}")
    with pytest.raises(CorruptionError, match="not a checkpoint"):
        read_checkpoint(fs, "/d", checkpoint_names(2)[0])


@pytest.mark.parametrize("name", ["format", "x.checkpoint", "z" * 16 + ".checkpoint"])
def test_other_names_are_no_checkpoints(name: str) -> None:
    assert segment_of_checkpoint(name) is None
    assert [segment_of_checkpoint(own) for own in checkpoint_names(17)] == [17, 17]
