"""The index of a topic against plain lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InvariantError
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.ledger import TopicLog


def made(count: int = 10, *, ledgers: tuple[int, ...] = (0, 4, 7)) -> TopicLog:
    """Entries of 1, 2, 3... bytes and as many messages, three ledgers, two segments."""
    topic = TopicLog(7)
    for ordinal in range(count):
        if ordinal in ledgers:
            topic.open_ledger(100 + ordinal, ordinal, ordinal * 10)
        topic.open_run(1 if ordinal < 5 else 2)
        topic.append(ordinal + 1, ordinal + 1, 1000 + ordinal, 64 + ordinal * 100)
    topic.end = topic.staged_end
    return topic


def test_an_empty_topic_has_only_the_earliest_place() -> None:
    topic = TopicLog(1)
    assert topic.position(0) == EARLIEST
    assert topic.ordinal_at_or_after(*EARLIEST) == topic.ordinal_at_or_after(*LATEST) == 0
    assert topic.ledgers() == []
    assert topic.current_ledger_entries == topic.current_ledger_bytes == 0
    assert topic.segment == -1
    assert topic.ordinal_received_at_or_after(0) == 0


def test_weights_are_differences_of_totals() -> None:
    topic = made()
    assert [topic.message_count(o) for o in range(10)] == list(range(1, 11))
    assert [topic.size_bytes(o) for o in range(10)] == list(range(1, 11))
    assert [topic.messages_before(o) for o in range(11)] == [o * (o + 1) // 2 for o in range(11)]
    assert topic.totals(10) == (55, 55)
    assert topic.received_ms(3) == 1003


def test_positions_there_and_back() -> None:
    topic = made()
    places = [topic.position(o) for o in range(11)]
    assert places[:5] == [(100, 0), (100, 1), (100, 2), (100, 3), (104, 0)]
    assert places[9:] == [(107, 2), (107, 3)]
    assert topic.position(-1) == (100, -1)
    for ordinal in range(10):
        assert topic.ordinal_at_or_after(*places[ordinal]) == ordinal


@pytest.mark.parametrize(
    ("position", "ordinal"),
    [
        (EARLIEST, 0),
        (LATEST, 10),
        (Position(100, -1), 0),
        (Position(100, 4), 4),
        (Position(100, 99), 4),
        (Position(101, 0), 4),
        (Position(50, 7), 0),
        (Position(107, 3), 10),
        (Position(107, 99), 10),
        (Position(108, 0), 10),
    ],
)
def test_positions_between_entries_give_what_follows(position: Position, ordinal: int) -> None:
    assert made().ordinal_at_or_after(*position) == ordinal


def test_ledgers_as_admin_shows_them() -> None:
    topic = made()
    shown = [(i.ledger_id, i.first_ordinal, i.entries, i.size_bytes) for i in topic.ledgers()]
    assert shown == [(100, 0, 4, 10), (104, 4, 3, 18), (107, 7, 3, 27)]
    assert topic.current_ledger_entries == 3
    assert topic.current_ledger_bytes == 27
    topic.trim(5)
    shown = [(i.ledger_id, i.first_ordinal, i.entries, i.size_bytes) for i in topic.ledgers()]
    assert shown == [(104, 4, 3, 13), (107, 7, 3, 27)]


def test_receive_times_are_found_by_bisection() -> None:
    topic = made()
    assert topic.ordinal_received_at_or_after(0) == 0
    assert topic.ordinal_received_at_or_after(1004) == 4
    assert topic.ordinal_received_at_or_after(1010) == 10
    topic.trim(6)
    assert topic.ordinal_received_at_or_after(0) == 6


def test_a_trim_gives_up_runs_and_keeps_totals() -> None:
    topic = made()
    assert topic.trim(4) == []
    assert topic.trim(5) == [1]
    assert topic.segments() == [2]
    assert topic.messages_before(5) == 15
    assert topic.trim(99) == [2]
    assert (topic.first, topic.end, topic.base) == (10, 10, 10)
    assert topic.totals(10) == (55, 55)
    assert [info.ledger_id for info in topic.ledgers()] == [107]
    topic.open_run(2)
    topic.append(1, 1, 2000, 5000)
    topic.end = topic.staged_end
    assert topic.message_count(10) == 1
    with pytest.raises(InvariantError):
        topic.run_of(9)


def test_rewind_forgets_what_is_not_durable() -> None:
    topic = made()
    topic.open_ledger(200, 10, 0)
    topic.open_run(3)
    topic.append(1, 1, 1, 64)
    assert topic.rewind() == [3]
    assert topic.staged_end == 10
    assert topic.totals(10) == (55, 55)
    assert topic.last_ledger()[0] == 107
    assert topic.run_in(3) is None
    assert topic.ledger_limit == -1


def test_columns_of_a_run_rebuild_it() -> None:
    topic = made()
    copy = TopicLog(7)
    for segment in (1, 2):
        run = topic.run_in(segment)
        assert run is not None
        if segment == 1:
            copy.restart_at(run[0], *topic.totals(run[0]))
        copy.extend(segment, *topic.columns(*run))
    assert copy.segments() == [1, 2]
    assert [copy.size_bytes(o) for o in range(10)] == [topic.size_bytes(o) for o in range(10)]
    assert copy.run_of(4) == (1, 5)
    assert copy.run_of(5) == (2, 10)
    assert topic.offset_end(5, 10, 64 + 700) == 7


def test_an_indexed_entry_costs_less_than_forty_bytes() -> None:
    topic = TopicLog(1)
    topic.open_run(1)
    for at in range(10_000):
        topic.append(1, 100, 1, at)
    arrays = (topic._offsets, topic._received, topic._cum_messages, topic._cum_bytes)
    assert sum(one.__sizeof__() for one in arrays) < 32 * 10_000 + 1000


@given(st.lists(st.tuples(st.sampled_from("aetr"), st.integers(0, 3000)), max_size=60))
def test_agrees_with_plain_lists(work: list[tuple[str, int]]) -> None:
    topic, sizes = TopicLog(1), list[int]()
    for kind, value in work:
        if kind == "a":
            topic.open_run(len(sizes) // 900)
            for at in range(value):
                topic.append(2, at, at, at)
                sizes.append(at)
        elif kind == "e":
            topic.end = topic.staged_end
        elif kind == "t":
            topic.trim(min(value * 3, topic.end))
        else:
            topic.rewind()
            del sizes[topic.end :]
        assert topic.staged_end == len(sizes)
        assert topic.first <= topic.end <= topic.staged_end
        for ordinal in {topic.first, (topic.first + len(sizes)) // 2, len(sizes)}:
            assert topic.bytes_before(ordinal) == sum(sizes[:ordinal])
            assert topic.messages_before(ordinal) == 2 * ordinal
            if ordinal < len(sizes):
                assert topic.size_bytes(ordinal) == sizes[ordinal]
