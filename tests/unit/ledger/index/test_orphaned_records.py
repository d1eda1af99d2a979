"""Records of numbers that no topic has: refused when never given, else named before they go."""

from __future__ import annotations

import logging
import random

import pytest

from headgate.base.ack_set import AckSet
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import UnknownTopicsError
from headgate.ledger.commit_log import CommitLog
from headgate.ledger.index.orphaned_records import NUMBERS_NAMED_MAX, OrphanedRecords
from tests.unit.ledger.support import DIRECTORY, SMALL, append, commit, open_log

LOGGER = "headgate.ledger"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


def reopen(fs: MemFs | FaultyFs, topics: list[int], number_last: int | None) -> CommitLog:
    return CommitLog.open(
        fs, DIRECTORY, topic_numbers=topics, entropy=random.Random(1).randbytes,
        settings=SMALL,
        topic_number_last=number_last,
    )  # fmt: skip


def filled(*, close: bool = False) -> MemFs:
    """A log with entries of topics 1 to 3, sealed segments among its files, and a checkpoint."""
    fs = MemFs()
    log = open_log(fs, [1, 2, 3])
    for number in (1, 2, 3):
        for _ in range(6):
            append(log, number, b"x" * 900)
    if close:
        log.close()
    else:
        log.run_maintenance()
        fs = fs.crash_clone(None)
    return fs


@pytest.mark.parametrize("close", [True, False])
def test_a_number_that_was_never_given_refuses_the_start_and_changes_nothing(close: bool) -> None:
    fs = filled(close=close)
    disk = FaultyFs(fs)
    changes: list[str] = []

    def plan(operation: Operation) -> None:
        if operation.kind in ("create", "allocate", "write", "truncate", "rename", "remove"):
            changes.append(f"{operation.kind} {operation.path}")

    disk.plan = plan
    with pytest.raises(
        UnknownTopicsError, match=r"topic number 3, and the highest .* is 2"
    ) as told:
        reopen(disk, [1, 2], 2)
    assert told.value.number_seen == 3
    assert changes == []
    # With the right metadata everything is there.
    again = reopen(fs, [1, 2, 3], 3)
    assert [again.topic(number).end for number in (1, 2, 3)] == [6, 6, 6]
    assert again.topic_number_seen == 3


def test_a_number_in_a_cursor_alone_counts() -> None:
    fs = MemFs()
    log = open_log(fs, [7])
    log.create_cursor(7, "s", AckSet(), {})
    commit(log)
    with pytest.raises(UnknownTopicsError, match="topic number 7"):
        reopen(fs.crash_clone(None), [], 6)


def test_what_a_deleted_topic_left_is_named_before_it_goes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    fs = filled(close=True)
    log = reopen(fs, [2], 3)
    log.run_maintenance()
    log.close()
    gone = [line for line in lines(caplog) if " is deleted: " in line]
    assert len(gone) == log.statistics().segments_deleted > 0
    assert gone[0] == (
        "0000000000000003.log is deleted: it holds 4 entries with 3600 bytes of topic number 3, "
        "which no topic of this log has: deleted or moved before the broker last started"
    )


def test_a_tail_with_such_records_is_named_when_it_is_sealed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    fs = MemFs()
    log = open_log(fs, [1, 2])
    append(log, 1, b"xx")
    append(log, 2, b"yyy", b"z")
    reopen(fs.crash_clone(None), [1], 2)
    assert lines(caplog) == [
        "0000000000000001.log is sealed without their index: it holds 2 entries with 4 bytes of "
        "topic number 2, which no topic of this log has: deleted or moved before the broker last "
        "started"
    ]


def test_a_start_without_such_records_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = reopen(filled(), [1, 2, 3], 3)
    log.run_maintenance()
    log.close()
    assert lines(caplog) == []


def test_many_numbers_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    orphans = OrphanedRecords()
    for number in range(NUMBERS_NAMED_MAX + 5):
        orphans.add(4, number, 1, 10)
    orphans.log(4, "4.log", "is deleted")
    orphans.forget(4)
    orphans.log(4, "4.log", "is deleted")
    (line,) = lines(caplog)
    assert "25 entries with 250 bytes of topic numbers 0, 1, " in line
    assert line.count(",") == NUMBERS_NAMED_MAX
    assert "19 and 5 more, which no topic of this log has" in line
