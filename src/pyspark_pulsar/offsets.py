"""Positions in a topic partition.

A position means that everything up to and including this message has been read. Its text is
``L:E:P:B``: ledger id, entry id, partition index and batch index. ``P`` is -1 outside a partitioned
topic and takes no part in the order. ``B`` is -1 for the whole entry, and for a
message outside a batch. Two forms name no message:

* ``-1:-1:P:-1`` is before everything in the partition;
* ``L:-1:P:-1`` is after all ledgers before ``L`` and before the first entry of ``L``.

So a range is always (start, end], and needs no flag for an inclusive end.

Spark's checkpoint stores ``{"v": 1, "t": {"<partition topic>": "L:E:P:B"}}``. Spark compares
offsets as strings. So the topics are sorted, and the keys always have this order.

Pure: no I/O, no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark_pulsar.errors import OffsetError

OFFSET_VERSION = 1
"""Version of the offset in a checkpoint. A reader refuses any other."""

WHOLE_ENTRY = -1
"""Batch index that stands for the whole entry."""

_BEHIND_EVERY_BATCH_INDEX = 1 << 31
_ID_MAX = (1 << 63) - 1
_VARINT_SHIFT_MAX = 63
_TEXT = re.compile(r"(-?\d{1,19}):(-?\d{1,19})(?::(-?\d{1,9})(?::(-?\d{1,9}))?)?")
_PARTITION_SUFFIX = re.compile(r"-partition-(\d{1,9})$")

OrderKey = tuple[int, int, int]
"""(ledger id, entry id, batch index), where a whole entry comes after each of its messages."""


class Position(NamedTuple):
    """A position in one topic partition: all messages up to and including this one are read."""

    ledger_id: int
    entry_id: int
    partition: int = -1
    batch_index: int = WHOLE_ENTRY

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}:{self.partition}:{self.batch_index}"

    @property
    def order_key(self) -> OrderKey:
        """The sort key of positions in one partition."""
        return order_key(self.ledger_id, self.entry_id, self.batch_index)

    def before(self) -> Position:
        """The position just before this message: a range that starts there begins with it."""
        if self.batch_index > 0:
            return self._replace(batch_index=self.batch_index - 1)
        if self.entry_id < 0:
            return self
        return self._replace(entry_id=self.entry_id - 1, batch_index=WHOLE_ENTRY)


def order_key(ledger_id: int, entry_id: int, batch_index: int) -> OrderKey:
    """The order of messages within a partition; batch index -1 is the end of its entry."""
    if batch_index < 0:
        batch_index = _BEHIND_EVERY_BATCH_INDEX
    return (ledger_id, entry_id, batch_index)


def earliest(topic: str) -> Position:
    """The position before everything in the partition ``topic``."""
    return Position(-1, -1, partition_index(topic))


def partition_index(topic: str) -> int:
    """The index at the end of a partition's name; -1 for a topic without partitions."""
    match = _PARTITION_SUFFIX.search(topic)
    return int(match[1]) if match else -1


def parse_position(text: str, topic: str) -> Position:
    """The position of ``L:E``, ``L:E:P`` or ``L:E:P:B`` in the partition ``topic``.

    Raises :class:`OffsetError` for any other text, for ids out of range, and for a partition
    index that contradicts the topic's name.
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise OffsetError(f"{text!r} of {topic} is not a message id of the form L:E:P:B")
    own_partition = partition_index(topic)
    ledger_id, entry_id = int(match[1]), int(match[2])
    partition = int(match[3]) if match[3] is not None else own_partition
    batch_index = int(match[4]) if match[4] is not None else WHOLE_ENTRY
    if not (-1 <= ledger_id <= _ID_MAX and -1 <= entry_id <= _ID_MAX and batch_index >= -1):
        raise OffsetError(f"{text!r} of {topic} has an id out of range (-1 is the lowest)")
    if partition != own_partition:
        raise OffsetError(
            f"{text!r} names partition {partition}, but {topic} is partition {own_partition}"
        )
    return Position(ledger_id, entry_id, partition, batch_index)


def offset_to_json(positions: Mapping[str, Position]) -> dict[str, Any]:
    """The offset that Spark stores; equal positions always give the same text."""
    return {"v": OFFSET_VERSION, "t": {topic: str(positions[topic]) for topic in sorted(positions)}}


def offset_from_json(offset: Mapping[str, Any]) -> dict[str, Position]:
    """The positions of :func:`offset_to_json`. Raises :class:`OffsetError` for any other value."""
    version = offset.get("v")
    if version != OFFSET_VERSION:
        raise OffsetError(
            f"the checkpoint's offset has version {version!r}; "
            f"this source reads version {OFFSET_VERSION}"
        )
    topics = offset.get("t")
    if not isinstance(topics, Mapping):
        raise OffsetError("the checkpoint's offset has no topics under 't'")
    positions: dict[str, Position] = {}
    for topic, text in topics.items():
        if not isinstance(text, str):
            raise OffsetError(f"the checkpoint's offset of {topic} is not a text")
        positions[topic] = parse_position(text, topic)
    return positions


def varint(data: bytes, place: int) -> tuple[int, int]:
    """The protobuf varint at ``place``, and the index after it.

    Raises :class:`ValueError` for one that is truncated, or has more than ten bytes. Producers
    write any: a number of a megabyte takes minutes.
    """
    value = shift = 0
    while place < len(data):
        if shift > _VARINT_SHIFT_MAX:
            raise ValueError("a varint of more than ten bytes")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ValueError("a truncated varint")


def varint_bytes(value: int) -> bytes:
    """A number of at least 0 as a protobuf varint."""
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80,)) + varint_bytes(value >> 7)
