"""Messages to bronze rows; what is foreign is put aside with its reason."""

from __future__ import annotations

from headgate.pipeline.kernels.decode import bronze_tables
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.catalogue import TABLES
from headgate.record.codec import BatchHeader, encode_window
from headgate.record.fields import Kind
from tests.unit.pipeline.play import SITUATIONS, T0, S, message_batch, play

HEADER = BatchHeader("b1", "c", "b", "boot", T0 - 10 * S, T0)


def test_rows_of_every_kind_and_of_every_batch() -> None:
    tables = bronze_tables(message_batch(play(3)))
    counts = {rows["kind"][0].as_py(): rows.num_rows for _, rows in tables}
    assert counts == {"batch": 3, "subscription": 3 * len(SITUATIONS), "topic": 21, "limiter": 3}
    for name, rows in tables:
        assert name == "bronze_samples"
        assert rows.schema == table_arrow_schema(TABLES[name])
    rows = {r["kind"][0].as_py(): r for _, r in tables}["subscription"]
    assert rows["seq"].to_pylist() == [0] * 8 + [1] * 8 + [2] * 8
    assert rows["row"].to_pylist() == list(range(8)) * 3
    assert rows["appended"].to_pylist()[:2] == [500, 500]
    assert rows["evicted"].null_count == 0
    assert rows["msgs_in"].null_count == rows.num_rows


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


def test_foreign_messages_are_put_aside() -> None:
    (good,) = encode_window(HEADER, 0, {})
    tables = dict(bronze_tables(message_batch([b"hello", good, b""])))
    assert tables["bronze_samples"].num_rows == 1
    rows = tables["bronze_quarantine"].to_pylist()
    assert [row["value"] for row in rows] == [b"hello", b""]
    assert all("not a telemetry record" in row["reason"] for row in rows)
    assert rows[0]["message_id"] == "08011000"
    assert rows[0]["hour"] == 10
