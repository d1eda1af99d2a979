"""Reads the publish time of an entry without the protobuf parser, because every publish needs it.

All known clients write the three required fields of the metadata first and in order: the producer's
name, the sequence id, the publish time. The parser would pass over all of the metadata, with every
property of the message.
"""

from __future__ import annotations

import struct

from google.protobuf.message import DecodeError

from headgate.wire.entry import MAGIC_CHECKSUM, locate
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.metadata_head import parse_head

NAME_TAG = 0x0A
SEQUENCE_TAG = 0x10
_TIME_TAG = 0x18
ONE_BYTE = 0x80
"""A varint below this has one byte."""
_VARINT_BYTES_MAX = 10

unpack_head = struct.Struct(">H4xIBB").unpack_from
"""Magic number, size of the metadata, tag and size of the producer's name."""
METADATA_START = 10
NAME_START = 12

_unpack_time = struct.Struct("7B").unpack_from
"""A tag and a varint of six bytes, the size of any time from 1971 to 2109."""
_TIME_FIELD_BYTES = 7

_CONTINUATION_BITS = sum(ONE_BYTE << shift for shift in range(0, 35, 7))
"""The sum of the continuation bits of the first five bytes."""


def publish_time_ms_of(body: bytes) -> int:
    """The publish time in an entry's metadata, in milliseconds since 1970; 0 if there is none.

    The producer may send any number below 2**64. Raises nothing: bytes that are not an entry have
    no publish time. Costs 0.4 us; 1.1 us and more if the fields are in another order.
    """
    try:
        magic, metadata_bytes, name_tag, name_bytes = unpack_head(body)
        at = NAME_START + name_bytes
        if (
            magic == MAGIC_CHECKSUM
            and name_tag == NAME_TAG
            and name_bytes < ONE_BYTE
            and body[at] == SEQUENCE_TAG
        ):
            at += 1
            last = at + _VARINT_BYTES_MAX
            while body[at] >= ONE_BYTE and at < last:
                at += 1
            tag, b0, b1, b2, b3, b4, b5 = _unpack_time(body, at + 1)
            if (
                tag == _TIME_TAG
                and b0 & b1 & b2 & b3 & b4 >= ONE_BYTE > b5
                and at + _TIME_FIELD_BYTES < METADATA_START + metadata_bytes
            ):
                said: int = b0 + (b1 << 7) + (b2 << 14) + (b3 << 21) + (b4 << 28) + (b5 << 35)
                return said - _CONTINUATION_BITS
    except (IndexError, struct.error):
        pass  # too short for the usual shape
    return _parsed_ms(body)


def _parsed_ms(body: bytes) -> int:
    try:
        _, _, start, end = locate(body)
        return parse_head(body[start:end]).publish_time
    except (RemoteProtocolError, DecodeError):
        return 0
