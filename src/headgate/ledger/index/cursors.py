"""Cursors: the stored state of a durable subscription.

Stored form, the payload of a CREATE record and an item of a checkpoint (little endian)::

    u64 cursor id | u32 topic | u16 name size | u16 properties | u32 size of the ack set
    name (UTF-8) | ack set (headgate.base.ack_set, whole) | properties

    property = u16 key size | u32 value size | key (UTF-8) | value (UTF-8)

The payload of a PROPERTIES record, which leaves the rest of a cursor as it is::

    u64 cursor id | u16 properties | properties
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.base.ack_set import AckSet
from headgate.base.errors import CorruptionError, InputError

_HEAD = struct.Struct("<QIHHI")
_PROPERTY = struct.Struct("<HI")
_PROPERTIES_HEAD = struct.Struct("<QH")
_U16_MAX = 0xFFFF


@dataclass(slots=True)
class CursorState:
    """A durable subscription. ``ack_set`` is the live object that the engine changes."""

    cursor_id: int
    """Never reused in this data directory."""
    topic_number: int
    name: str
    ack_set: AckSet
    properties: Mapping[str, str]
    damage: str = ""
    """The place where acknowledgements may be lost; empty if the cursor is complete."""


def encode_cursor(cursor: CursorState, acks: bytes | None = None) -> bytes:
    """Encode to the stored form. ``acks`` is the ack set, if it is encoded already.

    Raises:
        InputError: a text is too long for it.
    """
    name = cursor.name.encode()
    if acks is None:
        acks = cursor.ack_set.to_bytes()
    if len(name) > _U16_MAX:
        raise InputError(
            f"a subscription name has {len(name)} bytes; at most {_U16_MAX} is allowed"
        )
    properties = _encode_properties(cursor.properties)
    parts = [
        _HEAD.pack(
            cursor.cursor_id, cursor.topic_number, len(name), len(cursor.properties), len(acks)
        ),
        name,
        acks,
        properties,
    ]
    return b"".join(parts)


def encode_change_of_properties(cursor_id: int, properties: Mapping[str, str]) -> bytes:
    """The payload of a PROPERTIES record. Raises :class:`InputError` if a text is too long for
    it."""
    stored = _encode_properties(properties)
    return _PROPERTIES_HEAD.pack(cursor_id, len(properties)) + stored


def _encode_properties(properties: Mapping[str, str]) -> bytes:
    if len(properties) > _U16_MAX:
        raise InputError(f"a subscription has {len(properties)} properties; {_U16_MAX} is allowed")
    parts: list[bytes] = []
    for key, value in properties.items():
        key_bytes, value_bytes = key.encode(), value.encode()
        if len(key_bytes) > _U16_MAX:
            raise InputError(f"a property key has {len(key_bytes)} bytes; {_U16_MAX} is allowed")
        parts += (_PROPERTY.pack(len(key_bytes), len(value_bytes)), key_bytes, value_bytes)
    return b"".join(parts)


def decode_cursor(data: bytes) -> CursorState:
    """Decode the stored form. Raises :class:`CorruptionError` if ``data`` is not one."""
    try:
        cursor_id, topic_number, name_size, count, ack_size = _HEAD.unpack_from(data)
        at = _HEAD.size
        name = data[at : at + name_size].decode()
        at += name_size
        ack_set = AckSet.from_bytes(data[at : at + ack_size])
        at += ack_size
        properties, at = _decode_properties(data, at, count)
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptionError(f"a cursor is damaged: {error}") from error
    if at != len(data):
        raise CorruptionError(f"cursor {cursor_id} ends at byte {at} of {len(data)}")
    return CursorState(cursor_id, topic_number, name, ack_set, properties)


def decode_change_of_properties(data: bytes) -> tuple[int, dict[str, str]]:
    """The cursor of a PROPERTIES record, and its properties. Raises :class:`CorruptionError` if
    ``data`` is not its payload."""
    try:
        cursor_id, count = _PROPERTIES_HEAD.unpack_from(data)
        properties, at = _decode_properties(data, _PROPERTIES_HEAD.size, count)
    except (struct.error, UnicodeDecodeError) as error:
        raise CorruptionError(f"a change of properties is damaged: {error}") from error
    if at != len(data):
        raise CorruptionError(f"properties of cursor {cursor_id} end at byte {at} of {len(data)}")
    return cursor_id, properties


def _decode_properties(data: bytes, at: int, count: int) -> tuple[dict[str, str], int]:
    """So many properties from ``at`` on, and where they end."""
    properties: dict[str, str] = {}
    for _ in range(count):
        key_size, value_size = _PROPERTY.unpack_from(data, at)
        at += _PROPERTY.size
        key = data[at : at + key_size].decode()
        properties[key] = data[at + key_size : at + key_size + value_size].decode()
        at += key_size + value_size
    return properties, at
