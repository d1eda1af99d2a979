"""Preparing, sealing, checkpointing and deleting, in slices."""

from __future__ import annotations

import errno
import gc
from dataclasses import replace

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LedgerSettings, LogFailedError, LogFullError
from tests.unit.ledger.support import DIRECTORY, append, bodies_of, commit, open_log

SETTINGS = LedgerSettings(
    segment_bytes=8192, extent_bytes=1024, checkpoint_records=40, checkpoint_bytes=1 << 30,
    slice_items=1,
)  # fmt: skip


def drain(log: CommitLog) -> list[str]:
    """Run what is due, and commit what it staged; returns the names of the jobs."""
    names: list[str] = []
    for _ in range(200):
        if log.maintenance_due():
            job = log.maintenance_step()
            if job is not None:
                names.append(job.name)
                assert log.maintenance_step() is None
                assert not log.maintenance_due()
                job.run()
                log.finish_job(job)
        elif log.staged_records:
            commit(log)
        else:
            break
    return names


def test_the_next_segment_is_ready_before_it_is_needed() -> None:
    fs = MemFs()
    log = open_log(fs)
    assert drain(log) == ["prepare"]
    append(log, 1, b"a" * 5000)
    append(log, 1, b"b" * 5000)
    assert drain(log) == ["prepare", "seal"]
    assert log.statistics().segments_sealed == 1


def test_replay_is_bounded_by_checkpoints() -> None:
    fs = MemFs()
    log = open_log(fs, settings=SETTINGS)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    for at in range(300):
        append(log, 1, b"%d" % at)
        acks.ack(at)
        log.stage_acks(cursor)
        drain(log)
        again = open_log(fs.crash_clone(), settings=SETTINGS)
        assert again.statistics().replayed_records <= SETTINGS.checkpoint_records
        assert again.topic(1).end == at + 1
    assert log.statistics().checkpoints > 10
    assert log.statistics().records_since_checkpoint <= SETTINGS.checkpoint_records
    names = fs.list_directory(DIRECTORY)
    assert sum(name.endswith(".checkpoint") for name in names) == 1
    assert len(bodies_of(log, 1)) == 300


def test_a_checkpoint_begins_without_an_object_for_each_topic() -> None:
    """A tuple for each of 100,000 topics and as many cursors held the loop for 100 ms."""
    log = open_log(MemFs())
    for number in range(1, 3_001):
        append(log, number, b"x")
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        assert log._maintenance._step_checkpoint(1) is None
        assert len(gc.get_objects()) - before < 500
    finally:
        gc.enable()


def test_a_checkpoint_waits_for_what_it_collected() -> None:
    fs = MemFs()
    log = open_log(fs, settings=SETTINGS)
    acks = AckSet()
    log.create_cursor(1, "s", acks, {})
    for at in range(30):
        append(log, 1, b"%d" % at)
    acks.ack(3)
    jobs = []
    while log.maintenance_due():
        job = log.maintenance_step()
        if job is not None:
            jobs.append(job.name)
            job.run()
            log.finish_job(job)
    assert "checkpoint" not in jobs
    assert log.staged_records == 1
    assert "checkpoint" in drain(log)


PARTED = replace(SETTINGS, checkpoint_part_bytes=1_024, checkpoint_records=100_000)


def log_with_many_topics(fs: FaultyFs | MemFs) -> CommitLog:
    """Its checkpoint has about nine parts."""
    log = open_log(fs, topics=range(1, 101), settings=PARTED)
    for number in range(1, 101):
        log.stage_entry(log.enter_topic(number), 1, 1000, 0, b"x")
        log.create_cursor(number, "s", AckSet(), {})
    commit(log)
    drain(log)
    return log


def collected(log: CommitLog, *, parts: int) -> int:
    """The most bytes of a checkpoint that were in memory until so many parts were stored."""
    most = 0
    while parts:
        job = log._maintenance.step(force_checkpoint=True)
        if log._maintenance._checkpoint is not None:
            most = max(most, log._maintenance._checkpoint[0].collected_bytes)
        if job is not None:
            job.run()
            log.finish_job(job)
            parts -= job.name == "checkpoint part"
    return most


def test_a_checkpoint_is_not_in_memory_as_a_whole() -> None:
    fs = MemFs()
    log = log_with_many_topics(fs)
    assert collected(log, parts=8) < 1_400
    assert len([name for name in fs.list_directory(DIRECTORY) if name.endswith(".tmp")]) == 2
    drain(log)
    assert log.statistics().checkpoints == 1
    again = open_log(fs.crash_clone(), topics=range(1, 101), settings=PARTED)
    assert again.statistics().replayed_records == 0
    assert [again.topic(number).end for number in range(1, 101)] == [1] * 100
    assert len(again.cursors()) == 100


def test_a_power_cut_amid_the_parts_of_a_checkpoint_costs_nothing() -> None:
    fs = MemFs()
    log = log_with_many_topics(fs)
    collected(log, parts=4)
    after = fs.crash_clone()
    again = open_log(after, topics=range(1, 101), settings=PARTED)
    assert [again.topic(number).end for number in range(1, 101)] == [1] * 100
    assert len(again.cursors()) == 100
    assert not [name for name in after.list_directory(DIRECTORY) if name.endswith(".tmp")]


def test_a_log_that_is_closed_amid_a_checkpoint_leaves_no_part_of_it() -> None:
    fs = MemFs()
    log = log_with_many_topics(fs)
    collected(log, parts=4)
    log.close()
    names = fs.list_directory(DIRECTORY)
    assert not [name for name in names if name.endswith(".tmp")]
    assert sum(name.endswith(".checkpoint") for name in names) == 1


def test_a_part_for_which_there_is_no_room_has_the_checkpoint_begin_anew() -> None:
    fs = MemFs()
    log = log_with_many_topics(fs)
    collected(log, parts=4)
    fs.capacity_bytes = fs.used_bytes()
    job = None
    while job is None or job.name != "checkpoint part":
        job = log._maintenance.step(force_checkpoint=True)
    with pytest.raises(LogFullError) as caught:
        job.run()
    log.finish_job(job, caught.value)
    assert not [name for name in fs.list_directory(DIRECTORY) if name.endswith(".tmp")]
    assert not log._maintenance.checkpoint_begun
    fs.capacity_bytes = None
    collected(log, parts=8)
    drain(log)
    assert log.statistics().checkpoints == 1


def test_a_disk_that_does_not_read_costs_no_checkpoint_that_is_written_in_parts() -> None:
    def plan(operation: Operation) -> None:
        if operation.kind in ("open", "read"):
            raise OSError(errno.EIO, "as planned", operation.path)

    disk = FaultyFs(MemFs())
    log = log_with_many_topics(disk)
    collected(log, parts=2)
    disk.plan = plan
    collected(log, parts=4)
    drain(log)
    assert log.failed is None
    assert log.statistics().checkpoints == 1


def test_a_log_that_failed_amid_a_checkpoint_leaves_no_file_open() -> None:
    disk = FaultyFs(MemFs())
    log = log_with_many_topics(disk)
    collected(log, parts=2)
    assert log._maintenance._checkpoint is not None
    (file, copy) = log._maintenance._checkpoint[0]._files
    log._health.fail(StorageError("the disk failed", retryable=False))
    log.close()
    assert file._file is copy._file is None


def test_segments_without_live_entries_are_deleted() -> None:
    fs = MemFs()
    log = open_log(fs, settings=SETTINGS)
    log.create_cursor(1, "s", AckSet(), {})
    for at in range(200):
        append(log, 1 + at % 2, b"%d" % at * 200)
        topic = log.topic(1)
        log.stage_trim(topic, topic.end)
        drain(log)
    assert len(bodies_of(log, 2)) == 100
    pinned = log.statistics()
    log.drop_topic(2)
    names = drain(log)
    assert "delete" in names
    statistics = log.statistics()
    assert statistics.segments_deleted > pinned.segments_deleted + 5
    assert statistics.segments <= 4
    files = [name for name in fs.list_directory(DIRECTORY) if name.endswith(".log")]
    assert len(files) <= statistics.segments + 1
    again = open_log(fs.crash_clone(), topics=[1], settings=SETTINGS)
    assert again.topic(1).first == again.topic(1).end == 100
    append(again, 1, b"more")
    assert bodies_of(again, 1) == [b"more"]


def test_a_checkpoint_is_made_early_where_a_segment_can_go() -> None:
    fs = MemFs()
    log = open_log(fs)  # whose checkpoints are far away
    for at in range(12):
        append(log, 1, b"%d" % at * 2000)
    names = drain(log)
    assert "checkpoint" not in names
    topic = log.topic(1)
    log.roll_ledger(topic, 2_000)
    log.stage_trim(topic, topic.end)
    names = drain(log)
    assert names.count("checkpoint") == 1
    assert log.statistics().segments_sealed == 0
    assert "checkpoint" not in drain(log)


def test_a_full_disk_refuses_entries_until_there_is_room() -> None:
    fs = MemFs()
    log = open_log(fs)
    drain(log)
    fs.capacity_bytes = fs.used_bytes()
    append(log, 1, b"a" * 5000)
    append(log, 1, b"b" * 5000)
    job = log.maintenance_step()
    assert job is not None
    with pytest.raises(StorageError) as caught:
        job.run()
    log.finish_job(job, caught.value)
    assert log.full
    assert not log.maintenance_due()
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    acks.ack(0)
    log.stage_acks(cursor)
    commit(log)
    fs.capacity_bytes = None
    while log.full:
        job = log.maintenance_step()
        if job is not None:
            job.run()
            log.finish_job(job)
    append(log, 1, b"c")
    assert len(bodies_of(log, 1)) == 3


def test_a_full_disk_gets_a_small_segment_for_the_checkpoint() -> None:
    """A checkpoint rolls the log, and there may be no room for a whole segment behind it."""
    fs = MemFs()
    log = open_log(fs, settings=SETTINGS)
    for at in range(3):
        append(log, 1, b"%d" % at * 5000)
    drain(log)
    spare = log.active_segment() + 1
    assert log._writer.is_whole(spare)
    log._writer.discard(spare)
    fs.capacity_bytes = fs.used_bytes() + 2000
    topic = log.topic(1)
    log.stage_trim(topic, topic.end)
    commit(log)
    log.yield_space(is_needed=True)
    assert log.full
    jobs = drain_full(log)
    assert jobs.index("reserve") < jobs.index("checkpoint") < jobs.index("delete")
    assert log._writer.is_small(spare)
    log.yield_space(is_needed=False)
    fs.capacity_bytes = None
    drain_full(log)
    assert not log.full
    assert log._writer.is_whole(spare)
    append(log, 1, b"again")
    assert bodies_of(open_log(fs.crash_clone(), settings=SETTINGS), 1) == [b"again"]


def drain_full(log: CommitLog) -> list[str]:
    """Run what a full log can do; returns the names of the jobs."""
    names: list[str] = []
    for _ in range(100):
        job = log.maintenance_step()
        if job is not None:
            names.append(job.name)
            job.run()
            log.finish_job(job)
        elif log.staged_records:
            commit(log)
    return names


def test_consuming_everything_frees_a_disk_too_full_for_a_checkpoint() -> None:
    fs = MemFs()
    log = open_log(fs, settings=SETTINGS)
    topic = log.topic(1)
    for at in range(12):
        append(log, 1, b"%d" % at * 5000)
    drain(log)
    for at in range(50):
        append(log, 1, b"%d" % at)
    fs.capacity_bytes = fs.used_bytes()
    log.stage_trim(topic, topic.end)
    commit(log)
    failures = 0
    for _ in range(200):
        job = log.maintenance_step()
        if job is not None:
            try:
                job.run()
            except LogFullError as error:
                failures += 1
                log.finish_job(job, error)
            else:
                log.finish_job(job)
        elif log.staged_records:
            commit(log)
    assert failures
    assert not log.full
    assert log.statistics().segments_deleted > 5
    append(log, 1, b"again")
    assert bodies_of(log, 1) == [b"again"]


@pytest.mark.parametrize("kind", ["rename", "sync"])
def test_a_failing_checkpoint_is_final(kind: str) -> None:
    armed = {"on": False}

    def plan(operation: Operation) -> None:
        if armed["on"] and operation.kind == kind and operation.path.endswith(".tmp"):
            raise OSError(errno.EIO, "broken")

    log = open_log(FaultyFs(MemFs(), plan), settings=SETTINGS)
    for at in range(30):
        append(log, 1, b"%d" % at)
    armed["on"] = True
    with pytest.raises(LogFailedError):
        log.run_maintenance()
    assert log.failed is not None


def many_topics(fs: MemFs, *, segments: int) -> CommitLog:
    """A log whose complete segments hold an entry of each of very many topics."""
    topics = range(1, 101)
    settings = replace(SETTINGS, segment_bytes=16_384)
    log = open_log(fs, topics=topics, settings=settings)
    drain(log)
    for at in range(segments):
        for number in topics:
            log.stage_entry(log.enter_topic(number), 1, 1000 + at, 0, b"x" * 40)
        append(log, 1, b"y" * 8_000)
    return log


def rests_of_a_seal(log: CommitLog) -> list[float]:
    rests: list[float] = []
    log.rest_with(rests.append)
    while (job := log.maintenance_step()) is None or job.name != "seal":
        if job is not None:
            job.run()
            log.finish_job(job)
    assert not rests
    job.run()
    log.finish_job(job)
    return rests


def test_a_long_job_rests_so_that_it_does_not_hold_the_interpreter() -> None:
    rests = rests_of_a_seal(many_topics(MemFs(), segments=1))
    assert len(rests) >= 100 // 16
    assert 0 < min(rests) == max(rests) <= 0.01


def test_a_job_does_not_rest_while_other_segments_wait_or_the_disk_is_full() -> None:
    log = many_topics(MemFs(), segments=4)
    assert rests_of_a_seal(log) == []
    log = many_topics(MemFs(), segments=1)
    log._health.disk_full()
    assert rests_of_a_seal(log) == []
