"""From messages of the telemetry topic to rows of the bronze tables: Arrow in, Arrow out.

What is not a record that this version understands goes to ``bronze_quarantine`` with a reason;
it never stops the job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import CorruptionError
from headgate.pipeline.arrow_types import TIMESTAMP, conform, table_arrow_schema
from headgate.pipeline.tables import (
    BATCH_KIND,
    BRONZE_EVENTS,
    BRONZE_QUARANTINE,
    BRONZE_SAMPLES,
    HOUR_NS,
)
from headgate.record.codec import Batch, UnknownVersionError, decode
from headgate.record.fields import FIELDS, FieldType, Kind

_ARROW: Final = {
    FieldType.STRING: pa.string(),
    FieldType.INT64: pa.int64(),
    FieldType.DOUBLE: pa.float64(),
    FieldType.BOOL: pa.bool_(),
}
_DAY_HOURS: Final = 24


def partition_columns(last_ns: int, row_count: int) -> dict[str, pa.Array]:
    """``date`` and ``hour`` of rows that end at ``last_ns`` (exclusive)."""
    hour = (last_ns - 1) // HOUR_NS
    return {
        "date": _repeat(hour // _DAY_HOURS, row_count, pa.int32()).cast(pa.date32()),
        "hour": _repeat(hour % _DAY_HOURS, row_count, pa.int32()),
    }


def _repeat(value: Any, row_count: int, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), row_count)


def bronze_tables(messages: Iterable[pa.RecordBatch]) -> dict[str, list[pa.Table]]:
    """Decode messages (columns ``value``, ``__topic``, ``__messageId``, ``__publishTime``).

    Returns the rows of each bronze table, in pieces of one message and kind.
    """
    tables: dict[str, list[pa.Table]] = {}
    for messages_batch in messages:
        rows = zip(
            *(messages_batch.column(name).to_pylist() for name in ("value", "__topic")),
            messages_batch.column("__messageId").to_pylist(),
            messages_batch.column("__publishTime").cast(pa.int64()).to_pylist(),
            strict=True,
        )
        for value, topic, message_id, publish_us in rows:
            try:
                batch = decode(value or b"")
            except (CorruptionError, UnknownVersionError) as error:
                row = _quarantined(value, topic, message_id, publish_us, str(error))
                tables.setdefault(BRONZE_QUARANTINE.name, []).append(row)
                continue
            for name, table in _batch_tables(batch):
                tables.setdefault(name, []).append(table)
    return tables


def _quarantined(
    value: bytes | None, topic: str | None, message_id: bytes | None, publish_us: int | None,
    reason: str,
) -> pa.Table:
    columns = {
        **partition_columns((publish_us or 0) * 1_000 + 1, 1),
        "message_topic": pa.array([topic], pa.string()),
        "message_id": pa.array([message_id.hex() if message_id else None], pa.string()),
        "publish_time": pa.array([publish_us], pa.int64()).cast(TIMESTAMP),
        "reason": pa.array([reason], pa.string()),
        "value": pa.array([value], pa.binary()),
    }
    return conform(columns, table_arrow_schema(BRONZE_QUARANTINE), 1)


def _batch_tables(batch: Batch) -> Iterable[tuple[str, pa.Table]]:
    samples = table_arrow_schema(BRONZE_SAMPLES)
    header = _header_columns(batch, 1)
    header["kind"] = _repeat(BATCH_KIND, 1, pa.string())
    yield BRONZE_SAMPLES.name, conform(header, samples, 1)
    for kind, row_count in batch.rows.items():
        if row_count == 0:
            continue
        columns = _header_columns(batch, row_count)
        types = {field.name: _ARROW[field.type] for field in FIELDS[kind]}
        for name, values in batch.columns[kind].items():
            columns[name] = pa.array(values, types[name])
        if kind is Kind.EVENT:
            if "time_ns" in columns:
                microseconds = pc.divide(columns["time_ns"], pa.scalar(1_000, pa.int64()))
                columns["time"] = microseconds.cast(TIMESTAMP)
            yield BRONZE_EVENTS.name, conform(columns, table_arrow_schema(BRONZE_EVENTS), row_count)
        else:
            columns["kind"] = _repeat(kind.value, row_count, pa.string())
            yield BRONZE_SAMPLES.name, conform(columns, samples, row_count)


def _header_columns(batch: Batch, row_count: int) -> dict[str, pa.Array]:
    header = batch.header
    texts = {
        "source": header.source, "cluster": header.cluster, "broker": header.broker,
        "boot_id": header.boot_id,
    }
    numbers = {
        "seq": batch.seq, "window_start_ns": header.window_start_ns,
        "window_end_ns": header.window_end_ns,
    }
    return {
        **partition_columns(header.window_end_ns, row_count),
        **{name: _repeat(text, row_count, pa.string()) for name, text in texts.items()},
        **{name: _repeat(number, row_count, pa.int64()) for name, number in numbers.items()},
        "row": pa.array(np.arange(row_count, dtype=np.int32)),
        "window_end": _repeat(header.window_end_ns // 1_000, row_count, pa.int64()).cast(TIMESTAMP),
        "clock_step": _repeat(header.clock_step, row_count, pa.bool_()),
    }
