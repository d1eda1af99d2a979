"""Reads a message's metadata at a cost that its size bounds, whatever is in it.

The parser makes an object for each property, encryption key and cluster in the metadata: up to
100 ns and 70 bytes of memory for two bytes of a client. A *head* is ``MessageMetadata`` without
them. The parser passes over what a head does not declare, at 2 ns a byte at most.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, cast

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from headgate.wire.entry import MAGIC_CHECKSUM, locate, metadata_by
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import KeyValue, MessageMetadata

_FIELDS: Final = frozenset(
    (
        "producer_name",
        "sequence_id",
        "publish_time",
        "partition_key",
        "compression",
        "uncompressed_size",
        "num_messages_in_batch",
        "event_time",
        "encryption_keys",
        "encryption_param",
        "partition_key_b64_encoded",
        "deliver_at_time",
        "highest_sequence_id",
        "uuid",
        "num_chunks_from_msg",
        "total_chunk_msg_size",
        "chunk_id",
        "null_partition_key",
    )
)
"""The fields of ``MessageMetadata`` that a head has."""

_PACKAGE: Final = "headgate.head"

_START: Final = struct.Struct(">H4xI")
START_BYTES: Final = _START.size
unpack_start = _START.unpack_from
"""The usual beginning of an entry: the magic number, the checksum, the size of the metadata."""

FIELDS_MAX: Final = 1_024
"""Fields of a metadata that :func:`properties_and_keys` looks at: about a millisecond."""

_PROPERTIES = 0x22
_ENCRYPTION_KEYS = 0x6A
"""The tags of ``properties`` (field 4) and ``encryption_keys`` (field 13), both messages."""
_FIXED_BYTES: Final = {1: 8, 5: 4}
"""Sizes of the values of the wire types that have a fixed size."""
_VARINT, _LENGTH_DELIMITED = 0, 2
_MORE = 0x80
"""The bit of a byte of a varint that more bytes follow."""
_SHIFT_MAX = 63


class PropertiesAndKeys(NamedTuple):
    """The lists in a metadata that the broker shows to administrators."""

    properties: tuple[tuple[str, str], ...]
    encryption_keys: tuple[bytes, ...]
    """Messages ``EncryptionKeys``."""


def _head_class() -> type[MessageMetadata]:
    """The class of heads, made of the description of ``MessageMetadata``."""
    whole, head = DescriptorProto(), DescriptorProto(name="MessageMetadataHead")
    MessageMetadata.DESCRIPTOR.CopyToProto(whole)
    codes = EnumDescriptorProto()
    MessageMetadata.DESCRIPTOR.file.enum_types_by_name["CompressionType"].CopyToProto(codes)
    for field in whole.field:
        if field.name not in _FIELDS:
            continue
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            # The parser then keeps the bytes of the last one, and makes no objects.
            field.label = FieldDescriptorProto.LABEL_OPTIONAL
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")
        elif field.type == FieldDescriptorProto.TYPE_ENUM:
            field.type_name = f".{_PACKAGE}.{codes.name}"
        head.field.append(field)
    file = FileDescriptorProto(
        name="metadata_head.proto",
        package=_PACKAGE,
        syntax="proto2",
        message_type=[head],
        enum_type=[codes],
    )
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{head.name}"))
    return cast("type[MessageMetadata]", found)


_Head: Final = _head_class()

parse_head = _Head.FromString
"""The head in the bytes of a metadata. Of repeated fields it has ``encryption_keys`` alone, and of
that only whether there is one (``HasField``). Raises ``DecodeError``."""


def head_of(body: bytes) -> MessageMetadata:
    """The head of an entry's metadata.

    Raises:
        RemoteProtocolError: the metadata is invalid or lacks a required field.
    """
    return metadata_by(parse_head, body)


def metadata_bytes_of(body: bytes) -> int:
    """Size of an entry's metadata. Costs 0.2 us for an entry that begins with its checksum, as
    those of clients do.

    Raises:
        RemoteProtocolError: the entry is too short.
    """
    magic, size = (0, 0)
    if len(body) >= START_BYTES:
        magic, size = unpack_start(body)
    if magic == MAGIC_CHECKSUM and size <= len(body) - START_BYTES:
        return size
    layout = locate(body)
    return layout.payload_start - layout.metadata_start


def properties_and_keys(body: bytes) -> PropertiesAndKeys:
    """The properties and encryption keys of an entry, as far as they are among the first
    :data:`FIELDS_MAX` fields of its metadata.

    Raises:
        RemoteProtocolError: the metadata is invalid.
    """
    layout = locate(body)
    at, end = layout.metadata_start, layout.payload_start
    properties: list[tuple[str, str]] = []
    keys: list[bytes] = []
    try:
        for _ in range(FIELDS_MAX):
            if at >= end:
                break
            tag, at = _varint(body, at)
            kind = tag & 7
            if kind == _VARINT:
                _, at = _varint(body, at)
            elif kind == _LENGTH_DELIMITED:
                size, start = _varint(body, at)
                at = start + size
                if at > end:
                    raise RemoteProtocolError("a field of the metadata is longer than the metadata")
                if tag == _PROPERTIES:
                    found = KeyValue.FromString(body[start:at])
                    properties.append((_text(found.key), _text(found.value)))
                elif tag == _ENCRYPTION_KEYS:
                    keys.append(body[start:at])
            elif kind in _FIXED_BYTES:
                at += _FIXED_BYTES[kind]
            else:
                break  # a group: the protocol has none
    except (DecodeError, IndexError) as error:
        raise RemoteProtocolError(f"entry holds no valid message metadata: {error}") from error
    return PropertiesAndKeys(tuple(properties), tuple(keys))


def _text(value: str | bytes) -> str:
    """The parser gives bytes for a text that is no UTF-8, which some clients send."""
    return value if isinstance(value, str) else value.decode(errors="replace")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """The varint at an offset, and the offset behind it."""
    value = shift = 0
    while (byte := body[at]) >= _MORE:
        value |= (byte - _MORE) << shift
        shift += 7
        at += 1
        if shift > _SHIFT_MAX:
            raise RemoteProtocolError("a number in the metadata is too long")
    return value | byte << shift, at + 1
