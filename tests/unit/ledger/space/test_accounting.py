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
from headgate.ledger.space.accounting import check_segments
from tests.unit.ledger.support import (
    append,
    bodies_of,
    check_space,
    commit,
    open_log,
    wrong_segments,
)


def state_of(log: CommitLog) -> LogState:
    return log._state


def filled(fs: MemFs, *, batches: int = 30) -> CommitLog:
    """Two topics side by side in several segments."""
    log = open_log(fs)
    for _ in range(batches):
        append(log, 1, b"a" * 300, b"b" * 500)
        append(log, 2, b"c" * 40)
        log.run_maintenance()
        check_space(log)
    return log


def trim(log: CommitLog, number: int, first: int) -> None:
    trim_unchecked(log, number, first)
    check_space(log)


def trim_unchecked(log: CommitLog, number: int, first: int) -> None:
    log.stage_trim(log.topic(number), first)
    commit(log)


class FullFs(FaultyFs):
    """A disk in memory that refuses writes while it is full."""

    def __init__(self) -> None:
        self.is_full = False
        super().__init__(MemFs(), self._refuse)

    def _refuse(self, operation: Operation) -> None:
        if self.is_full and operation.kind == "write":
            raise OSError(28, "no space left on device")


def find_room(log: CommitLog) -> None:
    """Do the maintenance of a log that was full until it takes entries again."""
    while log.full:
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)


def test_entries_live_from_their_commit_to_their_trim() -> None:
    log = filled(MemFs())
    assert state_of(log).space.live_bytes == 30 * (840 + 3 * ENTRY_HEAD_BYTES)
    for first in (1, 2, 17, 59, 60):
        trim(log, 1, first)
        log.run_maintenance()
        check_space(log)
    assert state_of(log).space.live_bytes == 30 * (40 + ENTRY_HEAD_BYTES)
    trim(log, 2, 30)
    assert state_of(log).space.live_bytes == 0


def test_control_records_are_no_live_bytes() -> None:
    log = open_log(MemFs())
    append(log, 1, b"a")
    log.create_cursor(1, "s", AckSet(), {"long": "x" * 100})
    append(log, 1, b"b")
    check_space(log)
    assert state_of(log).space.live_bytes == 2 + 2 * ENTRY_HEAD_BYTES


def test_a_start_counts_what_is_there() -> None:
    fs = MemFs()
    log = filled(fs)
    trim(log, 1, 33)
    log.run_maintenance()
    before = state_of(log).space
    crashed = open_log(fs.crash_clone(1))
    check_space(crashed)
    log.close()
    again = open_log(fs)
    check_space(again)
    assert state_of(again).space.live_bytes == before.live_bytes


def test_a_deleted_topic_frees_its_segments() -> None:
    log = filled(MemFs())
    log.drop_topic(1)
    check_space(log)
    log.drop_topic(2)
    check_space(log)
    log.run_maintenance()
    check_space(log)
    assert state_of(log).space.live_bytes == 0


def test_a_question_after_a_deleted_topic_brings_no_ghost_into_the_log() -> None:
    fs = MemFs()
    log = filled(fs)
    log.drop_topic(1)
    with pytest.raises(KeyError):
        log.topic(1)
    with pytest.raises(KeyError):
        log.accept_damage(1, [])
    assert list(state_of(log).topics) == [2]
    log.close()
    assert list(state_of(open_log(fs, topics=[2])).topics) == [2]


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
    check_space(log)
    commit(log)
    check_space(log)
    assert not state_of(log).dropped
    assert state_of(log).space.live_bytes == log.topic(2).live_bytes(0, log.topic(2).end)


def test_a_refused_batch_brings_nothing_to_life() -> None:
    fs = FullFs()
    log = open_log(fs)
    append(log, 1, b"a" * 100)
    for _ in range(30):
        for number in (1, 2):
            log.stage_entry(log.topic(number), 1, 5, 0, b"x" * 700)
    fs.is_full = True
    batch = log.seal_batch()
    assert batch is not None
    log.drop_topic(2)
    with pytest.raises(StorageError):
        log.commit(batch)
    fs.is_full = False
    check_space(log)
    assert not state_of(log).dropped
    find_room(log)
    append(log, 1, b"b")
    check_space(log)
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
    check_space(log)
    assert state_of(log).segments


def test_counts_that_are_too_low_are_found_raised_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = filled(MemFs())
    info = next(iter(state_of(log).segments.values()))
    state_of(log).born(info, -77)
    info.live_runs -= 1
    with caplog.at_level(logging.ERROR):
        assert wrong_segments(log) == 1
    assert "were counted as live" in caplog.text
    check_space(log)


def test_counts_that_are_too_high_are_logged_and_keep_the_file_until_a_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = MemFs()
    log = filled(fs)
    info = next(iter(state_of(log).segments.values()))
    state_of(log).born(info, 77)
    info.live_runs += 1
    counted = (info.live_bytes, info.live_runs)
    with caplog.at_level(logging.ERROR):
        assert wrong_segments(log) == 1
    assert "were counted as live" in caplog.text
    assert (info.live_bytes, info.live_runs) == counted
    log.close()
    check_space(open_log(fs))


@pytest.mark.parametrize("runs", [0, -1])
def test_one_wrong_count_deletes_no_file(runs: int) -> None:
    fs = MemFs()
    log = filled(fs)
    info = next(iter(state_of(log).segments.values()))
    kept = bodies_of(log, 2)
    info.live_runs = runs + 1
    trim_unchecked(log, 1, 60)
    log.checkpoint()
    log.run_maintenance()
    assert bodies_of(log, 2) == kept
    assert info.segment in state_of(log).segments


def test_a_refused_entry_leaves_no_empty_run_behind_a_trim() -> None:
    """The trim spares the run for the entry that is staged. An empty run, found by a check that
    counted other runs than a trim releases, has cost another topic's message."""
    fs = FullFs()
    log = open_log(fs)
    append(log, 1, *[b"a" * 10] * 1100)
    append(log, 2, b"never trimmed")
    append(log, 1, b"z")
    log.run_maintenance()
    topic = log.topic(1)
    log.stage_trim(topic, topic.end)
    in_flight = log.seal_batch()
    assert in_flight is not None
    log.stage_entry(topic, 1, 5, 0, b"x")
    log.commit(in_flight)
    assert (topic.first, topic.end, topic.staged_end) == (1101, 1101, 1102)
    fs.is_full = True
    with pytest.raises(StorageError):
        commit(log)
    fs.is_full = False
    assert topic.live_runs() == []
    find_room(log)
    log.checkpoint()
    log.run_maintenance()
    check_space(log)
    append(log, 1, b"later")
    trim(log, 1, 1102)
    log.checkpoint()
    log.run_maintenance()
    assert bodies_of(log, 2) == [b"never trimmed"]


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
        check_space(log)
        if turn % 60 == 59:
            log.close()
            log = open_log(fs)
            check_space(log)


@pytest.mark.parametrize("seed", range(8))
def test_the_accounts_hold_through_refused_batches(seed: int) -> None:
    """Entries and trims are staged while a batch is in flight, as a running broker does it."""
    rng = random.Random(f"{seed} of refused batches")
    fs = FullFs()
    log = open_log(fs)

    def stage() -> None:
        for _ in range(rng.randrange(3)):
            topic = log.topic(rng.choice((1, 1, 1, 2)))
            for _ in range(rng.choice((1, 1, 3, 1100)) if rng.random() < 0.2 else 1):
                log.stage_entry(topic, 1, 5, 0, b"%d" % rng.randrange(1 << rng.randrange(1, 900)))

    for _ in range(250):
        stage()
        if rng.random() < 0.5:
            topic = log.topic(rng.choice((1, 1, 1, 2)))
            first = topic.end if rng.random() < 0.6 else rng.randrange(topic.first, topic.end + 1)
            log.stage_trim(topic, first)
        batch = log.seal_batch()
        if batch is not None:
            stage()
            fs.is_full = rng.random() < 0.2
            try:
                log.commit(batch)
            except StorageError:
                fs.is_full = False
                find_room(log)
        if rng.random() < 0.3:
            log.run_maintenance()
        if rng.random() < 0.1:
            log.checkpoint()
            log.run_maintenance()
        check_space(log)
        for number in (1, 2):
            bodies_of(log, number)  # fails if the file of an entry is gone
