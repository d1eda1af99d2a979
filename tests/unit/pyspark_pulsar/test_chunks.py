"""Every message once wherever ranges are cut: several producers' chunks, messages and markers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import pulsar
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar import attempts
from pyspark_pulsar import client as client_module
from pyspark_pulsar.chunks import (
    ENTRIES_BETWEEN_MAX,
    PORTION_ENTRIES,
    SAMPLE_ENTRIES,
    SEARCHED_MAX,
    Chunk,
    ChunkSearch,
    EntryId,
    MissingRange,
    NoChunk,
    entries_before,
    entry_ids,
    kinds_of_missing,
    portions,
    without_trimmed,
)
from pyspark_pulsar.client import ReadSettings
from pyspark_pulsar.columns import Message, arrow_schema, spark_schema
from pyspark_pulsar.errors import DataLossError
from pyspark_pulsar.keys import KeyKind, MessageRef
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import Connection
from pyspark_pulsar.ranges import DueEntries, LedgerSpan, ReadRange, TopicSnapshot, due_entries
from pyspark_pulsar.reading import read_range
from tests.unit.pyspark_pulsar.fakes import FakeMessage, no_keys

T = "persistent://public/default/t"
CONNECTION = Connection("pulsar://h:1", "http://h:2", 1_000, 1_000)
SCHEMA = arrow_schema(spark_schema(["value"]))
LEDGERS = (LedgerSpan(2, 3, 3), LedgerSpan(5, 0, 0), LedgerSpan(6, 4, 4))

Log = dict[EntryId, Chunk | NoChunk]
"""What a topic holds, in order."""


def value_of(place: EntryId) -> bytes:
    return f"{place[0]}:{place[1]}".encode()


@dataclass
class Client:
    """As the real one: gives a message at its last chunk, if it has got all of the others."""

    log: Mapping[EntryId, Chunk | NoChunk]
    markers: frozenset[EntryId] = frozenset()
    opened: list[EntryId] = field(default_factory=list)

    def create_reader(
        self, _topic: str, first: pulsar.MessageId, *, receiver_queue_size: int, **begin: object
    ) -> Client.Reader:
        assert receiver_queue_size > 0
        del begin["crypto_failure_action"]
        assert begin == ({} if first.ledger_id() < 0 else {"start_message_id_inclusive": True})
        self.opened.append((first.ledger_id(), first.entry_id()))
        return Client.Reader(self, self.opened[-1])

    class Reader:
        def __init__(self, client: Client, start: EntryId) -> None:
            self.last = max(client.log)
            self.dequeued = start[0], start[1] - 1
            self.messages: list[EntryId] = []
            uncut: dict[str, int] = {}
            for place, what in client.log.items():
                if place < start or place in client.markers:
                    continue
                if isinstance(what, Chunk):
                    if uncut.get(what.uuid, 0) != what.index:
                        continue
                    uncut[what.uuid] = what.index + 1
                    if not what.is_last:
                        continue
                self.messages.append(place)

        def read_next(self, timeout_millis: int) -> Message:
            assert timeout_millis > 0
            if not self.messages:
                raise pulsar.Timeout("TimeOut")
            self.dequeued = self.messages.pop(0)
            return FakeMessage(Position(*self.dequeued), 0, value_of(self.dequeued))

        def has_message_available(self) -> bool:
            return self.dequeued < self.last

        def close(self) -> None:
            self.messages = []


@dataclass
class Admin:
    log: Mapping[EntryId, Chunk | NoChunk]
    spans: tuple[LedgerSpan, ...]
    asked: int = 0

    def ledgers(self, _topic: str) -> tuple[LedgerSpan, ...]:
        return self.spans

    def entries(self, _topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        self.asked += 1
        return {place: self.log.get(place, NoChunk.GONE) for place in places}

    def key_kinds(
        self, _topic: str, places: Iterable[MessageRef]
    ) -> dict[MessageRef, KeyKind | None]:
        return no_keys(list(places))


def read(client: Client, admin: Admin, start: Position, end: Position) -> list[bytes]:
    due = due_entries(TopicSnapshot(admin.spans, None), start, end)
    if not due:
        return []
    settings = ReadSettings(CONNECTION, None, None, True, None, 200)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)  # type: ignore[arg-type]
        within = partial(attempts.read, stored=admin)
        batches = read_range(ReadRange(T, start, end, due), settings, SCHEMA, admin, within)
        return [value for batch in batches for value in batch[0].to_pylist()]


@st.composite
def logs(draw: st.DrawFn) -> tuple[Log, frozenset[EntryId]]:
    """Entries of up to three producers, any of which may stop in the middle of a message."""
    places = list(entry_ids([MissingRange(2, 0, draw(st.integers(0, 6))), MissingRange(5, 0, 5)]))
    log: Log = {}
    markers: set[EntryId] = set()
    going: dict[int, Chunk] = {}
    for place in places:
        who = draw(st.integers(-2, 2))
        if who < 0:
            log[place] = NoChunk.WHOLE
            if who == -2:
                markers.add(place)
            continue
        last = going.get(who)
        if last is None or last.is_last:
            chunk = Chunk(f"{who}-{place}", 0, draw(st.integers(2, 4)))
        else:
            chunk = Chunk(last.uuid, last.index + 1, last.count)
        log[place] = going[who] = chunk
    if markers:  # brokers name no marker as the last message
        log[5, 6] = NoChunk.WHOLE
    return log, frozenset(markers)


def spans_of(log: Log) -> tuple[LedgerSpan, ...]:
    ledgers = [place[0] for place in log]
    return tuple(LedgerSpan(each, ledgers.count(each), 10) for each in sorted(set(ledgers)))


@given(logs(), st.data())
def test_every_message_comes_once_for_any_cuts(
    made: tuple[Log, frozenset[EntryId]], data: st.DataObject
) -> None:
    log, markers = made
    cuts = sorted(data.draw(st.sets(st.sampled_from(sorted(log)), max_size=4)) | {max(log)})
    client, admin = Client(log, markers), Admin(log, spans_of(log))
    position, read_by_range = earliest(T), []
    for cut in cuts:
        rows = read(client, admin, position, Position(*cut))
        assert all(value_of((position.ledger_id, position.entry_id)) != row for row in rows)
        read_by_range.append(rows)
        position = Position(*cut)
    wanted = [
        value_of(place)
        for place, what in log.items()
        if place not in markers
        and (what is NoChunk.WHOLE or (isinstance(what, Chunk) and what.is_last))
    ]
    assert sorted(row for rows in read_by_range for row in rows) == sorted(wanted)


def test_messages_that_arrive_cost_no_request() -> None:
    log: Log = dict.fromkeys([(2, 0), (2, 1), (2, 2)], NoChunk.WHOLE)
    client, admin = Client(log), Admin(log, spans_of(log))
    assert len(read(client, admin, earliest(T), Position(2, 2))) == 3
    assert admin.asked == 0


def test_a_message_without_its_trimmed_first_chunk_is_a_loss() -> None:
    log: Log = {(2, 1): Chunk("u", 1, 3), (2, 2): Chunk("u", 2, 3), (2, 3): NoChunk.WHOLE}
    admin = Admin(log, (LedgerSpan(2, 4, 4),))
    with pytest.raises(DataLossError, match=r"ends in 2:2 cannot be read: not all of its chunks"):
        read(Client(log), admin, Position(2, 1), Position(2, 3))


def test_an_unreadable_entry_may_be_a_loss() -> None:
    log: Log = {(2, 0): NoChunk.UNREADABLE, (2, 1): NoChunk.WHOLE}
    client = Client(log, frozenset({(2, 0)}))
    with pytest.raises(DataLossError, match=r"1 entries gave no message.*the first in 2:0"):
        read(client, Admin(log, spans_of(log)), earliest(T), Position(2, 1))


def test_entries_before_an_entry_cross_ledgers() -> None:
    back = [(6, 1), (6, 0), (2, 2), (2, 1), (2, 0)]
    assert list(entries_before(LEDGERS, (6, 2))) == back
    assert list(portions(back, 2)) == [back[:2], back[2:4], back[4:]]


def test_the_first_chunk_belongs_to_the_same_message() -> None:
    last = Chunk("u", 2, 3)
    log: Log = {
        (2, 0): Chunk("u", 0, 3), (2, 1): Chunk("v", 0, 3), (2, 2): NoChunk.WHOLE,
        (6, 0): Chunk("u", 1, 3), (6, 1): NoChunk.UNREADABLE, (6, 2): last,
    }  # fmt: skip
    admin = Admin(log, LEDGERS)

    def found() -> EntryId | None:
        search = ChunkSearch(lambda places: admin.entries(T, places), LEDGERS)
        return search.first_chunk((6, 2), last)

    assert found() == (2, 0)
    del log[2, 0]
    assert found() is None


LONG = LedgerSpan(2, 100_000, 100_000)


def asked_for(log: Log, place: EntryId, last: Chunk) -> tuple[EntryId | None, int]:
    """Where the message begins, and how many entries were asked about; all others are whole."""
    asked = 0

    def ask(places: list[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        nonlocal asked
        asked += len(places)
        return {each: log.get(each, NoChunk.WHOLE) for each in places}

    return ChunkSearch(ask, (LONG,)).first_chunk(place, last), asked


class Counted:
    """Whole entries but for those of a log; counts how many were asked about."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.asked = 0

    def __call__(self, places: list[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        self.asked += len(places)
        return {each: self.log.get(each, NoChunk.WHOLE) for each in places}


def test_very_many_messages_that_never_began_are_one_search() -> None:
    """Each is a chunk of some bytes, which a producer sends alone."""
    log: Log = {(2, 99_000 + number): Chunk(f"u{number}", 2, 3) for number in range(40)}
    ask = Counted(log)
    search = ChunkSearch(ask, (LONG,))
    for place, last in log.items():
        assert isinstance(last, Chunk)
        assert search.first_chunk(place, last) is None
    assert ask.asked < ENTRIES_BETWEEN_MAX + 1_000


def test_all_searches_of_a_task_have_a_bound_and_near_chunks_are_found_beyond_it() -> None:
    near: Log = {(2, 250): Chunk("u", 0, 2), (2, 400): Chunk("u", 1, 2)}
    ask = Counted(near)
    search = ChunkSearch(ask, (LedgerSpan(2, 1 << 40, 1),))
    for number in range(16):  # each with entries of its own
        assert search.first_chunk((2, (1 << 30) + (number << 20)), Chunk("v", 2, 3)) is None
    assert ask.asked < SEARCHED_MAX + 16 * 2 * PORTION_ENTRIES
    assert search.first_chunk((2, 400), Chunk("u", 1, 2)) == (2, 250)


def test_the_search_for_a_missing_first_chunk_is_bounded() -> None:
    last = Chunk("u", 2, 3)
    found, asked = asked_for({(2, 99_000): Chunk("u", 1, 3)}, (2, 99_999), last)
    assert found is None
    assert asked <= 999 + ENTRIES_BETWEEN_MAX + last.count
    # Each chunk that is found lets the search go on as far again.
    far = {(2, 99_998 - 16_000): Chunk("u", 1, 3), (2, 99_998 - 32_000): Chunk("u", 0, 3)}
    assert asked_for(far, (2, 99_999), last)[0] == (2, 99_998 - 32_000)


def test_a_missing_middle_chunk_ends_the_search() -> None:
    last = Chunk("u", 3, 4)
    found, asked = asked_for({(2, 99_990): Chunk("u", 1, 4)}, (2, 99_999), last)
    assert (found, asked) == (None, 12)
    hidden: Log = {
        (2, 99_990): Chunk("u", 0, 4),
        (2, 99_995): NoChunk.UNREADABLE, (2, 99_996): NoChunk.UNREADABLE,
    }  # fmt: skip
    assert asked_for(hidden, (2, 99_999), last)[0] == (2, 99_990)


def test_chunks_sent_twice_are_one_message() -> None:
    sent = [0, 1, 2, 1, 2]
    log: Log = {(2, 90 + at): Chunk("u", index, 4) for at, index in enumerate(sent)}
    assert asked_for(log, (2, 95), Chunk("u", 3, 4))[0] == (2, 90)


def test_a_trimmed_entry_ends_the_search() -> None:
    log: Log = dict.fromkeys(((2, entry) for entry in range(99_000)), NoChunk.GONE)
    found, asked = asked_for(log, (2, 99_010), Chunk("u", 1, 2))
    assert (found, asked) == (None, 12)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 50))
def test_a_trimmed_first_chunk_is_detected_with_few_requests(
    first: int, size: int, kept: int
) -> None:
    admin = Admin(dict.fromkeys(((2, entry) for entry in range(kept, 100)), NoChunk.WHOLE), ())
    # With a message between any two missing entries, too.
    for missing in (
        [MissingRange(2, first, first + size)],
        [MissingRange(2, entry, entry) for entry in range(first, first + size + 1, 2)],
    ):
        admin.asked = 0
        rest = without_trimmed(lambda places: admin.entries(T, places), missing)
        wanted = [place for place in entry_ids(missing) if place[1] >= kept]
        assert list(entry_ids(rest)) == wanted
        assert admin.asked <= 8


class Marked:
    """A ledger in which every other entry is a transaction marker, but for some that are listed."""

    def __init__(self, entries: int, log: Log | None = None) -> None:
        self.due = (DueEntries(2, 0, entries - 1, 100.0),)
        self.log = log or {}
        self.missing = [
            MissingRange(2, entry, entry)
            for entry in range(entries)
            if entry % 2 or (2, entry) in self.log
        ]
        self.asked: list[EntryId] = []

    def ask(self, entries: list[EntryId]) -> Log:
        self.asked += entries
        return {entry: self.log.get(entry, NoChunk.WHOLE) for entry in entries}

    def found(self) -> dict[EntryId, Chunk | NoChunk]:
        """The kinds that were found; markers are left out."""
        parts = list(kinds_of_missing(self.ask, self.due, self.missing))
        assert [entry for part in parts for entry in part.kinds] == self.asked
        return {
            entry: kind
            for part in parts
            for entry, kind in part.kinds.items()
            if kind is not NoChunk.WHOLE
        }


def test_markers_cost_a_bounded_number_of_requests() -> None:
    """It was two for each of them."""
    few, many = Marked(2_000), Marked(1_000_000)
    assert few.found() == many.found() == {}
    assert len(few.asked) == 1_000
    assert len(many.asked) <= ENTRIES_BETWEEN_MAX // 2 + PORTION_ENTRIES + SAMPLE_ENTRIES
    assert many.asked == sorted(set(many.asked))


def test_entries_without_end_are_sampled_at_once() -> None:
    """How many there are is what the cluster says."""
    due = (DueEntries(2, 0, 9, 1.0), DueEntries(7, 0, 1 << 60, 1.0))
    missing = [MissingRange(2, 3, 4), MissingRange(7, 5, 1 << 60)]
    asked: list[EntryId] = []

    def ask(entries: list[EntryId]) -> dict[EntryId, NoChunk]:
        asked.extend(entries)
        return dict.fromkeys(entries, NoChunk.WHOLE)

    parts = list(kinds_of_missing(ask, due, missing))
    assert parts[-1].is_sample
    assert len(asked) <= ENTRIES_BETWEEN_MAX + PORTION_ENTRIES + SAMPLE_ENTRIES
    assert asked == sorted(set(asked))
    assert asked[-1][1] > (1 << 60) - (1 << 51)


def test_a_task_with_many_markers_asks_few_times() -> None:
    log: Log = dict.fromkeys(((2, entry) for entry in range(40_000)), NoChunk.WHOLE)
    client, admin = Client(log, frozenset(each for each in log if each[1] % 2)), CountingAdmin(log)
    rows = read(client, admin, earliest(T), Position(2, 39_998))
    assert len(rows) == 20_000
    assert admin.requests <= ENTRIES_BETWEEN_MAX // 2 + PORTION_ENTRIES + SAMPLE_ENTRIES + 20


class CountingAdmin(Admin):
    """Counts requests as the admin client makes them: one for each entry."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, spans_of(log))
        self.requests = 0

    def entries(self, topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        asked = list(places)
        self.requests += len(asked)
        return super().entries(topic, asked)


def test_every_chunk_of_a_message_that_began_before_is_found() -> None:
    """Each as far behind the one before as a message may have it."""
    far = ENTRIES_BETWEEN_MAX - 1
    chunks: Log = {(2, (n + 1) * far): Chunk("u", n + 1, 5) for n in range(4)}
    assert Marked(400_000, chunks).found() == chunks


def test_chunks_of_messages_that_began_in_the_range_extend_nothing() -> None:
    chunks: Log = {}
    for n in range(40):
        chunks[2, n * 10_000] = Chunk(f"u{n}", 0, 3)
        chunks[2, n * 10_000 + 2] = Chunk(f"u{n}", 1, 3)
    marked = Marked(400_000, chunks)
    assert len(marked.found()) < len(chunks) / 2
    assert len(marked.asked) <= ENTRIES_BETWEEN_MAX // 2 + PORTION_ENTRIES + SAMPLE_ENTRIES + 80


def test_encrypted_and_lost_entries_are_sampled_everywhere() -> None:
    log: Log = {(2, entry): NoChunk.ENCRYPTED for entry in range(300_000, 310_000)}
    log |= {(2, entry): NoChunk.GONE for entry in range(390_000, 400_000)}
    found = set(Marked(400_000, log).found().values())
    assert found == {NoChunk.ENCRYPTED, NoChunk.GONE}


def test_entries_are_numbered_over_ledgers() -> None:
    """The range begins in the middle of a ledger, and chunks lie in the next one."""
    due = (DueEntries(2, 90_000, 90_009, 1.0), DueEntries(7, 0, 99_999, 1.0))
    chunks: Log = {(7, 100): Chunk("u", 1, 3), (7, 16_000): Chunk("u", 2, 3)}
    missing = [MissingRange(2, 90_003, 90_003), *(MissingRange(7, n, n) for n in (100, 16_000))]
    (part,) = kinds_of_missing(
        lambda entries: {entry: chunks.get(entry, NoChunk.WHOLE) for entry in entries}, due, missing
    )
    assert list(part.kinds) == [(2, 90_003), *chunks]
    assert not part.is_sample
