from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.errors import DataLossError, PulsarSourceError, ReadTimeoutError
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.ranges import LedgerSpan, ReadRange, TopicSnapshot, due_entries
from pyspark_pulsar.read_settings import ReadSettings
from pyspark_pulsar.reading import UNSENT_ENTRIES_MAX, read_range
from tests.unit.pyspark_pulsar.fakes import (
    ENCRYPTED,
    MALFORMED,
    SCHEMA,
    FakeStored,
    FakeStream,
    T,
    batch,
    body,
    chunk,
    entries,
    opened,
    settings,
    values,
    work,
)

HELD = (LedgerSpan(3, 2, 2), LedgerSpan(4, 4, 4))


def run_task(
    asked: ReadRange, stored: FakeStored, *, fail: bool = True
) -> tuple[int, list[FakeStream]]:
    """The rows of a topic with the entries 3:0 and 3:1, and the streams that were opened."""
    made: list[FakeStream] = []
    read = read_range(asked, settings(fail=fail), SCHEMA, stored, opened(entries(3, 0, 0), made))
    return len(values(read)), made


def test_entries_of_a_deleted_ledger_are_lost() -> None:
    asked = work(earliest(T), Position(4, 1), (3, 2), (4, 2))
    with pytest.raises(DataLossError, match=r"ledgers \[4\] were trimmed"):
        run_task(asked, FakeStored(HELD[:1]))
    rows, made = run_task(asked, FakeStored(HELD[:1]), fail=False)
    assert rows == 2
    assert all(each.is_closed for each in made)


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        ([(4, 0), (4, 1)], ["2 entries, the first 4:0,"]),
        ([(4, 0), (4, 1), (4, 2), (4, 3)], ["4 entries, the first 4:0,"]),
        ([(4, 2), (4, 3)], ["2 entries, the first 4:2,"]),
        ([(4, 0), (4, 3)], ["1 entries, the first 4:0,", "1 entries, the first 4:3,"]),
    ],
    ids=["begin", "all", "tail", "both"],
)
def test_missing_entries_of_a_retained_ledger_are_lost(
    caplog: pytest.LogCaptureFixture, gone: list[EntryId], told: list[str]
) -> None:
    asked = work(earliest(T), Position(4, 3), (3, 2), (4, 4))
    with pytest.raises(DataLossError, match=f"{told[0]} were trimmed before all of"):
        run_task(asked, FakeStored(HELD, gone.__contains__))
    rows, _ = run_task(asked, FakeStored(HELD, gone.__contains__), fail=False)
    assert rows == 2
    assert [text.removeprefix(f"{T}: ").partition(" were")[0] for text in caplog.messages] == told


def test_entries_hidden_from_readers_are_not_lost() -> None:
    stored = FakeStored(HELD)
    rows, _ = run_task(work(earliest(T), Position(4, 1), (3, 2), (4, 2)), stored)
    assert rows == 2
    assert set(stored.asked) == {(4, 0), (4, 1)}


def test_entries_that_another_reader_gets_are_lost(caplog: pytest.LogCaptureFixture) -> None:
    """A message TTL, or a request, moved this one beyond them; they are too few to be seen."""
    asked = work(earliest(T), Position(3, 5), (3, 6))
    sent = entries(3, *[0] * 6)

    def read(*, fail: bool) -> list[bytes]:
        made: list[FakeStream] = []
        others = opened(sent, made)

        def open_stream(topic: str, begin: Position, how: ReadSettings) -> FakeStream:
            stream = others(topic, begin, how)
            stream.moved = None if len(made) > 1 else ((3, 1), (3, 3))
            return stream

        stored = FakeStored((LedgerSpan(3, 6, 6),))
        found = values(read_range(asked, settings(fail=fail), SCHEMA, stored, open_stream))
        assert all(each.is_closed for each in made)
        return found

    with pytest.raises(DataLossError, match="2 entries, the first 3:2, which the topic holds, did"):
        read(fail=True)
    assert read(fail=False) == [b"3:0:-1", b"3:1:-1", b"3:4:-1", b"3:5:-1"]
    assert len(caplog.messages) == 1


def test_a_topic_that_ends_with_a_marker_is_read_to_its_end() -> None:
    asked = work(earliest(T), Position(4, 1), (3, 2), (4, 2))
    ends = opened(entries(3, 0, 0), more=True)
    told = FakeStored(HELD, unsent=frozenset({(4, 0), (4, 1)}))
    assert len(values(read_range(asked, settings(poll_ms=100), SCHEMA, told, ends))) == 2
    unknown = FakeStored(HELD, unsent=frozenset({(4, 1)}))
    with pytest.raises(ReadTimeoutError, match="nothing arrived for 100 ms"):
        values(read_range(asked, settings(poll_ms=100), SCHEMA, unknown, ends))
    assert {*unknown.asked} == {(4, 0)}


def test_very_many_entries_that_remain_are_not_asked_about() -> None:
    asked = work(earliest(T), Position(4, UNSENT_ENTRIES_MAX), (4, UNSENT_ENTRIES_MAX + 1))
    stored = FakeStored(HELD)
    with pytest.raises(ReadTimeoutError):
        values(read_range(asked, settings(poll_ms=100), SCHEMA, stored, opened({}, more=True)))
    assert stored.asked == []


def test_a_range_without_gaps_asks_nothing() -> None:
    stored = FakeStored(())
    rows, made = run_task(work(earliest(T), Position(3, 1), (3, 2)), stored)
    assert (rows, stored.asked) == (2, [])
    assert [each.begin for each in made] == [earliest(T)]


@pytest.mark.parametrize("cut", range(5))
def test_chunks_that_are_sent_again_are_no_second_row(cut: int) -> None:
    """A producer that lost its connection sends those again of which it does not know."""
    stored = {
        (3, at): chunk("p-1", index, [b"a", b"b", b"c"]) for at, index in enumerate([0, 1, 2, 1, 2])
    } | {(3, 5): body(b"end")}
    spans = (LedgerSpan(3, 6, 6),)
    found: list[bytes] = []
    for start, end in ((earliest(T), Position(3, cut)), (Position(3, cut), Position(3, 5))):
        asked = work(start, end, (3, 6))
        read = read_range(asked, settings(), SCHEMA, FakeStored(spans), opened(stored))
        found += values(read)
    assert found == [b"abc", b"end"]


FIRST, SECOND = 2, 5
"""The ledgers of a model's topic."""


@dataclasses.dataclass
class Topic:
    """A topic of random entries, and what reading it has to give."""

    stored: dict[EntryId, bytes]
    sent: dict[EntryId, bytes]
    """What was stored, with what the topic no longer holds."""
    spans: tuple[LedgerSpan, ...]
    rows: dict[Position, bytes]
    """The messages by position, in order."""
    planned: TopicSnapshot
    hidden: set[EntryId]
    """Entries that brokers send to nobody."""


def modelled(chance: Random, *, odd: bool) -> Topic:
    """Up to three producers send chunks, and may stop in the middle of a message; its begin may be
    trimmed."""
    counts = {FIRST: chance.randint(0, 9), SECOND: chance.randint(1, 9)}
    places = [(ledger, entry) for ledger in counts for entry in range(counts[ledger])]
    topic = Topic({}, {}, (), {}, TopicSnapshot((), None), set())
    going: dict[int, tuple[str, int, list[bytes], list[EntryId]]] = {}
    for place in places:
        text = b"%d:%d" % place
        what = chance.random()
        if what < 0.4:
            size = chance.choice([0, 0, 1, 2, 3])
            parts = [text + b":%d" % each for each in range(size)]
            topic.sent[place] = batch(parts, place[1]) if size else body(text, place[1])
            for index in range(size) or [-1]:
                topic.rows[Position(*place, -1, index)] = parts[index] if size else text
        elif what < 0.5:
            topic.hidden.add(place)
            topic.sent[place] = body(b"")
        elif what < 0.65 and odd:
            topic.sent[place] = chance.choice([ENCRYPTED, MALFORMED])
        else:
            who = chance.randint(0, 2)
            uuid, index, parts, begun = going.get(who, ("", 0, [], []))
            if index == len(parts):
                parts = [text + b"-%d" % each for each in range(chance.randint(2, 4))]
                uuid, index, begun = f"{who}-{place}", 0, []
            topic.sent[place] = chunk(uuid, index, parts, place[1])
            begun = [*begun, place]
            going[who] = uuid, index + 1, parts, begun
            if index + 1 == len(parts):
                topic.rows[Position(*place)] = b"".join(parts)
    if topic.hidden and (SECOND, counts[SECOND] - 1) in topic.hidden:
        topic.hidden.discard((SECOND, counts[SECOND] - 1))
        topic.sent[SECOND, counts[SECOND] - 1] = body(b"end", counts[SECOND] - 1)
        topic.rows[Position(SECOND, counts[SECOND] - 1)] = b"end"
    topic.planned = TopicSnapshot(tuple(LedgerSpan(*each, 9) for each in counts.items()), None)
    trimmed = set(places[: max(0, chance.randint(-8, len(places) - 1)) if odd else 0])
    topic.stored = {place: each for place, each in topic.sent.items() if place not in trimmed}
    topic.spans = tuple(
        LedgerSpan(ledger, count, count)
        for ledger, count in counts.items()
        if count and (ledger == SECOND or any(place[0] == ledger for place in topic.stored))
    )
    return topic


def cuts_of(topic: Topic, chance: Random) -> list[Position]:
    """Where ranges end: at any message or entry, in batches too."""
    wanted = {each for each in topic.rows if not chance.randint(0, 3)}
    wanted |= {Position(*place) for place in topic.sent if not chance.randint(0, 3)}
    wanted.add(Position(*max(topic.sent)))
    return sorted(wanted, key=lambda each: each.order_key)


def rows_of_ranges(topic: Topic, ends: list[Position], *, fail: bool) -> list[bytes]:
    visible = {place: each for place, each in topic.stored.items() if place not in topic.hidden}
    stored = FakeStored(topic.spans, lambda place: place not in topic.stored)
    start, found = Position(-1, -1), list[bytes]()
    for end in ends:
        due = due_entries(topic.planned, start, end)
        if due:
            asked = ReadRange(T, start, end, due)
            found += values(read_range(asked, settings(fail=fail), SCHEMA, stored, opened(visible)))
        start = end
    return found


@hypothesis_settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_honest_messages_come_once_and_in_order(seed: int) -> None:
    """Wherever ranges are cut."""
    chance = Random(seed)
    topic = modelled(chance, odd=False)
    assert rows_of_ranges(topic, cuts_of(topic, chance), fail=True) == list(topic.rows.values())


@hypothesis_settings(max_examples=400, deadline=None)
@given(seed=st.integers(0, (1 << 32) - 1))
def test_all_that_can_be_read_is_read_beside_what_cannot(seed: int) -> None:
    chance = Random(seed)
    topic = modelled(chance, odd=True)
    ends = cuts_of(topic, chance)
    wanted = readable(topic)
    assert rows_of_ranges(topic, ends, fail=False) == wanted
    try:
        found = rows_of_ranges(topic, ends, fail=True)
    except PulsarSourceError:
        return
    assert found == wanted == list(topic.rows.values())
    assert len(topic.stored) == len(topic.sent)


def readable(topic: Topic) -> list[bytes]:
    """The messages of which all entries are there."""
    first: Mapping[Position, EntryId] = first_entries(topic)
    return [value for place, value in topic.rows.items() if first[place] in topic.stored]


def first_entries(topic: Topic) -> dict[Position, EntryId]:
    """Where each message begins."""
    found: dict[Position, EntryId] = {}
    for position, value in topic.rows.items():
        ledger, _, rest = value.partition(b":")
        place = (
            (SECOND, position.entry_id)
            if ledger == b"end"
            else (int(ledger), int(rest.partition(b":")[0].partition(b"-")[0]))
        )
        found[position] = place
    return found
