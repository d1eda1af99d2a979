from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_pulsar import range_reader
from pyspark_pulsar.columns import Rows, arrow_schema, spark_schema
from pyspark_pulsar.entries import EntryId
from pyspark_pulsar.errors import DataLossError, EncryptedError, ReadTimeoutError
from pyspark_pulsar.missing import MissingRange
from pyspark_pulsar.offsets import Position, earliest
from pyspark_pulsar.options import COLUMNS
from pyspark_pulsar.range_reader import IN_VAIN_MAX, RangeReader
from pyspark_pulsar.ranges import ReadRange
from pyspark_pulsar.read_settings import ReadSettings
from tests.unit.pyspark_pulsar.fakes import (
    ENCRYPTED,
    MALFORMED,
    SCHEMA,
    FakeStream,
    T,
    batch,
    body,
    chunk,
    entries,
    rows_of,
    settings,
    values,
    work,
)


def take(
    stored: Mapping[EntryId, bytes],
    asked: ReadRange,
    how: ReadSettings | None = None,
    **more: object,
) -> tuple[list[bytes], list[MissingRange], FakeStream]:
    """The values of a range, the entries that did not arrive, and the stream."""
    stream = FakeStream(stored, asked.start, **more)  # type: ignore[arg-type]
    reader = RangeReader(
        stream,
        asked,
        how or settings(),
        rows_of(SCHEMA),
        lambda *_: None,
        monotonic=lambda: stream.now_s,
    )
    return values(reader.batches()), reader.missing, stream


def test_reading_stops_at_the_last_due_entry() -> None:
    asked = work(earliest(T), Position(3, 1), (3, 2))
    rows, missing, stream = take(entries(3, 0, 0, 0), asked, more=True)
    assert rows == [b"3:0:-1", b"3:1:-1"]
    assert (missing, stream.given) == ([], [(3, 0), (3, 1)])


@given(sizes=st.lists(st.integers(0, 4), min_size=1, max_size=6), data=st.data())
def test_any_start_and_end_are_exact(sizes: list[int], data: st.DataObject) -> None:
    places = [
        Position(3, entry, -1, index)
        for entry, size in enumerate(sizes)
        for index in (range(size) if size else [-1])
    ]
    first = data.draw(st.integers(-1, len(places) - 1))
    last = data.draw(st.integers(first, len(places) - 1))
    start = places[first] if first >= 0 else earliest(T)
    if last == first:
        return
    asked = work(start, places[last], (3, len(sizes)))
    rows, missing, stream = take(entries(3, *sizes), asked)
    wanted = places[first + 1 : last + 1]
    assert rows == [b"3:%d:%d" % (each.entry_id, each.batch_index) for each in wanted]
    assert missing == []
    assert stream.permits == sum(max(1, sizes[entry]) for _, entry in stream.given)


def test_entries_that_do_not_arrive_are_counted_anywhere() -> None:
    stored = entries(3, 0, 0, first=2) | entries(3, 0, first=6) | entries(5, 0, first=1)
    asked = work(earliest(T), Position(5, 2), (3, 8), (4, 2), (5, 3))
    rows, missing, _ = take(stored, asked)
    assert len(rows) == 4
    assert missing == [
        MissingRange(3, 0, 1),
        MissingRange(3, 4, 5),
        MissingRange(3, 7, 7),
        MissingRange(4, 0, 1),
        MissingRange(5, 0, 0),
        MissingRange(5, 2, 2),
    ]


@pytest.mark.parametrize("last", [(3, 32), (3, 39), (4, 0), (4, 9), (5, 2)])
def test_a_reader_that_was_moved_begins_again_where_it_was(last: EntryId) -> None:
    """As by a message TTL, also from the begin of one ledger to that of another, or to the end."""
    stored = entries(3, *[0] * 40) | entries(4, *[0] * 10) | entries(5, *[0] * 4)
    for start, due in ((earliest(T), [(3, 0), last]), (Position(3, -1), [(3, 0), last])):
        asked = work(start, Position(5, 2), (3, 40), (4, 10), (5, 4))
        rows, missing, stream = take(stored, asked, moved=due)
        assert rows == [b"%d:%d:-1" % place for place in sorted(stored)[:-1]]
        assert missing == []
        assert stream.given[1] > last


def test_a_reader_that_was_moved_to_the_end_begins_again() -> None:
    stored = entries(3, 0, 3, 0)
    asked = work(Position(3, 1, -1, 0), Position(3, 2), (3, 3))
    rows, missing, stream = take(stored, asked, more=True, moved=((3, 1), (3, 2)))
    assert rows == [b"3:1:1", b"3:1:2", b"3:2:-1"]
    assert (missing, stream.given) == ([], [(3, 1), (3, 2)])
    assert 2.5 <= stream.now_s <= 3.5, "half of pollTimeoutMs"
    rows, _, stream = take(stored, asked, more=True, silent=3)
    assert rows == [b"3:1:1", b"3:1:2", b"3:2:-1"]


@pytest.mark.parametrize(
    ("unsent", "is_again"),
    [({1, 79}, True), ({*range(1, 20), *range(40, 80)}, True), ({*range(1, 80)}, False)],
)
def test_markers_among_entries_that_expired_hide_none(unsent: set[int], is_again: bool) -> None:
    stored = entries(3, *[0] * 81)
    for entry in unsent:
        del stored[3, entry]
    stream = FakeStream(stored, moved=((3, 0), (3, 79)))
    reader = RangeReader(
        stream,
        work(earliest(T), Position(3, 80), (3, 81)),
        settings(),
        rows_of(SCHEMA),
        lambda *_: None,
        are_unsent=lambda rest: all(each.first_entry in unsent for each in rest),
    )
    assert len(values(reader.batches())) == len(stored)
    assert stream.given.count((3, 80)) == 1 + is_again


def test_entries_that_no_reader_gets_are_asked_for_again_once() -> None:
    stored = entries(3, 0) | entries(3, 0, first=60) | entries(3, 0, first=70)
    asked = work(earliest(T), Position(3, 70), (3, 71))
    rows, missing, stream = take(stored, asked)
    assert len(rows) == 3
    assert missing == [MissingRange(3, 1, 59), MissingRange(3, 61, 69)]
    assert stream.given == [(3, 0), (3, 60), (3, 60), (3, 70)], "few are not asked for again"


def test_a_filter_of_entries_costs_few_connections() -> None:
    """Of a broker, which sends one in fifty."""
    stored = entries(3, 0)
    for entry in range(50, 500, 50):
        stored |= entries(3, 0, first=entry)
    asked = work(earliest(T), Position(3, 450), (3, 451))
    rows, missing, stream = take(stored, asked)
    assert len(rows) == 10
    assert sum(each.entries for each in missing) == 9 * 49
    assert len(stream.given) == 10 + IN_VAIN_MAX


def test_a_range_ends_when_readers_get_nothing_of_what_remains() -> None:
    """Brokers before 4.0 say that more follows, where that is a transaction's marker."""
    stored, asked = entries(3, 0, 0), work(earliest(T), Position(4, 1), (3, 4), (4, 2))
    stream = FakeStream(stored, more=True)
    told: list[tuple[float, list[MissingRange]]] = []

    def unsent(rest: Sequence[MissingRange]) -> bool:
        told.append((stream.now_s, list(rest)))
        return len(told) == 2

    reader = RangeReader(
        stream,
        asked,
        dataclasses.replace(settings(), poll_timeout_ms=20_000),
        rows_of(SCHEMA),
        lambda *_: None,
        are_unsent=unsent,
        monotonic=lambda: stream.now_s,
    )
    assert values(reader.batches()) == [b"3:0:-1", b"3:1:-1"]
    rest = [MissingRange(3, 2, 3), MissingRange(4, 0, 1)]
    assert told == [(3.0, rest), (6.0, rest)]
    assert reader.missing == rest


def test_an_entry_behind_the_end_ends_the_range() -> None:
    asked = work(earliest(T), Position(3, 3), (3, 4))
    rows, missing, _ = take(entries(3, 0) | entries(4, 0), asked, more=True)
    assert rows == [b"3:0:-1"]
    assert missing == [MissingRange(3, 1, 3)]


def test_a_pause_is_waited_for_and_silence_is_an_error() -> None:
    asked = work(earliest(T), Position(3, 1), (3, 2))
    rows, _, _ = take(entries(3, 0, 0), asked, silent=4)
    assert len(rows) == 2
    with pytest.raises(ReadTimeoutError, match=r"nothing arrived for 5000 ms .*: 3:0$"):
        take(entries(3, 0), asked, more=True)
    with pytest.raises(ReadTimeoutError, match=r"read so far: nothing; a frame of 99 bytes$"):
        take({}, asked, more=True, last_failure="a frame of 99 bytes")


def test_malformed_entries_fail_or_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    stored = entries(3, 0, 2, 0) | {(3, 1): MALFORMED}
    asked = work(earliest(T), Position(3, 2), (3, 3))
    with pytest.raises(DataLossError, match=rf"{T}: entry 3:1 is malformed \(.*\)\. Set failOnD"):
        take(stored, asked)
    rows, missing, _ = take(stored, asked, settings(fail=False))
    assert (rows, missing) == ([b"3:0:-1", b"3:2:-1"], [])
    assert len(caplog.messages) == 1


def test_very_many_malformed_entries_are_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(range_reader, "REPORTS_MAX", 2)
    stored = {(3, each): MALFORMED for each in range(5)}
    take(stored, work(earliest(T), Position(3, 4), (3, 5)), settings(fail=False))
    assert [text.partition(";")[0].removeprefix(f"{T}: ")[:12] for text in caplog.messages] == [
        "entry 3:0 is",
        "entry 3:1 is",
        "3 more such ",
    ]


def test_encrypted_entries_fail_or_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    stored = entries(3, 0, 0, 0, 0) | {(3, 1): ENCRYPTED, (3, 2): ENCRYPTED}
    asked = work(earliest(T), Position(3, 3), (3, 4))
    first = f"{T}: entry 3:1 is encrypted, and this source has no keys"
    with pytest.raises(EncryptedError, match=f"{first}. Read a topic that is not encrypted"):
        take(stored, asked)
    rows, _, _ = take(stored, asked, settings(fail=False))
    assert rows == [b"3:0:-1", b"3:3:-1"]
    told = "2 encrypted entries are left out, because failOnDataLoss is false"
    assert caplog.messages == [f"{first}; {told}"]


def test_a_message_in_chunks_is_a_row_where_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    parts = [b"a", b"b", b"c"]
    stored = entries(3, *[0] * 6) | {(3, n): chunk("u", n // 2, parts) for n in (0, 2, 4)}
    asked = work(earliest(T), Position(3, 5), (3, 6))
    rows, missing, _ = take(stored, asked)
    assert (rows, missing) == ([b"3:1:-1", b"3:3:-1", b"abc", b"3:5:-1"], [])
    # Without the first ones, which nobody finds here:
    rows, _, _ = take(stored, work(Position(3, 0), Position(3, 5), (3, 6)), settings(fail=False))
    assert rows == [b"3:1:-1", b"3:3:-1", b"3:5:-1"]
    (told,) = caplog.messages
    assert "the message that ends in 3:4 cannot be read: not all of its chunks are stored" in told


def test_a_message_in_chunks_that_fits_nothing_is_malformed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = body(b"a", uuid="u", chunk_id=0, num_chunks_from_msg=2, total_chunk_msg_size=9)
    stored = {(3, 0): wrong, (3, 1): chunk("u", 1, [b"a", b"b"])}
    rows, _, _ = take(stored, work(earliest(T), Position(3, 1), (3, 2)), settings(fail=False))
    assert rows == []
    assert "the message that ends in 3:1 is malformed" in caplog.messages[0]


def test_publish_times_are_checked_for_each_entry() -> None:
    stored = {(3, each): body(b"%d" % each, each) for each in range(6)}
    rows, missing, _ = take(
        stored, work(earliest(T), Position(3, 5), (3, 6)), settings(since_ms=2, until_ms=4)
    )
    assert (rows, missing) == ([b"2", b"3"], [])


@pytest.mark.parametrize(("skew_ms", "warnings"), [(99, 1), (100, 0)])
def test_clocks_beyond_the_searched_skew_are_logged(
    skew_ms: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    times = [200, 1 << 63, 300, 200, 250]
    stored = {(3, n): body(b"", ms) for n, ms in enumerate(times)}
    how = dataclasses.replace(settings(since_ms=240), publish_time_skew_ms=skew_ms)
    rows, _, _ = take(stored, work(earliest(T), Position(3, 4), (3, 5)), how)
    assert len(rows) == 3
    assert len(caplog.messages) == warnings
    assert all("up to 100 ms before others" in text for text in caplog.messages)


def test_batches_end_at_a_number_of_rows_or_bytes() -> None:
    sizes = [1, 1, 1, 1, 9, 1, 2, 30, 1]
    asked = work(earliest(T), Position(3, 8), (3, 9))
    for stored in (
        {(3, n): body(bytes(size)) for n, size in enumerate(sizes)},
        {(3, n): body(bytes(size), event_time=7) for n, size in enumerate(sizes)},
        {(3, 8): batch([bytes(size) for size in sizes])},
    ):
        stream, rows = FakeStream(stored), Rows(SCHEMA, T, rows_max=3, bytes_max=10)
        reader = RangeReader(stream, asked, settings(), rows, lambda *_: None)
        assert [each.num_rows for each in reader.batches()] == [3, 2, 2, 1, 1]


def test_all_columns_come_from_the_entry() -> None:
    schema = arrow_schema(spark_schema(COLUMNS))
    stored = {(3, 0): body(b"v", 5, partition_key="k", event_time=7)}
    asked = work(earliest(T), Position(3, 0), (3, 1))
    reader = RangeReader(FakeStream(stored), asked, settings(), rows_of(schema), lambda *_: None)
    (found,) = reader.batches()
    row = found.to_pylist()[0]
    assert (row["value"], row["__key"], row["__messageId"]) == (b"v", b"k", b"\x08\x03\x10\x00")
