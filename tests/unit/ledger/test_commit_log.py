"""The whole log from outside: owning a directory, planning and reading, statistics."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from headgate.base.errors import CorruptionError, StorageError
from headgate.fs import FaultyFs, MemFs, Operation, OsFs
from headgate.ledger import CommitLog, DirectoryInUseError, LedgerSettings
from tests.unit.ledger.support import DIRECTORY, append, bodies_of, commit, open_log


def test_a_directory_has_one_owner() -> None:
    fs = MemFs()
    log = open_log(fs)
    with pytest.raises(DirectoryInUseError, match="in use by another process"):
        open_log(fs)
    log.close()
    open_log(fs).close()


def test_a_failed_start_lets_go_of_the_directory() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a" * 5000)
    append(log, 1, b"b" * 5000)
    fs = fs.crash_clone()
    name = f"{DIRECTORY}/0000000000000002.log"
    fs.remove(name)
    for _ in range(2):
        with pytest.raises(CorruptionError):
            open_log(fs)


def test_a_disk_that_cannot_be_read_stops_the_start() -> None:
    def plan(operation: Operation) -> None:
        if operation.kind in ("read", "lock"):
            raise OSError(errno.EIO, "broken")

    inner = MemFs()
    append(open_log(inner), 1, b"a")
    with pytest.raises(StorageError, match="broken"):
        open_log(FaultyFs(inner.crash_clone(), plan))


def test_statistics_count() -> None:
    log = open_log(MemFs())
    append(log, 1, b"a", b"b")
    log.stage_entry(log.topic(2), 1, 1, 0, b"c")
    statistics = log.statistics()
    assert (statistics.topics, statistics.batches, statistics.records) == (2, 1, 3)
    assert statistics.staged_records == 2
    assert statistics.bytes_written == statistics.log_bytes - 64
    assert statistics.failed is None
    commit(log)
    assert log.statistics().batches == 2


def test_the_real_disk_through_two_starts(tmp_path: Path) -> None:
    settings = LedgerSettings(segment_bytes=65536, checkpoint_records=500)
    directory = str(tmp_path / "log")

    def open_here() -> CommitLog:
        return CommitLog.open(
            OsFs(), directory, topic_numbers=[1, 2], entropy=bytes, settings=settings
        )

    log = open_here()
    bodies = [b"%d" % at * 100 for at in range(1000)]
    for at in range(0, 1000, 100):
        append(log, 1, *bodies[at : at + 100])
        log.run_maintenance()
    assert log.statistics().checkpoints
    assert bodies_of(log, 1) == bodies
    with pytest.raises(DirectoryInUseError):
        open_here()
    log._lock.release()
    log._writer.close()
    again = open_here()
    assert bodies_of(again, 1) == bodies
    append(again, 2, b"x")
    again.close()
    last = open_here()
    assert last.statistics().replayed_records == 0
    assert bodies_of(last, 1) == bodies
    assert bodies_of(last, 2) == [b"x"]
    last.close()
