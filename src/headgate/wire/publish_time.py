"""The publish time in an entry, read by hand because every publish needs it.

All known clients write the three required fields of the metadata first and in order: the producer's
name, the sequence id, the publish time. The parser would read all of the metadata, with every
property of the message.
"""

from __future__ import annotations

import struct

from google.protobuf.message import DecodeError

from headgate.wire.entry import MAGIC_CHECKSUM, locate
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import MessageMetadata

_NAME_TAG = 0x0A
_SEQUENCE_TAG = 0x10
_TIME_TAG = 0x18
_ONE_BYTE = 0x80
"""Below this a varint ends with the byte that it begins with."""
_VARINT_BYTES_MAX = 10

_unpack_head = struct.Struct(">H4xIBB").unpack_from
"""Magic number, size of the metadata, and in these the tag and the size of the producer's name."""
_METADATA_START = 10
_NAME_START = 12

_unpack_time = struct.Struct("7B").unpack_from
"""A tag and a varint of six bytes: as many as any time from 1971 to 2109 takes."""
_TIME_FIELD_BYTES = 7

_MARKS = sum(_ONE_BYTE << shift for shift in range(0, 35, 7))
"""What the top bits of the first five bytes add, which say only that another byte follows."""

# Looked up once: an attribute of a generated class costs 0.3 us a time.
_parse_metadata = MessageMetadata.FromString


def publish_time_ms_of(body: bytes) -> int:
    """The publish time in an entry's metadata, in milliseconds since 1970; 0 where there is none.

    It is the producer's word: any number below 2**64. Nothing is raised: bytes that are no entry
    have none. Costs 0.4 us, 1.1 us and more where the fields come in another order.
    """
    try:
        magic, metadata_bytes, name_tag, name_bytes = _unpack_head(body)
        at = _NAME_START + name_bytes
        if (
            magic == MAGIC_CHECKSUM
            and name_tag == _NAME_TAG
            and name_bytes < _ONE_BYTE
            and body[at] == _SEQUENCE_TAG
        ):
            at += 1
            last = at + _VARINT_BYTES_MAX
            while body[at] >= _ONE_BYTE and at < last:
                at += 1
            tag, b0, b1, b2, b3, b4, b5 = _unpack_time(body, at + 1)
            if (
                tag == _TIME_TAG
                and b0 & b1 & b2 & b3 & b4 >= _ONE_BYTE > b5
                and at + _TIME_FIELD_BYTES < _METADATA_START + metadata_bytes
            ):
                said: int = b0 + (b1 << 7) + (b2 << 14) + (b3 << 21) + (b4 << 28) + (b5 << 35)
                return said - _MARKS
    except (IndexError, struct.error):
        pass  # too short for the usual shape
    return _parsed_ms(body)


def _parsed_ms(body: bytes) -> int:
    try:
        _, _, start, end = locate(body)
        return _parse_metadata(body[start:end]).publish_time
    except (RemoteProtocolError, DecodeError):
        return 0
