"""The format of the copy of the metadata that lies in a log's directory.

The first line is ``headgate-metadata-copy 1``. Records follow, integers little endian::

    u32 CRC-32 of size and payload, continued from that of the record before | u32 payload size
    | payload

A payload is MessagePack: a list of ``[kind, key, value]``, where a value of nil removes the row.
The first record has one such row of the kind ``snapshot``, whose key is the number of rows that the
file was written with; the next records have those rows, and all later ones a change each.

The file is written as a whole and then only grows. So damage behind the first rows costs the
changes behind it, and a file that ends within the first rows is unusable.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from headgate.base.errors import CorruptionError
from headgate.metadata.store import Write

COPY_VERSION: Final = 1
_LINE: Final = b"headgate-metadata-copy %d\n" % COPY_VERSION
_OTHER_LINE = re.compile(rb"(headgate-metadata-copy [1-9]\d{0,8})\n")
_COUNT = re.compile(r"[0-9]{1,18}")
_HEAD = struct.Struct("<II")
_SIZE = struct.Struct("<I")
_SNAPSHOT: Final = "snapshot"
_ROWS_PER_RECORD: Final = 1_000

_Row = tuple[str, str, bytes | None]
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_Row])


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """The content of a copy."""

    rows: dict[tuple[str, str], bytes]
    end: int
    """Offset behind the last sound record."""
    crc: int
    """The checksum from which the next record continues."""
    rest_bytes: int
    """Bytes behind ``end``: a change that a crash cut short, or damage."""
    snapshot_bytes: int
    """Size of the part that the file was written with."""


class CopyEncoder:
    """Makes the parts of a file from rows that come in lists."""

    def __init__(self) -> None:
        self._payloads: list[bytes] = []
        self._rows_count = 0

    def add(self, rows: Sequence[_Row]) -> None:
        """Add rows, none of which was added before."""
        self._payloads.append(_encoder.encode(rows))
        self._rows_count += len(rows)

    def parts(self) -> tuple[list[bytes], int]:
        """The parts of the file, and the checksum from which changes continue."""
        head, crc = _record([(_SNAPSHOT, str(self._rows_count), None)], 0)
        parts = [_LINE, head]
        for payload in self._payloads:
            # Not joined: tenants may have hundreds of megabytes of rows, which were there twice.
            head, crc = _head_of(payload, crc)
            parts += head, payload
        return parts, crc


def encode_copy(rows: Mapping[tuple[str, str], bytes]) -> tuple[list[bytes], int]:
    """The parts of a file with these rows, and the checksum from which changes continue."""
    encoder = CopyEncoder()
    listed = ((kind, key, value) for (kind, key), value in rows.items())
    while some := list[_Row](islice(listed, _ROWS_PER_RECORD)):
        encoder.add(some)
    return encoder.parts()


def encode_change(writes: Sequence[Write], crc: int) -> tuple[bytes, int]:
    """A record with a change, and the checksum from which the next one continues."""
    return _record([(write.kind, write.key, write.value) for write in writes], crc)


def decode_copy(data: bytes, name: str) -> CopiedRows:
    """Decode a file up to its last sound record. ``name`` is for the error.

    Raises :class:`CorruptionError` if it is of another version, or damaged within its first rows.
    """
    if not data.startswith(_LINE):
        other = _OTHER_LINE.match(data)
        if other is not None:
            raise CorruptionError(f"{name} is of another release: {other[1].decode()}")
        raise CorruptionError(f"{name} is damaged: its first line is not that of a copy")
    rows: dict[tuple[str, str], bytes] = {}
    at, crc, expected, snapshot_bytes = len(_LINE), 0, -1, 0
    while (found := _record_at(data, at, crc)) is not None:
        listed, at, crc = found
        if expected < 0:
            expected = _expected(listed, name)
        else:
            _take(rows, listed)
        if not snapshot_bytes and len(rows) >= expected:
            snapshot_bytes = at
    if not snapshot_bytes:
        raise CorruptionError(
            f"{name} is damaged at offset {at}: it ends after {len(rows)} of "
            f"{max(expected, 0)} rows"
        )
    return CopiedRows(rows, at, crc, len(data) - at, snapshot_bytes)


def _record(rows: Sequence[_Row], crc: int) -> tuple[bytes, int]:
    return _framed(_encoder.encode(rows), crc)


def _framed(payload: bytes, crc: int) -> tuple[bytes, int]:
    head, crc = _head_of(payload, crc)
    return head + payload, crc


def _head_of(payload: bytes, crc: int) -> tuple[bytes, int]:
    size = _SIZE.pack(len(payload))
    crc = zlib.crc32(payload, zlib.crc32(size, crc))
    return _HEAD.pack(crc, len(payload)), crc


def _record_at(data: bytes, at: int, crc: int) -> tuple[list[_Row], int, int] | None:
    """The rows at an offset, the end of their record and its checksum; None if it is not sound."""
    if at + _HEAD.size > len(data):
        return None
    stored, size = _HEAD.unpack_from(data, at)
    payload = data[at + _HEAD.size : at + _HEAD.size + size]
    crc = zlib.crc32(payload, zlib.crc32(_SIZE.pack(size), crc))
    if len(payload) != size or crc != stored:
        return None
    try:
        return _decoder.decode(payload), at + _HEAD.size + size, crc
    except msgspec.MsgspecError:
        return None


def _expected(listed: Sequence[_Row], name: str) -> int:
    """The number of rows that the first record announces."""
    if len(listed) == 1 and listed[0][0] == _SNAPSHOT and _COUNT.fullmatch(listed[0][1]):
        return int(listed[0][1])
    raise CorruptionError(f"{name} is damaged: its first record is not that of a copy")


def _take(rows: dict[tuple[str, str], bytes], listed: Sequence[_Row]) -> None:
    for kind, key, value in listed:
        if value is None:
            rows.pop((kind, key), None)
        else:
            rows[kind, key] = value
