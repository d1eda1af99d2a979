"""A table of an earlier version of the pipeline, without newer columns."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import Table


def old_table(root: Path, table: Table, without: Collection[str], rows: pa.Table) -> DeltaTable:
    """Create it without some columns and append rows, whose values there are left out."""
    path = root / table.name
    schema = table_arrow_schema(table)
    short = pa.schema([field for field in schema if field.name not in without])
    DeltaTable.create(
        path,
        short,
        partition_by=list(table.partition_by),
        name=table.name,
        configuration={"headgate.layout": "1"},
        raise_if_key_not_exists=False,
    )
    write_deltalake(path, rows.select(short.names), mode="append")
    return DeltaTable(path)
