"""Staging, completing and failing batches."""

from __future__ import annotations

import contextlib
import errno

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import InvariantError, StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import CommitLog, LogFailedError, LogFullError
from headgate.ledger.format.records import segment_name
from tests.unit.ledger.support import SMALL, append, bodies_of, commit, open_log, times_of


def faults(kind: str, code: int, *, only: int = 1) -> FaultyFs:
    """A disk whose next ``only`` operations of a kind fail once armed."""
    left = {"count": 0}

    def plan(operation: Operation) -> None:
        if operation.kind == kind and left["count"]:
            left["count"] -= 1
            raise OSError(code, "broken")

    fs = FaultyFs(MemFs(), plan)
    fs.__dict__["arm"] = lambda: left.update(count=only)
    return fs


def arm(fs: FaultyFs) -> None:
    fs.__dict__["arm"]()


def test_nothing_is_visible_before_its_batch_is_complete() -> None:
    log = open_log(MemFs())
    topic = log.topic(1)
    assert log.stage_entry(topic, 5, 1, 0, b"a") == 0
    assert log.stage_entry(topic, 2, 1, 0, b"bcd") == 1
    assert (topic.end, topic.staged_end) == (0, 2)
    assert log.staged_records == 3
    assert log.staged_bytes > 84
    batch = log.seal_batch()
    assert batch is not None
    assert log.staged_records == log.staged_bytes == 0
    log.stage_entry(topic, 1, 1, 0, b"later")
    log.write_batch(batch)
    assert topic.end == 0
    assert log.complete(batch) == [topic]
    assert (topic.end, topic.staged_end) == (2, 3)
    assert topic.messages_before(2) == 7
    assert topic.bytes_before(2) == 4


def test_nothing_staged_is_no_batch() -> None:
    log = open_log(MemFs())
    assert log.seal_batch() is None
    log.stage_acks(99)
    log.delete_cursor(99)
    assert log.seal_batch() is None


def test_one_batch_at_a_time() -> None:
    log = open_log(MemFs())
    log.stage_entry(log.topic(1), 1, 1, 0, b"a")
    batch = log.seal_batch()
    assert batch is not None
    with pytest.raises(InvariantError):
        log.seal_batch()
    log.commit(batch)
    with pytest.raises(InvariantError):
        log.complete(batch)


def test_a_batch_may_span_segments_and_hold_an_entry_larger_than_one() -> None:
    fs = MemFs()
    log = open_log(fs)
    bodies = [b"a" * 5000, b"b" * 5000, b"c" * 20_000, b"d" * 10]
    append(log, 1, *bodies)
    assert log.statistics().segments == 4
    assert bodies_of(log, 1) == bodies
    assert bodies_of(open_log(fs.crash_clone()), 1) == bodies


def test_a_full_disk_takes_back_the_batch_and_what_followed() -> None:
    fs = faults("write", errno.ENOSPC)
    log = open_log(fs)
    topic = append(log, 1, b"a")
    old = topic.position(0)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    log.stage_entry(topic, 1, 1, 0, b"lost")
    batch = log.seal_batch()
    assert batch is not None
    log.stage_entry(topic, 1, 1, 0, b"lost too")
    acks.ack(0)
    log.stage_acks(cursor)
    arm(fs)
    with pytest.raises(LogFullError, match="disk is full"):
        log.commit(batch)
    assert (topic.end, topic.staged_end) == (1, 1)
    assert log.full
    with pytest.raises(LogFullError, match="wait until there is room"):
        log.stage_entry(topic, 1, 1, 0, b"x")
    assert log.staged_records == 1  # the creation, which says what is acknowledged now
    commit(log)
    (kept,) = open_log(fs.inner.crash_clone()).cursors_of(1)  # type: ignore[attr-defined]
    assert kept.ack_set.mark_delete == 0
    while log.full:
        job = log.maintenance_step()
        assert job is not None
        job.run()
        log.finish_job(job)
    append(log, 1, b"b")
    assert topic.position(1).ledger_id > old.ledger_id
    assert bodies_of(log, 1) == [b"a", b"b"]
    after = open_log(fs.inner.crash_clone())  # type: ignore[attr-defined]
    assert bodies_of(after, 1) == [b"a", b"b"]


def test_a_lost_write_that_tore_is_not_found_by_a_start() -> None:
    torn = {"on": False}
    fs = FaultyFs(MemFs(), lambda o: 150 if torn["on"] and o.kind == "write" else None)
    log = open_log(fs)
    topic = append(log, 1, b"a")
    log.stage_entry(topic, 1, 1, 0, b"x" * 200)
    batch = log.seal_batch()
    assert batch is not None
    torn["on"] = True
    with pytest.raises(LogFullError):
        log.commit(batch)
    torn["on"] = False
    assert bodies_of(open_log(fs.inner.crash_clone(3)), 1) == [b"a"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "code"), [("sync", errno.EIO), ("write", errno.EIO)])
def test_a_failed_disk_is_final(kind: str, code: int) -> None:
    fs = faults(kind, code)
    log = open_log(fs)
    topic = append(log, 1, b"a")
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    log.stage_entry(topic, 1, 1, 0, b"lost")
    batch = log.seal_batch()
    assert batch is not None
    arm(fs)
    with pytest.raises(LogFailedError, match="until a restart") as caught:
        log.commit(batch)
    assert not caught.value.retryable
    assert log.failed is caught.value
    assert topic.end == topic.staged_end == 1
    with pytest.raises(LogFailedError):
        log.stage_entry(topic, 1, 1, 0, b"x")
    with pytest.raises(LogFailedError):
        log.create_cursor(1, "t", AckSet(), {})
    acks.ack(0)
    log.stage_acks(cursor)
    log.stage_trim(topic, 1)
    log.delete_cursor(cursor)
    assert log.seal_batch() is None
    assert not log.maintenance_due()
    assert log.maintenance_step() is None
    assert bodies_of(log, 1) == [b"a"]
    with pytest.raises(LogFailedError):
        log.write_batch(batch)
    assert "until a restart" in str(log.statistics().failed)
    log.close()
    assert bodies_of(open_log(fs), 1)[:1] == [b"a"]


def test_any_other_error_that_passes_is_retryable() -> None:
    fs = faults("create", errno.EMFILE)
    log = open_log(fs)
    topic = append(log, 1, b"a" * 6000)
    log.stage_entry(topic, 1, 1, 0, b"b" * 6000)
    batch = log.seal_batch()
    assert batch is not None
    arm(fs)
    with pytest.raises(StorageError) as caught:
        log.commit(batch)
    assert caught.value.retryable
    assert not log.full
    append(log, 1, b"c" * 6000)
    assert bodies_of(log, 1) == [b"a" * 6000, b"c" * 6000]


def step(log: CommitLog) -> None:
    """One step of the upkeep, whose failure the log is told."""
    job = log.maintenance_step()
    if job is None:
        return
    try:
        job.run()
    except StorageError as error:
        log.finish_job(job, error)
    else:
        log.finish_job(job)


def full_log(fs: MemFs, cursors: dict[str, AckSet]) -> CommitLog:
    """A log with durable cursors and entries, on a disk without room for another segment."""
    log = open_log(fs)
    append(log, 1, *[b"x"] * 50)
    for name, acks in cursors.items():
        log.create_cursor(1, name, acks, {})
    commit(log)
    log.run_maintenance()
    fs.capacity_bytes = fs.used_bytes()
    while not log.full:
        log._staging.roll()
        step(log)
    return log


def test_times_never_run_backwards_in_a_topic() -> None:
    fs = MemFs()
    log = open_log(fs)
    one, two = log.topic(1), log.topic(2)
    for wall_ms, publish_ms in ((1_000, 900), (990, 950), (400, 800), (1_200, 1_300), (1_100, 0)):
        log.stage_entry(one, 1, wall_ms, publish_ms, b"x")
        if wall_ms == 990:
            commit(log)
    log.stage_entry(two, 1, 500, 400, b"y")
    commit(log)
    shown = [(1_000, 900), (1_000, 950), (1_000, 950), (1_200, 1_200), (1_200, 1_200)]
    assert (times_of(log, 1), times_of(log, 2)) == (shown, [(500, 400)])
    again = open_log(fs.crash_clone())
    assert (times_of(again, 1), times_of(again, 2)) == (shown, [(500, 400)])


@pytest.mark.parametrize("is_trimmed", [False, True])
def test_times_go_on_after_a_refused_batch_from_what_is_durable(is_trimmed: bool) -> None:
    fs = faults("write", errno.ENOSPC)
    log = open_log(fs)
    topic = log.topic(1)
    log.stage_entry(topic, 1, 5_000, 4_000, b"kept")
    commit(log)
    if is_trimmed:
        log.stage_trim(topic, 1)
        commit(log)
    log.stage_entry(topic, 1, 9_000, 8_000, b"lost")
    batch = log.seal_batch()
    assert batch is not None
    log.stage_entry(topic, 1, 9_500, 0, b"lost too")
    arm(fs)
    with pytest.raises(LogFullError):
        log.commit(batch)
    assert topic.times_of_next(1, 1) == (5_000, 1_000)
    while log.full:
        job = log.maintenance_step()
        assert job is not None
        job.run()
        log.finish_job(job)
    log.stage_entry(topic, 1, 4_000, 3_000, b"next")
    log.stage_entry(topic, 1, 6_000, 4_500, b"last")
    commit(log)
    shown = [(5_000, 4_000), (5_000, 4_000), (6_000, 4_500)][is_trimmed:]
    assert times_of(log, 1) == shown
    assert times_of(open_log(fs.inner.crash_clone()), 1) == shown  # type: ignore[attr-defined]


def test_settings_are_small_enough_for_these_tests() -> None:
    assert SMALL.segment_bytes == 8192


def refuse_a_batch_over_two_segments(fs: FaultyFs, *bodies: bytes) -> CommitLog:
    """A log with one durable entry, whose next batch was refused in its second segment."""
    log = open_log(fs)
    topic = append(log, 1, b"kept")
    log.run_maintenance()
    for body in bodies:
        log.stage_entry(topic, 1, 1, 0, body)
    batch = log.seal_batch()
    assert batch is not None
    later = segment_name(batch.chunks[-1].segment)
    fs.plan = lambda o: 600 if o.kind == "write" and later in o.path else None
    with pytest.raises(LogFullError):
        log.commit(batch)
    fs.plan = lambda _: None
    while log.full:
        log.run_maintenance()
        log.maintenance_step()
    return log


def test_what_a_refused_batch_left_in_a_later_segment_is_no_proof_of_damage() -> None:
    for seed in range(60):
        inner = MemFs()
        fs = FaultyFs(inner)
        log = refuse_a_batch_over_two_segments(fs, *[b"b" * 1000] * 10)
        log.stage_entry(log.topic(1), 1, 1, 0, b"c" * 1000)
        batch = log.seal_batch()
        assert batch is not None

        def cut(operation: Operation) -> None:
            if operation.kind == "sync" and segment_name(1) in operation.path:
                raise InterruptedError

        fs.plan = cut
        with pytest.raises(LogFailedError):
            log.write_batch(batch)
        assert bodies_of(open_log(inner.crash_clone(seed)), 1)[:1] == [b"kept"]


def test_what_a_refused_batch_left_does_not_come_between_what_is_stored_around_it() -> None:
    inner = MemFs()
    log = refuse_a_batch_over_two_segments(FaultyFs(inner), *[b"b" * 1000] * 10)
    append(log, 1, b"c" * 8000)
    assert log.active_segment() == 2
    assert bodies_of(open_log(inner.crash_clone()), 1) == [b"kept", b"c" * 8000]


def test_a_power_cut_while_a_refused_batch_is_taken_back() -> None:
    for cut_index in range(8):
        inner = MemFs()
        fs = FaultyFs(inner)
        log = refuse_a_batch_over_two_segments(fs, b"x" * 7000, b"y" * 7000, b"z" * 7000)
        log.stage_entry(log.topic(1), 1, 1, 0, b"next")
        batch = log.seal_batch()
        assert batch is not None
        began = fs.operations_count

        def cut(operation: Operation, last: int = began + cut_index) -> None:
            if operation.index >= last:
                raise InterruptedError

        fs.plan = cut
        with contextlib.suppress(StorageError):
            log.write_batch(batch)
        found = bodies_of(open_log(inner.crash_clone(cut_index)), 1)
        assert found in ([b"kept", b"x" * 7000, b"y" * 7000][: len(found)], [b"kept", b"next"])
