"""What a full disk refused half-way does not come back after a power cut."""

from __future__ import annotations

import errno

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LedgerSettings, LogFailedError, LogFullError
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES
from tests.unit.ledger.support import append, bodies_of, open_log

SEGMENT_BYTES = 8192
SETTINGS = LedgerSettings(segment_bytes=SEGMENT_BYTES, extent_bytes=1024)


class CutError(Exception):
    """The power goes."""


def staged(fs: FaultyFs, chunks: int) -> tuple[CommitLog, int]:
    """A log with one stored entry, and a staged batch of so many chunks that begins with a cursor's
    creation. Returns the cursor's id, too."""
    log = open_log(fs, settings=SETTINGS)
    append(log, 1, b"before")
    cursor_id = log.create_cursor(1, "given up", AckSet(-1), {})
    for _ in range(chunks):
        log.stage_entry(log.topic(1), 1, 1000, 0, bytes(SEGMENT_BYTES // 2 + 1000))
    return log, cursor_id


def refuse(log: CommitLog, fs: FaultyFs, refused_chunk: int, kept_part: float) -> None:
    """Commit with a disk that has no room for one of the chunks, and takes this part of it."""
    batch = log.seal_batch()
    assert batch is not None
    chunk_writes = 0

    def plan(operation: Operation) -> int | None:
        nonlocal chunk_writes
        if operation.kind != "write" or operation.size <= SEGMENT_HEADER_BYTES + 200:
            return None
        chunk_writes += 1
        return int(operation.size * kept_part) if chunk_writes == refused_chunk else None

    fs.plan = plan
    with pytest.raises(LogFullError):
        log.commit(batch)
    assert chunk_writes == refused_chunk


def cursors_after_a_power_cut(fs: FaultyFs, seed: int | None) -> list[str]:
    assert isinstance(fs.inner, MemFs)
    log = open_log(fs.inner.crash_clone(seed), settings=SETTINGS)
    assert bodies_of(log, 1) == [b"before"]
    return [cursor.name for cursor in log.cursors()]


@pytest.mark.parametrize("kept_part", [0, 0.5, 0.999])
@pytest.mark.parametrize(("chunks", "refused"), [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)])
def test_a_creation_that_was_given_up_stays_away(
    chunks: int, refused: int, kept_part: float
) -> None:
    fs = FaultyFs(MemFs())
    log, cursor_id = staged(fs, chunks)
    refuse(log, fs, refused, kept_part)
    log.delete_cursor(cursor_id)
    for seed in [None, *range(20)]:
        assert cursors_after_a_power_cut(fs, seed) == []


def test_it_stays_away_wherever_the_power_goes_later() -> None:
    """From the answer on, at each operation of what follows."""
    cut_at, cuts = 0, 0
    while cut_at == cuts:
        fs = FaultyFs(MemFs())
        log, cursor_id = staged(fs, 3)
        refuse(log, fs, 3, 0.5)
        log.delete_cursor(cursor_id)
        first = fs.operations_count

        def plan(operation: Operation, last: int = first + cut_at) -> None:
            if operation.index >= last:
                raise CutError

        fs.plan = plan
        try:
            log.stage_acks(cursor_id)
            log.run_maintenance()
            log.create_cursor(1, "kept", AckSet(-1), {})
            log.checkpoint()
        except CutError:
            cuts += 1
        for seed in (None, 1, 2):
            assert "given up" not in cursors_after_a_power_cut(fs, seed)
        cut_at += 1
    assert cuts > 10


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.ENOMEM, errno.EIO])
def test_a_disk_that_does_not_take_the_wipe_either(code: int) -> None:
    """The wipe is tried again before anything else is written; an I/O error ends the log."""
    fs = FaultyFs(MemFs())
    log, cursor_id = staged(fs, 2)
    batch = log.seal_batch()
    assert batch is not None
    writes = 0

    def plan(operation: Operation) -> int | None:
        nonlocal writes
        if operation.kind == "write" and operation.path.endswith(".log"):
            writes += operation.size > SEGMENT_HEADER_BYTES
            if writes == 2:
                return operation.size // 2
            if writes > 2:
                raise OSError(code, "broken")
        return None

    fs.plan = plan
    with pytest.raises(StorageError) as caught:
        log.commit(batch)
    assert isinstance(caught.value, LogFailedError) is (code == errno.EIO)
    if code == errno.EIO:
        assert log.failed is caught.value
        return
    log.delete_cursor(cursor_id)
    fs.plan = lambda _: None
    while log.full:
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)
    append(log, 1, b"after")
    assert isinstance(fs.inner, MemFs)
    again = open_log(fs.inner.crash_clone(), settings=SETTINGS)
    assert bodies_of(again, 1) == [b"before", b"after"]
    assert list(again.cursors()) == []
