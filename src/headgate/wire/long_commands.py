"""Commands above the size that a broker parses at once: ids are read in pieces, others refused.

Parsing a protobuf message may take a hundred times its own bytes, so the size alone says little of
the cost. Above a bound, nothing is parsed before this module has looked through it:

* ACK and REDELIVER are long because they name many messages. :class:`LongIds` cuts them into
  commands of the same kind with a few hundred ids each, as if the client had sent these. The fields
  behind the ids (the request id of an ACK) are in the last one.
* Of any other command, :func:`beginning_of` keeps the first short fields, enough to refuse it to
  its sender.

Rules of this file: no I/O, no state beyond one command; only :class:`RemoteProtocolError` is
raised.
"""

from __future__ import annotations

from typing import Final

from google.protobuf.message import DecodeError

from headgate.base.units import KIB
from headgate.wire.codes import CommandType
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import BaseCommand
from headgate.wire.varint import varint

PIECE_BYTES: Final = 16 * KIB
"""Bytes of ids in one piece: about a thousand ids, which take the parser 0.3 ms."""

_ID_BYTES_MIN: Final = 4
"""Least bytes of a message id, without its tag and size: two required numbers."""
_TAIL_BYTES_MAX: Final = 256
"""Most bytes after the ids."""
_HEAD_FIELDS_MAX: Final = 4
_FIELDS_MAX: Final = 32
_FIELD_BYTES_MAX: Final = KIB
"""Largest field that is kept of a refused command."""

PARSED_BYTES_MAX: Final = _FIELDS_MAX * _FIELD_BYTES_MAX
"""Most bytes of a command that are parsed at once, to refuse it or as a piece."""

_TYPE_TAG: Final = 0x08
_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
"""Protobuf's wire types: the low three bits of a tag."""

_ID_TAG_OF: Final = {
    int(CommandType.ACK): 0x1A,
    int(CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES): 0x12,
}
"""The tag of a message id, by the commands that may be long."""


def type_of(command: bytes | memoryview) -> int:
    """The type of an encoded command; 0 unless it comes first, as all known clients write it."""
    is_plain = len(command) > 1 and command[0] == _TYPE_TAG and command[1] < 0x80
    return command[1] if is_plain else 0


def is_of_ids(kind: int) -> bool:
    """Whether commands of this type may be long."""
    return kind in _ID_TAG_OF


class LongIds:
    """An ACK or REDELIVER of many ids, cut into pieces from front to back."""

    __slots__ = ("_at", "_head", "_id_tag", "_prefix")

    def __init__(self, command: memoryview) -> None:
        """``command`` is the encoded BaseCommand; pass the same to every call of :meth:`piece`.

        Raises :class:`RemoteProtocolError` if it does not begin as clients write it.
        """
        kind = type_of(command)
        self._id_tag = _ID_TAG_OF[kind]
        self._prefix = bytes((_TYPE_TAG, kind)) + varint(kind << 3 | _SIZED)
        start = command[: len(self._prefix) + 64].tobytes()
        try:
            size, inner = _read_varint(start, len(self._prefix))
            at = inner
            for _ in range(_HEAD_FIELDS_MAX):
                if start[at] == self._id_tag or start[at] & 7 != _VARINT:
                    break
                _, at = _read_varint(start, at + 1)
        except IndexError:
            size = inner = at = 0
        if (
            not start.startswith(self._prefix)
            or inner + size != len(command)
            or start[at : at + 1] != bytes((self._id_tag,))
        ):
            raise RemoteProtocolError(
                f"{CommandType(kind).name} is too long, and not because of its message ids"
            )
        self._head = start[inner:at]
        self._at = at

    def piece(self, command: memoryview) -> tuple[bytes, bool]:
        """The next piece, an encoded BaseCommand, and whether it is the last one.

        Raises :class:`RemoteProtocolError` if what follows is not an id.
        """
        begin, end = self._at, len(command)
        window = command[begin : begin + 2 * PIECE_BYTES + _TAIL_BYTES_MAX].tobytes()
        at, id_tag = 0, self._id_tag
        try:
            while at < PIECE_BYTES and begin + at < end and window[at] == id_tag:
                size, body = window[at + 1], at + 2
                if size >= 0x80:
                    size, body = _read_varint(window, at + 1)
                if not _ID_BYTES_MIN <= size <= PIECE_BYTES:
                    raise RemoteProtocolError(f"a message id of {size} bytes")
                at = body + size
        except IndexError:
            at = len(window) + 1
        if begin + at > end:
            raise RemoteProtocolError("a message id is longer than its command")
        is_last = begin + at == end or window[at] != id_tag
        if is_last:
            if end - begin - at > _TAIL_BYTES_MAX:
                raise RemoteProtocolError("message ids do not follow each other")
            at = end - begin
        self._at += at
        inner = self._head + window[:at]
        return self._prefix + varint(len(inner)) + inner, is_last


def beginning_of(command: memoryview) -> BaseCommand | None:
    """A command of the first short fields of an encoded one; required fields may be missing. None
    if the command cannot be decoded."""
    kind = type_of(command)
    prefix = bytes((_TYPE_TAG, kind)) + varint(kind << 3 | _SIZED)
    if not kind or command[: len(prefix)] != prefix:
        return None
    kept: list[bytes] = []
    try:
        _, at = _read_varint(command, len(prefix))
        for _ in range(_FIELDS_MAX):
            after = _after_field(command, at)
            if after > len(command):
                break
            if after - at <= _FIELD_BYTES_MAX:
                kept.append(command[at:after].tobytes())
            at = after
    except (IndexError, RemoteProtocolError):
        pass  # at its end, or where it is damaged
    inner = b"".join(kept)
    try:
        return BaseCommand.FromString(prefix + varint(len(inner)) + inner)
    except DecodeError:
        return None


def _after_field(data: memoryview, at: int) -> int:
    """The end of the field at ``at``."""
    tag, at = _read_varint(data, at)
    wire_type = tag & 7
    if wire_type == _VARINT:
        return _read_varint(data, at)[1]
    if wire_type == _SIZED:
        size, at = _read_varint(data, at)
        return at + size
    if wire_type in (_EIGHT_BYTES, _FOUR_BYTES):
        return at + (8 if wire_type == _EIGHT_BYTES else 4)
    raise RemoteProtocolError(f"protobuf has no wire type {wire_type}")


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A number and the offset behind it. Raises IndexError if the data ends before."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise RemoteProtocolError("a number of more than 64 bits")
