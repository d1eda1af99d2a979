"""Rewriting beside reads, trims, deletions and checkpoints, and on a disk that refuses."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog
from headgate.ledger.space.rewriting import RETRY_NS
from tests.unit.ledger.support import (
    DIRECTORY,
    SPARSE,
    append,
    bodies_of,
    check_space,
    commit,
    facts,
    open_log,
    sparse_log,
)


def work(log: CommitLog, *, until: Callable[[], bool] = lambda: False) -> int:
    """Do steps and jobs until nothing is due, or until that holds after a step; returns them."""
    steps = 0
    while log.rewriting_due():
        job = log.rewriting_step()
        if job is not None:
            job.run()
            log.finish_rewriting_job(job)
        steps += 1
        if until():
            break
    return steps


def names(fs: MemFs) -> list[str]:
    return [name for name in fs.list_directory(DIRECTORY) if name.endswith(".tmp")]


def test_it_frees_the_disk() -> None:
    fs = MemFs()
    log = sparse_log(fs)
    before = log.space_use().file_bytes
    work(log)
    log.run_maintenance()
    assert log.space_use().file_bytes < before / 2
    assert log.written_bytes().rewritten > 0
    written_bytes = log.written_bytes().rewritten
    work(log)
    assert log.written_bytes().rewritten == written_bytes  # nothing more is worth it
    check_space(log)


def test_it_needs_no_more_of_the_index_in_memory_than_one_block_at_a_time() -> None:
    """The ledgers of a topic begin in several blocks, and each try needed all of these at once."""
    settings = replace(SPARSE, ledger_entries_max=3, index_cache_bytes=0)
    log = open_log(MemFs(), settings=settings)
    for at in range(24):
        append(log, 1, b"kept %d" % at, received_ms=1000 + at)
        append(log, 2, b"released" * 400, received_ms=1000 + at)
    log.checkpoint()
    log.run_maintenance()
    log.stage_trim(log.topic(2), 24)
    commit(log)
    before = facts(log)
    steps = iter(range(2_000))
    work(log, until=lambda: next(steps, None) is None)
    assert next(steps, None) is not None
    assert log.statistics().segments_rewritten > 4
    assert facts(log) == before
    check_space(log)


def test_a_read_finds_its_file_at_every_step() -> None:
    total = work(sparse_log(MemFs()))
    for stop in range(1, total):
        log = sparse_log(MemFs())
        before = facts(log)
        plans = [log.locate(log.topic(1), at, 1, 1) for at in range(1, 12)]
        left = iter(range(stop))
        work(log, until=lambda left=left: next(left, None) is None)  # type: ignore[misc]
        assert facts(log) == before, stop
        for ordinal, plan in enumerate(plans, 1):
            try:
                ((_, found, body),) = log.read(plan)
            except StorageError:
                assert log.is_outdated(plan)
            else:
                assert (found, body) == (ordinal, b"kept %d " % ordinal * 10)
        work(log)
        assert facts(log) == before
        check_space(log)


def test_a_read_that_waits_for_longer_is_planned_again() -> None:
    log = sparse_log(MemFs())
    topic = log.topic(1)
    plans = [log.locate(topic, at, 1, 1) for at in range(1, 12)]
    work(log)
    log.run_maintenance()
    outdated = [plan for plan in plans if log.is_outdated(plan)]
    assert len(outdated) > 5
    for plan in outdated:
        with pytest.raises(StorageError):
            log.read(plan)
        again = log.locate(topic, plan.first_ordinal, 1, 1)
        assert log.read(again)[0][1] == plan.first_ordinal
    log.stage_trim(topic, 12)
    commit(log)
    assert all(log.is_outdated(plan) for plan in plans)
    log.drop_topic(1)
    assert all(log.is_outdated(plan) for plan in plans)


@pytest.mark.parametrize("change", ["trim", "trim all", "drop", "append", "maintain", "checkpoint"])
def test_what_happens_meanwhile_is_kept(change: str) -> None:
    total = work(sparse_log(MemFs()))
    for stop in range(1, total):
        fs = MemFs()
        log = sparse_log(fs)
        left = iter(range(stop))
        work(log, until=lambda left=left: next(left, None) is None)  # type: ignore[misc]
        if change.startswith("trim"):
            log.stage_trim(log.topic(1), 5 if change == "trim" else 12)
            commit(log)
        elif change == "drop":
            log.drop_topic(1)
        elif change == "append":
            append(log, 1, *[b"more" * 100] * 9, received_ms=2000)
        elif change == "maintain":
            log.run_maintenance()
        else:
            log.checkpoint()
        expected = [] if change == "drop" else bodies_of(log, 1)
        log.run_maintenance()
        work(log)
        log.run_maintenance()
        check_space(log)
        assert change == "drop" or bodies_of(log, 1) == expected
        numbers = (2,) if change == "drop" else (1, 2)
        again = open_log(fs.crash_clone(), numbers, settings=SPARSE)
        check_space(again)
        assert change == "drop" or bodies_of(again, 1) == expected
        assert bodies_of(again, 2) == bodies_of(log, 2)


PIECES = replace(SPARSE, removed_piece_bytes=512)


def aside(fs: MemFs) -> list[str]:
    """Files that are to be freed piece by piece."""
    return [name for name in fs.list_directory(DIRECTORY) if name.count(".") == 3]


def test_the_file_that_was_replaced_is_freed_in_pieces() -> None:
    fs = MemFs()
    log = sparse_log(fs, PIECES)
    before = facts(log)
    work(log, until=lambda: bool(aside(fs)))
    (name,) = aside(fs)
    sizes = {fs.open(f"{DIRECTORY}/{name}").size()}
    assert log.removal_left_bytes == 0  # topics are still read from it
    work(log)
    assert facts(log) == before
    left_bytes = log.removal_left_bytes
    assert left_bytes > 0
    dead_bytes = log.space_use().dead_bytes
    while log.removal_step():
        sizes.update(fs.open(f"{DIRECTORY}/{name}").size() for name in aside(fs))
    assert len(sizes) > 3
    assert aside(fs) == []
    assert log.space_use().dead_bytes == dead_bytes - left_bytes
    assert facts(log) == before
    check_space(log)


def test_a_power_cut_leaves_no_file_aside() -> None:
    """Between a second name and the rename, the segment and its second name are one file."""
    total = work(sparse_log(MemFs(), PIECES))
    for stop in range(1, total + 1):
        fs = MemFs()
        log = sparse_log(fs, PIECES)
        before = facts(log)
        left = iter(range(stop))
        work(log, until=lambda left=left: next(left, None) is None)  # type: ignore[misc]
        log.removal_step()
        for seed in range(4):
            disk = fs.crash_clone(seed)
            again = open_log(disk, settings=PIECES)
            while again.removal_step():
                pass
            assert aside(disk) == []
            assert facts(again) == before
            check_space(again)


def test_a_rename_that_fails_leaves_the_segment_whole() -> None:
    inner = MemFs()
    fs = FaultyFs(inner)
    log = sparse_log(fs, PIECES)
    before = facts(log)

    def plan(operation: Operation) -> None:
        if operation.kind == "rename" and operation.path.endswith(".tmp"):
            raise OSError(errno.EIO, "no rename")

    fs.plan = plan
    work_with_errors(log)
    assert aside(inner) == []
    assert log.removal_left_bytes == 0
    assert facts(log) == before


def work_with_errors(log: CommitLog) -> None:
    """As :func:`work`, with errors of jobs handed over as a lane does it."""
    while log.rewriting_due():
        job = log.rewriting_step()
        if job is not None:
            error = None
            try:
                job.run()
            except StorageError as raised:
                error = raised
            log.finish_rewriting_job(job, error)


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_refuses_changes_nothing(code: int) -> None:
    kinds: set[str] = set()
    at, is_failing = -1, True
    while is_failing:
        at, is_failing = at + 1, False
        inner = MemFs()
        disk = FaultyFs(inner)
        log = sparse_log(disk)
        before = facts(log)
        left = iter(range(at))

        def refuse(operation: Operation, left: Iterator[int] = left) -> None:
            nonlocal is_failing
            if next(left, None) is None and not is_failing:
                is_failing = True
                kinds.add(operation.kind)
                raise OSError(code, "refused")

        disk.plan = refuse
        work_with_errors(log)
        disk.plan = lambda _operation: None
        assert facts(log) == before
        check_space(log)
        if log.failed is None:
            assert names(inner) == []
            log.run_maintenance()
        for copy in (inner.crash_clone(), inner.crash_clone(at)):
            again = open_log(copy, settings=SPARSE)
            assert facts(again) == before
            check_space(again)
    assert kinds >= {"open", "read", "create", "write", "sync", "rename", "sync_directory"}


def test_segments_that_could_not_be_rewritten_are_left_alone_for_a_while() -> None:
    disk = FaultyFs(MemFs())
    log = sparse_log(disk)

    def refuse(operation: Operation) -> None:
        if operation.kind == "sync":
            raise OSError(errno.EIO, "refused")

    disk.plan = refuse
    with pytest.raises(StorageError, match="rewriting 0000"):
        log.run_rewriting()
    disk.plan = lambda _operation: None
    log.run_rewriting()
    assert log.statistics().segments_rewritten == 0
    log.note_time(RETRY_NS + 1)
    log.run_rewriting()
    assert log.statistics().segments_rewritten > 2


def test_it_needs_room_for_its_file_and_two_segments() -> None:
    fs = MemFs(capacity_bytes=200_000)
    log = sparse_log(fs)
    fs.capacity_bytes = fs.used_bytes() + 2 * SPARSE.segment_bytes
    with pytest.raises(StorageError, match="no room to rewrite"):
        log.run_rewriting()
    log.run_rewriting()
    assert log.statistics().segments_rewritten == 0
    assert names(fs) == []
    check_space(log)


def test_a_segment_of_a_damaged_topic_stays_as_it_is() -> None:
    log = sparse_log(MemFs())
    log.topic(1).damage = "something is lost"
    log.run_rewriting()
    assert log.statistics().segments_rewritten == 0
    log = sparse_log(MemFs())
    log.topic(1).lost = [(3, 4)]
    log.run_rewriting()
    assert log.statistics().segments_rewritten == 0


def test_closing_gives_up_what_is_in_the_making() -> None:
    fs = MemFs()
    log = sparse_log(fs)
    before = facts(log)
    work(log, until=lambda: bool(names(fs)))
    assert names(fs)
    log.close()
    assert names(fs) == []
    assert facts(open_log(fs, settings=SPARSE)) == before


def test_an_error_after_the_new_file_has_its_place_is_never_taken_for_one_before() -> None:
    """Topics would be read at old places in the new file, as if all of it were damaged."""
    fs = MemFs()
    log = sparse_log(fs)
    before, failed = facts(log), False
    while log.rewriting_due() and not failed:
        job = log.rewriting_step()
        if job is not None:
            had_temporary = bool(names(fs))
            job.run()
            failed = had_temporary and not names(fs)
            error = StorageError("unexpected", retryable=True) if failed else None
            log.finish_rewriting_job(job, error)
    assert failed
    with pytest.raises(InvariantError, match="a rewritten segment was put in place, then: "):
        log.rewriting_step()
    assert facts(open_log(fs.crash_clone(), settings=SPARSE)) == before
