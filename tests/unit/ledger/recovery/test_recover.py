"""What a start makes of torn tails, damage, unknown topics and two generations of files."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    ENTRY_HEAD_BYTES,
    segment_name,
)
from headgate.ledger.space.accounting import space_errors
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    bodies_of,
    commit,
    content,
    open_log,
    overwrite,
    path,
    times_of,
)


def crashed(fs: MemFs) -> MemFs:
    return fs.crash_clone()


def data_end(log: CommitLog) -> int:
    return log._state.segments[1].data_end


def test_everything_complete_is_there_again() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a", b"b")
    append(log, 2, b"c")
    append(log, 1, b"d")
    again = open_log(crashed(fs))
    assert bodies_of(again, 1) == [b"a", b"b", b"d"]
    assert bodies_of(again, 2) == [b"c"]
    assert again.statistics().replayed_records == 6


def test_staged_but_not_written_is_gone() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    log.stage_entry(log.topic(1), 1, 1, 0, b"lost")
    again = open_log(crashed(fs))
    assert bodies_of(again, 1) == [b"a"]


def test_the_next_entry_opens_a_new_ledger() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"a", b"b")
    old = topic.position(1)
    again = open_log(crashed(fs))
    assert again.topic(1).position(1) == old
    topic = append(again, 1, b"c")
    assert topic.position(2).entry_id == 0
    assert topic.position(2).ledger_id > old.ledger_id
    assert topic.ordinal_at_or_after(old.ledger_id, old.entry_id + 1) == 2


def test_the_run_record_of_a_torn_batch_counts_for_nothing_in_the_next_life() -> None:
    """An empty run between two others would keep its file for ever."""
    fs = MemFs()
    append(open_log(fs), 1, b"first")
    torn = crashed(fs)
    log = open_log(torn)
    position_path = f"{DIRECTORY}/{FLUSH_POSITION_NAME}"
    position = content(torn, position_path)
    append(log, 1, b"torn")
    segment = log.topic(1).segment
    cut = log._state.segments[segment].data_end - ENTRY_HEAD_BYTES - len(b"torn")
    torn = torn.crash_clone()
    overwrite(torn, position_path, 0, position)
    overwrite(torn, path(segment), cut, bytes(len(content(torn, path(segment))) - cut))
    append(open_log(torn), 1, b"next")
    last = open_log(torn.crash_clone())
    assert bodies_of(last, 1) == [b"first", b"next"]
    assert len(last.topic(1).live_runs()) == 2
    assert space_errors(last._state) == []


def test_damage_names_its_place() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    at = data_end(log)
    append(log, 1, b"two")
    append(log, 1, b"three")
    damaged = crashed(fs)
    overwrite(damaged, path(), at + BATCH_RECORD_BYTES + ENTRY_HEAD_BYTES + 1, b"\xff")
    place = at + BATCH_RECORD_BYTES
    again = open_log(damaged)
    assert again.topic(1).damage == (
        f"0000000000000001.log offset {place} is damaged: entry 1 is lost"
    )
    assert not again.topic(2).damage


def test_records_of_unknown_topics_are_garbage() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    append(log, 2, b"b")
    log.create_cursor(2, "s", AckSet(), {})
    commit(log)
    again = open_log(crashed(fs), topics=[1])
    assert bodies_of(again, 1) == [b"a"]
    assert list(again.cursors()) == []
    assert again.statistics().topics == 1
    again.close()


def dated_log(fs: MemFs) -> tuple[CommitLog, list[tuple[int, int]]]:
    """Nine entries over several segments under clocks that lie, and their times."""
    log = open_log(fs)
    for at in range(9):
        wall_ms = 2**33 + (500 if at % 2 else 1_000) + at
        publish_ms = (0, wall_ms - 700, 1, 2**64 - 1)[at % 4]
        log.stage_entry(log.topic(1), 1, wall_ms, publish_ms, b"%d" % at * 2_000)
        commit(log)
    received = (1_000, 1_000, 1_002, 1_002, 1_004, 1_004, 1_006, 1_006, 1_008)
    published = (1_000, 1_000, 1_000, 1_002, 1_004, 1_004, 1_004, 1_006, 1_008)
    return log, [(2**33 + at, 2**33 + said) for at, said in zip(received, published, strict=True)]


@pytest.mark.parametrize("ending", ["crash", "close", "damaged footers"])
def test_both_times_are_as_before(ending: str) -> None:
    fs = MemFs()
    log, times = dated_log(fs)
    assert times_of(log, 1) == times
    if ending != "crash":
        log.close()
    after = crashed(fs)
    if ending == "damaged footers":
        for name in after.list_directory(DIRECTORY):
            if name.endswith(".log"):
                last = after.open(f"{DIRECTORY}/{name}").size() - 1
                overwrite(after, f"{DIRECTORY}/{name}", last, b"\xee")
    again = open_log(after)
    assert again.statistics().replayed_records == (12 if ending == "crash" else 0)
    assert times_of(again, 1) == times
    append(again, 1, b"next", received_ms=7)
    assert times_of(again, 1) == [*times, (times[-1][0], times[-1][0])]


@pytest.mark.parametrize("ending", ["crash", "close", "close and crash", "long gone"])
def test_the_last_times_outlive_the_entries(ending: str) -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = log.topic(1)
    log.stage_entry(topic, 1, 9_000, 8_000, b"x")
    commit(log)
    log.stage_trim(topic, 1)
    commit(log)
    if ending != "crash":
        log.close()
    if ending == "close and crash":
        log = open_log(fs)
        append(log, 2, b"other")
    if ending == "long gone":
        log = open_log(fs)
        append(log, 2, *[b"other" * 1_000] * 9)
        log.run_maintenance()
        assert segment_name(1) not in fs.list_directory(DIRECTORY)
        log.close()
    after = crashed(fs)
    again = open_log(after)
    topic = again.topic(1)
    assert (topic.first, topic.end, topic.base) == (1, 1, 1)
    again.stage_entry(topic, 1, 100, 50, b"y")
    again.stage_entry(topic, 1, 9_500, 8_500, b"z")
    commit(again)
    assert times_of(again, 1) == [(9_000, 8_000), (9_500, 8_500)]
    assert times_of(open_log(crashed(after)), 1) == times_of(again, 1)


def test_the_last_times_outlive_the_entries_where_only_a_run_followed() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = log.topic(1)
    log.stage_entry(topic, 1, 9_000, 8_000, b"x")
    commit(log)
    log.stage_trim(topic, 1)
    commit(log)
    log.close()
    log = open_log(fs)
    append(log, 1, b"torn", received_ms=20_000)
    segment = log.active_segment()
    after = crashed(fs)
    overwrite(after, path(segment), log._state.segments[segment].data_end - 1, b"\xee")
    after.remove(f"{DIRECTORY}/{FLUSH_POSITION_NAME}")
    again = open_log(after)
    assert again.statistics().replayed_records == 1  # the run
    assert again.topic(1).end == 1
    append(again, 1, b"y", received_ms=100)
    assert times_of(again, 1) == [(9_000, 9_000)]
    assert again.topic(1).totals(1) == (1, 1, 9_000, 1_000)


def test_a_damaged_checkpoint_is_restored_from_its_copy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    log.create_cursor(1, "s", AckSet(), {"k": "v"})
    log.close()
    names = [n for n in fs.list_directory(DIRECTORY) if "checkpoint" in n]
    for name in names:
        whole = content(fs, f"{DIRECTORY}/{name}")
        for at in range(len(whole)):
            damaged = fs.crash_clone()
            overwrite(damaged, f"{DIRECTORY}/{name}", at, bytes([whole[at] ^ 1]))
            caplog.clear()
            again = open_log(damaged)
            assert bodies_of(again, 1) == [b"a"]
            assert [cursor.name for cursor in again.cursors_of(1)] == ["s"]
            if name == names[0]:
                (line,) = caplog.messages
                assert line.startswith(
                    f"{name} is damaged: its checksum is wrong in /data: restored"
                )
                assert line.endswith(f"restored from {names[1]}")
                caplog.clear()
                open_log(damaged.crash_clone())
            assert not caplog.messages


def test_of_two_cursors_with_one_name_the_younger_holds() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"a")
    log.create_cursor(1, "s", AckSet(), {})
    younger = log.create_cursor(1, "s", AckSet(0), {})
    commit(log)
    (cursor,) = open_log(crashed(fs)).cursors_of(1)
    assert (cursor.cursor_id, cursor.ack_set.mark_delete) == (younger, 0)
