"""Ledgers are closed by entries, bytes and age."""

from __future__ import annotations

from headgate.fs import MemFs
from headgate.ledger import LedgerSettings
from tests.unit.ledger.support import append, open_log


def test_ledgers_roll_by_entries_bytes_and_age() -> None:
    settings = LedgerSettings(
        segment_bytes=8192, ledger_entries_max=3, ledger_bytes_max=50,
        ledger_age_ms_min=10, ledger_age_ms_max=1000,
    )  # fmt: skip
    log = open_log(MemFs(), settings=settings)
    topic = append(log, 1, b"1", b"2", b"3", b"4", received_ms=0)
    assert [info.entries for info in topic.ledgers()] == [4]
    append(log, 1, b"5", received_ms=20)
    assert [info.entries for info in topic.ledgers()] == [4, 1]
    append(log, 1, b"6" * 60, received_ms=25)
    append(log, 1, b"7", received_ms=40)
    assert [info.entries for info in topic.ledgers()] == [4, 2, 1]
    append(log, 1, b"8", received_ms=1039)
    append(log, 1, b"9", received_ms=1040)
    assert [info.entries for info in topic.ledgers()] == [4, 2, 2, 1]
    assert [topic.position(o) for o in (3, 4, 5, 6, 8)] == [(1, 3), (2, 0), (2, 1), (3, 0), (4, 0)]


def test_a_ledger_is_opened_at_a_receive_time() -> None:
    log = open_log(MemFs(), settings=LedgerSettings(ledger_entries_max=1, ledger_age_ms_min=0))
    append(log, 1, b"a", received_ms=1_000)
    topic = append(log, 1, b"b", received_ms=10)
    assert [info.created_ms for info in topic.ledgers()] == [1_000, 1_000]


def test_a_full_young_ledger_is_looked_at_now_and_then_also_within_one_batch() -> None:
    settings = LedgerSettings(ledger_entries_max=3, ledger_age_ms_min=10, ledger_age_ms_max=1000)
    log = open_log(MemFs(), settings=settings)
    topic = log.topic(1)
    for ordinal in range(3_000):
        log.stage_entry(topic, 1, 0 if ordinal < 500 else 20, 0, b"")
    first, second = topic.ledgers()[:2]
    assert first.entries <= 500 + 1_000
    assert second.created_ms == 20


def test_a_topic_is_named_when_its_ledger_is_opened_and_when_it_is_full() -> None:
    """A full ledger may be closed and freed although no entry comes that opens the next one."""
    for entries_max in (1, 2, 3):
        settings = LedgerSettings(ledger_entries_max=entries_max, ledger_age_ms_min=0)
        log = open_log(MemFs(), settings=settings)
        named = []
        for _ in range(3 * entries_max):
            append(log, 1, b"x", received_ms=0)
            named.append(log.take_topics_with_new_ledgers() == [1])
        steps = [True] if entries_max == 1 else [True, *[False] * (entries_max - 2), True]
        assert named == 3 * steps
        assert [info.entries for info in log.topic(1).ledgers()] == [entries_max] * 3
