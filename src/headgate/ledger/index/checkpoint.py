"""A checkpoint: the state of topics and cursors at one segment, from which replay starts.

It is *fuzzy*: maintenance collects it in slices while the log goes on, so it may already hold the
effect of records behind its segment. Replaying a record twice is harmless: acknowledgements are
idempotent (see headgate.base.ack_set), and RUN, TRIM, CREATE and DELETE state absolute values.
Parts of it are written to temporary files meanwhile, so that it is not in memory as a whole. The
file gets its name only when everything collected is durable in the log. So replay always catches up
with the checkpoint, and never mixes a seek that was collected but lost with older acknowledgements.
The index of entries is not in it, but in the footers of the segments before it.

It is written twice, the second time as ``%016x.checkpoint_copy``. Segments that only the checkpoint
made unnecessary are deleted, so it could not be rebuilt in full.

File ``%016x.checkpoint`` (named after the segment where replay starts), little endian::

    head     8s magic "HGCHECK\\0" | u32 version | u32 zero | u64 segment
             | u64 number of the last batch before that segment
    items    u32 size | u8 kind | payload
             kind 1 topic: u32 number | u32 ledgers | u64 first | u64 end | u64 messages before end
                           | u64 bytes before end | i64 receive time (ms) of the last entry
                           | u32 its publish lag (ms)
                           | ledgers * (u64 id, u64 first, i64 created ms)
             kind 2 cursor: see cursors.py
             kind 4 damage of a topic: u32 number | u32 n | n * (u64 first lost ordinal, u64 one
                           past the last) | where and what (UTF-8), empty once it is accepted
             kind 5 damage of a cursor: u64 cursor id | where and what (UTF-8)
             kind 6 some producers of a topic with deduplication: u32 number | rows
                           (headgate.base.sequence_table)
             kind 3 counters, the last item: u64 next ledger id | u64 next cursor id
                           | u64 next batch | u64 next segment
    tail     u32 CRC32C of all before
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, cast

from headgate.base.errors import CorruptionError
from headgate.base.sequence_table import SequenceRow, decode_rows, encode_rows
from headgate.base.units import KIB
from headgate.fs.api import Fs
from headgate.ledger.format.directory import PIECE_BYTES, GrowingFile, read_file
from headgate.ledger.format.records import (
    ACCEPT,
    CRC,
    CRC_BYTES,
    CURSOR_ID,
    ORDINALS,
    checkpoint_names,
    crc32c_extend,
    segment_of_checkpoint,
)
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.cursors import CursorState, decode_cursor, encode_cursor
from headgate.ledger.index.topic_log import TopicLog

CHECKPOINT_VERSION: Final = 3
_VERSIONS_READ = (2, CHECKPOINT_VERSION)
_MAGIC = b"HGCHECK\0"
_HEAD = struct.Struct("<8sIIQQ")
_ITEM = struct.Struct("<IB")
_TOPIC = struct.Struct("<IIQQQQqI")
_LEDGER = struct.Struct("<QQq")
_COUNTERS = struct.Struct("<QQQQ")
_NUMBER = struct.Struct("<I")
_KIND_TOPIC = 1
_KIND_CURSOR = 2
_KIND_COUNTERS = 3
_KIND_TOPIC_DAMAGE = 4
_KIND_CURSOR_DAMAGE = 5
_KIND_SEQUENCES = 6


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic's state in a checkpoint."""

    number: int
    first: int
    end: int
    totals: TopicTotals
    """The totals before ``end``, also if no entry is retained."""
    ledgers: tuple[tuple[int, int, int], ...]
    damage: str = ""
    lost: tuple[tuple[int, int], ...] = ()
    sequences: list[SequenceRow] | None = None
    """The producers that deduplication knows; None without deduplication."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The next unused numbers when the checkpoint was collected."""

    next_ledger_id: int
    next_cursor_id: int
    next_batch: int
    next_segment: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as read."""

    segment: int
    last_batch: int
    topics: dict[int, TopicState]
    cursors: dict[int, CursorState]
    counters: Counters


ITEMS_PART_BYTES: Final = 64 * KIB
"""A part of a checkpoint that is being collected takes items up to about so many bytes."""


class CheckpointBuilder:
    """Collects a checkpoint item by item."""

    def __init__(self, segment: int, last_batch: int) -> None:
        self.segment = segment
        self.last_batch = last_batch
        # Few large parts: an object for each item would take tens of milliseconds to free.
        head = _HEAD.pack(_MAGIC, CHECKPOINT_VERSION, 0, segment, last_batch)
        self._parts = [bytearray(head)]
        self._crc = 0
        self._files: list[GrowingFile] = []
        """The file and its copy, of which some is written."""
        self._stored_bytes = 0
        self.size_bytes = _HEAD.size + CRC_BYTES
        """Bytes of the file so far; its copy has as many."""

    @property
    def collected_bytes(self) -> int:
        """Bytes that are in memory."""
        return self.size_bytes - self._stored_bytes

    def add_topic(self, topic: TopicLog) -> None:
        """Add the durable state of a topic."""
        ledgers = topic.ledger_rows()
        totals = topic.totals(topic.end)
        head = _TOPIC.pack(topic.number, len(ledgers), topic.first, topic.end, *totals)
        self._add(_KIND_TOPIC, head + b"".join(_LEDGER.pack(*row) for row in ledgers))
        if topic.damage or topic.lost:
            lost = [ORDINALS.pack(*row) for row in topic.lost if row[1] > topic.first]
            count = ACCEPT.pack(topic.number, len(lost))
            self._add(_KIND_TOPIC_DAMAGE, b"".join([count, *lost, topic.damage.encode()]))

    def add_cursor(self, cursor: CursorState, acks: bytes | None = None) -> None:
        """Add a cursor with its present acknowledgements, or with ``acks``, which are encoded."""
        self._add(_KIND_CURSOR, encode_cursor(cursor, acks))
        if cursor.damage:
            payload = CURSOR_ID.pack(cursor.cursor_id) + cursor.damage.encode()
            self._add(_KIND_CURSOR_DAMAGE, payload)

    def add_sequences(self, number: int, rows: Iterable[SequenceRow]) -> None:
        """Add some producers of a topic with deduplication, behind the topic. Without producers
        this says that the topic has deduplication."""
        self._add(_KIND_SEQUENCES, _NUMBER.pack(number) + encode_rows(rows))

    def add_counters(self, counters: Counters) -> None:
        """Add the counters, the last item."""
        self._add(
            _KIND_COUNTERS,
            _COUNTERS.pack(
                counters.next_ledger_id,
                counters.next_cursor_id,
                counters.next_batch,
                counters.next_segment,
            ),
        )

    def store_part(self, fs: Fs, directory: str) -> None:
        """Write what was collected to temporary files, durably, and give it up: a checkpoint may be
        larger than the memory that is free.

        Raises :class:`OSError`, and no temporary file stays.
        """
        parts = self._taken()
        try:
            for file in self._begun(fs, directory):
                file.append(parts)
        except OSError:
            self.discard()
            raise

    def write(self, fs: Fs, directory: str) -> None:
        """Write the rest of the file and of its copy durably, and remove older ones. Only once.

        Raises :class:`OSError`, and no temporary file stays.
        """
        parts = self._taken()
        parts.append(CRC.pack(self._crc))
        try:
            for file in self._begun(fs, directory):
                file.append(parts)
                file.finish()
                fs.sync_directory(directory)
        except OSError:
            self.discard()
            raise
        for name in fs.list_directory(directory):
            other = segment_of_checkpoint(name)
            if other is not None and other != self.segment:
                fs.remove(f"{directory}/{name}")

    def _begun(self, fs: Fs, directory: str) -> list[GrowingFile]:
        if not self._files:
            names = checkpoint_names(self.segment)
            self._files = [GrowingFile(fs, directory, name) for name in names]
        return self._files

    def discard(self) -> None:
        """Remove the temporary files."""
        for file in self._files:
            file.discard()

    def _taken(self) -> list[bytes]:
        """What is in memory, which is given up part by part: it is there once."""
        parts: list[bytes] = []
        self._parts.reverse()
        while self._parts:
            part = bytes(self._parts.pop())
            self._crc = crc32c_extend(self._crc, part)
            parts.append(part)
            self._stored_bytes += len(part)
        self._parts.append(bytearray())
        return parts

    def _add(self, kind: int, payload: bytes) -> None:
        if len(self._parts[-1]) >= ITEMS_PART_BYTES:
            self._parts.append(bytearray())
        part = self._parts[-1]
        part += _ITEM.pack(len(payload), kind)
        part += payload
        self.size_bytes += _ITEM.size + len(payload)


def read_checkpoint(fs: Fs, directory: str, name: str) -> Checkpoint:
    """Read a checkpoint file. Raises :class:`CorruptionError` if it is damaged."""
    segment = segment_of_checkpoint(name)
    data = read_file(fs, f"{directory}/{name}")
    end = len(data) - CRC_BYTES
    crc = 0
    for start in range(0, end, PIECE_BYTES):  # without a copy of the whole
        crc = crc32c_extend(crc, data[start : min(start + PIECE_BYTES, end)])
    if end < _HEAD.size or CRC.unpack_from(data, end)[0] != crc:
        raise CorruptionError(f"{name} is damaged: its checksum is wrong")
    magic, version, _, owner, last_batch = _HEAD.unpack_from(data)
    if magic != _MAGIC or version not in _VERSIONS_READ or owner != segment:
        raise CorruptionError(f"{name} is not a checkpoint of version {CHECKPOINT_VERSION}")
    found = Checkpoint(owner, last_batch, {}, {}, Counters(0, 0, 0, 0))
    counters: Counters | None = None
    at = _HEAD.size
    while at < end:
        size, kind = _ITEM.unpack_from(data, at)
        at += _ITEM.size
        payload = data[at : at + size]
        at += size
        if kind == _KIND_COUNTERS:
            counters = Counters(*_COUNTERS.unpack(payload))
        else:
            _take_item(found, kind, payload)
    if counters is None:
        raise CorruptionError(f"{name} has no counters")
    return replace(found, counters=counters)


def _take_item(found: Checkpoint, kind: int, payload: bytes) -> None:
    if kind == _KIND_TOPIC:
        topic = _decode_topic(payload)
        found.topics[topic.number] = topic
    elif kind == _KIND_CURSOR:
        cursor = decode_cursor(payload)
        found.cursors[cursor.cursor_id] = cursor
    elif kind == _KIND_CURSOR_DAMAGE:
        (cursor_id,) = CURSOR_ID.unpack_from(payload)
        found.cursors[cursor_id].damage = payload[CURSOR_ID.size :].decode()
    elif kind == _KIND_TOPIC_DAMAGE:
        number, count = ACCEPT.unpack_from(payload)
        text_at = ACCEPT.size + count * ORDINALS.size
        found.topics[number] = replace(
            found.topics[number],
            damage=payload[text_at:].decode(),
            lost=tuple(ORDINALS.iter_unpack(payload[ACCEPT.size : text_at])),
        )
    elif kind == _KIND_SEQUENCES:
        (number,) = _NUMBER.unpack_from(payload)
        topic_state = found.topics.get(number)
        if topic_state is None:
            return  # the topic is younger than the checkpoint: replay finds all of it
        if topic_state.sequences is None:
            topic_state = found.topics[number] = replace(topic_state, sequences=[])
        cast("list[SequenceRow]", topic_state.sequences).extend(
            decode_rows(payload[_NUMBER.size :])
        )
    else:
        raise CorruptionError(f"a checkpoint has an item of unknown kind {kind}")


def _decode_topic(payload: bytes) -> TopicState:
    number, count, first, end, *totals = _TOPIC.unpack_from(payload)
    rows = tuple(_LEDGER.iter_unpack(payload[_TOPIC.size : _TOPIC.size + count * _LEDGER.size]))
    return TopicState(number, first, end, TopicTotals(*totals), rows)
