"""Partly acknowledged entries come back exactly: out of records, checkpoints and what was held."""

from __future__ import annotations

import errno
import random

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.partial_acks import PartialEntry
from headgate.flow.quota.backlog import Amounts, done_before
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LedgerSettings
from tests.unit.ledger.support import DIRECTORY, commit, open_log

OFTEN = LedgerSettings(
    segment_bytes=8192, extent_bytes=1024, checkpoint_records=25, checkpoint_bytes=1 << 30,
    slice_items=1,
)  # fmt: skip
ENTRIES = 40


def size_of(ordinal: int) -> int:
    return 1 + ordinal % 12


def filled(log: CommitLog) -> None:
    """Batches of 1 to 12 messages, durable."""
    for ordinal in range(ENTRIES):
        log.stage_entry(log.topic(1), size_of(ordinal), 1000, 0, b"x" * ordinal)
    commit(log)


def upkeep(log: CommitLog) -> None:
    """Do what is due, and commit what that staged."""
    while log.maintenance_due() or log.staged_records or log.full:
        if log.staged_records:
            commit(log)
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)


def the_set(fs: MemFs, settings: LedgerSettings = OFTEN) -> tuple[CommitLog, AckSet]:
    """What a start after a power cut finds of the only subscription."""
    again = open_log(fs.crash_clone(), settings=settings)
    (cursor,) = again.cursors_of(1)
    assert not cursor.ack_set.has_changes()
    return again, cursor.ack_set


def shown(acks: AckSet) -> tuple[int, list[tuple[int, int]], list[PartialEntry]]:
    return acks.mark_delete, list(acks.acked_ranges()), list(acks.partial_entries())


def test_a_cursor_is_created_with_them() -> None:
    fs = MemFs()
    log = open_log(fs)
    filled(log)
    acks = AckSet(2)
    acks.ack_messages(7, 0b1001, 8)
    log.create_cursor(1, "s", acks, {"k": "v"})
    assert not acks.has_changes()
    commit(log)
    _, found = the_set(fs)
    assert shown(found) == (2, [], [PartialEntry(7, 0b1001, 8)])


def test_only_what_is_durable_is_there_after_a_power_cut() -> None:
    fs = MemFs()
    log = open_log(fs)
    filled(log)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    commit(log)
    acks.ack_messages(7, 0b0001, 8)
    log.stage_acks(cursor)
    commit(log)
    acks.ack_messages(7, 0b1000, 8)
    log.stage_acks(cursor)
    assert shown(the_set(fs)[1]) == (-1, [], [PartialEntry(7, 0b0001, 8)])
    commit(log)
    assert shown(the_set(fs)[1]) == (-1, [], [PartialEntry(7, 0b1001, 8)])
    acks.ack_messages(7, 0b1111_0110, 8)
    log.stage_acks(cursor)
    commit(log)
    assert shown(the_set(fs)[1]) == (-1, [(7, 7)], [])
    acks.ack_messages(9, 1, 10)
    acks.reset(3)
    acks.ack_messages(5, 1, 6)
    log.stage_acks(cursor)
    commit(log)
    assert shown(the_set(fs)[1]) == (3, [], [PartialEntry(5, 1, 6)])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_backlog_is_exact_out_of_any_checkpoint_and_what_follows_it(seed: int) -> None:
    rng = random.Random(seed)
    fs = MemFs()
    log = open_log(fs, settings=OFTEN)
    filled(log)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    commit(log)
    partly = 0
    for _ in range(250):
        for _ in range(3):
            ordinal = rng.randrange(ENTRIES)
            acks.ack_messages(ordinal, 1 << rng.randrange(size_of(ordinal)), size_of(ordinal))
        if rng.randrange(25) == 0:
            acks.reset(rng.randrange(8) - 1)
        if rng.randrange(20) == 0:
            acks.ack_through(acks.mark_delete + 2)
        log.stage_acks(cursor)
        upkeep(log)
        again, found = the_set(fs)
        assert again.statistics().replayed_records <= OFTEN.checkpoint_records
        assert shown(found) == shown(acks)
        topic = again.topic(1)
        assert done_before(topic, found, topic.first, topic.end) == counted(acks)
        partly += acks.partials is not None
    assert log.statistics().checkpoints > 5
    assert partly > 200


def counted(acks: AckSet) -> Amounts:
    """What is done, counted entry by entry."""
    done = [ordinal for ordinal in range(ENTRIES) if acks.is_acked(ordinal)]
    messages = sum(size_of(ordinal) for ordinal in done)
    messages += sum(entry.acked_mask.bit_count() for entry in acks.partial_entries())
    return Amounts(len(done), messages, sum(done))


@pytest.mark.parametrize("is_new", [False, True])
def test_what_is_held_while_the_disk_is_full_is_stored_whole(is_new: bool) -> None:
    fs = MemFs()
    log = open_log(fs)
    filled(log)
    acks = AckSet()
    if not is_new:
        cursor = log.create_cursor(1, "s", acks, {})
    acks.ack_messages(5, 0b000001, 6)
    if not is_new:
        log.stage_acks(cursor)
        commit(log)
    log.run_maintenance()
    fs.capacity_bytes = fs.used_bytes()
    while not log.full:
        log._staging.roll()
        job = log.maintenance_step()
        assert job is not None
        with pytest.raises(StorageError) as caught:
            job.run()
        log.finish_job(job, caught.value)
    fill_segment(log)
    if is_new:
        cursor = log.create_cursor(1, "s", acks, {})
    for ordinal, mask in ((5, 0b000010), (6, 0b1), (7, 0b11), (7, 0b100), (6, 0b1111110)):
        acks.ack_messages(ordinal, mask, size_of(ordinal))
        log.stage_acks(cursor)
    assert log.has_deferred
    fs.capacity_bytes = None
    upkeep(log)
    assert not log.has_deferred
    _, found = the_set(fs)
    assert shown(found) == (-1, [(6, 6)], [PartialEntry(5, 0b11, 6), PartialEntry(7, 0b111, 8)])


def fill_segment(log: CommitLog) -> None:
    """Leave no room in the last segment that a full disk has."""
    other = log.create_cursor(2, "other", AckSet(), {"k": "v" * 6000})
    while not log.has_deferred:
        log.delete_cursor(other)
        other = log.create_cursor(2, "other", AckSet(), {"k": "v" * 6000})
    if log.staged_records:
        commit(log)


def test_what_a_refused_batch_lost_is_stored_again() -> None:
    """Its changes are taken already, so the next record must say all that holds."""
    refused: list[str] = []

    def plan(operation: Operation) -> None:
        if refused == ["next"] and operation.kind == "write":
            refused.append(operation.path)
            raise OSError(errno.ENOSPC, "no room for a moment")

    fs = FaultyFs(MemFs(), plan)
    log = open_log(fs)
    filled(log)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    commit(log)
    acks.ack_messages(7, 0b0001, 8)
    log.stage_acks(cursor)
    refused.append("next")
    batch = log.seal_batch()
    assert batch is not None
    with pytest.raises(StorageError):
        log.commit(batch)
    assert refused[1].startswith(DIRECTORY)
    assert not acks.has_changes()
    commit(log)
    assert isinstance(fs.inner, MemFs)
    assert shown(the_set(fs.inner)[1]) == (-1, [], [PartialEntry(7, 0b0001, 8)])
