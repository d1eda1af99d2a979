"""Rows of the bronze tables from messages of the telemetry topic.

A message that this version cannot decode becomes a row of ``bronze_quarantine`` with a reason. It
never stops the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import CorruptionError
from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.pipeline.kernels.record_arrays import (
    ARROW,
    EARLIEST_NS,
    TIME_NS_MAX,
    MessageArrays,
    message_arrays,
)
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
)
from headgate.record.codec import UnknownVersionError, decode_packed
from headgate.record.fields import FIELDS, Kind

ROWS_DECODED_MAX: Final = 20_000
"""Rows that are buffered before they are yielded; the last message may exceed it."""

TEXT_BYTES_DECODED_MAX: Final = 128 << 20
"""Bytes of texts that are buffered before rows are yielded; the last message may exceed it."""

TEXT_BYTES_JOINED_MAX: Final = 256 << 20
"""Most bytes of a text column that are copied into one array."""


def bronze_tables(messages: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
    """Decode messages (columns ``value``, ``__topic``, ``__messageId``, ``__publishTime``).

    Yields pairs of a bronze table's name and rows, as soon as :data:`ROWS_DECODED_MAX` rows are
    decoded, or :data:`TEXT_BYTES_DECODED_MAX`. A pair has rows of one kind.
    """
    decoded: list[MessageArrays] = []
    refused: dict[int, str] = {}
    row_count = text_bytes = 0
    values = messages.column("value")
    published_us = messages.column("__publishTime").cast(pa.int64())
    for place in range(messages.num_rows):
        at_us = published_us[place].as_py()
        try:
            packed = decode_packed(values[place].as_py() or b"")
            message = message_arrays(packed, None if at_us is None else at_us * 1_000)
        except (CorruptionError, UnknownVersionError) as error:
            refused[place] = str(error)
            continue
        decoded.append(message)
        row_count += 1 + sum(message.rows.values())
        text_bytes += message.text_bytes
        if row_count >= ROWS_DECODED_MAX or text_bytes >= TEXT_BYTES_DECODED_MAX:
            yield from _tables(decoded)
            decoded, row_count, text_bytes = [], 0, 0
    if refused:
        yield BRONZE_QUARANTINE.name, _quarantined(messages, refused)
    yield from _tables(decoded)


def _tables(decoded: Sequence[MessageArrays]) -> Iterator[tuple[str, pa.Table]]:
    if decoded:
        yield BRONZE_SAMPLES.name, _samples(decoded, None)
    for kind in FIELDS:
        some = [message for message in decoded if message.rows.get(kind)]
        if some and kind is Kind.EVENT:
            yield BRONZE_EVENTS.name, _events(some)
        elif some:
            yield BRONZE_SAMPLES.name, _samples(some, kind)


def _quarantined(messages: pa.RecordBatch, refused: dict[int, str]) -> pa.Table:
    rows = messages.take(pa.array(list(refused)))
    published_us = pc.fill_null(rows.column("__publishTime").cast(pa.int64()), 0).to_numpy()
    # The publish time may be wrong, too: any client can write to the topic.
    is_sane = (published_us > EARLIEST_NS // 1_000) & (published_us < TIME_NS_MAX // 1_000)
    columns = {
        **partition_columns(np.where(is_sane, published_us, 0) * 1_000),
        "message_topic": rows.column("__topic"),
        "message_id": pa.array(
            [id_ and id_.hex() for id_ in rows.column("__messageId").to_pylist()], pa.string()
        ),
        "publish_time": rows.column("__publishTime").cast(TIMESTAMP),
        "reason": pa.array(list(refused.values()), pa.string()),
        "value": rows.column("value"),
    }
    return conform(columns, table_arrow_schema(BRONZE_QUARANTINE), len(refused))


def _samples(batches: Sequence[MessageArrays], kind: Kind | None) -> pa.Table:
    """Rows of one kind; if it is None, one row for each message."""
    columns, row_count = _columns(batches, kind)
    name = BATCH_KIND if kind is None else kind.value
    columns["kind"] = pa.repeat(pa.scalar(name, pa.string()), row_count)
    return conform(columns, table_arrow_schema(BRONZE_SAMPLES), row_count)


def _events(batches: Sequence[MessageArrays]) -> pa.Table:
    columns, row_count = _columns(batches, Kind.EVENT)
    if "time_ns" in columns:
        microseconds = pc.divide(columns["time_ns"], pa.scalar(1_000, pa.int64()))
        columns["time"] = microseconds.cast(TIMESTAMP)
    return conform(columns, table_arrow_schema(BRONZE_EVENTS), row_count)


def _columns(
    batches: Sequence[MessageArrays], kind: Kind | None
) -> tuple[dict[str, pa.Array], int]:
    counts = [1 if kind is None else batch.rows[kind] for batch in batches]
    columns = _header_columns(batches, counts)
    if kind is not None:
        for field in FIELDS[kind]:
            found = [batch.columns[kind].get(field.name) for batch in batches]
            if any(array is not None for array in found):
                columns[field.name] = _joined(
                    [
                        pa.nulls(count, ARROW[field.type]) if array is None else array
                        for array, count in zip(found, counts, strict=True)
                    ]
                )
    return columns, sum(counts)


def _joined(pieces: Sequence[pa.Array]) -> pa.Array | pa.ChunkedArray:
    """The arrays as one: a piece for each message would cost more in every later step.

    Very much text stays in pieces, because an array holds 2 GiB of it at most.
    """
    if len(pieces) == 1:
        return pieces[0]
    is_text = pa.types.is_string(pieces[0].type)
    if is_text and sum(piece.nbytes for piece in pieces) > TEXT_BYTES_JOINED_MAX:
        return pa.chunked_array(pieces)
    return pa.concat_arrays(pieces)


def _header_columns(batches: Sequence[MessageArrays], counts: Sequence[int]) -> dict[str, pa.Array]:
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
        "evidence": column(
            [INFERRED if header.is_inferred else MEASURED for header in headers], pa.string()
        ),
        "row": pa.array(np.concatenate([np.arange(n, dtype=np.int32) for n in counts])),
    }
