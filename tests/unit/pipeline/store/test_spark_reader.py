"""Files are packed for tasks; their rows have the columns of the table."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.store.delta_log import TableFile, ensure_table, table_files
from headgate.pipeline.store.spark_reader import BATCH_ROWS, file_batches, pack_files
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.old_folder import old_table


def file(size_bytes: int, name: str) -> TableFile:
    return TableFile(name, size_bytes, {}, 1, None)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(1, 16))
def test_packs_hold_every_file_once_and_none_is_empty(sizes: list[int], packs_max: int) -> None:
    files = [file(size, f"{i}") for i, size in enumerate(sizes)]
    packs = pack_files(files, packs_max)
    assert len(packs) == min(packs_max, len(files))
    assert all(packs)
    assert sorted(path for pack in packs for path in pack) == sorted(f.path for f in files)


def test_packs_are_even() -> None:
    files = [file(100 << 20, "large"), *(file(10 << 20, f"{i}") for i in range(10))]
    assert pack_files(files, 2) == [["large"], [f"{i}" for i in range(10)]]
    assert pack_files([], 4) == []


def test_rows_have_exactly_the_table_s_columns(tmp_path: Path) -> None:
    """Of a file that an earlier version wrote, too; the partition stands in its path."""
    schema = table_arrow_schema(INTERVALS)
    count = BATCH_ROWS + 5
    columns = {
        "date": pa.array([date(2025, 11, 21)] * count),
        "hour": pa.array([10] * count, pa.int32()),
        "kind": pa.array(["subscription"] * count),
        "appended": pa.array(range(count)),
    }
    old_table(tmp_path, INTERVALS, ["acked"], conform(columns, schema, count))
    delta = ensure_table(str(tmp_path), INTERVALS)
    paths = [found.path for found in table_files(delta)]
    batches = list(file_batches(str(tmp_path), INTERVALS, paths))
    assert all(batch.schema.equals(schema) for batch in batches)
    assert max(batch.num_rows for batch in batches) <= BATCH_ROWS
    rows = pa.Table.from_batches(batches)
    assert rows["appended"].to_pylist() == list(range(count))
    assert rows["acked"].null_count == count
    assert rows.select(["date", "hour", "kind"]).slice(0, 1).to_pylist() == [
        {"date": date(2025, 11, 21), "hour": 10, "kind": "subscription"}
    ]


def test_only_the_columns_that_are_named_are_read(tmp_path: Path) -> None:
    table = conform(
        {"hour": pa.array([10], pa.int32()), "acked": pa.array([7])},
        table_arrow_schema(INTERVALS),
        1,
    )
    old_table(tmp_path, INTERVALS, ["appended"], table)
    delta = ensure_table(str(tmp_path), INTERVALS)
    paths = [found.path for found in table_files(delta)]
    (batch,) = file_batches(str(tmp_path), INTERVALS, paths, {"appended", "acked", "hour"})
    assert batch.schema.names == ["hour", "appended", "acked"]
    assert batch.to_pylist() == [{"hour": 10, "appended": None, "acked": 7}]
