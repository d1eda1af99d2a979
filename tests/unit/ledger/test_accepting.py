"""What is lost is accepted: the topic goes on without it, also over restarts and checkpoints."""

from __future__ import annotations

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.errors import LogFullError
from headgate.ledger.format.records import BATCH_RECORD_BYTES, ENTRY_HEAD_BYTES
from tests.unit.ledger.support import append, bodies_of, commit, open_log, overwrite, path


def damaged_log() -> tuple[MemFs, CommitLog]:
    """Topic 1 has five entries, of which the second is damaged; topic 2 is sound."""
    fs = MemFs()
    log = open_log(fs)
    log.create_cursor(1, "s", AckSet(), {})
    append(log, 1, b"one")
    at = log._state.segments[1].data_end
    append(log, 1, b"two-and-more")
    append(log, 2, b"other")
    append(log, 1, b"three", b"four", b"five")
    overwrite(fs, path(), at + BATCH_RECORD_BYTES + ENTRY_HEAD_BYTES, b"\xee\xee")
    after = fs.crash_clone()
    return after, open_log(after)


def test_only_the_damaged_entry_is_lost() -> None:
    _, log = damaged_log()
    topic = log.topic(1)
    assert topic.damage.endswith("is damaged: entry 1 is lost")
    assert (topic.first, topic.end, topic.lost) == (0, 5, [(1, 2)])
    assert not log.topic(2).damage
    assert not log.cursors_of(1)[0].damage
    with pytest.raises(CorruptionError, match="entry 1 of topic number 1"):
        log.read(log.locate(topic, 1, 1, 1))
    assert [log.read(log.locate(topic, at, 1, 1))[0][2] for at in (0, 2, 3, 4)] == [
        b"one", b"three", b"four", b"five",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["crash", "close"])
def test_until_it_is_accepted_it_stays_damaged(ending: str) -> None:
    fs, log = damaged_log()
    said = log.topic(1).damage
    append(log, 2, b"more")
    if ending == "close":
        log.close()
    again = open_log(fs.crash_clone())
    assert (again.topic(1).damage, again.topic(1).lost) == (said, [(1, 2)])


@pytest.mark.parametrize("ending", ["crash", "close"])
def test_what_is_accepted_stays_accepted(ending: str) -> None:
    fs, log = damaged_log()
    log.accept_damage(1, [3])
    commit(log)
    append(log, 1, b"six")
    if ending == "close":
        log.close()
    for _ in range(2):
        fs = fs.crash_clone()
        log = open_log(fs)
        topic = log.topic(1)
        assert (topic.damage, topic.lost, topic.end) == ("", [(1, 2), (3, 4)], 6)
        assert [ordinal for ordinal in range(6) if topic.is_lost(ordinal)] == [1, 3]
        assert [cursor.name for cursor in log.cursors_of(1)] == ["s"]


def test_an_acceptance_that_is_not_durable_is_none() -> None:
    fs, log = damaged_log()
    log.accept_damage(1, [])
    assert log.topic(1).damage == ""
    assert open_log(fs.crash_clone()).topic(1).damage


def test_an_acceptance_that_a_full_disk_refuses_changes_nothing() -> None:
    _, log = damaged_log()
    said = log.topic(1).damage
    log.yield_space(is_needed=True)
    with pytest.raises(LogFullError):
        log.accept_damage(1, [3])
    assert (log.topic(1).damage, log.topic(1).lost) == (said, [(1, 2)])


def test_a_sound_topic_has_nothing_to_accept() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    log.accept_damage(1, [])
    commit(log)
    again = open_log(fs.crash_clone())
    assert (again.topic(1).damage, again.topic(1).lost) == ("", [])
    assert bodies_of(again, 1) == [b"one"]
