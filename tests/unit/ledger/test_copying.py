"""A topic that is copied is the same topic; a copy that fails or does not count leaves nothing."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError, StorageError
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings
from headgate.ledger.copying import copy_topic
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    bodies_of,
    commit,
    open_log,
    overwrite,
    path,
    times_of,
)

SETTINGS = LedgerSettings(
    segment_bytes=8192, extent_bytes=1024, ledger_entries_max=7, ledger_age_ms_min=0,
    checkpoint_records=50, slice_items=2,
)  # fmt: skip


def filled(fs: MemFs) -> CommitLog:
    """A log in which topic 1 has entries in many ledgers and segments, the oldest trimmed."""
    log = open_log(fs, settings=SETTINGS)
    for at in range(60):
        log.stage_entry(log.topic(1), at % 3 + 1, 1_000 + at * 10, 990 + at * 9, b"%d" % at * 200)
        append(log, 2, b"other %d" % at)
        log.run_maintenance()
    log.stage_trim(log.topic(1), 14)
    for name, acked in (("a", range(14, 30)), ("b", range(20, 60, 2))):
        acks = AckSet(13)
        for ordinal in acked:
            acks.ack(ordinal)
        acks.ack_messages(53, 0b101, 3)
        log.create_cursor(1, name, acks, {"of": name})
    commit(log)
    return log


def picture(log: CommitLog) -> dict[str, object]:
    """All that anybody could ask about topic 1."""
    topic = log.topic(1)
    entries = range(topic.first, topic.end)
    return {
        "range": (topic.first, topic.end),
        "bodies": bodies_of(log, 1),
        "times": times_of(log, 1),
        "positions": [topic.position(at) for at in range(topic.first - 1, topic.end + 1)],
        "counts": [topic.message_count(at) for at in entries],
        "totals": (topic.totals(topic.first), topic.totals(topic.end)),
        "ledgers": topic.ledgers(),
        "cursors": [
            (cursor.name, dict(cursor.properties), cursor.ack_set.to_bytes())
            for cursor in log.cursors_of(1)
        ],
    }


@pytest.mark.parametrize("restart", ["", "crash", "close", "crash without footers"])
def test_a_copy_is_the_same_topic(restart: str) -> None:
    source, fs = filled(MemFs()), MemFs()
    target = open_log(fs, topics=[], settings=SETTINGS)
    append(target, 9, b"its own")
    assert copy_topic(source, target, 1) == 46
    wanted = picture(source)
    if restart == "close":
        target.close()
    if restart == "crash without footers":
        fs = fs.crash_clone()
        names = [n for n in fs.list_directory(DIRECTORY) if n.endswith(".log")]
        for name in names[:-1]:
            size = fs.open(f"{DIRECTORY}/{name}").size()
            overwrite(fs, f"{DIRECTORY}/{name}", size - 4, b"xxxx")
    if restart:
        target = open_log(fs.crash_clone(), topics=[1], settings=SETTINGS)
    assert picture(target) == wanted
    later = append(target, 1, b"more", received_ms=9_000)
    assert later.position(60).ledger_id > source.topic(1).position(59).ledger_id
    assert bodies_of(target, 1)[-1] == b"more"


def test_a_topic_that_holds_nothing_keeps_its_place() -> None:
    source, fs = filled(MemFs()), MemFs()
    topic = source.topic(1)
    source.roll_ledger(topic, 5_000)
    source.stage_trim(topic, topic.end)
    commit(source)
    last = topic.position(topic.end - 1)
    assert copy_topic(source, open_log(fs, topics=[], settings=SETTINGS), 1) == 0
    again = open_log(fs.crash_clone(), topics=[1], settings=SETTINGS).topic(1)
    assert (again.first, again.end) == (60, 60)
    assert again.position(59) == last
    assert [ledger.entries for ledger in again.ledgers()] == [0]


@pytest.mark.parametrize("commits", [0, 1, 3])
def test_a_copy_that_a_crash_interrupts_is_made_again(commits: int) -> None:
    source, fs = filled(MemFs()), MemFs()
    target = open_log(fs, topics=[], settings=SETTINGS)
    left = commits
    plain = target.commit

    def commit_some(batch: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return plain(batch)  # type: ignore[arg-type]

    target.commit = commit_some  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        copy_topic(source, target, 1)
    fs = fs.crash_clone()
    target = open_log(fs, topics=[], settings=SETTINGS)
    copy_topic(source, target, 1)
    assert picture(target) == picture(source)
    again = open_log(fs.crash_clone(), topics=[1], settings=SETTINGS)
    assert picture(again) == picture(source)


def test_a_copy_without_room_leaves_nothing_behind() -> None:
    source, fs = filled(MemFs()), MemFs(40_000)
    target = open_log(fs, topics=[], settings=SETTINGS)
    with pytest.raises(StorageError):
        copy_topic(source, target, 1)
    fs.capacity_bytes = None
    for _ in range(100):
        job = target.maintenance_step()
        if job is not None:
            job.run()
            target.finish_job(job)
    assert target.statistics().segments_sealed == 0
    assert target.statistics().topics == 0
    copy_topic(source, target, 1)
    assert picture(target) == picture(source)


def test_a_damaged_entry_is_not_copied() -> None:
    fs = MemFs()
    source = filled(fs)
    segment = source.topic(1).run_of(20)[0]
    body = b"20" * 200
    file = fs.open(path(segment))
    overwrite(fs, path(segment), file.read_at(0, file.size()).index(body), b"XX")
    target = open_log(MemFs(), topics=[], settings=SETTINGS)
    with pytest.raises(CorruptionError):
        copy_topic(source, target, 1)
    assert target.statistics().topics == 0


@pytest.mark.parametrize("what", ["topic", "cursor", "entries"])
def test_a_topic_that_lost_something_is_not_copied(what: str) -> None:
    source = filled(MemFs())
    if what == "topic":
        source.topic(1).damage = "at the third sector"
    elif what == "cursor":
        source.cursors_of(1)[1].damage = "at the third sector"
    else:
        source.topic(1).note_lost(20, 22)
    target = open_log(MemFs(), topics=[], settings=SETTINGS)
    with pytest.raises(CorruptionError, match=r"third sector|are lost"):
        copy_topic(source, target, 1)
    assert target.statistics().topics == 0
