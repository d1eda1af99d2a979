"""What is lost is accepted: the topic goes on without it, also over restarts and checkpoints."""

from __future__ import annotations

import contextlib

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.errors import LogFullError
from headgate.ledger.format.records import BATCH_RECORD_BYTES, ENTRY_HEAD_BYTES, PREFIX_BYTES
from headgate.ledger.tools.verify import verify_log
from tests.sim.test_ledger_power_cuts import PowerCutError, cut_at
from tests.unit.ledger.support import append, bodies_of, commit, content, open_log, overwrite, path

THREE = (1, 2, 3)


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


def test_what_is_damaged_after_an_acceptance_is_not_accepted() -> None:
    """Also where it lies before the record of the acceptance."""
    fs, log = damaged_log()
    append(log, 1, b"six-and-more", b"seven")
    plan = log.locate(log.topic(1), 5, 1, 1)
    log.accept_damage(1, [])
    commit(log)
    again = fs.crash_clone()
    overwrite(again, path(plan.segment), plan.offset + ENTRY_HEAD_BYTES, b"\xee\xee")
    topic = open_log(again).topic(1)
    assert topic.damage.endswith("is damaged: entry 5 is lost")
    assert topic.lost == [(1, 2), (5, 6)]


@pytest.mark.parametrize("policy", ["synced only", "random rest"])
def test_a_power_cut_at_any_step_of_an_acceptance_accepts_it_or_not(policy: str) -> None:
    whole = twice_damaged()
    said = {n: open_log(whole.crash_clone()).topic(n).damage for n in (1, 2)}
    assert all(said.values())
    seen: set[str] = set()
    step = 0
    while True:
        cut = cut_at(step)
        cut.inner = whole.crash_clone()
        is_done = False
        with contextlib.suppress(PowerCutError):
            log = open_log(cut)
            log.accept_damage(1, [3])
            commit(log)
            is_done = True
            log.checkpoint()
            step = -1
        assert isinstance(cut.inner, MemFs)
        fs = cut.inner.crash_clone(None if policy == "synced only" else max(step, 0))
        for _ in range(2):  # and the next start finds the same
            log = open_log(fs)
            topic = log.topic(1)
            assert (topic.damage, topic.lost) in (
                [("", [(1, 2), (3, 4)])] if is_done else
                [(said[1], [(1, 2)]), ("", [(1, 2), (3, 4)])]
            )  # fmt: skip
            assert log.topic(2).damage == said[2]
            seen.add(topic.damage)
            fs = fs.crash_clone()
        if step < 0:
            break
        step += 1
    assert seen == {"", said[1]}


def cut_in_the_middle() -> MemFs:
    """A log of which a sealed segment before the checkpoint is cut: topics 1 and 2 lose their last
    two entries, topic 3 those before its newest."""
    fs = MemFs()
    log = open_log(fs, THREE)
    for number in THREE:
        append(log, number, b"sound %d" % number)
    cut = log._state.segments[1].data_end
    for turn in range(2):
        for number in THREE:
            append(log, number, b"lost %d %d" % (number, turn) * 9)
    log.close()
    log = open_log(fs, THREE)
    append(log, 3, b"newest")
    log.close()
    after = fs.crash_clone()
    file = after.open(path(), writable=True)
    file.truncate(cut)
    file.sync_data()
    return after


def test_the_damage_names_the_place_and_the_message_ids() -> None:
    log = open_log(cut_in_the_middle(), THREE)
    end = log._state.segments[1].data_end
    for number in (1, 2):
        (first, _), last = log.topic(number).position(1), log.topic(number).position(2)
        assert log.topic(number).damage == (
            f"0000000000000001.log from offset {end} on: entries 1 to 2 are lost "
            f"(message ids {first}:1 to {first}:2)"
        )
        assert last == (first, 2)
    first = log.topic(3).position(1).ledger_id
    assert log.topic(3).damage == (
        f"before 0000000000000003.log: entries 1 to 2 are lost (message ids {first}:1 to {first}:2)"
    )


def test_the_damage_of_a_topic_without_any_entry_left_names_the_place() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"sound")
    cut = log._state.segments[1].data_end
    append(log, 2, b"lost", b"lost")
    log.close()
    open_log(fs).close()
    file = fs.open(path(), writable=True)
    file.truncate(cut)
    assert open_log(fs).topic(2).damage == (
        "entries 0 to 1 are missing: they were in 0000000000000001.log from offset "
        f"{cut} on, or a segment file is gone"
    )


def shown(log: CommitLog) -> list[tuple[str, list[tuple[int, int]], int]]:
    return [(topic.damage, topic.lost, topic.end) for topic in map(log.topic, THREE)]


ACCEPTED = [("", [(1, 3)], 3), ("", [(1, 3)], 3), ("", [(1, 3)], 4)]


@pytest.mark.parametrize("ending", ["crash", "close"])
@pytest.mark.parametrize("more", [(), (1,), (1, 2, 3)])
def test_accepted_last_entries_of_topics_stay_accepted(ending: str, more: tuple[int, ...]) -> None:
    """Each start finds the loss again, and no record behind the checkpoint is of these topics."""
    fs = cut_in_the_middle()
    log = open_log(fs, THREE)
    assert all(damage for damage, _, _ in shown(log))
    for number in THREE:
        log.accept_damage(number, [])
    commit(log)
    for number in more:
        append(log, number, b"later")
    ends = shown(log)
    assert [said[:2] for said in ends] == [said[:2] for said in ACCEPTED]
    for _ in range(3):
        if ending == "close":
            log.close()
        fs = fs.crash_clone()
        log = open_log(fs, THREE)
        assert shown(log) == ends
        for number in more:
            topic = log.topic(number)
            ((_, _, body),) = log.read(log.locate(topic, topic.end - 1, 1, 1))
            assert body == b"later"


def without_footer_and_run() -> MemFs:
    """A log of which a segment before the checkpoint lost its footer, and in it the record that
    begins topic 1. All entries are sound."""
    fs = MemFs()
    log = open_log(fs, THREE)
    append(log, 1, b"first")
    log.close()
    log = open_log(fs, THREE)
    append(log, 2, b"before")
    segment, info = log._state.segments.popitem()
    log._state.segments[segment] = info
    run = info.data_end + BATCH_RECORD_BYTES
    for number in THREE:
        append(log, number, b"sound %d" % number, b"too")
    data_end = info.data_end
    log.close()
    log = open_log(fs, THREE)
    append(log, 3, b"newest")
    log.close()
    after = fs.crash_clone()
    file = after.open(path(segment), writable=True)
    file.truncate(data_end)
    file.sync_data()
    overwrite(after, path(segment), run + PREFIX_BYTES, b"\xee" * 9)
    return after


@pytest.mark.parametrize("ending", ["crash", "close"])
def test_an_accepted_loss_of_what_names_a_ledger_stays_accepted(ending: str) -> None:
    """Each start reads the records in the place of the footer, and found it anew."""
    fs = without_footer_and_run()
    log = open_log(fs, THREE)
    assert log.topic(1).damage.endswith("what belongs before entry 1 is lost")
    assert not log.topic(2).damage
    log.accept_damage(1, [])
    commit(log)
    for _ in range(3):
        if ending == "close":
            log.close()
        fs = fs.crash_clone()
        log = open_log(fs, THREE)
        assert not log.topic(1).damage
        assert bodies_of(log, 1) == [b"first", b"sound 1", b"too"]
        assert verify_log(fs, "/data", dict.fromkeys(THREE, "")).damage == []


def test_a_read_of_several_entries_ends_before_lost_ones() -> None:
    """A lost entry has the offset of the sound one before it, and no size of its own."""
    fs = cut_in_the_middle()
    log = open_log(fs, THREE)
    for number in THREE:
        log.accept_damage(number, [])
    commit(log)
    for again in (False, True):
        if again:
            log.close()
            log = open_log(fs.crash_clone(), THREE)
        for number in THREE:
            topic = log.topic(number)
            plan = log.locate(topic, 0, 100, 1 << 20)
            assert log.read(plan) == [(number, 0, b"sound %d" % number)]
            assert topic.last_kept() == (3 if number == 3 else 0)
            for lost in (1, 2):
                with pytest.raises(CorruptionError, match=f"entry {lost} of topic number {number}"):
                    log.read(log.locate(topic, lost, 100, 1 << 20))
        plan = log.locate(log.topic(3), 3, 100, 1 << 20)
        assert log.read(plan) == [(3, 3, b"newest")]


@pytest.mark.parametrize("policy", ["synced only", "random rest"])
def test_a_power_cut_at_any_step_keeps_the_acceptance_of_last_entries(policy: str) -> None:
    """Also in the start and the clean end after it."""
    whole = cut_in_the_middle()
    refused = shown(open_log(whole.crash_clone(), THREE))
    seen: list[bool] = []
    step = 0
    while step >= 0:
        cut = cut_at(step)
        cut.inner = whole.crash_clone()
        is_done = False
        with contextlib.suppress(PowerCutError):
            log = open_log(cut, THREE)
            for number in THREE:
                log.accept_damage(number, [])
            commit(log)
            is_done = True
            log.close()
            for _ in range(2):
                open_log(cut, THREE).close()
            step = -2
        assert isinstance(cut.inner, MemFs)
        fs = cut.inner.crash_clone(None if policy == "synced only" else max(step, 0))
        for _ in range(2):  # and the next start finds the same
            log = open_log(fs, THREE)
            assert shown(log) in ([ACCEPTED] if is_done else [refused, ACCEPTED])
            seen.append(is_done)
            log.close()
            fs = fs.crash_clone()
        step += 1
    assert len({*seen}) == 2


def test_a_loss_beside_an_accepted_one_is_not_accepted() -> None:
    fs = cut_in_the_middle()
    log = open_log(fs, THREE)
    for number in THREE:
        log.accept_damage(number, [])
    commit(log)
    log.close()
    after = fs.crash_clone()
    overwrite(after, path(), content(after, path()).index(b"sound 2"), b"\xee\xee")
    log = open_log(after, THREE)
    assert [bool(damage) for damage, _, _ in shown(log)] == [False, True, False]
    assert log.topic(2).damage.endswith("entry 0 is lost")
    assert log.topic(2).lost == [(0, 3)]


def twice_damaged() -> MemFs:
    """A log that no start has seen yet, with a damaged entry in each topic."""
    fs = MemFs()
    log = open_log(fs)
    log.create_cursor(1, "s", AckSet(), {})
    append(log, 1, b"one")
    append(log, 1, b"two-and-more")
    append(log, 2, b"other")
    append(log, 1, b"three", b"four", b"five")
    for body in (b"two-and-more", b"other"):
        overwrite(fs, path(), content(fs, path()).index(body), b"\xee\xee")
    return fs.crash_clone()


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
