"""The job over a folder of scrapes, in one run and in several."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.pipeline.scrape_ingest import ingest_scrapes
from headgate.pipeline.scrapes.decoding import TASK_COLUMN
from headgate.pipeline.scrapes.folder import broker_folders, file_name, scrape_tasks
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.store.delta_writer import SCRAPES, FilesWritten, TablesWriter
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from tests.spark.scrape_job import attribute_scrapes, fill_from_scrapes
from tests.spark.telemetry_topic import rows_of
from tests.unit.pipeline.scrapes.texts import SITUATIONS, STEP_S, T0_MS, write_scrapes


@pytest.mark.usefixtures("spark")
def test_situations_are_judged_as_built_in_one_run_or_two(tmp_path: Path) -> None:
    folder, out = tmp_path / "scrapes", tmp_path / "two"
    write_scrapes(folder / "b1", range(5), SITUATIONS[:5])
    write_scrapes(folder / "b2", [0], SITUATIONS[5:])
    rows, said = attribute_scrapes(out, folder)
    assert len(rows) == 5
    assert "6 messages" in said
    assert "b2 has one scrape: rows need a second one." in said
    write_scrapes(folder / "b1", range(5, 13), SITUATIONS[:5])
    write_scrapes(folder / "b2", range(1, 13), SITUATIONS[5:])
    (folder / "b2" / "notes.txt").write_text("mine")
    rows, said = attribute_scrapes(out, folder)
    assert {row["topic"].rpartition("/")[2]: row["verdict"] for row in rows} == {
        each.name: each.verdict for each in SITUATIONS
    }
    assert {row["seconds"] for row in rows} == {12 * STEP_S}
    assert "b2: 1 of the files could not be read" in said
    assert rows_of(out, "bronze_quarantine")["message_id"].to_pylist() == ["notes.txt"]

    # Also a scrape that comes late is told of at once, and once.
    late = file_name(T0_MS + 1_000 * STEP_S + 1)
    (folder / "b1" / late).write_text("")
    said = fill_from_scrapes(out, folder)
    assert "b1: 1 of the files could not be read" in said
    names = rows_of(out, "bronze_quarantine")["message_id"].to_pylist()
    assert sorted(names) == [late, "notes.txt"]

    versions = {table: DeltaTable(out / table).version() for table in TABLES}
    assert attribute_scrapes(out, folder)[0] == rows
    assert versions == {table: DeltaTable(out / table).version() for table in TABLES}
    (folder / "b1" / late).unlink()
    compared = (INTERVALS, ATTRIBUTION, QUOTA_USAGE)
    fill_from_scrapes(tmp_path / "one", folder, *compared)
    for table in compared:
        assert rows_of(tmp_path / "one", table.name) == rows_of(out, table.name)
    _compare_with_the_texts(folder / "b1", out)


def _compare_with_the_texts(folder: Path, out: Path) -> None:
    """An oracle that reads the files itself: what was published and how backlogs grew."""
    names = "pulsar_in_messages_total|pulsar_subscription_back_log"
    pattern = rf'^({names})\{{.*topic="([^"]+)".*\}} (.*)$'
    expected = f"""
        with lines as (
            select regexp_extract(filename, '(\\d+).prom', 1)::bigint as ms,
                   regexp_extract(line, '{pattern}', ['name', 'topic', 'value']) as found
            from (select filename, unnest(string_split(content, chr(10))) as line
                  from read_text('{folder}/*.prom'))
        )
        select found.topic, found.name,
               max(found.value::bigint) filter (ms = {T0_MS + 12_000 * STEP_S})
               - max(found.value::bigint) filter (ms = {T0_MS})
        from lines where found.name != '' group by all order by all
    """
    actual = """
        select topic, 'pulsar_in_messages_total', sum(msgs_in) from intervals
        where kind = 'topic' and broker = 'b1' group by all
        union all
        select topic, 'pulsar_subscription_back_log',
               arg_max(backlog_messages, minute) - arg_min(backlog_messages_start, minute)
        from intervals where kind = 'subscription' and broker = 'b1' group by all
        order by all
    """
    with duckdb.connect() as connection:
        connection.register("intervals", DeltaTable(out / "intervals").to_pyarrow_table())
        found = connection.execute(actual).fetchall()
        assert found == connection.execute(expected).fetchall()
    assert len(found) == 10


def test_a_killed_run_neither_loses_nor_duplicates_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder, out = tmp_path / "b1", tmp_path / "tables"
    write_scrapes(folder, range(4), SITUATIONS[:2])
    (folder / file_name(T0_MS + 15_000)).write_text("no scrape\n")
    for table in TABLES.values():
        ensure_table(str(out), table)
    _be_killed_between_two_commits(folder, out)
    assert rows_of(out, "bronze_quarantine").num_rows == 1
    assert rows_of(out, "bronze_samples").num_rows == 0

    write_scrapes(folder, range(4, 6), SITUATIONS[:2])
    for _ in range(2):
        ingest_scrapes(spark, str(folder), str(out))
        rows = rows_of(out, "bronze_samples")
        # Five scrapes, and two rows for each of four subjects between every two of them.
        assert rows.num_rows == 5 + 4 * 2 * 4
        assert (
            rows.group_by(["kind", "boot_id", "seq", "row"]).aggregate([]).num_rows == rows.num_rows
        )
        assert rows_of(out, "bronze_quarantine").num_rows == 1


def _be_killed_between_two_commits(folder: Path, out: Path) -> None:
    """What a run leaves that quarantined what it had to and then died."""
    (broker,) = broker_folders(str(folder))
    found = scrape_tasks(broker, None, (), 1)
    options = {"root": str(out), "table": SCRAPES, "app_id": "scrapes:b1"}
    writer = TablesWriter({**options, "app_version": str(found[-1].times_ms[-1])})
    batch = pa.record_batch({TASK_COLUMN: [task.to_json() for task in found]})
    written = writer.write(iter([batch]))
    assert isinstance(written, FilesWritten)
    assert {file.table for file in written.files} == {"bronze_quarantine", "bronze_samples"}
    first = tuple(file for file in written.files if file.table == "bronze_quarantine")
    writer.commit([FilesWritten(first)])


def test_a_folder_without_scrapes_is_refused_before_spark(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no scrapes"):
        attribute_scrapes(tmp_path / "tables", tmp_path / "empty")
    assert not (tmp_path / "tables").exists()
