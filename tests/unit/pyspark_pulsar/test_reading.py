from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pulsar
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar import client as client_module
from pyspark_pulsar import reading
from pyspark_pulsar.chunks import Chunk, EntryId, MissingRange, NoChunk
from pyspark_pulsar.client import ReadSettings
from pyspark_pulsar.columns import Message, Rows, arrow_schema, spark_schema
from pyspark_pulsar.errors import DataLossError, EncryptedError, ReadTimeoutError
from pyspark_pulsar.keys import KeyDecoder, KeyKind, MessageRef
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import COLUMNS, Connection
from pyspark_pulsar.ranges import DueEntries, LedgerSpan, ReadRange, TopicSnapshot, due_entries
from pyspark_pulsar.reading import RangeReader, read_range, report_loss
from tests.unit.pyspark_pulsar.fakes import FakeMessage, FakeReader, entries, no_keys

T = "persistent://public/default/t"
CONNECTION = Connection("pulsar://h:1", "http://h:2", 1_000, 1_000)
SCHEMA = arrow_schema(spark_schema(["value"]))


def settings(
    *, since_ms: int | None = None, until_ms: int | None = None, fail: bool = True
) -> ReadSettings:
    return ReadSettings(CONNECTION, since_ms, until_ms, fail, None, 5_000)


def work(start: Position, end: Position, *ledgers: tuple[int, int]) -> ReadRange:
    spans = tuple(LedgerSpan(ledger, count, count) for ledger, count in ledgers)
    return ReadRange(T, start, end, due_entries(TopicSnapshot(spans, None), start, end))


def rows_of(schema: pa.Schema) -> Rows:
    return Rows(schema, T, KeyDecoder(T, no_keys))


def seconds() -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += 1.0


def take(
    script: Sequence[Message | Exception],
    asked: ReadRange,
    *,
    how: ReadSettings | None = None,
    more: bool = True,
) -> tuple[list[str], RangeReader, FakeReader]:
    clock = seconds()
    fake = FakeReader(list(script), more=more)
    reader = RangeReader(fake, asked, how or settings(), monotonic=lambda: next(clock))
    rows = [
        value.decode()
        for batch in reader.batches(rows_of(SCHEMA))
        for value in batch[0].to_pylist()
    ]
    return rows, reader, fake


def shown(messages: Sequence[FakeMessage]) -> list[str]:
    return [message.data().decode() for message in messages]


def test_reading_stops_at_the_last_message_without_waiting() -> None:
    messages = entries(3, 2, 0, 3)
    rows, reader, fake = take(messages, work(earliest(T), Position(3, 2), (3, 3)))
    assert rows == shown(messages)
    assert fake.reads == len(messages)
    assert reader.missing_ranges() == []


def test_reading_stops_before_an_end_in_the_next_ledger() -> None:
    rows, _, fake = take(entries(3, 2, 2), work(earliest(T), Position(4, -1), (3, 2), (4, 0)))
    assert len(rows) == 4
    assert fake.reads == 4


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.data(),
)
def test_any_start_and_end_are_exact(sizes: list[int], data: st.DataObject) -> None:
    messages = entries(3, *sizes)
    places = st.sampled_from([message.position for message in messages])
    first, last = sorted(
        (data.draw(places), data.draw(places)), key=lambda position: position.order_key
    )
    rows, reader, _ = take(messages, work(first.before(), last, (3, len(sizes))))
    wanted = [
        message
        for message in messages
        if first.order_key <= message.position.order_key <= last.order_key
    ]
    assert rows == shown(wanted)
    assert reader.missing_ranges() == []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_redelivery_gives_no_row_twice(sizes: list[int], data: st.DataObject) -> None:
    messages = entries(3, *sizes)
    back_from = data.draw(st.integers(0, len(messages)))
    back_to = data.draw(st.integers(0, back_from))
    script = messages[:back_from] + messages[back_to:]
    rows, _, _ = take(script, work(earliest(T), Position(3, len(sizes) - 1), (3, len(sizes))))
    assert rows == shown(messages)


def test_a_message_after_the_end_ends_the_range() -> None:
    rows, reader, _ = take(
        entries(3, 0, 0) + entries(5, 0), work(earliest(T), Position(3, 2), (3, 3))
    )
    assert rows == ["3:0:-1", "3:1:-1"]
    assert reader.missing_ranges() == [MissingRange(3, 2, 2)]


def test_nothing_available_ends_the_range() -> None:
    rows, reader, _ = take(
        entries(3, 0, 0), work(earliest(T), Position(4, 1), (3, 2), (4, 2)), more=False
    )
    assert rows == ["3:0:-1", "3:1:-1"]
    assert reader.missing_ranges() == [MissingRange(4, 0, 1)]


def test_silence_while_messages_are_due_is_an_error() -> None:
    with pytest.raises(ReadTimeoutError, match=r"nothing arrived for 5000 ms.*read so far: 3:0"):
        take(entries(3, 0), work(earliest(T), Position(3, 1), (3, 2)))
    with pytest.raises(ReadTimeoutError, match="read so far: nothing"):
        take([], work(earliest(T), Position(3, 1), (3, 2)))


def test_a_pause_or_an_unreachable_broker_is_waited_for() -> None:
    class Restarting(FakeReader):
        def has_message_available(self) -> bool:
            raise pulsar.Timeout("TimeOut")

    messages = entries(3, 0, 0)
    pauses: list[Message | Exception] = [pulsar.Timeout("TimeOut"), pulsar.Timeout("TimeOut")]
    fake = Restarting([messages[0], *pauses, messages[1]])
    clock = seconds()
    reader = RangeReader(
        fake,
        work(earliest(T), Position(3, 1), (3, 2)),
        settings(),
        monotonic=lambda: next(clock),
    )
    assert sum(batch.num_rows for batch in reader.batches(rows_of(SCHEMA))) == 2


def test_entries_without_a_message_are_counted_anywhere() -> None:
    before, behind = entries(3, 0, 2, first=1), entries(5, 0, first=3)
    asked = work(earliest(T), Position(5, 4), (3, 4), (4, 2), (5, 5))
    rows, reader, _ = take([*before, *behind], asked, more=False)
    assert len(rows) == 4
    assert reader.missing_ranges() == [
        MissingRange(3, 0, 0), MissingRange(3, 3, 3), MissingRange(4, 0, 1), MissingRange(5, 0, 2),
        MissingRange(5, 4, 4), ]  # fmt: skip


@pytest.mark.parametrize("read", [1, 2])
def test_an_incomplete_message_at_the_end_is_not_waited_for(read: int) -> None:
    """Two messages in one entry, then chunks: only behind a whole entry it may be left."""
    asked_about: list[Sequence[MissingRange]] = []

    def will_not_come(missing: Sequence[MissingRange]) -> bool:
        asked_about.append(missing)
        return True

    clock = seconds()
    reader = RangeReader(
        FakeReader(list(entries(3, 2)[:read]), more=True),
        work(earliest(T), Position(3, 2), (3, 3)),
        settings(),
        will_not_come=will_not_come,
        monotonic=lambda: next(clock),
    )
    if read == 1:
        with pytest.raises(ReadTimeoutError):
            list(reader.batches(rows_of(SCHEMA)))
        assert asked_about == []
    else:
        assert sum(batch.num_rows for batch in reader.batches(rows_of(SCHEMA))) == 2
        assert asked_about == [[MissingRange(3, 1, 2)]]


def test_publish_times_are_checked_for_each_row() -> None:
    messages = [
        FakeMessage(Position(3, each), 0, b"%d" % each, publish_ms=each) for each in range(6)
    ]
    asked = work(earliest(T), Position(3, 5), (3, 6))
    rows, reader, _ = take(messages, asked, how=settings(since_ms=2, until_ms=4))
    assert rows == ["2", "3"]
    assert reader.missing_ranges() == []


@pytest.mark.parametrize(("skew_ms", "warnings"), [(99, 1), (100, 0)])
def test_clocks_beyond_the_searched_skew_are_logged(
    skew_ms: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    times = [200, 1 << 63, 300, 200, 250]
    messages = [FakeMessage(Position(3, n), publish_ms=ms) for n, ms in enumerate(times)]
    asked = work(earliest(T), Position(3, 4), (3, 5))
    how = dataclasses.replace(settings(since_ms=240), publish_time_skew_ms=skew_ms)
    rows, _, _ = take(messages, asked, how=how)
    assert len(rows) == 3
    assert len(caplog.messages) == warnings
    assert all("up to 100 ms before others" in text for text in caplog.messages)


def test_an_invalid_publish_time_is_compared_as_a_number() -> None:
    messages = [FakeMessage(Position(3, n), publish_ms=ms) for n, ms in enumerate([1, 1 << 63])]
    asked = work(earliest(T), Position(3, 1), (3, 2))
    schema = arrow_schema(spark_schema(COLUMNS))
    for how, published in (
        (settings(since_ms=1), [1_000, None]),
        (settings(since_ms=2), [None]),
        (settings(until_ms=2), [1_000]),
    ):
        reader = RangeReader(FakeReader(list(messages)), asked, how)
        (batch,) = reader.batches(rows_of(schema))
        assert batch["__publishTime"].cast("int64").to_pylist() == published


def test_batches_end_at_a_number_of_rows_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS_MAX", 3)
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 10)
    sizes = [1, 1, 1, 1, 9, 1, 2, 30, 1]
    messages = [FakeMessage(Position(3, n), 0, bytes(size)) for n, size in enumerate(sizes)]
    reader = RangeReader(
        FakeReader(list(messages)), work(earliest(T), Position(3, 8), (3, 9)), settings()
    )
    assert [batch.num_rows for batch in reader.batches(rows_of(SCHEMA))] == [3, 2, 2, 1, 1]


def test_the_rest_of_a_large_entry_is_filtered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[int] = []
    take_run = RangeReader._accept_run

    def noted(self: RangeReader, ids: Sequence[pulsar.MessageId]) -> bool:
        looked_at.append(len(ids))
        return take_run(self, ids)

    monkeypatch.setattr(RangeReader, "_accept_run", noted)
    end = Position(3, 3)
    span = LedgerSpan(3, 4, 4 * reading.PORTION_BYTES_MAX)
    due = due_entries(TopicSnapshot((span,), None), earliest(T), end)
    asked = ReadRange(T, earliest(T), end, due)
    script = entries(3, 100, 400, 0, 3)
    rows, reader, _ = take(script, asked)
    assert rows == shown(script)
    assert reader.missing_ranges() == []
    # An entry's first message says how many there are; the last entry is waited for one by one.
    assert looked_at == [1, 100, 256, 144, 1, 1, 1]


class FakeClient:
    """Stands for the process's client; remembers how readers were opened."""

    def __init__(self, fake: FakeReader) -> None:
        self.fake = fake
        self.opened: list[tuple[str, str, int]] = []

    def create_reader(
        self, topic: str, first: pulsar.MessageId, *, receiver_queue_size: int
    ) -> FakeReader:
        self.opened.append((topic, str(first), receiver_queue_size))
        return self.fake


class FakeStored:
    """The admin service of a topic without chunks: its ledgers, and entries that gave no message
    for another reason than being markers."""

    def __init__(
        self, held: frozenset[int], kinds: Mapping[EntryId, NoChunk] | None = None
    ) -> None:
        self.held = held
        self.kinds = kinds or {}

    def ledgers(self, _topic: str) -> tuple[LedgerSpan, ...]:
        return tuple(LedgerSpan(ledger, 2, 2) for ledger in sorted(self.held))

    def entries(self, _topic: str, places: Iterable[EntryId]) -> dict[EntryId, Chunk | NoChunk]:
        return {place: self.kinds.get(place, NoChunk.WHOLE) for place in places}

    def key_kinds(
        self, _topic: str, places: Iterable[MessageRef]
    ) -> dict[MessageRef, KeyKind | None]:
        return no_keys(list(places))


def run_task(
    monkeypatch: pytest.MonkeyPatch,
    asked: ReadRange,
    held: frozenset[int],
    gone: Iterable[EntryId] = (),
    *,
    kind: NoChunk = NoChunk.GONE,
    fail: bool = True,
) -> tuple[list[pa.RecordBatch], FakeClient]:
    client = FakeClient(FakeReader(list(entries(3, 0, 0))))
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)
    stored = FakeStored(held, dict.fromkeys(gone, kind))
    return list(read_range(asked, settings(fail=fail), SCHEMA, stored)), client


@pytest.mark.parametrize("encrypted", [[1, 2], [0], [2, 3]], ids=["middle", "begin", "end"])
def test_encrypted_entries_are_refused_or_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, encrypted: list[int]
) -> None:
    """The client drops them, and the others arrive."""
    plain = [
        message for message in entries(3, 0, 0, 0, 0) if message.position.entry_id not in encrypted
    ]
    stored = FakeStored(frozenset({3}), {(3, each): NoChunk.ENCRYPTED for each in encrypted})
    asked = work(earliest(T), Position(3, 3), (3, 4))

    def rows_read(*, fail: bool) -> int:
        client = FakeClient(FakeReader(list(plain)))
        monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)
        batches = read_range(asked, settings(fail=fail), SCHEMA, stored)
        return sum(batch.num_rows for batch in batches)

    first = f"{T}: entry 3:{encrypted[0]} is encrypted, and this source has no keys"
    with pytest.raises(EncryptedError, match=f"{first}. Read a topic that is not encrypted"):
        rows_read(fail=True)
    assert rows_read(fail=False) == len(plain)
    told = f"{len(encrypted)} encrypted entries are left out, because failOnDataLoss is false"
    assert caplog.messages == [f"{first}; {told}"]


def test_a_topic_whose_messages_are_all_encrypted_is_refused_without_a_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """``has_message_available`` stays true, as nothing tells the client what it dropped."""
    client = FakeClient(FakeReader([], more=True))
    monkeypatch.setitem(client_module._clients, (os.getpid(), CONNECTION), client)
    stored = FakeStored(frozenset({3}), dict.fromkeys([(3, 0), (3, 1)], NoChunk.ENCRYPTED))
    asked = work(earliest(T), Position(3, 1), (3, 2))
    with pytest.raises(EncryptedError, match="entry 3:0 is encrypted"):
        list(read_range(asked, settings(), SCHEMA, stored))
    assert list(read_range(asked, settings(fail=False), SCHEMA, stored)) == []


def test_entries_of_a_deleted_ledger_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = work(earliest(T), Position(4, 1), (3, 2), (4, 2))
    with pytest.raises(DataLossError, match=r"ledgers \[4\] were trimmed"):
        run_task(monkeypatch, asked, frozenset({3}))
    batches, _ = run_task(monkeypatch, asked, frozenset({3}), fail=False)
    assert sum(batch.num_rows for batch in batches) == 2


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
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    gone: list[EntryId],
    told: list[str],
) -> None:
    asked = work(earliest(T), Position(4, 3), (3, 2), (4, 4))
    with pytest.raises(DataLossError, match=f"{told[0]} were trimmed before all of"):
        run_task(monkeypatch, asked, frozenset({3, 4}), gone)
    batches, _ = run_task(monkeypatch, asked, frozenset({3, 4}), gone, fail=False)
    assert sum(batch.num_rows for batch in batches) == 2
    assert [text.removeprefix(f"{T}: ").partition(" were")[0] for text in caplog.messages] == told


def test_entries_hidden_from_readers_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = work(earliest(T), Position(4, 1), (3, 2), (4, 2))
    batches, _ = run_task(monkeypatch, asked, frozenset({3, 4}))
    assert sum(batch.num_rows for batch in batches) == 2


def test_the_readers_queue_depends_on_the_entry_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = ReadRange(T, earliest(T), Position(3, 1), (DueEntries(3, 0, 1, 100.0),))
    large = ReadRange(T, Position(2, 7), Position(3, 1), (DueEntries(3, 0, 1, 1024.0 * 1024),))
    _, client = run_task(monkeypatch, small, frozenset())
    assert client.opened == [(T, str(pulsar.MessageId.earliest), 1_000)]
    _, client = run_task(monkeypatch, large, frozenset())
    assert client.opened == [(T, str(pulsar.MessageId(-1, 2, 7, -1)), 64)]


def test_a_loss_is_raised_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match=r"gone\. Set failOnDataLoss=false"):
        report_loss("gone", fail=True)
    report_loss("gone", fail=False)
    assert caplog.messages == ["gone; the query continues, because failOnDataLoss is false"]
