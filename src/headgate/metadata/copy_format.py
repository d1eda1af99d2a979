"""The format of the copy of the metadata that lies in a log's directory.

The first line is ``headgate-metadata-copy 2``. Records follow, integers little endian::

    u32 CRC-32 of size and payload, continued from that of the record before | u32 payload size
    | payload

A payload is MessagePack: a list of ``[kind, key, value]``, where a value of nil removes the row.
The first records have the rows that the file was written with. The next one has one row of the kind
``snapshot``, whose key is their number; all later ones have a change each.

The file is written up to that record, and to the changes that came while the rows were read. Then
it gets its name, and only grows. So damage behind the first rows costs the changes behind it, and a
file that ends within the first rows is unusable.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final

import msgspec

from headgate.base.errors import CorruptionError
from headgate.base.units import MIB
from headgate.metadata.store import Write

COPY_VERSION: Final = 2
_LINE: Final = b"headgate-metadata-copy %d\n" % COPY_VERSION
_OTHER_LINE = re.compile(rb"(headgate-metadata-copy [1-9]\d{0,8})\n")
_HEAD = struct.Struct("<II")
_SIZE = struct.Struct("<I")
_SNAPSHOT: Final = "snapshot"
_ROWS_PER_RECORD: Final = 1_000
_LINE_BYTES_MAX: Final = 40
WINDOW_BYTES: Final = MIB
"""What is read of a file at once."""

_Row = tuple[str, str, bytes | None]
_NONE: Final[Mapping[tuple[str, str], bytes]] = MappingProxyType({})
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
        self._parts: list[bytes] = [_LINE]
        self._rows_count = 0
        self.crc = 0
        """The checksum from which the next record continues."""
        self.held_bytes = len(_LINE)
        """Bytes of the parts that :meth:`take` returns next."""

    def add(self, rows: Sequence[_Row]) -> None:
        """Add rows, none of which was added before."""
        self._append(rows)
        self._rows_count += len(rows)

    def end(self) -> None:
        """There are no more rows."""
        self._append([(_SNAPSHOT, str(self._rows_count), None)])

    def add_change(self, writes: Sequence[Write]) -> None:
        """Add a change, behind :meth:`end`."""
        self._append(_rows_of(writes))

    def take(self) -> list[bytes]:
        """The parts that follow those that were taken before."""
        parts, self._parts = self._parts, []
        self.held_bytes = 0
        return parts

    def _append(self, rows: Sequence[_Row]) -> None:
        record, self.crc = _record(rows, self.crc)
        self._parts.append(record)
        self.held_bytes += len(record)


def encode_copy(rows: Mapping[tuple[str, str], bytes]) -> tuple[list[bytes], int]:
    """The parts of a file with these rows, and the checksum from which changes continue."""
    encoder = CopyEncoder()
    listed = ((kind, key, value) for (kind, key), value in rows.items())
    while some := list[_Row](islice(listed, _ROWS_PER_RECORD)):
        encoder.add(some)
    encoder.end()
    return encoder.take(), encoder.crc


def encode_change(writes: Sequence[Write], crc: int) -> tuple[bytes, int]:
    """A record with a change, and the checksum from which the next one continues."""
    return _record(_rows_of(writes), crc)


def decode_copy(
    read: Callable[[int, int], bytes],
    size_bytes: int,
    name: str,
    known: Mapping[tuple[str, str], bytes] = _NONE,
) -> CopiedRows:
    """Decode a file up to its last sound record, a part at a time.

    ``read`` returns bytes from an offset on, ``name`` is for the error. A value that ``known`` has,
    too, is not in memory a second time.

    Raises :class:`CorruptionError` if it is of another version, or damaged within its first rows.
    """
    window = _Window(read, size_bytes)
    _check_line(window.bytes_at(0, _LINE_BYTES_MAX), name)
    rows: dict[tuple[str, str], bytes] = {}
    at, crc, snapshot_bytes = len(_LINE), 0, 0
    while (found := _record_at(window, at, crc)) is not None:
        listed, at, crc = found
        if not snapshot_bytes and listed and listed[0][0] == _SNAPSHOT:
            if listed != [(_SNAPSHOT, str(len(rows)), None)]:
                text = f"{len(rows)} rows where it says {listed[0][1]!r:.40}"
                raise CorruptionError(f"{name} is damaged: it has {text}")
            snapshot_bytes = at
        else:
            _take(rows, listed, known)
    if not snapshot_bytes:
        raise CorruptionError(
            f"{name} is damaged at offset {at}: it ends within its first rows, after {len(rows)}"
        )
    return CopiedRows(rows, at, crc, size_bytes - at, snapshot_bytes)


class _Window:
    """A file of which a part is in memory."""

    def __init__(self, read: Callable[[int, int], bytes], size_bytes: int) -> None:
        self._read = read
        self._size_bytes = size_bytes
        self._data, self._at = b"", 0

    def bytes_at(self, at: int, count: int) -> bytes:
        """So many bytes from an offset on; fewer at the end of the file."""
        end = min(at + count, self._size_bytes)
        if not self._at <= at <= end <= self._at + len(self._data):
            self._data = self._read(at, min(max(count, WINDOW_BYTES), self._size_bytes - at))
            self._at = at
        return self._data[at - self._at : max(end, at) - self._at]


def _check_line(data: bytes, name: str) -> None:
    if data.startswith(_LINE):
        return
    other = _OTHER_LINE.match(data)
    if other is not None:
        raise CorruptionError(f"{name} is of another release: {other[1].decode()}")
    raise CorruptionError(f"{name} is damaged: its first line is not that of a copy")


def _rows_of(writes: Sequence[Write]) -> list[_Row]:
    return [(write.kind, write.key, write.value) for write in writes]


def _record(rows: Sequence[_Row], crc: int) -> tuple[bytes, int]:
    payload = _encoder.encode(rows)
    size = _SIZE.pack(len(payload))
    crc = zlib.crc32(payload, zlib.crc32(size, crc))
    return _HEAD.pack(crc, len(payload)) + payload, crc


def _record_at(window: _Window, at: int, crc: int) -> tuple[list[_Row], int, int] | None:
    """The rows at an offset, the end of their record and its checksum; None if it is not sound."""
    head = window.bytes_at(at, _HEAD.size)
    if len(head) < _HEAD.size:
        return None
    stored, size = _HEAD.unpack(head)
    payload = window.bytes_at(at + _HEAD.size, size)
    crc = zlib.crc32(payload, zlib.crc32(_SIZE.pack(size), crc))
    if len(payload) != size or crc != stored:
        return None
    try:
        return _decoder.decode(payload), at + _HEAD.size + size, crc
    except msgspec.MsgspecError:
        return None


def _take(
    rows: dict[tuple[str, str], bytes],
    listed: Sequence[_Row],
    known: Mapping[tuple[str, str], bytes],
) -> None:
    for kind, key, value in listed:
        if value is None:
            rows.pop((kind, key), None)
        else:
            other = known.get((kind, key))
            rows[kind, key] = other if other is not None and other == value else value
