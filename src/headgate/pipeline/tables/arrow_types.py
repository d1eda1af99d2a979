"""Arrow schemas of the tables, for kernels and writers that run without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.pipeline.tables.columns import DAY_HOURS, HOUR_NS, ColumnType, Table, TableColumn

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
    ColumnType.DOUBLES: pa.list_(pa.float64()),
}


def arrow_schema(columns: tuple[TableColumn, ...]) -> pa.Schema:
    """The Arrow schema of some columns."""
    return pa.schema([pa.field(c.name, _ARROW[c.type]) for c in columns])


@cache
def table_arrow_schema(table: Table) -> pa.Schema:
    """The Arrow schema of a whole table, partition columns included."""
    return arrow_schema(table.columns)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema, with views and large types replaced by those in our Parquet files."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
            return pa.string()
        if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
            return pa.binary()
        return kind

    return pa.schema([pa.field(field.name, plain(field.type)) for field in schema])


def conform(columns: dict[str, pa.Array], schema: pa.Schema, row_count: int) -> pa.Table:
    """A table of ``schema`` from the given columns; the others are null."""
    return pa.table(
        [
            columns[field.name] if field.name in columns else pa.nulls(row_count, field.type)
            for field in schema
        ],
        schema=schema,
    )


def partition_columns(last_ns: npt.NDArray[np.int64]) -> dict[str, pa.Array]:
    """``date`` and ``hour`` of rows, from the last nanosecond of each."""
    hour = last_ns // HOUR_NS
    return {
        "date": pa.array((hour // DAY_HOURS).astype(np.int32)).cast(pa.date32()),
        "hour": pa.array((hour % DAY_HOURS).astype(np.int32)),
    }


def changes(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each row differs from the previous one in one of some columns; the first row does."""
    changed = np.zeros(table.num_rows, dtype=np.bool_)
    changed[:1] = True
    for name in names:
        column = table.column(name).combine_chunks()
        codes = pc.fill_null(column.dictionary_encode(null_encoding="encode").indices, -1)
        values = codes.to_numpy(zero_copy_only=False)
        changed[1:] |= values[1:] != values[:-1]
    return changed


CHUNK_ROWS: Final = 50_000
"""Rows that a kernel gets at once, unless one subject has more."""


def whole_subjects(
    batches: Iterable[pa.RecordBatch], subject: Sequence[str], chunk_rows: int = CHUNK_ROWS
) -> Iterator[pa.Table]:
    """Regroup sorted batches into tables that have all rows of each subject in them."""
    pending: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        pending.append(batch)
        rows += batch.num_rows
        if rows < chunk_rows:
            continue
        table = pa.Table.from_batches(pending)
        last = int(np.flatnonzero(changes(table, subject))[-1])
        if last > 0:
            yield table.slice(0, last)
        pending = table.slice(last).to_batches()
        rows = table.num_rows - last
    if rows:
        yield pa.Table.from_batches(pending)
