"""Traps of Delta tables without Delta's own writer, all met in practice, each with what avoids it.

Those that need a Spark session are in tests/spark/test_pipeline_store.py.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from headgate.base.errors import InputError
from headgate.pipeline.source.data_source import HeadgateTables
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    ensure_table,
    table_files,
)
from headgate.pipeline.store.folder import checkpoint_id
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.parquet_files import FileAdded, write_tables
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.old_folder import old_table
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files


def adds(written: list[FileAdded]) -> list[AddAction]:
    return [
        AddAction(f.path, f.size_bytes, dict(f.partition), f.modified_ms, True, f.statistics)
        for f in written
    ]


def commit_bare(
    delta: DeltaTable, actions: list[AddAction | RemoveAction], *transactions: Transaction
) -> None:
    """A commit by delta-rs alone."""
    delta.create_write_transaction(
        actions,
        mode="append",
        schema=delta.schema(),
        partition_by=delta.metadata().partition_columns,
        commit_properties=CommitProperties(app_transactions=list(transactions)),
    )


def test_trap_the_same_application_version_commits_twice_from_a_fresh_handle(
    tmp_path: Path,
) -> None:
    ensure_table(str(tmp_path), INTERVALS)
    for _ in range(2):
        fresh = DeltaTable(tmp_path / INTERVALS.name)
        commit_bare(fresh, adds(files(tmp_path, (10, 1))), Transaction("bare", 7))
    assert appended(tmp_path) == [1, 1]
    for _ in range(2):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 2)), AppTransaction("a", 7))
    assert appended(tmp_path) == [1, 1, 2]


def test_trap_an_append_with_an_added_column_does_not_add_the_column(tmp_path: Path) -> None:
    whole = table_arrow_schema(INTERVALS)
    rows = conform({}, whole, 0)
    old = old_table(tmp_path, INTERVALS, ["acked"], rows)
    old.create_write_transaction(
        adds(files(tmp_path, (10, 1))),
        mode="append",
        schema=whole,
        partition_by=list(INTERVALS.partition_by),
    )
    table = tmp_path / INTERVALS.name
    assert "acked" not in {field.name for field in DeltaTable(table).schema().fields}
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 2)), None)
    assert "acked" in {field.name for field in DeltaTable(table).schema().fields}
    assert DeltaTable(table).to_pyarrow_table()["acked"].to_pylist() == [None, None]


def test_trap_vacuum_skips_orphans(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), None)
    (orphan,) = files(tmp_path, (10, 2))
    bare = DeltaTable(tmp_path / INTERVALS.name)
    assert bare.vacuum(0, dry_run=True, enforce_retention_duration=False) == []
    assert vacuum(str(tmp_path), 0, True) == [f"{INTERVALS.name}/{orphan.path}"]


def test_trap_an_application_id_that_is_the_table_s_name_skips_all_after_a_lost_checkpoint(
    tmp_path: Path,
) -> None:
    """Batches of a new checkpoint count from 0 again, and have an id of their own."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, name in ((first, "1-1"), (second, "2-2")):
        folder.mkdir()
        (folder / "metadata").write_text(f'{{"id":"{name}"}}')
    named = AppTransaction(INTERVALS.name, 0)
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), named)
    assert not commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 2)), named)
    for folder, value in ((first, 3), (second, 4)):
        by_checkpoint = AppTransaction(checkpoint_id(str(folder)), 0)
        rows = files(tmp_path, (10, value))
        assert commit_append(str(tmp_path), INTERVALS, rows, by_checkpoint)
    assert appended(tmp_path) == [1, 3, 4]


def test_trap_a_stale_overwrite_against_a_concurrent_append_is_accepted(tmp_path: Path) -> None:
    """Rows of before come back to life beside their replacement; so no stale commit is repeated."""
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 1)), None)
    stale = DeltaTable(tmp_path / INTERVALS.name)
    (old,) = table_files(stale)
    remove = RemoveAction(
        path=old.path, data_change=True, deletion_timestamp=1, size=old.size_bytes,
        partition_values=dict(old.partition),
    )  # fmt: skip
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 2)), None)
    commit_bare(stale, [*adds(files(tmp_path, (10, 10))), remove])
    assert appended(tmp_path) == [2, 10]
    # The functions here load the table for each attempt.
    commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, 20)), [HOUR], None)
    assert appended(tmp_path) == [20]


HOLD = """
import sys
from headgate.pipeline.store.table_leases import fill_leases
with fill_leases(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    out = str(tmp_path / "tables")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match=f"process {holder.pid}"), fill_leases(out):
            pass
        # It is killed, not told to end: the leases go with the process.
        holder.kill()
        holder.wait()
        with fill_leases(out):
            assert Path(out, ".leases", INTERVALS.name).exists()


def test_trap_the_parameters_of_writer_have_the_names_that_spark_passes() -> None:
    assert list(inspect.signature(HeadgateTables.writer).parameters) == [
        "self", "schema", "overwrite",
    ]  # fmt: skip


def test_trap_overwriting_is_only_a_flag(tmp_path: Path) -> None:
    source = HeadgateTables({"root": str(tmp_path), "table": INTERVALS.name})
    with pytest.raises(InputError, match='takes mode\\("append"\\)'):
        source.writer(None, True)


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_trap_times_of_another_unit_are_stored_in_microseconds(unit: str, tmp_path: Path) -> None:
    schema = table_arrow_schema(INTERVALS)
    (written,) = files(tmp_path, (10, 1))
    rows = pq.ParquetFile(tmp_path / INTERVALS.name / written.path).read()
    for name, value in dict(written.partition).items():
        rows = rows.append_column(name, pa.array([value]).cast(schema.field(name).type))
    minutes = pa.array([1_763_719_200], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
    rows = rows.set_column(rows.schema.get_field_index("minute"), "minute", minutes)
    (again,) = write_tables(str(tmp_path), "0", [(INTERVALS.name, rows)])
    column = pq.ParquetFile(tmp_path / INTERVALS.name / again.path).schema_arrow.field("minute")
    assert column.type == pa.timestamp("us", "UTC")
