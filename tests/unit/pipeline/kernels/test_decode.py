"""Messages become bronze rows, or are quarantined with a reason."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels import decode
from headgate.pipeline.kernels.decode import ROWS_DECODED_MAX, bronze_tables
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import SAMPLED_KINDS
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.record import codec
from headgate.record.codec import BatchHeader, encode_window
from headgate.record.fields import Kind
from tests.unit.pipeline.play import SITUATIONS, T0, S, message_batch, minutes, play

HEADER = BatchHeader("b1", "c", "b", "boot", T0 - 10 * S, T0)


def test_rows_of_every_kind_and_of_every_batch() -> None:
    tables = list(bronze_tables(message_batch(play(3))))
    counts = {rows["kind"][0].as_py(): rows.num_rows for _, rows in tables}
    assert counts == {"batch": 3, "subscription": 3 * len(SITUATIONS), "topic": 21, "limiter": 3}
    for name, rows in tables:
        assert name == "bronze_samples"
        assert rows.schema == table_arrow_schema(TABLES[name])
    rows = {r["kind"][0].as_py(): r for _, r in tables}["subscription"]
    assert rows["seq"].to_pylist() == [0] * 8 + [1] * 8 + [2] * 8
    assert rows["row"].to_pylist() == list(range(8)) * 3
    assert rows["appended"].to_pylist()[:2] == [500, 500]
    # One piece for each message would cost more than all else in the steps that follow.
    assert {rows[name].num_chunks for name in rows.column_names} == {1}
    assert rows["evicted"].null_count == 0
    assert rows["msgs_in"].null_count == rows.num_rows


def test_very_much_text_stays_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = message_batch(play(3))
    joined = list(bronze_tables(messages))
    monkeypatch.setattr(decode, "TEXT_BYTES_JOINED_MAX", 10)
    apart = list(bronze_tables(messages))
    assert apart == joined
    rows = {r["kind"][0].as_py(): r for _, r in apart}["subscription"]
    assert (rows["topic"].num_chunks, rows["appended"].num_chunks) == (3, 1)


def test_much_text_in_few_rows_is_yielded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text in each row of a message is in its bytes only once."""
    monkeypatch.setattr(decode, "TEXT_BYTES_DECODED_MAX", 100_000)
    rows = {"topic": ["t" * 1_000] * 60}
    messages = [encode_window(HEADER, seq, {Kind.TOPIC: rows})[0] for seq in range(5)]
    tables = [rows for _, rows in bronze_tables(message_batch(messages))]
    counts = [rows.num_rows for rows in tables if rows["kind"][0].as_py() == "topic"]
    assert counts == [120, 120, 60]


def test_a_window_that_ends_at_a_full_hour_belongs_to_the_hour_it_covers() -> None:
    ((_, rows),) = bronze_tables(message_batch(encode_window(HEADER, 0, {})))
    assert rows["hour"].to_pylist() == [9]
    assert rows["date"][0].as_py().isoformat() == "2025-11-21"
    assert rows["window_end"][0].as_py().isoformat() == "2025-11-21T10:00:00+00:00"


def test_events_have_a_table_of_their_own() -> None:
    events = {"time_ns": [T0 - 1_500], "event": ["limit_changed"], "outcome": ['{"to":5}']}
    tables = dict(bronze_tables(message_batch(encode_window(HEADER, 0, {Kind.EVENT: events}))))
    (row,) = tables["bronze_events"].to_pylist()
    assert row["event"] == "limit_changed"
    assert row["time"].isoformat() == "2025-11-21T09:59:59.999998+00:00"
    assert row["topic"] is None


def test_foreign_messages_are_quarantined() -> None:
    (good,) = encode_window(HEADER, 0, {})
    tables = dict(bronze_tables(message_batch([b"hello", good, b""])))
    assert tables["bronze_samples"].num_rows == 1
    rows = tables["bronze_quarantine"].to_pylist()
    assert [row["value"] for row in rows] == [b"hello", b""]
    assert all("not a telemetry record" in row["reason"] for row in rows)
    assert rows[0]["message_id"] == "08011000"
    assert rows[0]["hour"] == 10


GOOD = play(2, situations=SITUATIONS[:2])
FOREIGN = st.binary(max_size=60)
CUT = st.tuples(st.sampled_from(GOOD), st.integers(0, 400)).map(lambda pair: pair[0][: pair[1]])


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A message some of whose bytes are others."""
    message = bytearray(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.integers(1, 4))):
        message[draw(st.integers(0, len(message) - 1))] = draw(st.integers(0, 255))
    return bytes(message)


@st.composite
def rewritten(draw: st.DrawFn) -> bytes:
    """A record with fields of its header that no broker sends."""
    batch: Any = vars(codec)["_SampleBatch"].FromString(draw(st.sampled_from(GOOD)))
    for name, values in (
        ("major_version", st.integers(0, 2**32 - 1)),
        ("seq", st.integers(0, 2**64 - 1)),
        ("window_start_ns", st.integers(-(2**63), 2**63 - 1)),
        ("window_end_ns", st.integers(-(2**63), 2**63 - 1)),
    ):
        if draw(st.booleans()):
            setattr(batch, name, draw(values))
    return batch.SerializeToString()


MESSAGES = st.one_of(st.sampled_from(GOOD), FOREIGN, CUT, damaged(), rewritten())


@given(st.lists(MESSAGES, min_size=1, max_size=6))
def test_every_message_becomes_rows_or_is_quarantined(messages: list[bytes]) -> None:
    batch = message_batch(messages)
    at = batch.schema.get_field_index("__publishTime")
    published = pa.array([T0 // 1_000] * len(messages), pa.timestamp("us", "UTC"))
    batch = batch.set_column(at, "__publishTime", published)
    aside, taken = 0, 0
    for name, rows in bronze_tables(batch):
        assert rows.schema == table_arrow_schema(TABLES[name])
        rows.validate(full=True)
        if name == "bronze_quarantine":
            aside += rows.num_rows
            assert all(rows["reason"].to_pylist())
            assert set(rows["value"].to_pylist()) <= set(messages)
        elif name == "bronze_samples" and rows["kind"][0].as_py() == "batch":
            taken += rows.num_rows
            last_day = T0 // HOUR_NS // 24 + 1
            assert pc.max(rows["date"].cast(pa.int32())).as_py() <= last_day
    assert aside + taken == len(messages)
    assert taken >= sum(message in GOOD for message in messages)


def test_names_that_are_not_utf8_are_quarantined() -> None:
    name = SITUATIONS[0].topic.encode()
    message = GOOD[0].replace(name, name[:-2] + b"\xff\xfe")
    ((_, rows),) = bronze_tables(message_batch([message]))
    assert "not a telemetry record" in rows["reason"][0].as_py()


def test_an_implausible_publish_time_does_not_choose_the_partition() -> None:
    batch = message_batch([b"hello"] * 3)
    at = batch.schema.get_field_index("__publishTime")
    published = pa.array([-(1 << 60), None, 1 << 62], pa.timestamp("us", "UTC"))
    ((_, rows),) = bronze_tables(batch.set_column(at, "__publishTime", published))
    assert [day.isoformat() for day in rows["date"].to_pylist()] == ["1970-01-01"] * 3


def test_many_rows_are_yielded_in_parts() -> None:
    columns = {
        "topic": [f"t{i}" for i in range(ROWS_DECODED_MAX // 2 + 1)],
        "msgs_in": list(range(ROWS_DECODED_MAX // 2 + 1)),
    }
    messages = [m for seq in range(3) for m in encode_window(HEADER, seq, {Kind.TOPIC: columns})]
    parts = [rows.num_rows for _, rows in bronze_tables(message_batch(messages))]
    assert parts == [2, ROWS_DECODED_MAX + 2, 1, ROWS_DECODED_MAX // 2 + 1]


@given(st.lists(damaged(), min_size=1, max_size=4))
def test_accepted_values_survive_the_next_steps(messages: list[bytes]) -> None:
    """Rows that are wrong and not refused give wrong minutes, and end no job."""
    if any(name == "bronze_samples" for name, _ in bronze_tables(message_batch(messages))):
        for kind in SAMPLED_KINDS:
            minutes(GOOD + messages, kind)
