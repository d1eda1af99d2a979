from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pulsar
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar import range_reader
from pyspark_pulsar.chunks import MissingRange
from pyspark_pulsar.client import ReadSettings
from pyspark_pulsar.columns import Message, arrow_schema, spark_schema
from pyspark_pulsar.errors import MalformedEntryError, ReadTimeoutError
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import COLUMNS
from pyspark_pulsar.range_reader import RangeReader, Step
from pyspark_pulsar.ranges import LedgerSpan, ReadRange, TopicSnapshot, due_entries
from tests.unit.pyspark_pulsar.fakes import (
    SCHEMA,
    FakeMessage,
    FakeReader,
    T,
    entries,
    rows_of,
    settings,
    work,
)


def batches(reader: RangeReader) -> list[pa.RecordBatch]:
    """The rows of all steps of a reader."""
    steps = reader.steps(rows_of(SCHEMA))
    return [step.batch for step in steps if step.batch is not None]


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
) -> tuple[list[str], list[MissingRange], FakeReader]:
    clock = seconds()
    fake = FakeReader(list(script), more=more)
    reader = RangeReader(fake, asked, how or settings(), monotonic=lambda: next(clock))
    steps = list(reader.steps(rows_of(SCHEMA)))
    rows = [
        value.decode()
        for step in steps
        if step.batch is not None
        for value in step.batch[0].to_pylist()
    ]
    missing = [hole for step in steps for hole in step.missing] + reader.missing_ranges()
    return rows, missing, fake


def shown(messages: Sequence[FakeMessage]) -> list[str]:
    return [message.data().decode() for message in messages]


def test_reading_stops_at_the_last_message_without_waiting() -> None:
    messages = entries(3, 2, 0, 3)
    rows, missing, fake = take(messages, work(earliest(T), Position(3, 2), (3, 3)))
    assert rows == shown(messages)
    assert fake.reads == len(messages)
    assert missing == []


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
    rows, missing, _ = take(messages, work(first.before(), last, (3, len(sizes))))
    wanted = [
        message
        for message in messages
        if first.order_key <= message.position.order_key <= last.order_key
    ]
    assert rows == shown(wanted)
    assert missing == []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_redelivery_gives_no_row_twice(sizes: list[int], data: st.DataObject) -> None:
    messages = entries(3, *sizes)
    back_from = data.draw(st.integers(0, len(messages)))
    back_to = data.draw(st.integers(0, back_from))
    script = messages[:back_from] + messages[back_to:]
    rows, _, _ = take(script, work(earliest(T), Position(3, len(sizes) - 1), (3, len(sizes))))
    assert rows == shown(messages)


def test_a_message_after_the_end_ends_the_range() -> None:
    rows, missing, _ = take(
        entries(3, 0, 0) + entries(5, 0), work(earliest(T), Position(3, 2), (3, 3))
    )
    assert rows == ["3:0:-1", "3:1:-1"]
    assert missing == [MissingRange(3, 2, 2)]


def test_nothing_available_ends_the_range() -> None:
    rows, missing, _ = take(
        entries(3, 0, 0), work(earliest(T), Position(4, 1), (3, 2), (4, 2)), more=False
    )
    assert rows == ["3:0:-1", "3:1:-1"]
    assert missing == [MissingRange(4, 0, 1)]


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
    assert sum(batch.num_rows for batch in batches(reader)) == 2


def test_entries_without_a_message_are_counted_anywhere() -> None:
    before, behind = entries(3, 0, 2, first=1), entries(5, 0, first=3)
    asked = work(earliest(T), Position(5, 4), (3, 4), (4, 2), (5, 5))
    rows, missing, _ = take([*before, *behind], asked, more=False)
    assert len(rows) == 4
    assert missing == [
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
            batches(reader)
        assert asked_about == []
    else:
        assert sum(batch.num_rows for batch in batches(reader)) == 2
        assert asked_about == [[MissingRange(3, 1, 2)]]


def test_publish_times_are_checked_for_each_row() -> None:
    messages = [
        FakeMessage(Position(3, each), 0, b"%d" % each, publish_ms=each) for each in range(6)
    ]
    asked = work(earliest(T), Position(3, 5), (3, 6))
    rows, missing, _ = take(messages, asked, how=settings(since_ms=2, until_ms=4))
    assert rows == ["2", "3"]
    assert missing == []


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
        (step,) = reader.steps(rows_of(schema))
        batch = step.batch
        assert batch is not None
        assert batch["__publishTime"].cast("int64").to_pylist() == published


def test_batches_end_at_a_number_of_rows_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "BATCH_ROWS_MAX", 3)
    monkeypatch.setattr(range_reader, "BATCH_BYTES_MAX", 10)
    sizes = [1, 1, 1, 1, 9, 1, 2, 30, 1]
    messages = [FakeMessage(Position(3, n), 0, bytes(size)) for n, size in enumerate(sizes)]
    reader = RangeReader(
        FakeReader(list(messages)), work(earliest(T), Position(3, 8), (3, 9)), settings()
    )
    assert [batch.num_rows for batch in batches(reader)] == [3, 2, 2, 1, 1]


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
    span = LedgerSpan(3, 4, 4 * range_reader.PORTION_BYTES_MAX)
    due = due_entries(TopicSnapshot((span,), None), earliest(T), end)
    asked = ReadRange(T, earliest(T), end, due)
    script = entries(3, 100, 400, 0, 3)
    rows, missing, _ = take(script, asked)
    assert rows == shown(script)
    assert missing == []
    # An entry's first message says how many there are; the last entry is waited for one by one.
    assert looked_at == [1, 100, 256, 144, 1, 1, 1]


def steps_of(
    script: Sequence[Message | Exception], asked: ReadRange, messages_max: int | None
) -> tuple[list[Step], RangeReader]:
    clock = seconds()
    reader = RangeReader(
        FakeReader(list(script), more=False),
        asked,
        settings(),
        messages_max=messages_max,
        monotonic=lambda: next(clock),
    )
    return list(reader.steps(rows_of(SCHEMA))), reader


def test_a_step_says_how_far_it_reached_and_what_is_missing_up_to_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last message of a batch stands for the whole entry."""
    monkeypatch.setattr(range_reader, "BATCH_ROWS_MAX", 2)
    script = [*entries(3, 2, first=1), *entries(3, 2, 0, first=4)]
    steps, reader = steps_of(script, work(earliest(T), Position(3, 7), (3, 8)), None)
    assert [(str(step.reached), step.missing) for step in steps] == [
        ("3:1:-1:-1", (MissingRange(3, 0, 0),)),
        ("3:4:-1:-1", (MissingRange(3, 2, 3),)),
        ("3:5:-1:-1", ()),
    ]
    assert reader.missing_ranges() == [MissingRange(3, 6, 7)]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 4))
def test_a_step_has_all_rows_up_to_where_it_reached(sizes: list[int], rows_max: int) -> None:
    """Else those between are lost if the client's process ends behind the step."""
    sent = [FakeMessage(Position(3, n), 0, bytes(size)) for n, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_reader, "BATCH_ROWS_MAX", rows_max)
        patch.setattr(range_reader, "BATCH_BYTES_MAX", 10)
        patch.setattr(range_reader, "PORTION_MESSAGES_MAX", 3)
        steps, _ = steps_of(
            sent, work(earliest(T), Position(3, len(sent) - 1), (3, len(sent))), None
        )
    rows = 0
    for step in steps:
        rows += 0 if step.batch is None else step.batch.num_rows
        assert step.reached.entry_id == rows - 1
    assert rows == len(sent)


def test_each_message_is_a_step_of_a_reader_that_stops() -> None:
    script = entries(3, 2, 0, 0, 0)
    steps, reader = steps_of(script, work(earliest(T), Position(3, 3), (3, 4)), 3)
    assert [str(step.reached) for step in steps] == ["3:0:-1:0", "3:0:-1:-1", "3:1:-1:-1"]
    assert [step.batch.num_rows for step in steps if step.batch is not None] == [1, 1, 1]
    assert reader.is_stopped
    assert reader.missing_ranges() == []
    _, reader = steps_of(script, work(earliest(T), Position(3, 3), (3, 4)), 5)
    assert not reader.is_stopped


def test_messages_before_the_range_stop_no_reader() -> None:
    """Else a reader that begins before very many of them would never get on."""
    steps, reader = steps_of(
        entries(3, 0, 0, 0, 0), work(Position(3, 1), Position(3, 3), (3, 4)), 1
    )
    assert [step.reached.entry_id for step in steps] == [1, 1, 2]
    assert reader.is_stopped


@pytest.mark.parametrize("dropped", [0, 1, 2, 4])
def test_a_dropped_message_of_a_batch_is_noticed(dropped: int) -> None:
    script = entries(3, 3, 2)
    asked = work(earliest(T), Position(3, 1), (3, 2))
    assert len(steps_of(script, asked, 9)[0]) == 5
    del script[dropped]
    with pytest.raises(MemoryError):
        steps_of(script, asked, 9)


def test_a_reader_that_begins_within_a_batch_misses_nothing() -> None:
    script = entries(3, 3, 0)
    asked = work(Position(3, 0, -1, 0), Position(3, 1), (3, 2))
    for sent in (script, script[1:]):
        assert steps_of(sent, asked, 9)[0][-1].reached == Position(3, 1)
    with pytest.raises(MemoryError):
        steps_of(script[2:], asked, 9)


def test_messages_outside_the_times_are_steps_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a client that ends behind very many of them would read them all again."""
    monkeypatch.setattr(range_reader, "STEP_MESSAGES_MAX", 2)
    messages = [FakeMessage(Position(3, each), publish_ms=each) for each in range(6)]
    asked = work(earliest(T), Position(3, 5), (3, 6))
    reader = RangeReader(FakeReader(list(messages)), asked, settings(since_ms=6))
    steps = list(reader.steps(rows_of(SCHEMA)))
    assert {step.batch for step in steps} == {None}
    assert [step.reached.entry_id for step in steps] == [4]


def test_what_arrived_before_a_malformed_entry_is_a_step() -> None:
    def will_not_come(missing: Sequence[MissingRange]) -> bool:
        raise MalformedEntryError(missing[0].ledger_id, missing[0].first_entry)

    reader = RangeReader(
        FakeReader(list(entries(3, 0, 0)), more=True),
        work(earliest(T), Position(3, 9), (3, 10)),
        settings(),
        will_not_come=will_not_come,
    )
    steps = reader.steps(rows_of(SCHEMA))
    step = next(steps)
    assert (str(step.reached), step.batch and step.batch.num_rows) == ("3:1:-1:-1", 2)
    with pytest.raises(MalformedEntryError) as caught:
        next(steps)
    assert (caught.value.ledger_id, caught.value.entry_id) == (3, 2)
