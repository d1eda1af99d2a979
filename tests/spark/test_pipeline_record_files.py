"""The job over a folder of record files: each once, also after a kill between two commits."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.options import AttributeOptions, SourceOptions
from headgate.pipeline.record_file_ingest import ingest_record_files
from headgate.pipeline.record_files.decoding import TASK_COLUMN
from headgate.pipeline.record_files.folder import RecordFilesTask
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.store.delta_writer import RECORDS, FilesWritten, TablesWriter
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.codec import decode_packed
from headgate.record.frames import framed
from tests.spark.telemetry_topic import computing, rows_of
from tests.unit.pipeline.play import SITUATIONS, play
from tests.unit.pipeline.record_files.test_decoding import T0_MS, write_file


def write_played(folder: Path, messages: list[bytes]) -> None:
    """Each message as a file of its window."""
    folder.mkdir(parents=True, exist_ok=True)
    for message in messages:
        end_ms = decode_packed(message).header.window_end_ns // 10**6
        (folder / f"{end_ms}.records").write_bytes(framed(message))


def attribute(out: Path, folder: Path) -> tuple[list[dict[str, Any]], str]:
    answer, progress = io.StringIO(), io.StringIO()
    asked = AttributeOptions(SourceOptions(str(out), files=str(folder)), format="json")
    with computing(INTERVALS, ATTRIBUTION):
        jobs.run_attribute(asked, answer, progress)
    return json.loads(answer.getvalue()), progress.getvalue()


@pytest.mark.usefixtures("spark")
def test_files_are_judged_as_a_topic_is(tmp_path: Path) -> None:
    messages, folder, out = play(50), tmp_path / "records", tmp_path / "tables"
    write_played(folder / "prod", messages[:30])
    rows, said = attribute(out, folder)
    assert "30 messages" in said
    write_played(folder / "prod", messages[30:])
    (folder / "prod" / "notes.txt").write_text("mine")
    rows, said = attribute(out, folder)
    assert "50 messages" in said
    assert "prod: 1 of the files are not read" in said
    wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
    assert {(row["topic"], row["subscription"]): row["verdict"] for row in rows} == wanted
    assert {row["seconds"] for row in rows} == {50.0}

    versions = {table: DeltaTable(out / table).version() for table in TABLES}
    assert attribute(out, folder)[0] == rows
    assert versions == {table: DeltaTable(out / table).version() for table in TABLES}


def test_a_killed_run_neither_loses_nor_duplicates_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, out = tmp_path / "prod", tmp_path / "tables"
    folder.mkdir()
    times = [write_file(folder, step, events=1) for step in range(3)]
    for table in TABLES.values():
        ensure_table(str(out), table)
    task = RecordFilesTask("prod", str(folder), times, {})
    options = {
        "root": str(out),
        "table": RECORDS,
        "app_id": "files:prod",
        "app_version": str(times[-1]),
    }
    writer = TablesWriter(options)
    batch = pa.RecordBatch.from_pydict({TASK_COLUMN: [task.to_json()]})
    written = writer.write(iter([batch]))
    assert isinstance(written, FilesWritten)
    first = tuple(file for file in written.files if file.table == "bronze_events")
    writer.commit([FilesWritten(first)])  # the kill comes before the commit of the samples
    assert rows_of(out, "bronze_events").num_rows == 3
    assert rows_of(out, "bronze_samples").num_rows == 0

    write_file(folder, 3, events=1)
    write_file(folder, 4, events=1, cut=1)
    for _ in range(2):
        assert ingest_record_files(spark, str(folder), str(out)) == []
        # Of each whole file a row of kind batch and one of its subscription.
        assert sorted(rows_of(out, "bronze_samples")["seq"].to_pylist()) == [0, 0, 1, 1, 2, 2, 3, 3]
        assert sorted(rows_of(out, "bronze_events")["seq"].to_pylist()) == [0, 1, 2, 3]
        assert rows_of(out, "bronze_quarantine")["message_id"].to_pylist() == [
            f"{T0_MS + 4 * 60_000}.records"
        ]


def test_a_folder_without_records_is_refused_before_spark(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no records"):
        attribute(tmp_path / "tables", tmp_path / "empty")
    assert not (tmp_path / "tables").exists()
