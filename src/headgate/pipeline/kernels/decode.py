"""From messages of the telemetry topic to rows of the bronze tables: Arrow in, Arrow out.

What is not a record that this version understands goes to ``bronze_quarantine`` with a reason;
it never stops the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import CorruptionError
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.bronze import (
    BATCH_KIND,
    BRONZE_EVENTS,
    BRONZE_QUARANTINE,
    BRONZE_SAMPLES,
    MEASURED,
)
from headgate.record.codec import Batch, UnknownVersionError, decode
from headgate.record.fields import FIELDS, FieldType, Kind

_ARROW: Final = {
    FieldType.STRING: pa.string(),
    FieldType.INT64: pa.int64(),
    FieldType.DOUBLE: pa.float64(),
    FieldType.BOOL: pa.bool_(),
}


def bronze_tables(messages: pa.RecordBatch) -> list[tuple[str, pa.Table]]:
    """Decode messages (columns ``value``, ``__topic``, ``__messageId``, ``__publishTime``).

    Returns (name of a bronze table, rows) pairs; rows of one kind are together.
    """
    decoded: list[Batch] = []
    refused: dict[int, str] = {}
    for place, value in enumerate(messages.column("value").to_pylist()):
        try:
            decoded.append(decode(value or b""))
        except (CorruptionError, UnknownVersionError) as error:
            refused[place] = str(error)
    tables: list[tuple[str, pa.Table]] = []
    if refused:
        tables.append((BRONZE_QUARANTINE.name, _quarantined(messages, refused)))
    if decoded:
        tables.append((BRONZE_SAMPLES.name, _samples(decoded, None)))
    for kind in FIELDS:
        some = [batch for batch in decoded if batch.rows.get(kind)]
        if some and kind is Kind.EVENT:
            tables.append((BRONZE_EVENTS.name, _events(some)))
        elif some:
            tables.append((BRONZE_SAMPLES.name, _samples(some, kind)))
    return tables


def _quarantined(messages: pa.RecordBatch, refused: dict[int, str]) -> pa.Table:
    rows = messages.take(pa.array(list(refused)))
    published_us = pc.fill_null(rows.column("__publishTime").cast(pa.int64()), 0)
    columns = {
        **partition_columns(published_us.to_numpy() * 1_000),
        "message_topic": rows.column("__topic"),
        "message_id": pa.array(
            [id_ and id_.hex() for id_ in rows.column("__messageId").to_pylist()], pa.string()
        ),
        "publish_time": rows.column("__publishTime").cast(TIMESTAMP),
        "reason": pa.array(list(refused.values()), pa.string()),
        "value": rows.column("value"),
    }
    return conform(columns, table_arrow_schema(BRONZE_QUARANTINE), len(refused))


def _samples(batches: Sequence[Batch], kind: Kind | None) -> pa.Table:
    """Rows of one kind; without a kind, one row for each message."""
    columns, row_count = _columns(batches, kind)
    name = BATCH_KIND if kind is None else kind.value
    columns["kind"] = pa.repeat(pa.scalar(name, pa.string()), row_count)
    return conform(columns, table_arrow_schema(BRONZE_SAMPLES), row_count)


def _events(batches: Sequence[Batch]) -> pa.Table:
    columns, row_count = _columns(batches, Kind.EVENT)
    if "time_ns" in columns:
        microseconds = pc.divide(columns["time_ns"], pa.scalar(1_000, pa.int64()))
        columns["time"] = microseconds.cast(TIMESTAMP)
    return conform(columns, table_arrow_schema(BRONZE_EVENTS), row_count)


def _columns(batches: Sequence[Batch], kind: Kind | None) -> tuple[dict[str, pa.Array], int]:
    counts = [1 if kind is None else batch.rows[kind] for batch in batches]
    columns = _header_columns(batches, counts)
    if kind is not None:
        for field in FIELDS[kind]:
            if any(field.name in batch.columns[kind] for batch in batches):
                values: list[Any] = []
                for batch, count in zip(batches, counts, strict=True):
                    values += batch.columns[kind].get(field.name) or [None] * count
                columns[field.name] = pa.array(values, _ARROW[field.type])
    return columns, sum(counts)


def _header_columns(batches: Sequence[Batch], counts: Sequence[int]) -> dict[str, pa.Array]:
    place = pa.array(np.repeat(np.arange(len(batches)), counts))

    def column(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind).take(place)

    headers = [batch.header for batch in batches]
    ends = np.array([header.window_end_ns for header in headers], dtype=np.int64)
    ends_of_rows = ends[place.to_numpy()]
    return {
        **partition_columns(ends_of_rows - 1),
        "source": column([header.source for header in headers], pa.string()),
        "cluster": column([header.cluster for header in headers], pa.string()),
        "broker": column([header.broker for header in headers], pa.string()),
        "boot_id": column([header.boot_id for header in headers], pa.string()),
        "seq": column([batch.seq for batch in batches], pa.int64()),
        "window_start_ns": column([header.window_start_ns for header in headers], pa.int64()),
        "window_end_ns": pa.array(ends_of_rows),
        "window_end": pa.array(ends_of_rows // 1_000).cast(TIMESTAMP),
        "clock_step": column([header.clock_step for header in headers], pa.bool_()),
        "evidence": pa.repeat(pa.scalar(MEASURED, pa.string()), len(ends_of_rows)),
        "row": pa.array(np.concatenate([np.arange(n, dtype=np.int32) for n in counts])),
    }
