"""The tables' columns as Arrow types; no Spark, so that kernels run without it."""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow as pa

from headgate.pipeline.tables import ColumnType, Table, TableColumn

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""Microseconds, UTC: the only timestamp type that Spark takes from Python."""

_ARROW: Final = {
    ColumnType.STRING: pa.string(),
    ColumnType.LONG: pa.int64(),
    ColumnType.INT: pa.int32(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.TIMESTAMP: TIMESTAMP,
    ColumnType.DATE: pa.date32(),
    ColumnType.BINARY: pa.binary(),
}


def arrow_schema(columns: tuple[TableColumn, ...]) -> pa.Schema:
    """The Arrow schema of some columns."""
    return pa.schema([pa.field(c.name, _ARROW[c.type]) for c in columns])


@cache
def table_arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a whole table, partition columns included."""
    return arrow_schema(table.columns)


def conform(columns: dict[str, pa.Array], schema: pa.Schema, row_count: int) -> pa.Table:
    """A table of ``schema`` from the columns there are; the others are null."""
    return pa.table(
        [
            columns[field.name] if field.name in columns else pa.nulls(row_count, field.type)
            for field in schema
        ],
        schema=schema,
    )
