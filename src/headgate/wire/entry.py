"""The body of a SEND or MESSAGE frame: an entry, stored and delivered verbatim.

Layout, integers big-endian; each bracket may be absent as a whole::

    [u16 0x0e02 | u32 size | BrokerEntryMetadata]     outside the checksum
    [u16 0x0e01 | u32 crc32c]
    u32 metadata_size | MessageMetadata | payload     what the checksum covers

The first two bytes show whether a bracket is present: if not, they are the upper half of
``metadata_size``, and no metadata is so large that it equals a magic number.

Rules of this file: an entry is never re-encoded, because its checksum must stay valid; at most a
bracket is cut off for a peer that cannot read it. The payload is opaque. An ordinary message needs
only :func:`checksum_ok`.
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

CHECKSUM_MARK = MAGIC_CHECKSUM.to_bytes(2)
_BROKER_ENTRY_MARK = MAGIC_BROKER_ENTRY.to_bytes(2)

_HEAD = struct.Struct(">HII")
_MAGIC_AND_WORD = struct.Struct(">HI")
LENGTH = struct.Struct(">I")
"""The length in front of a part."""
_CHECKSUM_BYTES = _MAGIC_AND_WORD.size

_crc32c = cast("Callable[[bytes], int]", google_crc32c.value)
# Bound once: each access to an attribute of a generated class costs 0.3 us.
_parse_metadata = MessageMetadata.FromString


class EntryLayout(NamedTuple):
    """Offsets into an entry, in bytes."""

    checksum_start: int
    """Offset of 0x0e01, or where it would be."""

    covered_start: int
    """Offset of ``metadata_size``, the first byte that the checksum covers."""

    metadata_start: int
    payload_start: int


class ChunkFacts(NamedTuple):
    """The chunk of a message that an entry is."""

    uuid: str
    """The id of the message, the same in all its chunks."""

    chunk_id: int
    """Index of this chunk, from 0."""

    chunk_count: int
    message_size_bytes: int
    """Size of the whole message."""


class EncryptionFacts(NamedTuple):
    """What a consumer needs for decryption, besides its private key."""

    keys: tuple[bytes, ...]
    """Messages ``EncryptionKeys``: the data key, encrypted for each of the recipients."""
    parameter: bytes
    """The initialization vector."""


class KeyFacts(NamedTuple):
    """The key in a message's metadata."""

    text: str
    is_base64: bool
    """Whether ``text`` is base64 of the key's bytes."""

    is_null: bool
    """Whether the key is null, as in a separated KeyValue."""


def crc32c(data: bytes) -> int:
    """The CRC32C (Castagnoli) of some bytes."""
    return _crc32c(data)


def checksum_ok(body: bytes) -> bool:
    """Whether an entry's checksum, if it has one, is right.

    Raises :class:`RemoteProtocolError` if the entry is shorter than its lengths say. A wrong
    checksum goes first: damage in transit differs from a faulty client.
    """
    # One unpack for the usual form. The slice is a copy: google_crc32c takes no memoryview.
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
    """Offsets of the checksum's magic and of the part that it covers; equal without a checksum."""
    checksum_start = 0
    if body[:2] == _BROKER_ENTRY_MARK:
        checksum_start = _MAGIC_AND_WORD.size + int.from_bytes(body[2 : _MAGIC_AND_WORD.size])
    has_checksum = body[checksum_start : checksum_start + 2] == CHECKSUM_MARK
    covered_start = checksum_start + (_CHECKSUM_BYTES if has_checksum else 0)
    if covered_start + LENGTH.size > len(body):
        raise _too_short(body)
    return checksum_start, covered_start


def parse_metadata(body: bytes) -> MessageMetadata:
    """The producer's metadata. Takes more than 1 us: not for every message.

    Raises :class:`RemoteProtocolError` if it is invalid or lacks a required field.
    """
    return metadata_by(_parse_metadata, body)


def metadata_by(parse: Callable[[bytes], MessageMetadata], body: bytes) -> MessageMetadata:
    """What a parser makes of an entry's metadata.

    Raises :class:`RemoteProtocolError` if it is invalid or lacks a required field.
    """
    layout = locate(body)
    try:
        metadata = parse(body[layout.metadata_start : layout.payload_start])
    except DecodeError as error:
        raise RemoteProtocolError(f"entry holds no valid message metadata: {error}") from error
    if not metadata.IsInitialized():
        raise RemoteProtocolError("message metadata lacks a required field")
    return metadata


def payload_of(body: bytes) -> bytes:
    """The bytes after the metadata: a message, a batch or a chunk, perhaps compressed."""
    return body[locate(body).payload_start :]


def batch_size(metadata: MessageMetadata) -> int | None:
    """The number of messages in the entry's batch; None if the entry is not a batch. A batch may
    have one message."""
    if metadata.HasField("num_messages_in_batch"):
        return metadata.num_messages_in_batch
    return None


def chunk_facts(metadata: MessageMetadata) -> ChunkFacts | None:
    """The chunk that the entry is; None if it is not a chunk."""
    if not metadata.HasField("chunk_id") or metadata.num_chunks_from_msg <= 1:
        return None
    return ChunkFacts(
        metadata.uuid,
        metadata.chunk_id,
        metadata.num_chunks_from_msg,
        metadata.total_chunk_msg_size,
    )


def key_facts(metadata: MessageMetadata) -> KeyFacts | None:
    """The message's key; None if it has none. A key may be empty."""
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
    """Build an entry as a producer does. ``metadata`` must be complete."""
    encoded: bytes = metadata.SerializeToString()
    covered = b"".join((LENGTH.pack(len(encoded)), encoded, payload))
    if not checksum:
        return covered
    return _MAGIC_AND_WORD.pack(MAGIC_CHECKSUM, _crc32c(covered)) + covered


def _too_short(body: bytes) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"entry of {len(body)} bytes is too short for the metadata that it claims to hold"
    )
