"""The metadata in an entry, parsed at a cost that its size bounds, whatever a producer wrote.

Pulsar's ``MessageMetadata`` stands before the payload of an entry, and ``SingleMessageMetadata``
before each message of a batch. This module declares the fields that a reader needs, in two classes
for each. The *usual* class tells in one call whether only its few plain fields are there: its other
fields are one ``oneof``, and of those the parser keeps the last one. The *full* class has them all.

All texts are declared as bytes: producers send any bytes, and the parser refuses no UTF-8. A number
of an enumeration is declared as a number: the parser hides those that it does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol, cast

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from pyspark_pulsar.offsets import varint

PROPERTIES_MAX: Final = 100_000
"""Most properties of a message. One takes six bytes of a producer and 200 bytes of memory."""

_SIMPLE_BYTES: Final = 1 << 16
"""Metadata of at most this size is parsed without a look at it: 3 MB of memory at most."""
_SIMPLE_TAGS: Final = 1 << 14
"""So many bytes that may be the tag of a property, too."""

_NO_MESSAGE: Final = "the metadata is no valid protobuf message"
_INCOMPLETE: Final = "the metadata lacks a required field"

_PACKAGE: Final = "pyspark_pulsar"
_REST: Final = "rest"
_COUNT: Final = "num_messages_in_batch"
_OPTIONAL, _REQUIRED, _REPEATED = 1, 2, 3
_UINT64, _INT32, _BOOL, _MESSAGE, _BYTES, _UINT32 = 4, 5, 8, 11, 12, 13
"""Labels and types of ``FieldDescriptorProto``."""

_Field = tuple[int, str, int, int]
"""Number, name, type and label."""

_KEY_VALUE: Final[tuple[_Field, ...]] = (
    (1, "key", _BYTES, _REQUIRED),
    (2, "value", _BYTES, _REQUIRED),
)
_ENTRY: Final[tuple[_Field, ...]] = (
    (1, "producer_name", _BYTES, _REQUIRED),
    (2, "sequence_id", _UINT64, _REQUIRED),
    (3, "publish_time", _UINT64, _REQUIRED),
    (4, "properties", _MESSAGE, _REPEATED),
    (6, "partition_key", _BYTES, _OPTIONAL),
    (8, "compression", _INT32, _OPTIONAL),
    (9, "uncompressed_size", _UINT32, _OPTIONAL),
    (11, "num_messages_in_batch", _INT32, _OPTIONAL),
    (12, "event_time", _UINT64, _OPTIONAL),
    (13, "encryption_keys", _BYTES, _OPTIONAL),  # repeated: it matters only whether there is one
    (17, "partition_key_b64_encoded", _BOOL, _OPTIONAL),
    (20, "marker_type", _INT32, _OPTIONAL),
    (25, "null_value", _BOOL, _OPTIONAL),
    (26, "uuid", _BYTES, _OPTIONAL),
    (27, "num_chunks_from_msg", _INT32, _OPTIONAL),
    (28, "total_chunk_msg_size", _INT32, _OPTIONAL),
    (29, "chunk_id", _INT32, _OPTIONAL),
    (30, "null_partition_key", _BOOL, _OPTIONAL),
)
_SINGLE: Final[tuple[_Field, ...]] = (
    (1, "properties", _MESSAGE, _REPEATED),
    (2, "partition_key", _BYTES, _OPTIONAL),
    (3, "payload_size", _INT32, _REQUIRED),
    (4, "compacted_out", _BOOL, _OPTIONAL),
    (5, "event_time", _UINT64, _OPTIONAL),
    (6, "partition_key_b64_encoded", _BOOL, _OPTIONAL),
    (9, "null_value", _BOOL, _OPTIONAL),
    (10, "null_partition_key", _BOOL, _OPTIONAL),
)

_ALONE_MEANINGLESS: Final = frozenset(
    (
        "uncompressed_size",  # clients set it also without compression
        "partition_key_b64_encoded",
        "null_partition_key",
        "uuid",
        "total_chunk_msg_size",
        "chunk_id",
    )
)
"""Fields that a reader ignores unless another one is there, which the usual class declares."""


class PartError(ValueError):
    """A part of an entry is not what a correct producer sends. The text says which, and why."""


class _Parsed(Protocol):
    def HasField(self, name: str, /) -> bool: ...  # noqa: N802
    def IsInitialized(self) -> bool: ...  # noqa: N802
    def WhichOneof(self, name: str, /) -> str | None: ...  # noqa: N802


class UsualEntry(_Parsed, Protocol):
    """The plain fields of ``MessageMetadata``."""

    producer_name: bytes
    sequence_id: int
    publish_time: int


class UsualSingle(_Parsed, Protocol):
    """The plain field of ``SingleMessageMetadata``."""

    payload_size: int


class Property(Protocol):
    """A property of a message."""

    key: bytes
    value: bytes


class MessageFields(_Parsed, Protocol):
    """The fields that describe one message, in the metadata of its entry or its own."""

    properties: Sequence[Property]
    partition_key: bytes
    partition_key_b64_encoded: bool
    null_partition_key: bool
    event_time: int
    null_value: bool


class EntryMetadata(MessageFields, UsualEntry, Protocol):
    """The fields of ``MessageMetadata`` that a reader needs."""

    compression: int
    uncompressed_size: int
    num_messages_in_batch: int
    uuid: bytes
    num_chunks_from_msg: int
    total_chunk_msg_size: int
    chunk_id: int


class SingleMetadata(MessageFields, UsualSingle, Protocol):
    """The fields of ``SingleMessageMetadata`` that a reader needs."""

    compacted_out: bool


def _full(name: str, fields: Collection[_Field]) -> DescriptorProto:
    message = DescriptorProto(name=name)
    for number, field, kind, label in fields:
        added = message.field.add(name=field, number=number)
        added.type = cast("FieldDescriptorProto.Type.ValueType", kind)
        added.label = cast("FieldDescriptorProto.Label.ValueType", label)
        if kind == _MESSAGE:
            added.type_name = f".{_PACKAGE}.KeyValue"
    return message


def _usual(name: str, fields: Collection[_Field]) -> DescriptorProto:
    """Each field that is not required, and is not ignored, is a member of the ``oneof``."""
    message = DescriptorProto(name=name)
    message.oneof_decl.add(name=_REST)
    for number, field, kind, label in fields:
        if field in _ALONE_MEANINGLESS:
            continue
        kind = _BYTES if kind == _MESSAGE else kind
        added = message.field.add(name=field, number=number)
        added.type = cast("FieldDescriptorProto.Type.ValueType", kind)
        added.label = FieldDescriptorProto.LABEL_OPTIONAL
        if label != _REQUIRED:
            added.oneof_index = 0
    return message


def _parsers(*messages: DescriptorProto) -> list[Any]:
    file = FileDescriptorProto(
        name=f"{_PACKAGE}/metadata.proto",
        package=_PACKAGE,
        syntax="proto2",
        message_type=[_full("KeyValue", _KEY_VALUE), *messages],
    )
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    names = [f"{_PACKAGE}.{message.name}" for message in messages]
    return [GetMessageClass(pool.FindMessageTypeByName(name)).FromString for name in names]


_parse_usual_entry: Callable[[bytes], UsualEntry]
parse_usual_single: Callable[[bytes], UsualSingle]
_parse_usual_entry, parse_usual_single, _parse_entry, _parse_single, _parse_count = _parsers(
    _usual("UsualEntry", _ENTRY),
    _usual("UsualSingle", _SINGLE),
    _full("EntryMetadata", _ENTRY),
    _full("SingleMetadata", _SINGLE),
    _full("EntryCount", [field for field in _ENTRY if field[1] == _COUNT]),
)
"""``parse_usual_single`` raises ``DecodeError``, and requires no field."""


def usual_entry(data: bytes) -> UsualEntry:
    """The plain fields of the metadata of an entry, each of which is required.

    Raises :class:`PartError` if it is no protobuf message, or lacks one of them.
    """
    try:
        fields = _parse_usual_entry(data)
    except DecodeError as error:
        raise PartError(_NO_MESSAGE) from error
    if not (fields.publish_time and fields.producer_name and fields.sequence_id):
        for name in ("producer_name", "sequence_id", "publish_time"):  # it may be 0 or empty
            if not fields.HasField(name):
                raise PartError(_INCOMPLETE)
    return fields


def messages_claimed(data: bytes) -> int:
    """How many messages the metadata of an entry states, at least 1. Brokers take a permit for each
    also where the rest of the metadata is wrong, of which they look at little."""
    try:
        return max(1, _parse_count(data).num_messages_in_batch)
    except DecodeError:
        return 1


def entry_metadata(data: bytes) -> EntryMetadata:
    """The metadata of an entry. Raises :class:`PartError` if it is no protobuf message.

    :func:`check_required` is left to do: it costs more than the parser, and only an entry with
    properties needs it, if :func:`usual_entry` took it.
    """
    fields: EntryMetadata = _parsed(_parse_entry, data, 4)
    return fields


def single_metadata(data: bytes) -> SingleMetadata:
    """The metadata of a message of a batch. Raises :class:`PartError` if it is no protobuf message.

    :func:`check_required` is left to do, as for an entry: ``payload_size`` is required.
    """
    fields: SingleMetadata = _parsed(_parse_single, data, 1)
    return fields


def check_required(fields: MessageFields) -> None:
    """Raise :class:`PartError` if a required field is missing, also within a property."""
    if not fields.IsInitialized():
        raise PartError(_INCOMPLETE)


def _parsed(parse: Callable[[bytes], Any], data: bytes, properties: int) -> Any:
    """``properties`` is the number of that field."""
    if len(data) > _SIMPLE_BYTES:
        _check_properties(data, properties << 3 | 2)
    try:
        return parse(data)
    except DecodeError as error:
        raise PartError(_NO_MESSAGE) from error


def _check_properties(data: bytes, tag: int) -> None:
    """Raise :class:`PartError` if there are more than :data:`PROPERTIES_MAX` properties, or if this
    cannot be told from as many fields: the parser makes an object of each property."""
    if data.count(bytes([tag])) <= _SIMPLE_TAGS:
        return
    at = 0
    try:
        for _ in range(PROPERTIES_MAX):
            if at >= len(data):
                return
            found, at = varint(data, at)
            if found & 7 == 0:
                _, at = varint(data, at)
            elif found & 7 == 2:
                size, at = varint(data, at)
                at += size
            else:
                at += {1: 8, 5: 4}[found & 7]
    except (ValueError, KeyError) as error:
        raise PartError(_NO_MESSAGE) from error
    raise PartError(f"the metadata has more than {PROPERTIES_MAX:,} fields")
