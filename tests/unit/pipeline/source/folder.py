"""Folders with minutes of topics, for tests of reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from headgate.pipeline.store.delta_log import commit_append, commit_replace, ensure_table
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS, Table, hour_partition
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.play import T0

FIRST_HOUR = T0 // HOUR_NS


def minute_row(place: int, topic: str = "a", kind: str = "topic", **more: Any) -> dict[str, Any]:
    """A row of ``intervals``, so many minutes after the start of the first hour."""
    start_ns = T0 + place * MINUTE_NS
    return hour_partition(start_ns // HOUR_NS) | {
        "kind": kind,
        "minute": datetime.fromtimestamp(start_ns // 10**9, UTC),
        "cluster": "demo",
        "topic": topic,
        "from_ns": start_ns,
        "to_ns": start_ns + MINUTE_NS,
        "completeness": 1.0,
        "msgs_in": place,
        **more,
    }


def append(root: Path, rows: Sequence[dict[str, Any]], table: Table = INTERVALS) -> None:
    """Add rows in a commit."""
    ensure_table(str(root), table)
    commit_append(str(root), table, _files(root, rows, table), None)


def replace(
    root: Path, hours: Sequence[int], rows: Sequence[dict[str, Any]], table: Table = INTERVALS
) -> None:
    """Replace some hours, counted from the first, in a commit."""
    wanted = [FIRST_HOUR + hour for hour in hours]
    commit_replace(str(root), table, _files(root, rows, table), wanted, None)


def _files(root: Path, rows: Sequence[dict[str, Any]], table: Table) -> list[Any]:
    whole = pa.Table.from_pylist(list(rows), schema=table_arrow_schema(table))
    return list(write_tables(str(root), "0", [(table.name, whole)]))
