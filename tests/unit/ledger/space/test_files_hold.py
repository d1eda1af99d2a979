"""A hold ends once, and says why if something else ended it."""

from __future__ import annotations

import pytest

from headgate.base.errors import InvariantError
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.space.files_hold import FilesHold
from tests.unit.ledger.support import DIRECTORY, append, open_log

BODY = b"x" * 3_000


def held_log(fs: MemFs) -> CommitLog:
    """A log of some segments, held for a backup."""
    log = open_log(fs)
    for _ in range(12):
        append(log, 1, BODY)
    log.checkpoint()
    log.files_hold.begin()
    return log


def test_a_hold_ends_with_its_backup() -> None:
    hold = FilesHold()
    assert not hold.is_held
    hold.begin()
    assert hold.is_held
    assert hold.end() == hold.end() == ""
    assert not hold.is_held


def test_a_hold_that_is_lost_says_why_until_the_next() -> None:
    hold = FilesHold()
    hold.lose("nobody holds")
    assert hold.lost == ""
    hold.begin()
    hold.lose("the disk")
    hold.lose("something else")
    assert (hold.is_held, hold.end()) == (False, "the disk")
    hold.begin()
    assert (hold.is_held, hold.lost) == (True, "")


def test_two_backups_do_not_hold_at_once() -> None:
    hold = FilesHold()
    hold.begin()
    with pytest.raises(InvariantError, match="held twice"):
        hold.begin()


def test_no_segment_goes_while_the_files_are_held() -> None:
    fs = MemFs()
    log = held_log(fs)
    names = set(fs.list_directory(DIRECTORY))
    log.stage_trim(log.topic(1), 11)
    log.checkpoint()
    log.run_maintenance()
    assert {name for name in names if name.endswith(".log")} <= set(fs.list_directory(DIRECTORY))
    assert log.statistics().segments_deleted == 0
    assert log.files_hold.end() == ""
    log.run_maintenance()
    assert log.statistics().segments_deleted > 2


def test_a_full_disk_takes_the_files_back() -> None:
    fs = MemFs()
    log = held_log(fs)
    log.stage_trim(log.topic(1), 11)
    log.checkpoint()
    log.yield_space(is_needed=True)
    log.run_maintenance()
    log.maintenance_step()
    assert "the disk became full" in log.files_hold.lost
    log.yield_space(is_needed=False)
    for _ in range(10):
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)
    assert log.statistics().segments_deleted > 2


def test_no_rewriting_begins_while_the_files_are_held() -> None:
    log = open_log(MemFs())
    assert log.rewriting_due()
    log.files_hold.begin()
    assert not log.rewriting_due()
    log.files_hold.end()
    assert log.rewriting_due()
