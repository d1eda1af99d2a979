"""Rows of the bronze tables from files of records, and from what is damaged in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from headgate.pipeline.record_files.decoding import TASK_COLUMN, record_tables, task_tables
from headgate.pipeline.record_files.folder import RecordFilesTask, file_name
from headgate.record.codec import BatchHeader, encode_window
from headgate.record.fields import Kind
from headgate.record.frames import framed

T0_MS = 1_763_719_260_000
STEP_MS = 60_000


def write_file(folder: Path, step: int, *, events: int = 0, cut: int = 0) -> int:
    """A file of one window with a subscription; the instant of its end."""
    end_ms = T0_MS + step * STEP_MS
    header = BatchHeader(
        "agent:prod", "prod", "agent", "boot-1", (end_ms - STEP_MS) * 10**6, end_ms * 10**6,
        is_inferred=True,
    )  # fmt: skip
    tables: dict[Kind, dict[str, list[object]]] = {
        Kind.SUBSCRIPTION: {"topic": ["persistent://a/b/c"], "subscription": ["s"], "acked": [step]}
    }
    if events:
        tables[Kind.EVENT] = {"event": ["eviction"] * events, "time_ns": [end_ms * 10**6] * events}
    data = b"".join(framed(each) for each in encode_window(header, step, tables))  # type: ignore[arg-type]
    (folder / file_name(end_ms)).write_bytes(data[: len(data) - cut])
    return end_ms


def test_rows_of_files_are_inferred(tmp_path: Path) -> None:
    times = [write_file(tmp_path, step) for step in range(2)]
    task = RecordFilesTask("prod", str(tmp_path), times, {})
    batch = pa.RecordBatch.from_pydict({TASK_COLUMN: [task.to_json()]})
    rows = [row for name, table in record_tables(batch) for row in table.to_pylist()]
    assert {row["evidence"] for row in rows} == {"inferred"}
    assert [(row["kind"], row["seq"], row["acked"]) for row in rows] == [
        ("batch", 0, None), ("subscription", 0, 0), ("batch", 1, None), ("subscription", 1, 1),
    ]  # fmt: skip


def test_a_table_gets_no_rows_that_it_has(tmp_path: Path) -> None:
    times = [write_file(tmp_path, step, events=2) for step in range(3)]
    task = RecordFilesTask(
        "prod", str(tmp_path), times, {"bronze_samples": times[0], "bronze_events": times[1]}
    )
    rows = [(name, row["seq"]) for name, table in task_tables(task) for row in table.to_pylist()]
    assert [seq for name, seq in rows if name == "bronze_samples"] == [1, 1, 2, 2]
    assert [seq for name, seq in rows if name == "bronze_events"] == [2, 2]


def test_what_is_damaged_is_quarantined_and_the_rest_is_read(tmp_path: Path) -> None:
    times = [write_file(tmp_path, 0), write_file(tmp_path, 1, cut=3), write_file(tmp_path, 2)]
    tables = list(task_tables(RecordFilesTask("prod", str(tmp_path), times, {})))
    samples = [
        row["seq"]
        for name, table in tables
        if name == "bronze_samples"
        for row in table.to_pylist()
        if row["kind"] == "batch"
    ]
    assert samples == [0, 2]
    (row,) = [
        row for name, table in tables if name == "bronze_quarantine" for row in table.to_pylist()
    ]
    assert (row["message_topic"], row["message_id"]) == ("files:prod", file_name(times[1]))
    assert row["reason"] == "the file ends within the record at byte 0"
