"""The history of changes: an hour, bounded for all subjects and for each."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from headgate.explain.change_log import HOUR_MS, SWEEP_MS, ChangeLog

NOW_MS = 1_800_000_000_000


@dataclass
class Noted:
    at_ms: int
    text: str = ""


def test_a_subject_has_its_changes_in_order() -> None:
    log: ChangeLog[Noted] = ChangeLog(10, 5)
    for at in range(3):
        log.add("a", Noted(NOW_MS + at))
    log.add("b", Noted(NOW_MS + 3))
    assert [each.at_ms - NOW_MS for each in log.since("a", NOW_MS + 1)] == [1, 2]
    assert [each.at_ms - NOW_MS for each in log.newest_first("a")] == [2, 1, 0]
    assert log.since("c", 0) == log.newest_first("c") == []
    assert log.complete_since_ms("a", NOW_MS) == NOW_MS - HOUR_MS


def test_what_is_older_than_an_hour_goes() -> None:
    log: ChangeLog[Noted] = ChangeLog(10, 5)
    log.add("a", Noted(NOW_MS))
    log.add("b", Noted(NOW_MS + HOUR_MS))
    assert len(log) == 2
    log.add("b", Noted(NOW_MS + HOUR_MS + SWEEP_MS))
    assert len(log) == 2
    assert log.since("a", 0) == []
    assert log.complete_since_ms("a", NOW_MS + HOUR_MS + 1) == NOW_MS + 1


def test_a_busy_subject_loses_its_own_and_says_so() -> None:
    log: ChangeLog[Noted] = ChangeLog(10, 3)
    log.add("quiet", Noted(NOW_MS))
    for at in range(1, 9):
        log.add("busy", Noted(NOW_MS + at))
    assert [each.at_ms - NOW_MS for each in log.since("busy", 0)] == [6, 7, 8]
    assert log.complete_since_ms("busy", NOW_MS + 9) == NOW_MS + 5
    assert log.complete_since_ms("quiet", NOW_MS + 9) == NOW_MS + 9 - HOUR_MS


def test_beyond_the_bound_of_all_the_oldest_goes() -> None:
    log: ChangeLog[Noted] = ChangeLog(4, 4)
    for at in range(6):
        log.add(f"persistent://a/n/t{at}", Noted(NOW_MS + at))
    assert len(log) == 4
    assert log.since("persistent://a/n/t1", 0) == []
    assert log.complete_since_ms("persistent://a/n/t5", NOW_MS + 6) == NOW_MS + 1


def test_no_tenant_pushes_out_the_changes_of_another() -> None:
    log: ChangeLog[Noted] = ChangeLog(40, 4)
    quiet = ("persistent://quiet/n/t", "quiet/n", "")
    for at, subject in enumerate(quiet):
        log.add(subject, Noted(NOW_MS + at))
    for at in range(500):
        log.add(f"persistent://busy/n/t{at}", Noted(NOW_MS + 10 + at))
    assert len(log) == 40
    now_ms = NOW_MS + 600
    for subject in quiet:
        assert len(log.since(subject, 0)) == 1
        assert log.complete_since_ms(subject, now_ms) == now_ms - HOUR_MS
    # What one has beyond its share makes room for those of others.
    for at in range(10):
        log.add(f"persistent://new/n/t{at}", Noted(NOW_MS + 550))
    assert [len(log.since(f"persistent://new/n/t{at}", 0)) for at in range(10)] == [1] * 10
    assert log.complete_since_ms("persistent://busy/n/t9", now_ms) > NOW_MS


def test_tenants_are_forgotten_an_hour_after_their_last_change() -> None:
    log: ChangeLog[Noted] = ChangeLog(3, 4)
    for at in range(100):
        log.add(f"persistent://tenant{at}/n/t", Noted(NOW_MS + at))
    log.add("a", Noted(NOW_MS + 2 * HOUR_MS))
    assert (len(log), len(log._tenants)) == (1, 1)


def test_a_clock_that_is_set_back_leaves_nothing_for_ever() -> None:
    log: ChangeLog[Noted] = ChangeLog(10, 5)
    log.add("a", Noted(NOW_MS + 5 * HOUR_MS))
    log.add("a", Noted(NOW_MS))
    log.add("a", Noted(NOW_MS + 1))
    assert [each.at_ms - NOW_MS for each in log.since("a", 0)] == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, HOUR_MS // 3)), max_size=60))
def test_the_bounds_hold_and_what_is_complete_is_there(steps: list[tuple[int, int]]) -> None:
    log: ChangeLog[Noted] = ChangeLog(7, 3)
    added: list[tuple[str, int]] = []
    now_ms = NOW_MS
    for subject, passed_ms in steps:
        now_ms += passed_ms
        log.add(str(subject), Noted(now_ms))
        added.append((str(subject), now_ms))
        assert len(log) <= 7
    for subject in map(str, range(5)):
        found = [each.at_ms for each in log.since(subject, 0)]
        assert len(found) <= 3
        since_ms = log.complete_since_ms(subject, now_ms)
        expected = [at for name, at in added if name == subject and at > since_ms]
        assert [at for at in found if at > since_ms] == expected


def test_of_a_tenant_that_is_gone_nothing_is_left() -> None:
    log: ChangeLog[Noted] = ChangeLog(10, 5)
    for subject in ("persistent://a/n/t", "a/n", "persistent://ab/n/t"):
        log.add(subject, Noted(NOW_MS))
    log.forget_tenant("a", NOW_MS + 7)
    log.forget_tenant("unknown", NOW_MS + 7)
    assert len(log) == 1
    assert log.since("persistent://a/n/t", 0) == log.newest_first("a/n") == []
    assert log.complete_since_ms("persistent://a/n/t", NOW_MS + 8) == NOW_MS + 7
    assert len(log.since("persistent://ab/n/t", 0)) == 1
    log.add("a/n", Noted(NOW_MS + 9))
    assert len(log.since("a/n", 0)) == 1
