"""The body of a SEND or MESSAGE frame: an entry, kept verbatim.

Layout, integers big-endian; each bracket may be absent as a whole::

    [u16 0x0e02 | u32 size | BrokerEntryMetadata]     outside the checksum
    [u16 0x0e01 | u32 crc32c]
    u32 metadata_size | MessageMetadata | payload     what the checksum covers

An absent bracket is told by its first two bytes; without either, they are the upper half of
``metadata_size``, which no metadata is large enough to confuse with a magic number.

Rules of this file: an entry is never re-encoded, because its checksum must stay valid; the most
that happens to it is that a bracket is cut off for a peer that cannot read it. The payload is
opaque. Nothing here is needed for an ordinary message but :func:`checksum_ok`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple, cast

import google_crc32c
from google.protobuf.message import DecodeError

from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import MessageMetadata

MAGIC_CHECKSUM = 0x0E01
MAGIC_BROKER_ENTRY = 0x0E02

_CHECKSUM_MARK = MAGIC_CHECKSUM.to_bytes(2)
_BROKER_ENTRY_MARK = MAGIC_BROKER_ENTRY.to_bytes(2)

_HEAD = struct.Struct(">HII")
_MAGIC_AND_WORD = struct.Struct(">HI")
LENGTH = struct.Struct(">I")
"""How the protocol writes the length of a part."""
_CHECKSUM_BYTES = _MAGIC_AND_WORD.size

_crc32c = cast("Callable[[bytes], int]", google_crc32c.value)
# Looked up once: an attribute of a generated class costs 0.3 us a time.
_parse_metadata = MessageMetadata.FromString


class EntryLayout(NamedTuple):
    """Offsets into an entry, in bytes."""

    checksum_start: int
    """Where 0x0e01 stands, or where it would stand."""

    covered_start: int
    """Where ``metadata_size`` stands: the first byte that the checksum covers."""

    metadata_start: int
    payload_start: int


class ChunkFacts(NamedTuple):
    """Which part of a chunked message an entry is."""

    uuid: str
    """Names the message; the same in all of its chunks."""

    chunk_id: int
    """Place of this chunk, from 0."""

    chunk_count: int
    message_size_bytes: int
    """Size of the whole message."""


class KeyFacts(NamedTuple):
    """A message's key, as its metadata has it."""

    text: str
    is_base64: bool
    """Whether ``text`` is base64 of the key's bytes."""

    is_null: bool
    """Whether there is a key, and it is null: of a separated KeyValue."""


def crc32c(data: bytes) -> int:
    """CRC32C (Castagnoli), as the protocol and most storage formats use it."""
    return _crc32c(data)


def checksum_ok(body: bytes) -> bool:
    """Whether an entry's checksum, if it carries one, matches what it covers.

    Raises :class:`RemoteProtocolError` when the entry is too short for what it claims to hold.
    A wrong checksum wins over a wrong length: damaged in transit is not the same as badly made.
    """
    # The usual form in one unpack. The slice copies: google_crc32c takes no memoryview.
    if len(body) >= _HEAD.size:
        magic, expected, metadata_size = _HEAD.unpack_from(body)
        if magic == MAGIC_CHECKSUM:
            if _crc32c(body[_CHECKSUM_BYTES:]) != expected:
                return False
            if metadata_size > len(body) - _HEAD.size:
                raise _too_short(body)
            return True
    checksum_start, covered_start = _find_starts(body)
    if checksum_start < covered_start:
        expected = int(_MAGIC_AND_WORD.unpack_from(body, checksum_start)[1])
        if _crc32c(body[covered_start:]) != expected:
            return False
    locate(body)
    return True


def locate(body: bytes) -> EntryLayout:
    """Find the parts of an entry. Raises :class:`RemoteProtocolError` if it is too short."""
    checksum_start, covered_start = _find_starts(body)
    metadata_start = covered_start + LENGTH.size
    payload_start = metadata_start + int.from_bytes(body[covered_start:metadata_start])
    if payload_start > len(body):
        raise _too_short(body)
    return EntryLayout(checksum_start, covered_start, metadata_start, payload_start)


def _find_starts(body: bytes) -> tuple[int, int]:
    """Where the checksum's magic and where the part under it start; equal without a checksum."""
    checksum_start = 0
    if body[:2] == _BROKER_ENTRY_MARK:
        checksum_start = _MAGIC_AND_WORD.size + int.from_bytes(body[2 : _MAGIC_AND_WORD.size])
    has_checksum = body[checksum_start : checksum_start + 2] == _CHECKSUM_MARK
    covered_start = checksum_start + (_CHECKSUM_BYTES if has_checksum else 0)
    if covered_start + LENGTH.size > len(body):
        raise _too_short(body)
    return checksum_start, covered_start


def parse_metadata(body: bytes) -> MessageMetadata:
    """The producer's metadata. More than 1 us: not for every message.

    Raises :class:`RemoteProtocolError` when there is none or a required field is missing.
    """
    layout = locate(body)
    try:
        metadata = _parse_metadata(body[layout.metadata_start : layout.payload_start])
    except DecodeError as error:
        raise RemoteProtocolError(f"entry holds no valid message metadata: {error}") from error
    if not metadata.IsInitialized():
        raise RemoteProtocolError("message metadata lacks a required field")
    return metadata


def payload_of(body: bytes) -> bytes:
    """What follows the metadata: one message, a batch or a chunk, perhaps compressed."""
    return body[locate(body).payload_start :]


def publish_time_ms(body: bytes) -> int:
    """When the producer says it published the entry, in milliseconds since 1970."""
    return parse_metadata(body).publish_time


def batch_size(metadata: MessageMetadata) -> int | None:
    """How many messages the entry's batch holds, or None if the entry is not a batch.

    Presence decides: a batch of one is a batch.
    """
    if metadata.HasField("num_messages_in_batch"):
        return metadata.num_messages_in_batch
    return None


def chunk_facts(metadata: MessageMetadata) -> ChunkFacts | None:
    """Which chunk the entry is, or None if it is a message of its own."""
    if not metadata.HasField("chunk_id") or metadata.num_chunks_from_msg <= 1:
        return None
    return ChunkFacts(
        metadata.uuid,
        metadata.chunk_id,
        metadata.num_chunks_from_msg,
        metadata.total_chunk_msg_size,
    )


def key_facts(metadata: MessageMetadata) -> KeyFacts | None:
    """The message's key, or None if it has none. One may be empty: presence decides."""
    if not metadata.HasField("partition_key") and not metadata.null_partition_key:
        return None
    return KeyFacts(
        metadata.partition_key, metadata.partition_key_b64_encoded, metadata.null_partition_key
    )


def strip_checksum(body: bytes) -> bytes:
    """The entry for a peer before version 11: without checksum and broker entry metadata."""
    covered_start = locate(body).covered_start
    return body[covered_start:] if covered_start else body


def build_entry(metadata: MessageMetadata, payload: bytes, *, checksum: bool = True) -> bytes:
    """Make an entry as a producer does. ``metadata`` must be complete."""
    encoded: bytes = metadata.SerializeToString()
    covered = b"".join((LENGTH.pack(len(encoded)), encoded, payload))
    if not checksum:
        return covered
    return _MAGIC_AND_WORD.pack(MAGIC_CHECKSUM, _crc32c(covered)) + covered


def _too_short(body: bytes) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"entry of {len(body)} bytes is too short for the metadata that it claims to hold"
    )
