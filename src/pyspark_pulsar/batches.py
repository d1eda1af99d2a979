"""The messages of an entry, in columns, and the payload of a batch.

The payload of a batch, after decompression::

    repeated:  u32 metadata_size | SingleMessageMetadata | payload_size bytes

Most messages of most batches have no key, no properties and no event time. These cost 0.6 us each.

Pure.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from pyspark_pulsar.metadata import (
    PROPERTIES_MAX,
    MessageFields,
    PartError,
    Property,
    UsualSingle,
    check_required,
    parse_usual_single,
    single_metadata,
)

_unpack_size = struct.Struct(">I").unpack_from
SIZE_BYTES: Final = 4
"""A size takes four bytes, the largest first."""
_MESSAGE_BYTES_MIN: Final = SIZE_BYTES + 2
"""A message of a batch has its size and at least the field ``payload_size``."""

Properties = list[tuple[str, str]]
NO_PROPERTIES: Final[Properties] = []
"""Shared: nobody changes it."""


@dataclass(slots=True)
class Messages:
    """Messages of one entry, in columns of the same length. Nobody changes them.

    The class is not frozen, because that costs half a microsecond for each.
    """

    values: list[bytes | None]
    """None for a tombstone, whose ``null_value`` is set."""
    keys: list[bytes | None]
    """The bytes that the producer set; None without a key, and for one that is null."""
    event_times_ms: list[int | None]
    """Milliseconds since the epoch; None for 0 and without one."""
    properties: list[Properties | None]
    """Of properties with the same name the last one; None if one of them is no UTF-8."""
    batch_indexes: range | list[int]
    """-1 for a message outside a batch."""

    def __len__(self) -> int:
        return len(self.values)

    def part(self, begin: int, end: int) -> Messages:
        """The messages from ``begin`` to before ``end``."""
        part = slice(begin, end)
        return Messages(
            self.values[part],
            self.keys[part],
            self.event_times_ms[part],
            self.properties[part],
            self.batch_indexes[part],
        )


def single(fields: MessageFields, payload: bytes) -> Messages:
    """The only message of an entry that is no batch, with the fields of the entry's metadata.

    Raises :class:`PartError` if a property lacks its name or value.
    """
    pairs = fields.properties
    if pairs:
        check_required(fields)
    return Messages(
        [None if fields.null_value else payload],
        [key_of(fields)],
        [fields.event_time or None],
        [properties_of(pairs) if pairs else NO_PROPERTIES],
        [-1],
    )


def key_of(fields: MessageFields) -> bytes | None:
    """The key of a message, as the producer set it.

    Keys of bytes are sent as base64 with a flag. What has the flag and is no base64 stays as it is.
    """
    key = fields.partition_key
    if fields.null_partition_key or not (key or fields.HasField("partition_key")):
        return None
    if fields.partition_key_b64_encoded:
        try:
            return binascii.a2b_base64(key, strict_mode=True)
        except binascii.Error:
            return key
    return key


def properties_of(found: Sequence[Property]) -> Properties | None:
    """The properties of a message; None if one of them is no UTF-8."""
    try:
        return list({each.key.decode(): each.value.decode() for each in found}.items())
    except UnicodeDecodeError:
        return None


def portions(batch: bytes, at: int, claimed: int, rows_max: int) -> Iterator[Messages]:
    """All messages of a batch but those that are compacted out, in order. The batch is at ``at``.

    Each portion has at most ``rows_max`` messages and about :data:`PROPERTIES_MAX` properties, and
    may be empty. Its memory is a small multiple of its part of the batch.

    Raises :class:`PartError` if the batch does not consist of exactly ``claimed`` messages, perhaps
    after some portions.
    """
    if claimed < 1 or claimed * _MESSAGE_BYTES_MIN > len(batch) - at:
        raise PartError(f"{len(batch) - at:,} bytes cannot be a batch of {claimed:,} messages")
    index = 0
    while index < claimed:
        begin = index
        try:
            portion, at, index = _usual_portion(batch, at, begin, min(claimed, begin + rows_max))
            if index < min(claimed, begin + rows_max):
                at, index = _add_any(portion, batch, at, index, min(claimed, begin + rows_max))
        except (struct.error, DecodeError) as error:
            raise PartError("a message of the batch is truncated, or has no metadata") from error
        if index == claimed and at != len(batch):
            raise PartError(f"the batch has bytes behind its {claimed:,} messages")
        yield portion


def _usual_portion(batch: bytes, at: int, begin: int, end: int) -> tuple[Messages, int, int]:
    """The usual messages among those from index ``begin`` to before ``end``, up to the first other
    one; and the offset and index behind them. The message ``begin`` is at offset ``at``.

    Raises as :func:`portions`, ``struct.error`` and ``DecodeError``.
    """
    values: list[bytes | None] = []
    unpack_size, parse, total = _unpack_size, parse_usual_single, len(batch)
    for _ in range(begin, end):
        start = at + SIZE_BYTES
        payload = start + unpack_size(batch, at)[0]
        fields = parse(batch[start:payload])
        if fields.WhichOneof("rest"):
            break
        behind = payload + fields.payload_size
        if not payload < behind <= total:  # an empty one is unusual
            _check_size(fields, payload, behind, total)
        values.append(batch[payload:behind])
        at = behind
    count = len(values)
    indexes = range(begin, begin + count)
    nones: list[None] = [None] * count
    messages = Messages(values, [*nones], [*nones], [NO_PROPERTIES] * count, indexes)
    return messages, at, begin + count


def _add_any(messages: Messages, batch: bytes, at: int, begin: int, end: int) -> tuple[int, int]:
    """Add the messages from index ``begin`` to before ``end``, or up to the one with which they
    have :data:`PROPERTIES_MAX` properties; return the offset and index behind them.

    Raises as :func:`_usual_portion`.
    """
    values, keys, times = messages.values, messages.keys, messages.event_times_ms
    properties, indexes = messages.properties, list(messages.batch_indexes)
    total = len(batch)
    left = PROPERTIES_MAX
    index = begin
    while index < end and left > 0:
        start = at + SIZE_BYTES
        payload = start + _unpack_size(batch, at)[0]
        fields = single_metadata(batch[start:payload])
        at = payload + fields.payload_size
        if not payload < at <= total:
            _check_size(fields, payload, at, total)
        pairs = fields.properties
        if pairs:
            check_required(fields)
            left -= len(pairs)
        if not fields.compacted_out:
            values.append(None if fields.null_value else batch[payload:at])
            keys.append(key_of(fields))
            times.append(fields.event_time or None)
            properties.append(properties_of(pairs) if pairs else NO_PROPERTIES)
            indexes.append(index)
        index += 1
    messages.batch_indexes = indexes
    return at, index


def _check_size(fields: UsualSingle, payload: int, behind: int, total: int) -> None:
    """Raise :class:`PartError` if a payload is not within a batch of ``total`` bytes, or its size
    is not there."""
    if not payload <= behind <= total or not fields.HasField("payload_size"):
        raise PartError("a message of the batch has a wrong size")
