"""Receive times that a clock that was ahead gave, bounded for good."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger import CommitLog, ReceiveTimeBound
from tests.unit.ledger.support import DIRECTORY, SMALL, append

NOW_MS = 1_000_000
AHEAD_MS = NOW_MS + 10 * 365 * 86_400_000


def opened(fs: MemFs, bound: ReceiveTimeBound | None) -> CommitLog:
    return CommitLog.open(
        fs,
        DIRECTORY,
        topic_numbers=(1, 2),
        entropy=bytes,
        settings=SMALL,
        receive_time_bound=bound,
    )


def times(log: CommitLog, number: int) -> list[tuple[int, int]]:
    topic = log.topic(number)
    return [(topic.received_ms(o), topic.published_ms(o)) for o in range(topic.first, topic.end)]


def old_log() -> MemFs:
    """Topic 1 got a message while the clock was ten years ahead."""
    fs = MemFs()
    log = opened(fs, None)
    topic = log.topic(1)
    append(log, 1, b"before", received_ms=NOW_MS - 10)
    log.stage_entry(topic, 1, AHEAD_MS, NOW_MS - 5, b"ahead")
    append(log, 1, b"after", received_ms=NOW_MS - 2)
    append(log, 2, b"other", received_ms=NOW_MS - 1)
    log.close()
    return fs


def test_a_log_that_is_taken_over_is_bounded_by_now() -> None:
    log = opened(old_log(), ReceiveTimeBound(None, NOW_MS))
    assert log.topics_bounded == 1
    assert log.newest_received_ms() == NOW_MS
    # The producer's time was lost in what one can hold of it.
    assert [received for received, _ in times(log, 1)] == [NOW_MS - 10, NOW_MS, NOW_MS]
    assert times(log, 2) == [(NOW_MS - 1, NOW_MS - 1)]
    append(log, 1, b"new", received_ms=NOW_MS + 1)
    assert times(log, 1)[-1] == (NOW_MS + 1, NOW_MS + 1)
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_the_bound_holds_at_every_start_and_for_nothing_newer(clean: bool) -> None:
    fs = old_log()
    log = opened(fs, ReceiveTimeBound(None, NOW_MS))
    bound = ReceiveTimeBound(log.active_segment(), NOW_MS)
    append(log, 1, b"new", received_ms=NOW_MS + 5_000)
    for _ in range(3):
        if clean:
            log.close()
        else:
            fs = fs.crash_clone()
        log = opened(fs, bound)
        received = [received for received, _ in times(log, 1)]
        assert received == [NOW_MS - 10, NOW_MS, NOW_MS, NOW_MS + 5_000]
        assert received == sorted(received)
    log.close()


def test_a_topic_without_entries_does_not_stay_ahead() -> None:
    fs = MemFs()
    log = opened(fs, None)
    topic = append(log, 1, b"ahead", received_ms=AHEAD_MS)
    log.stage_trim(topic, 1)
    append(log, 2, b"x", received_ms=NOW_MS)
    log.close()
    log = opened(fs, ReceiveTimeBound(None, NOW_MS))
    append(log, 1, b"new", received_ms=NOW_MS + 7)
    assert times(log, 1) == [(NOW_MS + 7, NOW_MS + 7)]
    assert all(ledger.created_ms <= NOW_MS + 7 for ledger in log.topic(1).ledgers())
    log.close()


def test_ledgers_are_no_older_in_the_future() -> None:
    fs = MemFs()
    log = opened(fs, None)
    append(log, 1, b"ahead", received_ms=AHEAD_MS)
    log.close()
    log = opened(fs, ReceiveTimeBound(None, NOW_MS))
    assert [ledger.created_ms for ledger in log.topic(1).ledgers()] == [NOW_MS]
    log.close()


def test_what_says_no_more_than_the_bound_is_left_alone() -> None:
    fs = MemFs()
    log = opened(fs, None)
    topic = log.topic(1)
    log.stage_entry(topic, 1, NOW_MS, NOW_MS - 3, b"x")
    append(log, 1, b"y", received_ms=NOW_MS)
    before = times(log, 1)
    log.close()
    log = opened(fs, ReceiveTimeBound(None, NOW_MS))
    assert log.topics_bounded == 0
    assert times(log, 1) == before == [(NOW_MS, NOW_MS - 3), (NOW_MS, NOW_MS)]
    log.close()


@pytest.mark.parametrize("before_segment", [1, 9])
def test_a_topic_without_entries_keeps_its_time_if_no_segment_is_as_old(
    before_segment: int,
) -> None:
    """Else the last message of a topic seems to be as old as the data directory."""
    fs = MemFs()
    log = opened(fs, ReceiveTimeBound(1, NOW_MS))
    append(log, 1, b"x", received_ms=NOW_MS + 5)
    topic = log.topic(1)
    log.roll_ledger(topic, NOW_MS + 5)
    log.stage_trim(topic, 1)
    log.checkpoint()
    log.close()
    log = opened(fs, ReceiveTimeBound(before_segment, NOW_MS))
    topic = log.topic(1)
    assert (topic.first, topic.end) == (1, 1)
    expected_ms = NOW_MS + 5 if before_segment == 1 else NOW_MS
    assert topic.totals_near(topic.end)[0].received_ms == expected_ms
    log.close()
