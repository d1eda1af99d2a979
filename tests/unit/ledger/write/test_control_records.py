"""Cursors, acknowledgements and trims are staged, or deferred while there is no room."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import InputError, InvariantError, StorageError
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LogFullError
from tests.unit.ledger.support import DIRECTORY, SMALL, append, bodies_of, commit, open_log


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


def commit_if_room(log: CommitLog) -> bool:
    """Commit what is staged; False if the disk refuses it."""
    batch = log.seal_batch()
    try:
        if batch is not None:
            log.commit(batch)
    except LogFullError:
        return False
    return True


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


def test_controls_wait_when_not_even_their_segment_is_there() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a" * 8000)
    fs.capacity_bytes = fs.used_bytes()
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {"k": "v" * 200})
    batch = log.seal_batch()
    assert batch is not None
    with pytest.raises(LogFullError):
        log.commit(batch)
    assert log.staged_records == 0
    assert log.has_deferred
    acks.ack(0)
    log.stage_acks(cursor)
    assert log.seal_batch() is None
    fs.capacity_bytes = None
    log.run_maintenance()
    while log.full:
        step(log)
    assert not log.has_deferred
    assert log.staged_records == 1
    commit(log)
    assert topic.end == 1
    (kept,) = open_log(fs.crash_clone()).cursors_of(1)
    assert kept.ack_set.mark_delete == 0


def test_what_memory_keeps_on_a_full_disk_does_not_grow_with_what_clients_do() -> None:
    fs = MemFs()
    cursors = {name: AckSet() for name in ("a", "b")}
    log = full_log(fs, cursors)
    before = log.statistics().bytes_written
    for turn in range(3_000):
        acks = cursors["ab"[turn % 2]]
        acks.reset(-1) if turn % 100 == 99 else acks.ack(turn % 50)
        acks.ack_messages(60 + turn % 40, 1 << turn % 7, 8)
        log.stage_acks(1 + turn % 2)
        log.stage_trim(log.topic(1), 1 + turn % 2)
        given_up = log.create_cursor(1, f"c{turn}", AckSet(), {"x": "y" * 500})
        log.delete_cursor(given_up)
        batch = log.seal_batch()
        if batch is not None:
            log.commit(batch)
        if turn % 50 == 0:
            step(log)
        assert len(log._controls._deferred) + log.staged_records <= 6
    assert log.has_deferred
    assert log.statistics().bytes_written - before < 2 * SMALL.segment_bytes
    fs.capacity_bytes = None
    while log.full:
        step(log)
    assert not log.has_deferred
    commit(log)
    after = open_log(fs.crash_clone())
    assert {c.name: c.ack_set.whole() for c in after.cursors_of(1)} == {
        name: acks.whole() for name, acks in cursors.items()
    }
    assert sum(len([*acks.partial_entries()]) for acks in cursors.values()) > 10
    assert after.topic(1).first == 2


def test_what_is_held_goes_as_far_as_there_is_room() -> None:
    fs = MemFs()
    cursors = {f"s{index}": AckSet() for index in range(30)}
    log = full_log(fs, cursors)
    for index, acks in enumerate(cursors.values()):
        for ordinal in range(0, 50, 2):
            acks.ack(ordinal + 1)
        log.stage_acks(1 + index)
    assert log.has_deferred
    assert log.staged_records > 10
    log.delete_cursor(1)
    dropped = log.topic(1)
    commit(log)
    after = fs.crash_clone()
    after.capacity_bytes = None
    stored = open_log(after).cursors_of(1)
    assert 10 < sum(c.ack_set.ranges_count == 25 for c in stored) < 30
    log.drop_topic(dropped.number)
    fs.capacity_bytes = None
    while log.full:
        step(log)
    assert log.staged_records <= 1  # the end of the one cursor; the others went with the topic


def test_a_trim_holds_once_durable() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a", b"b", b"c")
    log.stage_trim(topic, 2)
    assert topic.first == 0
    assert open_log(fs.crash_clone()).topic(1).first == 0
    commit(log)
    assert topic.first == 2
    log.stage_trim(topic, 1)
    assert log.seal_batch() is None
    with pytest.raises(InvariantError):
        log.stage_trim(topic, 4)
    again = open_log(fs.crash_clone())
    assert again.topic(1).first == 2
    assert bodies_of(again, 1) == [b"c"]
    assert again.topic(1).bytes_before(3) == 3


def test_deleted_cursors_and_dropped_topics_are_gone() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    append(log, 2, b"b")
    one = log.create_cursor(1, "s", AckSet(), {})
    two = log.create_cursor(2, "s", AckSet(), {})
    assert one != two
    commit(log)
    log.delete_cursor(one)
    log.drop_topic(2)
    log.drop_topic(77)
    log.stage_acks(two)
    commit(log)
    assert list(log.cursors()) == []
    assert list(open_log(fs.crash_clone(), topics=[1]).cursors()) == []


def sequence_of(body: bytes) -> tuple[str, int, int]:
    name, last = body.decode().split()
    return name, int(last), int(last)


def known(fs: MemFs) -> dict[str, int] | None:
    """What a start knows of the producers of topic 1."""
    log = CommitLog.open(
        fs.crash_clone(), DIRECTORY, topic_numbers=(1, 2), entropy=bytes, settings=SMALL,
        sequence_of=sequence_of,
    )  # fmt: skip
    table = log.topic(1).sequences
    return None if table is None else {row.name: row.last_id for row in table.rows(1 << 60)}


def stage(log: CommitLog, name: str, last: int) -> None:
    topic = log.enter_topic(1)
    ordinal = log.stage_entry(topic, 1, 1_000, 0, f"{name} {last}".encode())
    if topic.sequences is not None:
        topic.sequences.entry_staged(ordinal, name, last)


def test_deduplication_begins_with_the_next_entry_and_ends() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = log.enter_topic(1)
    stage(log, "p", 7)
    log.track_sequences(topic, is_on=True)
    log.track_sequences(topic, is_on=True)
    stage(log, "p", 3)
    stage(log, "q", -4)
    commit(log)
    assert known(fs) == {"p": 3, "q": -4}
    log.track_sequences(topic, is_on=False)
    assert topic.sequences is None
    stage(log, "p", 9)
    commit(log)
    assert known(fs) is None


@pytest.mark.parametrize("is_restaged", [True, False])
def test_ids_of_a_batch_that_failed_are_not_in_the_record_that_is_staged_again(
    is_restaged: bool,
) -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"before 1")
    log.track_sequences(topic, is_on=True)
    stage(log, "p", 5)
    batch = log.seal_batch()
    assert batch is not None
    log.fail(batch, StorageError("for a moment", retryable=True))
    if is_restaged:
        log.stage_entry(topic, 1, 1_000, 0, b"p 5")
    else:
        table = topic.sequences
        assert table is not None
        table.entries_lost()
    commit(log)
    assert known(fs) == ({"p": 5} if is_restaged else {})


def test_that_deduplication_began_waits_for_room_and_knows_what_came_meanwhile() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a" * 8000)
    fs.capacity_bytes = fs.used_bytes()
    log.create_cursor(1, "s", AckSet(), {"k": "v" * 200})
    log.track_sequences(topic, is_on=True)
    batch = log.seal_batch()
    assert batch is not None
    with pytest.raises(LogFullError):
        log.commit(batch)
    assert log.has_deferred
    fs.capacity_bytes = None
    log.run_maintenance()
    while log.full:
        step(log)
    stage(log, "p", 2)
    commit(log)
    assert not log.has_deferred
    found = CommitLog.open(
        fs.crash_clone(), DIRECTORY, topic_numbers=(1, 2), entropy=bytes, settings=SMALL,
        sequence_of=lambda body: None if body.startswith(b"a") else sequence_of(body),
    ).topic(1).sequences  # fmt: skip
    assert found is not None
    assert found.last_id("p") == 2


def test_a_cursor_gets_other_properties() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, *[b"x"] * 9)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {"a": "b"})
    commit(log)
    acks.ack(3)
    log.set_properties(cursor, {"c": "d"})
    log.set_properties(99, {"c": "d"})
    log.stage_acks(cursor)
    assert open_log(fs.crash_clone()).cursors_of(1)[0].properties == {"a": "b"}
    commit(log)
    acks.ack(5)
    log.stage_acks(cursor)
    commit(log)
    (kept,) = open_log(fs.crash_clone()).cursors_of(1)
    assert kept.properties == {"c": "d"}
    assert kept.ack_set.whole() == acks.whole()
    with pytest.raises(InputError, match="a property key"):
        log.set_properties(cursor, {"k" * 70_000: "v"})
    log.run_maintenance()
    (kept,) = open_log(fs.crash_clone()).cursors_of(1)
    assert kept.properties == {"c": "d"}


def test_a_change_of_properties_leaves_the_acknowledgements_out() -> None:
    """It stored all of them: megabytes, for a request of a hundred bytes."""
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, *[b"x"] * 20_000)
    acks = AckSet()
    cursor = log.create_cursor(1, "s", acks, {})
    for ordinal in range(1, 20_000, 2):
        acks.ack(ordinal)
    log.stage_acks(cursor)
    commit(log)
    log.set_properties(cursor, {"c": "d"})
    batch = log.seal_batch()
    assert batch is not None
    assert batch.size_bytes < 300
    log.commit(batch)
    (kept,) = open_log(fs.crash_clone()).cursors_of(1)
    assert kept.properties == {"c": "d"}
    assert kept.ack_set.whole() == acks.whole()


def test_a_change_of_properties_that_waits_for_room_can_still_be_deleted() -> None:
    fs = MemFs()
    log = full_log(fs, {"a": AckSet(), "b": AckSet()})
    for cursor in (1, 2):
        log.set_properties(cursor, {"k": "v" * 60_000})
    assert log.has_deferred
    log.delete_cursor(1)
    fs.capacity_bytes = None
    while log.full:
        step(log)
    commit(log)
    (kept,) = open_log(fs.crash_clone()).cursors_of(1)
    assert kept.name == "b"
    assert kept.properties == {"k": "v" * 60_000}


def test_acknowledgements_without_room_are_not_encoded_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100,000 runs of them took 50 ms each time that the log looked for room."""
    fs, acks = MemFs(), AckSet()
    log = full_log(fs, {"s": acks})
    cursor = log._state.cursors_of(1)[0].cursor_id
    for ordinal in range(1, 8_000, 2):
        acks.ack(ordinal)
    log.stage_acks(cursor)
    assert log.has_deferred
    with monkeypatch.context() as patch:
        patch.setattr(AckSet, "whole", None)
        for _ in range(5):
            step(log)
    fs.capacity_bytes = None
    while log.has_deferred:
        step(log)
    commit(log)
    assert not log.has_deferred


@pytest.mark.parametrize("size", [10, 700, 3_000])
def test_changes_of_one_cursor_do_not_keep_trims_from_freeing_a_full_disk(size: int) -> None:
    """A client may change the properties of a subscription as often as it likes."""
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, *[b"x" * 2_000] * 20)
    cursor = log.create_cursor(2, "changed", AckSet(), {})
    commit(log)
    log.checkpoint()
    append(log, 2, b"y")
    log.run_maintenance()
    fs.capacity_bytes = fs.used_bytes()
    while not log.full:
        log._staging.roll()
        step(log)
    changes = 0
    while not log.has_deferred:
        changes += 1
        log.set_properties(cursor, {"k": f"{changes}".ljust(size, "v")})
        if not log.has_deferred:
            commit(log)
    assert changes > 2
    log.stage_trim(topic, topic.end)
    commit(log)
    assert topic.first == topic.end
    for _ in range(20):
        step(log)
        batch = log.seal_batch()
        if batch is not None:
            log.commit(batch)
    assert not log.full
    assert not log.has_deferred
    (kept,) = open_log(fs.crash_clone()).cursors_of(2)
    assert kept.properties == {"k": f"{changes}".ljust(size, "v")}


@pytest.mark.parametrize("size", [1, 60, 700, 4_000])
def test_changes_in_a_small_segment_do_not_keep_trims_from_freeing_a_full_disk(size: int) -> None:
    """A checkpoint needs a new segment, and may find room for a small one alone."""
    fs = MemFs(1_310_720)
    log = open_log(fs, settings=replace(SMALL, segment_bytes=131_072, checkpoint_bytes=524_288))
    topic = append(log, 1, b"x" * 2_000)
    cursor = log.create_cursor(2, "changed", AckSet(), {})
    commit(log)
    while not log.full:
        with suppress(LogFullError):
            append(log, 1, b"y" * 4_000)
        step(log)
    fs.capacity_bytes = fs.used_bytes()  # others take the rest
    changes = 0
    has_room = True
    while has_room:
        changes += 1
        log.set_properties(cursor, {"k": f"{changes}".ljust(size, "v")})
        has_room = commit_if_room(log)
        step(log)
    assert log._writer.is_small(log.active_segment())
    log.stage_trim(topic, topic.end)
    for _ in range(40):
        commit_if_room(log)
        step(log)
    assert not log.full
    assert not log.has_deferred
    (kept,) = open_log(fs.crash_clone(), settings=log._settings).cursors_of(2)
    assert kept.properties == {"k": f"{changes}".ljust(size, "v")}


def test_a_cursor_that_was_given_up_for_want_of_room_is_in_no_checkpoint() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"x")
    log.create_cursor(1, "kept", AckSet(), {})
    commit(log)
    log.run_maintenance()
    log.stage_entry(topic, 1, 1000, 0, b"y")
    before = log.seal_batch()
    assert before is not None
    log._maintenance.records_since = SMALL.checkpoint_records
    step(log)  # begins a checkpoint, which waits for the batch
    fs.capacity_bytes = fs.used_bytes() + 5_000
    log.write_batch(before)
    log.complete(before)
    append(log, 1, b"z" * 7_000)
    given_up = log.create_cursor(1, "given up", AckSet(), {"k": "v" * 1_500})
    for _ in range(20):
        step(log)  # collects it
        fs.capacity_bytes = fs.used_bytes() + 5_000  # others take what becomes free
    with pytest.raises(LogFullError):
        commit(log)
    assert log.has_deferred
    log.delete_cursor(given_up)
    assert not log.has_deferred
    for _ in range(20):
        step(log)
    assert log.statistics().checkpoints == 1
    fs.capacity_bytes = None
    assert [cursor.name for cursor in open_log(fs.crash_clone()).cursors_of(1)] == ["kept"]
