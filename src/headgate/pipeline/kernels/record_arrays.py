"""Validated Arrow arrays of the columns of one telemetry message.

Other clients may be able to write to the telemetry topic. So this module rejects values that no
broker writes: those that would overflow a later step, exhaust memory, or create partitions far in
the past or future.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.errors import CorruptionError
from headgate.base.names import NAME_CHARACTERS_MAX
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.record.codec import BatchHeader, PackedBatch, PackedColumn
from headgate.record.fields import COUNT_MAX, FIELDS, Field, FieldType, Kind, Nature

ARROW: Final = {
    FieldType.STRING: pa.string(),
    FieldType.INT64: pa.int64(),
    FieldType.DOUBLE: pa.float64(),
    FieldType.BOOL: pa.bool_(),
}
"""The Arrow type of each type of field."""

AHEAD_NS_MAX: Final = 24 * HOUR_NS
"""How far a window may end after the publish time of its message. Both come from the broker's
clock. There is no bound before it, because messages copied from another topic are published
later."""

EARLIEST_NS: Final = 946_684_800 * 10**9
"""The year 2000: no telemetry is older."""

TIME_NS_MAX: Final = 1 << 62
"""The year 2116."""

CUMULATIVE_MAX: Final = COUNT_MAX + 1
"""No count is as large. A sum over all cells of the account then fits 64 bits."""

TEXT_BYTES_MAX: Final = 32 << 20
"""Most text in one column of one message, repeated for all its rows."""

_UTF8_BYTES_MAX: Final = 4
"""Most bytes of one character."""

HEADER_BYTES_MAX: Final = _UTF8_BYTES_MAX * NAME_CHARACTERS_MAX
"""Most bytes of a text of the header, which each row of the message has."""

_NUMPY: Final = {
    FieldType.INT64: np.dtype(np.int64),
    FieldType.DOUBLE: np.dtype(np.float64),
    FieldType.BOOL: np.dtype(np.bool_),
}
_FIELDS: Final = {kind: {field.name: field for field in fields} for kind, fields in FIELDS.items()}

_ZERO_ROWS: Final = 8_192
_ZERO_BYTES: Final = pa.py_buffer(bytes(8 * _ZERO_ROWS))
_ZEROS: Final = {
    kind: pa.Array.from_buffers(ARROW[kind], _ZERO_ROWS, [None, _ZERO_BYTES]) for kind in _NUMPY
}
"""Most columns of most messages are zero in every row. These arrays give each its part."""


@dataclass(frozen=True, slots=True)
class MessageArrays:
    """One message as arrays; a column that it lacks is null in every row."""

    header: BatchHeader
    seq: int
    rows: dict[Kind, int]
    columns: dict[Kind, dict[str, pa.Array]]
    text_bytes: int
    """Of all columns of texts."""


def message_arrays(batch: PackedBatch, published_ns: int | None) -> MessageArrays:
    """The arrays of a message; ``published_ns`` is its publish time, or None if unknown.

    Raises:
        CorruptionError: it has a value that no broker writes; the text names it.
    """
    _check_header(batch, published_ns)
    strings = pa.array(batch.strings, pa.string())
    longest_bytes = _UTF8_BYTES_MAX * max(len(text or "") for text in batch.strings)
    columns: dict[Kind, dict[str, pa.Array]] = {}
    for kind, packed in batch.columns.items():
        count = batch.rows[kind]
        is_short = longest_bytes * count <= TEXT_BYTES_MAX
        columns[kind] = {
            name: _texts(kind, name, column, count, strings, is_short=is_short)
            if column.type is FieldType.STRING
            else _numbers(kind, _FIELDS[kind][name], column, count)
            for name, column in packed.items()
        }
    text_bytes = sum(
        columns[kind][name].nbytes
        for kind, packed in batch.columns.items()
        for name, column in packed.items()
        if column.type is FieldType.STRING
    )
    return MessageArrays(batch.header, batch.seq, batch.rows, columns, text_bytes)


def _check_header(batch: PackedBatch, published_ns: int | None) -> None:
    if batch.seq >= 1 << 63:
        raise CorruptionError(f"telemetry record: seq is {batch.seq}")
    start_ns, end_ns = batch.header.window_start_ns, batch.header.window_end_ns
    if not 0 <= start_ns < TIME_NS_MAX:
        raise CorruptionError(f"telemetry record: window_start_ns is {start_ns}")
    if not EARLIEST_NS < end_ns < TIME_NS_MAX:
        raise CorruptionError(f"telemetry record: window_end_ns is {end_ns}")
    if published_ns is not None and end_ns > published_ns + AHEAD_NS_MAX:
        raise CorruptionError(
            f"telemetry record: window_end_ns is {end_ns}; up to a day after the publish time, "
            f"{published_ns}, is allowed"
        )
    count = 1 + sum(batch.rows.values())
    for name in ("source", "cluster", "broker", "boot_id"):
        size = len(getattr(batch.header, name).encode())
        if size > HEADER_BYTES_MAX or size * count > TEXT_BYTES_MAX:
            raise CorruptionError(f"telemetry record: {name} takes {size} bytes in {count} rows")


def _texts(
    kind: Kind, name: str, column: PackedColumn, count: int, strings: pa.Array, *, is_short: bool
) -> pa.Array:
    """``is_short``: so many rows of any text of the message are within the bound."""
    indexes = np.asarray(column.values, dtype=np.int64)
    if indexes.size and int(indexes.max()) >= len(strings):
        raise CorruptionError("telemetry record: a string index is out of range")
    found = strings.take(pa.array(indexes))
    if not is_short:
        times = count if len(found) == 1 else 1
        size = (pc.sum(pc.binary_length(found)).as_py() or 0) * times
        if size > TEXT_BYTES_MAX:
            raise CorruptionError(
                f"telemetry record: {kind.value}.{name} takes {size} bytes in {count} rows"
            )
    return pa.repeat(found[0], count) if len(found) == 1 else found


def _numbers(kind: Kind, field: Field, column: PackedColumn, count: int) -> pa.Array:
    if not column.values and not column.nulls and count <= _ZERO_ROWS:
        return _ZEROS[field.type].slice(0, count)
    values = np.asarray(column.values, dtype=_NUMPY[field.type])
    if wrong := _implausible(field, values):
        raise CorruptionError(f"telemetry record: {kind.value}.{field.name} is {wrong}")
    if len(values) != count:
        values = np.full(count, values[0] if len(values) else 0, dtype=values.dtype)
    return pa.array(values, mask=_mask(column.nulls, count))


def _implausible(field: Field, values: npt.NDArray[Any]) -> str:
    """The first impossible value as text; empty if there is none."""
    if field.type is FieldType.DOUBLE:
        wrong = ~np.isfinite(values)
    elif field.type is FieldType.INT64 and field.nature in (Nature.CUMULATIVE, Nature.SPAN):
        limit = CUMULATIVE_MAX if field.nature is Nature.CUMULATIVE else TIME_NS_MAX
        wrong = (values < 0) | (values >= limit)
    else:
        return ""
    return str(values[wrong][0]) if wrong.any() else ""


def _mask(nulls: bytes, count: int) -> npt.NDArray[np.bool_] | None:
    """Whether each row is null; None if none is."""
    if not nulls:
        return None
    bits = np.unpackbits(np.frombuffer(nulls, dtype=np.uint8), bitorder="little")[:count]
    mask = np.zeros(count, dtype=np.bool_)
    mask[: len(bits)] = bits.astype(np.bool_)
    return mask
