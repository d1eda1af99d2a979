"""The index of a topic against plain lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import InvariantError
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.ledger import TopicLog
from headgate.ledger.format.records import ENTRY_HEAD_BYTES
from headgate.ledger.index.topic_log import LiveRun, Released


def made(count: int = 10, *, ledgers: tuple[int, ...] = (0, 4, 7)) -> TopicLog:
    """Entries of 1, 2, 3... bytes and as many messages, three ledgers, two segments."""
    topic = TopicLog(7)
    for ordinal in range(count):
        if ordinal in ledgers:
            topic.open_ledger(100 + ordinal, ordinal, ordinal * 10)
        topic.open_run(1 if ordinal < 5 else 2)
        topic.append(ordinal + 1, ordinal + 1, 1000 + ordinal, 2, 64 + ordinal * 100)
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
    assert topic.totals(10) == (55, 55, 1009, 2)
    assert topic.totals(0) == (0, 0, 0, 0)
    assert (topic.received_ms(3), topic.published_ms(3)) == (1003, 1001)


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


def test_both_times_are_found_by_bisection() -> None:
    topic = made()
    received, published = topic.ordinal_received_at_or_after, topic.ordinal_published_at_or_after
    assert (received(0), published(0)) == (0, 0)
    assert (received(1004), published(1004)) == (4, 6)
    assert (received(1009), published(1007)) == (9, 9)
    assert (received(1010), published(1008)) == (10, 10)
    topic.trim(6)
    assert (received(0), published(0)) == (6, 6)


@pytest.mark.parametrize(
    ("wall_ms", "publish_ms", "received_ms", "published_ms"),
    [
        (5_000, 4_000, 5_000, 4_000),
        (5_000, 5_000, 5_000, 5_000),
        (5_000, 5_001, 5_000, 5_000),  # a clock that goes ahead
        (5_000, 2**64 - 1, 5_000, 5_000),
        (5_000, 0, 5_000, 5_000),  # says nothing
        (5_000, 1_999, 5_000, 2_000),  # before the entry before
        (5_000, 1, 5_000, 2_000),
        (2_999, 2_500, 3_000, 2_500),  # the broker's own clock stepped back
        (1, 3_000, 3_000, 3_000),
        (1, 0, 3_000, 3_000),
        (2_000 + 2**32 - 1, 1, 2_000 + 2**32 - 1, 2_000),  # as much lag as four bytes hold
        (2_000 + 2**32, 1, 2_000 + 2**32, 2_001),
        (2**50, 1, 2**50, 2**50 - 2**32 + 1),
        (2**50, 2_500, 2**50, 2**50 - 2**32 + 1),
    ],
)
def test_times_of_an_entry(
    wall_ms: int, publish_ms: int, received_ms: int, published_ms: int
) -> None:
    """After an entry that was received at 3,000 and published at 2,000."""
    topic = TopicLog(1)
    topic.open_run(1)
    topic.append(1, 1, 3_000, 1_000, 64)
    topic.append(1, 1, *topic.times_of_next(wall_ms, publish_ms), 128)
    topic.end = topic.staged_end
    assert (topic.received_ms(1), topic.published_ms(1)) == (received_ms, published_ms)
    assert topic.times_of_next(0, 1)[0] == received_ms
    again = TopicLog(1)
    again.restart_at(2, topic.totals(2))
    assert again.times_of_next(0, 1) == topic.times_of_next(0, 1)


_INSTANTS = st.one_of(
    st.integers(0, 40),
    st.integers(2**32 - 20, 2**32 + 20),
    st.sampled_from([2**40, 2**40 + 1, 2**63, 2**64 - 1]),
)


@given(
    st.lists(st.tuples(st.integers(0, 2**33) | st.integers(0, 40), _INSTANTS), max_size=40),
    st.integers(0, 39),
    st.integers(0, 39),
    _INSTANTS,
)
def test_searches_agree_with_a_walk_over_the_times(
    clocks: list[tuple[int, int]], first: int, unfinished: int, wanted: int
) -> None:
    topic, received, published = TopicLog(1), list[int](), list[int]()
    topic.open_run(1)
    for wall_ms, publish_ms in clocks:
        topic.append(1, 1, *topic.times_of_next(wall_ms, publish_ms), 64)
        received.append(max([wall_ms, *received]))
        said = min(publish_ms or received[-1], received[-1])
        published.append(max([said, received[-1] - 2**32 + 1, *published]))
    topic.end = max(topic.staged_end - unfinished, 0)
    topic.trim(min(first, topic.end))
    ordinals = range(topic.first, topic.end)
    assert [topic.received_ms(o) for o in ordinals] == received[topic.first : topic.end]
    assert [topic.published_ms(o) for o in ordinals] == published[topic.first : topic.end]
    for instant in {wanted, *received, *published}:
        for times, found in (
            (received, topic.ordinal_received_at_or_after(instant)),
            (published, topic.ordinal_published_at_or_after(instant)),
        ):
            assert found == next((o for o in ordinals if times[o] >= instant), topic.end)


def test_a_trim_gives_up_runs_and_keeps_totals() -> None:
    topic = made()
    assert topic.trim(4) == [Released(1, 1 + 2 + 3 + 4 + 4 * ENTRY_HEAD_BYTES, is_whole=False)]
    assert topic.trim(5) == [Released(1, 5 + ENTRY_HEAD_BYTES, is_whole=True)]
    assert topic.messages_before(5) == 15
    rest_bytes = 6 + 7 + 8 + 9 + 10 + 5 * ENTRY_HEAD_BYTES
    assert topic.live_runs() == [LiveRun(2, rest_bytes)]
    assert topic.trim(99) == [Released(2, rest_bytes, is_whole=True)]
    assert (topic.first, topic.end, topic.base) == (10, 10, 10)
    assert topic.totals(10) == (55, 55, 1009, 2)
    assert [info.ledger_id for info in topic.ledgers()] == [107]
    topic.open_run(2)
    topic.append(1, 1, 2000, 0, 5000)
    topic.end = topic.staged_end
    assert topic.message_count(10) == 1
    with pytest.raises(InvariantError):
        topic.run_of(9)


def test_a_ledger_that_is_rolled_can_go_and_still_tells_the_last_id() -> None:
    topic = made()
    topic.roll_ledger(200, 5_000)
    topic.roll_ledger(201, 5_000)  # it is empty: nothing to close
    assert topic.last_ledger() == (200, 10, 5_000)
    assert topic.position(10) == (200, 0)
    topic.trim(10)
    assert [(ledger.ledger_id, ledger.entries) for ledger in topic.ledgers()] == [(200, 0)]
    assert topic.position(9) == (107, 2)
    assert topic.ordinal_at_or_after(107, 0) == topic.ordinal_at_or_after(200, 0) == 10
    assert topic.current_ledger_entries == topic.current_ledger_bytes == 0
    topic.open_run(3)
    topic.append(1, 1, 2_000, 0, 64)
    topic.end = topic.staged_end
    topic.trim(10)
    assert topic.ledger_rows() == [(200, 10, 5_000)]


def test_an_empty_topic_has_no_ledger_to_roll() -> None:
    topic = TopicLog(1)
    topic.roll_ledger(1, 0)
    assert topic.ledgers() == []


def test_rewind_forgets_what_is_not_durable() -> None:
    topic = made()
    topic.open_ledger(200, 10, 0)
    topic.open_run(3)
    topic.append(1, 1, 9000, 1, 64)
    assert topic.rewind() == [3]
    assert topic.staged_end == 10
    assert topic.totals(10) == (55, 55, 1009, 2)
    assert topic.times_of_next(1010, 0) == (1010, 0)
    assert topic.last_ledger()[0] == 107
    assert topic.run_in(3) is None
    assert topic.ledger_limit == -1


def test_rewind_gives_up_the_run_that_a_trim_spared_for_staged_entries() -> None:
    topic = made()
    last = topic.live_runs()[-1].segment
    topic.append(1, 1, 9000, 1, 64)
    assert not topic.trim(topic.end)[-1].is_whole
    assert topic.rewind() == [last]
    assert topic.live_runs() == []
    assert topic.live_bytes_in(last) is None


def test_columns_of_a_run_rebuild_it() -> None:
    topic = made()
    copy = TopicLog(7)
    for segment in (1, 2):
        run = topic.run_in(segment)
        assert run is not None
        if segment == 1:
            copy.restart_at(run[0], topic.totals(run[0]))
        copy.extend(segment, topic.columns(*run))
    assert [run.segment for run in copy.live_runs()] == [1, 2]
    assert [copy.size_bytes(o) for o in range(10)] == [topic.size_bytes(o) for o in range(10)]
    assert [copy.totals(o) for o in range(11)] == [topic.totals(o) for o in range(11)]
    assert copy.run_of(4) == (1, 5)
    assert copy.run_of(5) == (2, 10)
    assert topic.offset_end(5, 10, 64 + 700) == 7


def test_an_indexed_entry_costs_less_than_forty_bytes() -> None:
    topic = TopicLog(1)
    topic.open_run(1)
    for at in range(10_000):
        topic.append(1, 100, 1, 1, at)
    arrays = (
        topic._offsets, topic._received, topic._publish_lags, topic._cum_messages,
        topic._cum_bytes,
    )  # fmt: skip
    assert sum(one.__sizeof__() for one in arrays) < 37 * 10_000 + 1000


@given(st.lists(st.tuples(st.sampled_from("aetr"), st.integers(0, 3000)), max_size=60))
def test_agrees_with_plain_lists(work: list[tuple[str, int]]) -> None:
    topic, sizes = TopicLog(1), list[int]()
    for kind, value in work:
        if kind == "a":
            topic.open_run(len(sizes) // 900)
            for at in range(value):
                topic.append(2, at, at, 0, at)
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


def test_the_last_kept_entry_and_the_next_lost_one() -> None:
    topic = TopicLog(1)
    topic.end = topic.staged_end = 10
    assert (topic.last_kept(), topic.lost_from(0, 10)) == (9, 10)
    topic.note_lost(2, 4)
    topic.note_lost(7, 10)
    assert topic.last_kept() == 6
    assert [topic.lost_from(at, 9) for at in range(9)] == [2, 2, 4, 4, 7, 7, 7, 9, 9]
    topic.note_lost(0, 10)
    assert topic.last_kept() == -1
