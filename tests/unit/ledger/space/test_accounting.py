"""Live, dead and punched bytes of each segment, through every birth and death of an entry."""

from __future__ import annotations

import logging
import random

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs
from headgate.fs.faulty_fs import Operation
from headgate.ledger import CommitLog
from headgate.ledger.format.records import ENTRY_HEAD_BYTES
from headgate.ledger.index.state import LogState
from headgate.ledger.space.accounting import check_segments, space_errors
from tests.unit.ledger.support import append, commit, open_log


def state_of(log: CommitLog) -> LogState:
    return log._state


def check(log: CommitLog) -> None:
    assert space_errors(state_of(log)) == []


def check_at_leisure(log: CommitLog) -> int:
    steps = check_segments(state_of(log))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            wrong: int = end.value
            return wrong


def filled(fs: MemFs, *, batches: int = 30) -> CommitLog:
    """Two topics side by side in several segments."""
    log = open_log(fs)
    for _ in range(batches):
        append(log, 1, b"a" * 300, b"b" * 500)
        append(log, 2, b"c" * 40)
        log.run_maintenance()
        check(log)
    return log


def trim(log: CommitLog, number: int, first: int) -> None:
    log.stage_trim(log.topic(number), first)
    commit(log)
    check(log)


def test_entries_live_from_their_commit_to_their_trim() -> None:
    log = filled(MemFs())
    assert state_of(log).space.live_bytes == 30 * (840 + 3 * ENTRY_HEAD_BYTES)
    for first in (1, 2, 17, 59, 60):
        trim(log, 1, first)
        log.run_maintenance()
        check(log)
    assert state_of(log).space.live_bytes == 30 * (40 + ENTRY_HEAD_BYTES)
    trim(log, 2, 30)
    assert state_of(log).space.live_bytes == 0


def test_control_records_are_no_live_bytes() -> None:
    log = open_log(MemFs())
    append(log, 1, b"a")
    log.create_cursor(1, "s", AckSet(), {"long": "x" * 100})
    append(log, 1, b"b")
    check(log)
    assert state_of(log).space.live_bytes == 2 + 2 * ENTRY_HEAD_BYTES


def test_a_start_counts_what_is_there() -> None:
    fs = MemFs()
    log = filled(fs)
    trim(log, 1, 33)
    log.run_maintenance()
    before = state_of(log).space
    crashed = open_log(fs.crash_clone(1))
    check(crashed)
    log.close()
    again = open_log(fs)
    check(again)
    assert state_of(again).space.live_bytes == before.live_bytes


def test_a_deleted_topic_frees_its_segments() -> None:
    log = filled(MemFs())
    log.drop_topic(1)
    check(log)
    log.drop_topic(2)
    check(log)
    log.run_maintenance()
    check(log)
    assert state_of(log).space.live_bytes == 0


def test_a_topic_deleted_while_its_entries_are_staged_never_lives() -> None:
    log = filled(MemFs())
    for _ in range(20):
        for number in (1, 2):
            log.stage_entry(log.topic(number), 1, 5, 0, b"x" * 700)
    in_flight = log.seal_batch()
    assert in_flight is not None
    assert len(in_flight.chunks) > 1
    log.stage_entry(log.topic(1), 1, 5, 0, b"y" * 99)
    log.drop_topic(1)
    log.commit(in_flight)
    check(log)
    commit(log)
    check(log)
    assert not state_of(log).dropped
    assert state_of(log).space.live_bytes == log.topic(2).live_bytes(0, log.topic(2).end)


def test_a_refused_batch_brings_nothing_to_life() -> None:
    inner = MemFs()
    broken = False

    def plan(operation: Operation) -> None:
        if broken and operation.kind == "write":
            raise OSError(28, "no space left on device")

    fs = FaultyFs(inner, plan)
    log = open_log(fs)
    append(log, 1, b"a" * 100)
    for _ in range(30):
        for number in (1, 2):
            log.stage_entry(log.topic(number), 1, 5, 0, b"x" * 700)
    broken = True
    batch = log.seal_batch()
    assert batch is not None
    log.drop_topic(2)
    with pytest.raises(StorageError):
        log.commit(batch)
    broken = False
    check(log)
    assert not state_of(log).dropped
    while log.full:
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)
    append(log, 1, b"b")
    check(log)
    assert state_of(log).space.live_bytes == 101 + 2 * ENTRY_HEAD_BYTES


def test_a_start_after_two_checkpoints_at_one_segment_knows_the_last_batch() -> None:
    """The younger dead segment was deleted between them, an older one was not."""
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"kept")
    log.checkpoint()
    log.create_cursor(1, "s", AckSet(), {})
    commit(log)
    log.checkpoint()
    log.run_maintenance()
    assert list(state_of(log).segments) == [1]
    log.close()
    log = open_log(fs)
    append(log, 1, b"more")
    assert open_log(fs.crash_clone()).topic(1).end == 2


def test_holes_are_counted_and_a_start_measures_them() -> None:
    fs = MemFs()
    log = filled(fs, batches=60)
    trim(log, 1, 120)
    log.run_maintenance()
    log.checkpoint()
    log.run_maintenance()
    check(log)
    assert state_of(log).segments


def test_a_wrong_count_is_found_corrected_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = filled(MemFs())
    assert check_at_leisure(log) == 0
    info = next(iter(state_of(log).segments.values()))
    state_of(log).born(info, 77)
    info.live_runs += 1
    with caplog.at_level(logging.ERROR):
        assert check_at_leisure(log) == 1
    assert "were counted as live" in caplog.text
    check(log)
    assert check_at_leisure(log) == 0


def test_a_check_leaves_out_what_changes_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    log = filled(MemFs())
    steps = check_segments(state_of(log))
    next(steps)
    log.stage_trim(log.topic(1), 60)
    commit(log)
    log.run_maintenance()
    assert all(step is None for step in steps)
    assert not caplog.records


def test_the_accounts_hold_through_random_work() -> None:
    rng = random.Random(4)
    log = open_log(fs := MemFs())
    for turn in range(300):
        for _ in range(rng.randrange(4)):
            topic = log.topic(rng.choice((1, 2)))
            log.stage_entry(topic, 1, turn, 0, b"x" * rng.randrange(900))
        if rng.random() < 0.3:
            topic = log.topic(rng.choice((1, 2)))
            log.stage_trim(topic, rng.randrange(topic.first, topic.end + 1))
        batch = log.seal_batch()
        if batch is not None:
            log.commit(batch)
        if rng.random() < 0.5:
            log.run_maintenance()
        check(log)
        if turn % 60 == 59:
            log.close()
            log = open_log(fs)
            check(log)
