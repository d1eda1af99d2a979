"""Reads who produced an entry and under which sequence ids, for message deduplication.

The entry itself is read, not the SEND command around it, because a start rebuilds what was stored
from entries. So the broker decides by the same bytes before and after a crash.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from google.protobuf.message import DecodeError

from headgate.base.units import INT64_MAX
from headgate.wire.entry import CHECKSUM_MARK, MAGIC_CHECKSUM, locate
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.metadata_head import parse_head
from headgate.wire.publish_time import (
    METADATA_START,
    NAME_START,
    NAME_TAG,
    ONE_BYTE,
    SEQUENCE_TAG,
    unpack_head,
)

_HIGHEST_TAG = b"\xc0\x01"
"""The bytes before ``highest_sequence_id`` (field 24, a varint)."""
_CHUNKS_TAG = b"\xd8\x01"
"""The bytes before ``num_chunks_from_msg`` (field 27, a varint)."""
_VARINT_BITS_MAX = 63
_WORD = 1 << 64


EntrySequence = tuple[str, int, int]
"""The producer's name in an entry's metadata, the sequence id of its first message, and the highest
one of its messages."""


def entry_sequence(body: bytes) -> EntrySequence | None:
    """The name and sequence ids in an entry's metadata. None for a chunk that is not the last one
    of its message, and for bytes that are not an entry: deduplication ignores these.

    Raises nothing. Ids are signed, as clients mean them. Costs 0.4 us for what ordinary clients
    send; 1 us and more if the entry is a chunk, names its highest id, or has its fields in another
    order.
    """
    try:
        magic, metadata_bytes, name_tag, name_bytes = unpack_head(body)
        at = NAME_START + name_bytes
        end = METADATA_START + metadata_bytes
        if (
            magic == MAGIC_CHECKSUM
            and name_tag == NAME_TAG
            and name_bytes < ONE_BYTE
            and body[at] == SEQUENCE_TAG
            and body.find(_HIGHEST_TAG, at, end) < 0
            and body.find(_CHUNKS_TAG, at, end) < 0
        ):
            name = body[NAME_START:at].decode()
            found = body[at + 1]
            if found >= ONE_BYTE:
                found, shift = found - ONE_BYTE, 7
                at += 2
                # One that goes on and on would take the square of its size.
                while (byte := body[at]) >= ONE_BYTE and shift < _VARINT_BITS_MAX:
                    found += (byte - ONE_BYTE) << shift
                    shift += 7
                    at += 1
                found += byte << shift
                if shift >= _VARINT_BITS_MAX:
                    return _parsed(body)  # negative, or more than the parser takes
            return name, found, found
    except (IndexError, struct.error, UnicodeDecodeError):
        pass  # not of the usual shape
    return _parsed(body)


def name_test(name: str) -> Callable[[bytes], bool]:
    """A quick test whether an entry names the producer ``name`` in the usual place. If it does,
    :func:`entry_sequence` gives this name or nothing."""
    encoded = name.encode()
    if len(encoded) >= ONE_BYTE:
        return _never
    start = bytes((NAME_TAG, len(encoded))) + encoded + bytes((SEQUENCE_TAG,))
    mark = CHECKSUM_MARK
    at, head = slice(METADATA_START, METADATA_START + len(start)), slice(len(mark))

    def names(body: bytes) -> bool:  # startswith with an offset takes twice as long
        return body[at] == start and body[head] == mark

    return names


def _never(_: bytes) -> bool:
    return False


def _parsed(body: bytes) -> EntrySequence | None:
    try:
        _, _, start, end = locate(body)
        metadata = parse_head(body[start:end])
    except (RemoteProtocolError, DecodeError):
        return None
    name = metadata.producer_name
    if not isinstance(name, str):
        return None  # what the parser returns for a text that is not UTF-8
    if start == METADATA_START and body[start] == NAME_TAG and body[start + 1] < ONE_BYTE:
        first_name = body[NAME_START : NAME_START + body[start + 1]]
        if first_name != name.encode():
            return None  # a second name, behind the one that name_test sees
    chunks = metadata.num_chunks_from_msg
    if metadata.HasField("chunk_id") and chunks > 1 and metadata.chunk_id != chunks - 1:
        return None
    first = _signed(metadata.sequence_id)
    return name, first, max(first, _signed(metadata.highest_sequence_id))


def _signed(value: int) -> int:
    return value - _WORD if value > INT64_MAX else value
