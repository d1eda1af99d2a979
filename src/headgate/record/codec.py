"""Encodes rows as :class:`SampleBatch` bytes and decodes them.

Rows are columns throughout: the caller passes one list for each field, so a broker with ten
thousand subscriptions builds no object per row. Null is ``None``; an absent field is null in every
row. A window that exceeds one message is split by rows; every message has the whole header and its
own sequence number. Layout: ``proto/headgate_record.proto``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import DecodeError

from headgate.base.errors import CorruptionError, HeadgateError, InputError
from headgate.base.sliced import Sliced, at_once
from headgate.record._generated import headgate_record_pb2 as _pb2
from headgate.record.fields import (
    FIELDS,
    MAJOR_VERSION,
    MEASURED_VERSION,
    MESSAGE_BYTES_MAX,
    FieldType,
    Kind,
)

Value = str | int | float | bool | None
Columns = Mapping[str, Sequence[Value]]
"""One value per row, by field name; all sequences have the same length."""

PROPERTY_RECORD: Final = "headgate.record"
PROPERTY_SOURCE: Final = "source"
PROPERTY_BOOT: Final = "boot"
PROPERTY_SEQ: Final = "seq"

_SampleBatch: Final[Any] = vars(_pb2)["SampleBatch"]
ROWS_MAX: Final = MESSAGE_BYTES_MAX // 8
"""Most rows of one message, of all kinds together. It bounds the memory of a reader, because a
column of equal values takes no bytes per row; other rows take more than eight bytes."""
COLUMNS_PER_YIELD: Final = 16
"""Columns that are encoded between two yields: for 256 rows up to half a millisecond."""

_NULL_BITS: Final = bytes([1, 2, 4, 8, 16, 32, 64, 128])


class UnknownVersionError(HeadgateError):
    """A record of a higher major version, which a reader must quarantine."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of every message of a window."""

    source: str
    """The id of the telemetry stream, the same over restarts."""
    cluster: str
    broker: str
    boot_id: str
    """The id of the broker's start."""
    window_start_ns: int
    window_end_ns: int
    clock_step: bool = False
    """The wall clock stepped by more than 100 ms inside the window."""
    is_inferred: bool = False
    """Whether the account of time was inferred from looks at a cluster, and not measured."""

    @property
    def major_version(self) -> int:
        """The version of the window's messages."""
        return MAJOR_VERSION if self.is_inferred else MEASURED_VERSION


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """One encoded column."""

    type: FieldType
    values: Sequence[Any]
    """One value per row; or one value for all rows; or none if all rows are zero. In a column of
    strings they are indexes into the message's ``strings``, and none means no rows."""
    nulls: bytes
    """One bit per row, least significant first, set if the value is null. May be shorter."""


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """One message with encoded columns, for readers that build arrays from them."""

    header: BatchHeader
    seq: int
    strings: list[str | None]
    """The values of string columns; the first is null. The reader must check the indexes."""
    rows: dict[Kind, int]
    """Rows of each kind in the message."""
    columns: dict[Kind, dict[str, PackedColumn]]
    """The columns of the message, by kind; an absent field is null."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One decoded message."""

    header: BatchHeader
    seq: int
    rows: dict[Kind, int]
    """Rows of each kind in the message."""
    columns: dict[Kind, dict[str, list[Any]]]
    """The columns of the message, by kind; an absent field is null."""


def message_properties(header: BatchHeader, seq: int) -> dict[str, str]:
    """The Pulsar message properties of an encoded batch."""
    return {
        PROPERTY_RECORD: str(header.major_version),
        PROPERTY_SOURCE: header.source,
        PROPERTY_BOOT: header.boot_id,
        PROPERTY_SEQ: str(seq),
    }


def encode_window(
    header: BatchHeader, first_seq: int, tables: Mapping[Kind, Columns]
) -> list[bytes]:
    """Encode one window; message ``i`` has the sequence number ``first_seq + i``.

    A window without rows gives one message, which means that nothing changed.

    Raises:
        InputError: a column is unknown, columns differ in length, or one row exceeds a message.
    """
    return at_once(encode_in_steps(header, first_seq, tables))


def encode_in_steps(
    header: BatchHeader, first_seq: int, tables: Mapping[Kind, Columns]
) -> Sliced[list[bytes]]:
    """:func:`encode_window`, which yields after every few columns."""
    counts = {kind: _row_count(kind, columns) for kind, columns in tables.items()}
    parts_of_all = [(kind, tables[kind], 0, n) for kind, n in counts.items()]
    whole = yield from _encode(header, first_seq, parts_of_all)
    if len(whole) <= MESSAGE_BYTES_MAX and sum(counts.values()) <= ROWS_MAX:
        return [whole]
    # A few more parts than the size needs, because each repeats the header and the names.
    most_rows = max(counts.values())
    parts = max(len(whole) * 9 // (MESSAGE_BYTES_MAX * 8) + 1, -(-most_rows // ROWS_MAX))
    messages: list[bytes] = []
    for kind, count in counts.items():
        rows = max(1, -(-count // parts))
        for first in range(0, count, rows):
            last = min(first + rows, count)
            messages += yield from _encode_rows(
                header, first_seq + len(messages), kind, tables[kind], first, last
            )
    return messages


def _encode_rows(
    header: BatchHeader, seq: int, kind: Kind, columns: Columns, first: int, last: int
) -> Sliced[list[bytes]]:
    data = yield from _encode(header, seq, [(kind, columns, first, last)])
    if len(data) <= MESSAGE_BYTES_MAX:
        return [data]
    if last - first == 1:
        raise InputError(
            f"one {kind.value} row takes {len(data)} bytes; at most {MESSAGE_BYTES_MAX} are allowed"
        )
    middle = (first + last) // 2
    left = yield from _encode_rows(header, seq, kind, columns, first, middle)
    right = yield from _encode_rows(header, seq + len(left), kind, columns, middle, last)
    return left + right


def _row_count(kind: Kind, columns: Columns) -> int:
    known = _FIELD_TYPES[kind]
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise InputError(f"{kind.value} rows have no field {unknown[0]!r}")
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise InputError(f"columns of {kind.value} rows differ in length: {sorted(lengths)}")
    return lengths.pop() if lengths else 0


def _encode(
    header: BatchHeader, seq: int, parts: Sequence[tuple[Kind, Columns, int, int]]
) -> Sliced[bytes]:
    batch = _SampleBatch(
        major_version=header.major_version,
        source=header.source,
        cluster=header.cluster,
        broker=header.broker,
        boot_id=header.boot_id,
        seq=seq,
        window_start_ns=header.window_start_ns,
        window_end_ns=header.window_end_ns,
        clock_step=header.clock_step,
        inferred=header.is_inferred,
    )
    strings: dict[str | None, int] = {None: 0}
    for kind, columns, first, last in parts:
        if last == first:
            continue
        message = getattr(batch, kind.value)
        message.rows = last - first
        whole = first == 0
        for number, (name, values) in enumerate(columns.items(), start=1):
            part = values if whole and last == len(values) else values[first:last]
            _encode_column(getattr(message, name), _FIELD_TYPES[kind][name], part, strings)
            if number % COLUMNS_PER_YIELD == 0:
                yield
    batch.strings.extend(list(strings)[1:])
    data: bytes = batch.SerializeToString()
    return data


def _encode_column(
    column: Any, kind: FieldType, values: Sequence[Any], strings: dict[str | None, int]
) -> None:
    first = values[0]
    constant = values.count(first) == len(values)
    if constant and first is None:
        return
    if kind is FieldType.STRING:
        if constant:
            values = values[:1]
        # setdefault's default is evaluated before the insertion: exactly the next free index.
        column.indexes.extend([strings.setdefault(value, len(strings)) for value in values])
        return
    column.SetInParent()
    if constant:
        if first:
            column.values.append(first)
        return
    if None in values:
        bitmap = bytearray((len(values) + 7) // 8)
        for i, value in enumerate(values):
            if value is None:
                bitmap[i >> 3] |= 1 << (i & 7)
        column.nulls = bytes(bitmap)
        values = [0 if value is None else value for value in values]
        if not any(values):
            return
    column.values.extend(values)


def decode(data: bytes) -> Batch:
    """Decode one message.

    Raises:
        CorruptionError: the bytes are not a record.
        UnknownVersionError: the record has a higher major version.
    """
    packed = decode_packed(data)
    columns = {
        kind: {
            name: _unpacked(column, packed.rows[kind], packed.strings)
            for name, column in columns.items()
        }
        for kind, columns in packed.columns.items()
    }
    return Batch(packed.header, packed.seq, packed.rows, columns)


def decode_packed(data: bytes) -> PackedBatch:
    """Decode one message without its columns, which stay encoded.

    Raises:
        CorruptionError: the bytes are not a record.
        UnknownVersionError: the record has a higher major version.
    """
    batch = _SampleBatch()
    try:
        batch.ParseFromString(data)
    except DecodeError as error:
        raise CorruptionError(f"not a telemetry record: {error}") from error
    if batch.major_version > MAJOR_VERSION:
        raise UnknownVersionError(
            f"telemetry record of major version {batch.major_version}; "
            f"up to {MAJOR_VERSION} is understood"
        )
    if batch.major_version == 0 or batch.window_end_ns <= 0 or not batch.source:
        raise CorruptionError("not a telemetry record: version, window or source is missing")
    rows: dict[Kind, int] = {}
    columns: dict[Kind, dict[str, PackedColumn]] = {}
    for kind in FIELDS:
        if batch.HasField(kind.value):
            message = getattr(batch, kind.value)
            rows[kind] = message.rows
            if sum(rows.values()) > ROWS_MAX:
                raise CorruptionError(f"telemetry record: {sum(rows.values())} rows in one message")
            columns[kind] = _packed_columns(kind, message)
    header = BatchHeader(
        batch.source,
        batch.cluster,
        batch.broker,
        batch.boot_id,
        batch.window_start_ns,
        batch.window_end_ns,
        batch.clock_step,
        batch.inferred,
    )
    return PackedBatch(header, batch.seq, [None, *batch.strings], rows, columns)


def _packed_columns(kind: Kind, message: Any) -> dict[str, PackedColumn]:
    columns: dict[str, PackedColumn] = {}
    types = _FIELD_TYPES[kind]
    for descriptor, column in message.ListFields():
        name = descriptor.name
        field_type = types.get(name)
        if field_type is None:
            continue
        is_text = field_type is FieldType.STRING
        values = column.indexes if is_text else column.values
        allowed = (1, message.rows) if is_text and message.rows else (0, 1, message.rows)
        if len(values) not in allowed:
            raise CorruptionError(
                f"telemetry record: {kind.value}.{name} has {len(values)} values "
                f"for {message.rows} rows"
            )
        columns[name] = PackedColumn(field_type, values, b"" if is_text else column.nulls)
    return columns


_ZERO: Final[dict[FieldType, Value]] = {
    FieldType.INT64: 0,
    FieldType.DOUBLE: 0.0,
    FieldType.BOOL: False,
}


def _unpacked(column: PackedColumn, row_count: int, strings: list[str | None]) -> list[Any]:
    """The decoded values, one per row."""
    values: list[Any] = list(column.values)
    if column.type is FieldType.STRING:
        if max(values, default=0) >= len(strings):
            raise CorruptionError("telemetry record: a string index is out of range")
        values = [strings[index] for index in values]
    elif not values:
        values = [_ZERO[column.type]]
    if len(values) == 1:
        values = values * row_count
    nulls = column.nulls
    if nulls:
        for i in range(min(len(values), len(nulls) * 8)):
            if nulls[i >> 3] & _NULL_BITS[i & 7]:
                values[i] = None
    return values


_FIELD_TYPES: Final[dict[Kind, dict[str, FieldType]]] = {
    kind: {field.name: field.type for field in fields} for kind, fields in FIELDS.items()
}
