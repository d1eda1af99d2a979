"""A folder of tables for housekeeping."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import (
    commit_append,
)
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.test_delta_log import files


def progress() -> Progress:
    return Progress(io.StringIO())


def opened(root: Path, table: Table = INTERVALS) -> DeltaTable:
    return DeltaTable(root / table.name)


def log_names(root: Path) -> list[str]:
    return sorted(file.name for file in (root / INTERVALS.name / "_delta_log").iterdir())


def bronze_rows(root: Path) -> pa.Table:
    rows = opened(root, BRONZE_SAMPLES).to_pyarrow_table()
    keys = ("kind", "source", "boot_id", "seq", "row")
    return rows.sort_by([(name, "ascending") for name in keys])


def fill(root: Path, count: int) -> None:
    """So many commits with one row each, in one partition."""
    for i in range(count):
        commit_append(str(root), INTERVALS, files(root, (10, i)), None)
