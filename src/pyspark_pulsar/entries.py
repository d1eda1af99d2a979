"""Takes an entry apart, as a broker sends it in a MESSAGE frame. Layout, integers big-endian; each
bracket may be absent as a whole::

    [u16 0x0e02 | u32 size | BrokerEntryMetadata]     outside the checksum
    [u16 0x0e01 | u32 crc32c]
    u32 metadata_size | MessageMetadata | payload     what the checksum covers

Brokers store what producers send, and look at little of it. So nothing here is trusted: each size
is checked, and an entry that is wrong is :attr:`Kind.MALFORMED` as a whole. It costs time and
memory by its size and that which it states for its payload, and harms no entry beside it.

Pure.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast

import google_crc32c

from pyspark_pulsar.batches import NO_PROPERTIES, SIZE_BYTES, Messages, portions, single
from pyspark_pulsar.decompression import NONE, decompressed
from pyspark_pulsar.metadata import (
    EntryMetadata,
    PartError,
    check_required,
    entry_metadata,
    messages_claimed,
    usual_entry,
)

EntryId = tuple[int, int]
"""(ledger id, entry id) of one entry."""

_MAGIC_CHECKSUM, _MAGIC_BROKER_ENTRY = 0x0E01, 0x0E02
_MAGIC_AND_WORD = struct.Struct(">HI")
_COVERED_AT: Final = _MAGIC_AND_WORD.size
"""Offset of what the checksum covers, behind the checksum's magic number."""
_unpack_start = struct.Struct(">HII").unpack_from
_crc32c = cast("Callable[[bytes], int]", google_crc32c.value)

_READY_MESSAGES_MAX: Final = 10_000
"""Batches of more messages are gone through twice: to check them, and as they are wanted."""


class Kind(enum.Enum):
    """What an entry is to a reader."""

    MESSAGES = "messages"
    """One message, or a batch."""
    CHUNK = "chunk"
    """One chunk of a message."""
    MARKER = "marker"
    """Written by a broker for brokers, such as the end of a transaction."""
    ENCRYPTED = "encrypted"
    """A message, batch or chunk that only a reader with its key can read."""
    MALFORMED = "malformed"
    """No correct producer sends it."""


_MESSAGES = Kind.MESSAGES
"""A look-up of a member of an enumeration costs as much as a field of the metadata."""


@dataclass(frozen=True, slots=True)
class ChunkPart:
    """One chunk of the message ``uuid``; ``index`` counts from 0, below ``count``."""

    uuid: str
    index: int
    count: int
    total_bytes: int
    """Size of all chunks of the message together."""
    payload: bytes
    metadata: bytes
    """``MessageMetadata`` of the chunk, which is also that of the message but for the index."""

    @property
    def size_bytes(self) -> int:
        """What it takes of memory, about: producers may send metadata of any size."""
        return len(self.payload) + len(self.metadata)


@dataclass(slots=True)
class Entry:
    """An entry, taken apart. Nobody changes it; a frozen class would cost half a microsecond."""

    kind: Kind
    messages_claimed: int
    """``num_messages_in_batch``, at least 1: so many permits a broker counts for the entry."""
    publish_time_ms: int
    """Milliseconds since the epoch, any 64-bit number; 0 if it is unknown."""
    batch_size: int = 0
    """Messages in the batch, with those that are compacted out; 0 for an entry that is none."""
    chunk: ChunkPart | None = None
    """The chunk that the entry is, for :attr:`Kind.CHUNK`."""
    why: str = ""
    """What is wrong, for :attr:`Kind.MALFORMED`. It has no text of the producer's."""
    usual: bytes | None = None
    """The payload of a message outside a batch that has neither key, event time nor properties, as
    most have; None for any other entry."""
    _ready: Messages | None = None
    _batch: bytes = b""
    _batch_at: int = 0

    def portions(self, rows_max: int) -> Iterator[Messages]:
        """All messages of :attr:`Kind.MESSAGES`, in order, in pieces of 1 to ``rows_max``; nothing
        for other kinds. Messages that are compacted out are left out."""
        ready = self._ready
        if self.usual is not None:
            yield Messages([self.usual], [None], [None], [NO_PROPERTIES], [-1])
        elif ready is None:
            if self._batch:
                found = portions(self._batch, self._batch_at, self.batch_size, rows_max)
                yield from filter(len, found)
        elif 0 < len(ready) <= rows_max:
            yield ready
        else:
            for begin in range(0, len(ready), rows_max):
                yield ready.part(begin, begin + rows_max)


def parse_entry(body: bytes | memoryview, message_bytes_max: int) -> Entry:
    """The entry in ``body``, which is what follows the command in a MESSAGE frame.

    A message or batch, compressed or in chunks, of more than ``message_bytes_max`` bytes is
    malformed. Raises nothing for what a producer may send.
    """
    if type(body) is not bytes:
        body = bytes(body)
    published, metadata = 0, b""
    try:
        metadata, body, at = _parts(body)
        usual = usual_entry(metadata)
        published = usual.publish_time
        if usual.WhichOneof("rest"):
            return _any_entry(metadata, body, at, message_bytes_max)
    except PartError as error:
        return Entry(Kind.MALFORMED, messages_claimed(metadata), published, why=str(error))
    return Entry(_MESSAGES, 1, published, 0, None, "", body[at:])


def assembled(first: ChunkPart, payload: bytes, message_bytes_max: int) -> Entry:
    """The message whose chunks have these payloads, joined; ``first`` is any of the chunks.

    It has :attr:`Kind.MESSAGES`, or :attr:`Kind.MALFORMED` if ``payload`` has not the size that the
    chunk states, or as in :func:`parse_entry`.
    """
    metadata = entry_metadata(first.metadata)
    claimed, published = _claimed(metadata), metadata.publish_time
    if len(payload) != first.total_bytes:
        why = f"the chunks have {len(payload):,} bytes instead of {first.total_bytes:,}"
        return Entry(Kind.MALFORMED, claimed, published, why=why)
    try:
        return _messages(metadata, payload, 0, message_bytes_max)
    except PartError as error:
        return Entry(Kind.MALFORMED, claimed, published, why=str(error))


def _parts(body: bytes) -> tuple[bytes, bytes, int]:
    """The metadata, and bytes with the offset from which they are the payload.

    Raises :class:`PartError`.
    """
    try:
        magic, expected, size = _unpack_start(body)
        if magic == _MAGIC_BROKER_ENTRY:
            body = body[_COVERED_AT + int.from_bytes(body[2:_COVERED_AT], "big") :]
            magic, expected, size = _unpack_start(body)
    except struct.error as error:
        raise PartError("the entry is too short for its metadata") from error
    if magic == _MAGIC_CHECKSUM:
        body = body[_COVERED_AT:]
        if _crc32c(body) != expected:
            raise PartError("the checksum is wrong")
    else:
        size = int.from_bytes(body[:SIZE_BYTES], "big")
    payload = SIZE_BYTES + size
    if payload > len(body):
        raise PartError("the entry is shorter than its metadata")
    return body[SIZE_BYTES:payload], body, payload


def _claimed(metadata: EntryMetadata) -> int:
    return max(1, metadata.num_messages_in_batch)


def _any_entry(data: bytes, body: bytes, at: int, message_bytes_max: int) -> Entry:
    """Any entry, with the metadata ``data``. Its payload is at ``at`` of ``body``.

    Raises :class:`PartError` if the metadata is no protobuf message.
    """
    metadata = entry_metadata(data)
    claimed = _claimed(metadata)
    published = metadata.publish_time
    if metadata.HasField("marker_type"):
        return Entry(Kind.MARKER, claimed, published)
    if metadata.HasField("encryption_keys"):
        return Entry(Kind.ENCRYPTED, claimed, published)
    try:
        if metadata.num_chunks_from_msg > 1:
            chunk = _chunk(metadata, data, body[at:], message_bytes_max)
            return Entry(Kind.CHUNK, claimed, published, chunk=chunk)
        return _messages(metadata, body, at, message_bytes_max)
    except PartError as error:
        return Entry(Kind.MALFORMED, claimed, published, why=str(error))


def _chunk(
    metadata: EntryMetadata, data: bytes, payload: bytes, message_bytes_max: int
) -> ChunkPart:
    """One chunk. Raises :class:`PartError` for what cannot be a chunk of any message."""
    index, count = metadata.chunk_id, metadata.num_chunks_from_msg
    total = metadata.total_chunk_msg_size
    if not (metadata.uuid and metadata.HasField("chunk_id")):
        raise PartError("a chunk without the id of its message, or without an index")
    if not 0 <= index < count:
        raise PartError(f"chunk {index:,} of {count:,}")
    if total > message_bytes_max:
        raise PartError(f"a chunk of a message of {total:,} bytes, above {message_bytes_max:,}")
    if not payload or len(payload) + count - 1 > total:  # each other chunk has a byte at least
        raise PartError(f"a chunk of {len(payload):,} bytes, of {count:,} with {total:,} together")
    uuid = metadata.uuid.decode("utf-8", "backslashreplace")
    return ChunkPart(uuid, index, count, total, payload, data)


def _messages(metadata: EntryMetadata, body: bytes, at: int, message_bytes_max: int) -> Entry:
    """A message or a batch, whose payload is at ``at`` of ``body``.

    Raises :class:`PartError` if it cannot be taken apart.
    """
    codec, size = metadata.compression, metadata.uncompressed_size
    if codec != NONE:
        body, at = decompressed(body[at:], codec, size, message_bytes_max), 0
    published = metadata.publish_time
    if not metadata.HasField("num_messages_in_batch"):
        return Entry(_MESSAGES, 1, published, _ready=single(metadata, body[at:]))
    if metadata.properties:
        check_required(metadata)
    claimed = metadata.num_messages_in_batch
    checked = portions(body, at, claimed, _READY_MESSAGES_MAX)
    ready: Messages | None = next(checked)
    for _ in checked:  # a batch of several portions, of which none is kept
        ready = None
    entry = Entry(_MESSAGES, claimed, published, claimed, _ready=ready)
    if ready is None:
        entry._batch, entry._batch_at = body, at
    return entry
