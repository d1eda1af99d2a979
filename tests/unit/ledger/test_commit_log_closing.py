"""Closing while a batch or a job of maintenance is in progress, and after it."""

from __future__ import annotations

import pytest

from headgate.base.errors import InvariantError
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.errors import DirectoryInUseError

SETTINGS = LedgerSettings(segment_bytes=4096, checkpoint_records=1000)


def opened(fs: MemFs) -> CommitLog:
    return CommitLog.open(fs, "/data", topic_numbers=[1], entropy=bytes, settings=SETTINGS)


def append(log: CommitLog) -> None:
    log.stage_entry(log.topic(1), 1, 1, 0, bytes(1500))
    batch = log.seal_batch()
    assert batch is not None
    log.commit(batch)


@pytest.mark.parametrize("was_run", [True, False])
def test_a_log_is_not_closed_under_a_job(was_run: bool) -> None:
    fs = MemFs()
    log = opened(fs)
    job = None
    while job is None or job.name != "seal":
        if job is not None:
            job.run()
            log.finish_job(job)
        append(log)
        job = log.maintenance_step()
    if was_run:
        job.run()
    with pytest.raises(InvariantError, match="a job is in progress"):
        log.close()
    with pytest.raises(DirectoryInUseError):
        opened(fs)
    if not was_run:
        job.run()
    log.finish_job(job)
    end = log.topic(1).end
    log.close()
    again = opened(fs)
    assert again.topic(1).end == end
    assert again.statistics().replayed_records == 0
    again.close()


def test_a_log_is_not_closed_under_a_batch() -> None:
    fs = MemFs()
    log = opened(fs)
    log.stage_entry(log.topic(1), 1, 1, 0, b"x")
    batch = log.seal_batch()
    assert batch is not None
    with pytest.raises(InvariantError, match="a batch is in flight"):
        log.close()
    with pytest.raises(DirectoryInUseError):
        opened(fs)
    log.commit(batch)
    log.close()
    assert opened(fs).topic(1).end == 1


def test_a_checkpoint_that_is_being_collected_begins_again() -> None:
    fs = MemFs()
    settings = LedgerSettings(segment_bytes=4096, checkpoint_records=2, slice_items=1)
    log = CommitLog.open(fs, "/data", topic_numbers=[1], entropy=bytes, settings=settings)
    append(log)
    while not log._maintenance.checkpoint_begun:
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)
    append(log)
    log.close()
    again = opened(fs)
    assert again.topic(1).end == 2
    assert again.statistics().replayed_records == 0
