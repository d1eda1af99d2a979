"""Splits a byte stream into frames and assembles frames.

All integers are big-endian::

    simple frame    u32 total_size | u32 command_size | BaseCommand
    payload frame   u32 total_size | u32 command_size | BaseCommand | body
    body            see headgate/wire/entry.py; only SEND and MESSAGE have one

``total_size`` counts everything after itself.

Rules of this file: no I/O, no time. Bytes go in through :meth:`FrameDecoder.get_buffer` and
:meth:`FrameDecoder.advance`, the two halves of ``asyncio.BufferedProtocol``; frames come out one
by one through :meth:`FrameDecoder.next_frame`. The *caller* pulls, so a paused connection stops
parsing at once, even if more frames are buffered. A claimed size alone allocates nothing: the
buffer grows only as bytes arrive. Whatever a peer sends, only :class:`RemoteProtocolError` is
raised; after one the decoder stays broken.

Measured choices (Python 3.11, upb, microseconds): a command is parsed from a slice of the
bytearray (0.28; a memoryview slice 0.29, ``bytes`` of it 0.41) and a 1 KiB body is copied out by
``memoryview.tobytes`` (0.12; ``bytes(view)`` 0.16, ``bytes(bytearray slice)`` 0.19). Parsing SEND
and reading its four fields costs 0.55 in all, so a hand-written parser, which could save at most
half of that, is not worth its code.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from headgate.wire.codes import CommandType
from headgate.wire.errors import CommandTooLongError, LocalProtocolError, RemoteProtocolError
from headgate.wire.limits import (
    BUFFER_BYTES_START,
    BUFFER_BYTES_STEADY,
    FRAME_BYTES_MAX_DEFAULT,
    PARTS_MAX,
    READ_BYTES_MIN,
)
from headgate.wire.long_commands import (
    PARSED_BYTES_MAX,
    LongIds,
    beginning_of,
    is_of_ids,
    type_of,
)
from headgate.wire.messages import BaseCommand

Frame = tuple[BaseCommand, bytes | None]
"""A command and, for SEND and MESSAGE, the body that came with it."""

FIELD_OF_TYPE: dict[int, str] = {
    field.number: field.name for field in BaseCommand.DESCRIPTOR.fields if field.number > 1
}
"""Command type -> the field of BaseCommand with it; the protocol gives both the same number."""

_SIZES = struct.Struct(">II")
_WORD_BYTES = 4

# Bound once: each access to an attribute of a generated class costs 0.3 us.
_parse_command = cast("Callable[[bytearray], BaseCommand]", BaseCommand.FromString)

_SEND = int(CommandType.SEND)
_ACK = int(CommandType.ACK)
_REASON_CHARACTERS_MAX = 200
_SMALL_BYTES = 1_024
"""Commands up to this size get the faster test for missing fields. For a large command that test
may take seconds, because it names every missing field."""
_WITH_BODY = frozenset((int(CommandType.SEND), int(CommandType.MESSAGE)))

_WITHOUT_TEXT: frozenset[int] = frozenset(
    (
        CommandType.SEND,
        CommandType.SEND_RECEIPT,
        CommandType.MESSAGE,
        CommandType.ACK,
        CommandType.FLOW,
        CommandType.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        CommandType.PING,
        CommandType.PONG,
    )
)
"""Frequent commands whose texts the broker does not read: not checked for invalid UTF-8. (An ACK
may have properties with text keys; they belong to transactions, which are not built.)"""

_FOREIGN_PROTOCOLS = {
    b"GET ": "an HTTP request: the admin API listens on another port",
    b"PUT ": "an HTTP request: the admin API listens on another port",
    b"POST": "an HTTP request: the admin API listens on another port",
    b"HEAD": "an HTTP request: the admin API listens on another port",
}
TLS_RECORD = b"\x16\x03"
"""The first bytes of a TLS handshake."""


def encode_frame(command: BaseCommand) -> bytes:
    """Encode ``command`` as a simple frame.

    Raises :class:`LocalProtocolError` if a required field is missing.
    """
    try:
        encoded: bytes = command.SerializeToString()
    except EncodeError as error:
        raise LocalProtocolError(f"command is not complete: {error}") from error
    return frame_of(encoded)


def frame_of(encoded: bytes) -> bytes:
    """The simple frame of an encoded command."""
    return _SIZES.pack(len(encoded) + _WORD_BYTES, len(encoded)) + encoded


def encode_frame_head(command: BaseCommand, body_size: int) -> bytes:
    """The part of a payload frame before its body of ``body_size`` bytes."""
    encoded: bytes = command.SerializeToString()
    return _SIZES.pack(len(encoded) + _WORD_BYTES + body_size, len(encoded)) + encoded


@dataclass(frozen=True, slots=True)
class DecoderStatistics:
    """The present buffers of a decoder."""

    buffer_bytes: int
    """Size of the receive buffer."""

    pending_bytes: int
    """Received bytes that are not yet returned as frames."""


def _ignore(_: int) -> None:
    """Stands for a function of a connection that has ended."""


class FrameDecoder:
    """The receiving half of one connection.

    ``frame_size_max`` bounds the bytes after a frame's length word; see
    :func:`headgate.wire.limits.frame_bytes_max`. ``command_size_max`` bounds a command without its
    body. It defaults to ``frame_size_max``, for clients, which must take every reply of a broker.
    Not thread-safe.
    """

    __slots__ = (
        "_buffer", "_command_size_max", "_end", "_error", "_frame_size_max", "_long_ids",
        "_may_grow", "_new_buffer", "_on_growth", "_start", "_view", "_wanted", "command_size",
        "has_part", "is_partial",
    )  # fmt: skip

    def __init__(
        self,
        frame_size_max: int = FRAME_BYTES_MAX_DEFAULT,
        command_size_max: int | None = None,
        on_growth: Callable[[int], None] = lambda _: None,
        may_grow: Callable[[], bool] = lambda: True,
        new_buffer: Callable[[int], bytearray] = bytearray,
    ) -> None:
        """``on_growth`` is called with the bytes by which the buffer grows, negative when it gives
        some back, ``may_grow`` before the buffer grows only to be faster. ``new_buffer`` makes a
        buffer of a size: a ``bytearray``, or what can be read and written like one."""
        self.set_limits(frame_size_max, command_size_max)
        self._new_buffer = new_buffer
        self._may_grow = may_grow
        self._on_growth = on_growth
        self.command_size = 0
        """Bytes of the command that was parsed last, also if it was none."""
        self.is_partial = False
        """Whether that command is a part of a long one that continues in the next frame."""
        self.has_part = False
        """Whether :meth:`next_frame` found a part of a frame last."""
        self._long_ids: LongIds | None = None
        self._buffer = bytearray(BUFFER_BYTES_START)
        self._view = memoryview(self._buffer)
        # Bytes [_start, _end) of the buffer are received and not yet returned.
        self._start = 0
        self._end = 0
        # Size of the frame at _start with its length word, 0 until that word has arrived.
        self._wanted = 0
        self._error: RemoteProtocolError | None = None

    @property
    def buffer_bytes(self) -> int:
        """Size of the receive buffer."""
        return len(self._buffer)

    @property
    def missing_bytes(self) -> int:
        """Bytes of the first frame that have not arrived, as far as it says; 0 if it is whole."""
        pending = self._end - self._start
        if pending < 8:
            return 0
        total_size: int = _SIZES.unpack_from(self._view, self._start)[0]
        return max(_WORD_BYTES + total_size - pending, 0)

    @property
    def send_bytes(self) -> int:
        """Size of the next frame if it has arrived whole and may be a SEND, else 0. It is one, if
        its type comes first, as all known clients write it."""
        pending = self._end - self._start
        if pending < 8:
            return 0
        size: int = _SIZES.unpack_from(self._view, self._start)[0] + _WORD_BYTES
        kind = type_of(self._view[self._start + 8 : self._start + 10])
        return size if size <= pending and kind in (0, _SEND) else 0

    def set_limits(self, frame_size_max: int, command_size_max: int | None = None) -> None:
        """Change both bounds, also for bytes that are buffered."""
        self._frame_size_max = frame_size_max
        self._command_size_max = frame_size_max if command_size_max is None else command_size_max

    def get_buffer(self, size_hint: int = -1) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """The buffer to receive into; never empty. Valid until :meth:`advance` is called.

        Raises :class:`LocalProtocolError` if complete frames pile up because the caller does not
        pull them.
        """
        start = self._start
        end = self._end
        size = len(self._buffer)
        if start == end:
            self._start = self._end = start = end = 0
            if size > BUFFER_BYTES_STEADY:
                self._resize(BUFFER_BYTES_STEADY)
            return self._view
        if size - end < READ_BYTES_MIN and not end < start + self._wanted <= size:
            self._make_room()
        return self._view[self._end :]

    def shrink(self) -> None:
        """Give back what a buffer that has grown does not need. Not while it is received into."""
        needed = self._end - self._start + READ_BYTES_MIN
        size = len(self._buffer)
        while size // 2 >= max(needed, BUFFER_BYTES_START):
            size //= 2
        if size < len(self._buffer):
            self._resize(size)

    @property
    def growth_bytes(self) -> int:
        """By how much :meth:`get_buffer` makes the buffer grow; 0 if there is room."""
        return max(self._larger_size() - len(self._buffer), 0) if self.lacks_room else 0

    @property
    def lacks_room(self) -> bool:
        """Whether the next bytes of the frame that is being received need a larger buffer."""
        start, end, size = self._start, self._end, len(self._buffer)
        has_room = (
            start == end or size - end >= READ_BYTES_MIN or end < start + self._wanted <= size
        )
        return not has_room and not self._fits_moved()

    def _fits_moved(self) -> bool:
        """Whether there is room for more once the pending bytes are at the front."""
        pending = self._end - self._start
        missing = max(self._wanted - pending, 1) if self._wanted else READ_BYTES_MIN
        return self._start > 0 and pending + min(missing, READ_BYTES_MIN) <= len(self._buffer)

    def arrived(self, count_max: int) -> tuple[list[tuple[int, int]], float]:
        """Type and bytes of the first commands that have arrived whole, at most ``count_max``,
        before they are parsed; and how many times as many there are, judged by their bytes. A type
        is 0 unless it comes first, as all known clients write it."""
        view, at, end = self._view, self._start, self._end
        found: list[tuple[int, int]] = []
        while end - at >= 8 and len(found) < count_max:
            total_size, command_size = _SIZES.unpack_from(view, at)
            frame_end = at + _WORD_BYTES + total_size
            if frame_end > end:
                break
            found.append((type_of(view[at + 8 : at + 10]), command_size))
            at = frame_end
        more = len(found) == count_max and (end - self._start) / (at - self._start)
        return found, more or 1.0

    def close(self) -> None:
        """Free the buffer at once, even if other objects still refer to this decoder, and call
        nothing any more: the connection has ended."""
        self._on_growth = _ignore
        self._error = None  # its traceback leads back to the connection
        self._start = self._end = self._wanted = 0
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)

    def advance(self, size: int) -> None:
        """Note that the first ``size`` bytes of the buffer from :meth:`get_buffer` are filled."""
        end = self._end + size
        if size < 0 or end > len(self._buffer):
            raise LocalProtocolError(f"cannot advance by {size}: more than the buffer held")
        self._end = end
        if end == len(self._buffer) < BUFFER_BYTES_STEADY and self._may_grow():
            # The peer sends faster than one read takes: give it larger reads.
            self._resize(min(2 * end, BUFFER_BYTES_STEADY))

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Take all of ``data`` at once, for callers without a socket.

        Raises :class:`LocalProtocolError` if ``data`` exceeds the largest frame beyond what was
        pulled.
        """
        rest = memoryview(data)
        while rest:
            room = self.get_buffer()
            taken = min(len(room), len(rest))
            room[:taken] = rest[:taken]
            self.advance(taken)
            rest = rest[taken:]

    def next_frame(self) -> Frame | None:
        """The next complete frame, or None until more bytes arrive.

        The body is an independent copy. The field of the command's type and all ``required`` fields
        are present. SEND, the most frequent command, is not checked: a missing id reads as 0, which
        harms only the peer that omitted it. An ACK or REDELIVER above the command bound is returned
        as several commands, each with a part of its ids.

        Raises :class:`RemoteProtocolError` for anything that is not a frame, and again at every
        later call; :class:`CommandTooLongError` for a frame that it skipped.
        """
        start = self._start
        buffered = self._end - start
        if buffered < 8 or self._error is not None:
            self._check_incomplete(buffered)
            return None
        buffer = self._buffer
        total_size, command_size = _SIZES.unpack_from(buffer, start)
        if total_size > self._frame_size_max or command_size > total_size - _WORD_BYTES:
            raise self._refuse_sizes(total_size, command_size)
        frame_size = total_size + _WORD_BYTES
        if buffered < frame_size:
            self._wanted = frame_size
            self.has_part = True
            if command_size > self._command_size_max:
                self._check_long(total_size, command_size)
            return None
        if command_size > self._command_size_max:
            return self._next_of_long(total_size, command_size)
        command_start = start + 8
        body_start = command_start + command_size
        frame_end = start + frame_size
        self.command_size = command_size
        try:
            command = _parse_command(buffer[command_start:body_start])
            kind: int = command.type
            if kind != _SEND:
                # Encoding is upb's fastest test for missing required fields: 0.4 us, where
                # IsInitialized() takes 0.7 us for a BaseCommand. SEND skips even that.
                if command_size <= _SMALL_BYTES:
                    command.SerializeToString()
                elif not command.IsInitialized():
                    raise self._fail(f"command {CommandType(kind).name} lacks required fields")
        except (DecodeError, EncodeError) as error:
            reason = str(error)[:_REASON_CHARACTERS_MAX]
            raise self._fail(f"frame holds no valid command: {reason}") from error
        if not command.HasField(FIELD_OF_TYPE[kind]):
            raise self._fail(f"command {CommandType(kind).name} came without its fields")
        self._start = frame_end
        # The field of its type counts as a part, too, and 0 means too many.
        if kind not in _WITHOUT_TEXT and not self._check_text(command, PARTS_MAX + 2):
            raise CommandTooLongError(
                f"{CommandType(kind).name} of more than {PARTS_MAX} parts, "
                f"such as properties: {PARTS_MAX} are allowed",
                command,
            )
        if body_start == frame_end:
            return command, None
        if kind not in _WITH_BODY:
            raise self._fail(f"command {CommandType(kind).name} cannot have a payload")
        return command, self._view[body_start:frame_end].tobytes()

    def _check_long(self, total_size: int, command_size: int) -> None:
        """Refuse a command that is too long at once, unless its sender can get a reply."""
        start = self._start + 8
        kind = type_of(self._view[start : min(start + 2, self._end)])
        arrived = self._end - start >= 2
        if arrived and (kind in _WITH_BODY or not kind or total_size != command_size + _WORD_BYTES):
            raise self._too_long(kind, command_size)

    def _next_of_long(self, total_size: int, command_size: int) -> Frame | None:
        """The next part of a command above the command bound."""
        self._check_long(total_size, command_size)
        start = self._start + 8
        encoded = self._view[start : start + command_size]
        kind = type_of(encoded)
        self.command_size = min(command_size, PARSED_BYTES_MAX)
        if not is_of_ids(kind):
            self._start = start + command_size
            command = beginning_of(encoded)
            if command is None or command.type != kind:
                raise self._too_long(kind, command_size)
            raise CommandTooLongError(self._how_long(kind, command_size), command)
        try:
            ids = self._long_ids = self._long_ids or LongIds(encoded)
            piece, is_last = ids.piece(encoded)
            command = BaseCommand.FromString(piece)
        except (RemoteProtocolError, DecodeError) as error:
            raise self._fail(str(error)[:_REASON_CHARACTERS_MAX]) from error
        if command.type != kind or not command.IsInitialized():
            raise self._fail(f"command {CommandType(kind).name} lacks required fields")
        if kind == _ACK and command.ack.ack_type:
            raise self._fail("a cumulative ACK names one message")
        self.is_partial, self.command_size = not is_last, len(piece)
        if is_last:
            self._start, self._long_ids = start + command_size, None
        return command, None

    def _too_long(self, kind: int, command_size: int) -> RemoteProtocolError:
        return self._fail(self._how_long(kind, command_size))

    def _how_long(self, kind: int, command_size: int) -> str:
        name = CommandType(kind).name if kind in FIELD_OF_TYPE else "command"
        limit = self._command_size_max
        return f"{name} of {command_size} bytes: headgateMaxCommandBytes={limit} are allowed"

    def statistics(self) -> DecoderStatistics:
        """A snapshot for tests and debugging."""
        return DecoderStatistics(len(self._buffer), self._end - self._start)

    def _check_incomplete(self, buffered: int) -> None:
        """Check the first length word as soon as it has arrived, so that a peer that sends no frame
        and then waits gets its error at once."""
        if self._error is not None:
            raise self._error
        self._wanted = 0
        self.has_part = buffered > 0
        if buffered < _WORD_BYTES:
            return
        total_size = int.from_bytes(self._view[self._start : self._start + _WORD_BYTES])
        if not _WORD_BYTES < total_size <= self._frame_size_max:
            raise self._refuse_sizes(total_size, 0)

    def _make_room(self) -> None:
        """Move the pending bytes to the front, of a larger buffer if they need one.

        The size doubles with the bytes that arrived, up to the present frame: a peer that claims a
        large frame and sends little of it takes little memory.
        """
        if self._fits_moved():
            self._replace_buffer(len(self._buffer), reuse=True)
            return
        size = self._larger_size()
        if size <= len(self._buffer):
            raise LocalProtocolError(
                f"{self._end - self._start} bytes are pending and next_frame() was not called "
                "until it gave None"
            )
        self._resize(size)

    def _larger_size(self) -> int:
        pending = self._end - self._start
        useful = max(BUFFER_BYTES_STEADY, self._wanted, pending + READ_BYTES_MIN)
        largest = self._frame_size_max + _WORD_BYTES + READ_BYTES_MIN
        return min(2 * len(self._buffer), useful, largest)

    def _resize(self, size: int) -> None:
        self._on_growth(size - len(self._buffer))
        self._replace_buffer(size)

    def _replace_buffer(self, size: int, *, reuse: bool = False) -> None:
        """Move the pending bytes to the front of a buffer of ``size`` bytes."""
        pending = self._view[self._start : self._end]
        if reuse:
            self._view[: len(pending)] = pending.tobytes()
        else:
            self._buffer = self._new_buffer(size)
            self._view = memoryview(self._buffer)
            self._view[: len(pending)] = pending
        self._start = 0
        self._end = len(pending)

    def _check_text(self, message: Message, parts_max: int) -> int:
        """Refuse text that is not UTF-8: for it, upb returns ``bytes`` instead of ``str``.

        Return how many more parts may be checked; 0 if there are too many.
        """
        for field, value in message.ListFields():
            kind = type(value)
            if kind is str or kind is int:
                continue  # most fields
            if isinstance(value, Message):
                children: Iterable[Message] = (value,)
            elif field.type == FieldDescriptor.TYPE_STRING:
                if kind is bytes or not all(isinstance(text, str) for text in value):
                    raise self._fail(f"{field.full_name} is not valid UTF-8")
                continue
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                children = value
            else:
                continue
            for child in children:
                parts_max = parts_max and self._check_text(child, parts_max - 1)
                if not parts_max:
                    return 0
        return parts_max

    def _refuse_sizes(self, total_size: int, command_size: int) -> RemoteProtocolError:
        first_word = total_size.to_bytes(_WORD_BYTES)
        if first_word.startswith(TLS_RECORD):
            return self._fail(
                "not a frame but a TLS handshake: this port speaks plain Pulsar protocol, and "
                "pulsar+ssl:// belongs to the port brokerServicePortTls"
            )
        if foreign := _FOREIGN_PROTOCOLS.get(first_word):
            return self._fail(f"not a frame but {foreign}")
        if total_size > self._frame_size_max:
            return self._fail(
                f"frame of {total_size} bytes: the limit is {self._frame_size_max} bytes"
            )
        return self._fail(
            f"frame of {total_size} bytes cannot hold a command of {command_size} bytes"
        )

    def _fail(self, message: str) -> RemoteProtocolError:
        """Break this decoder for good; returns the error to raise."""
        self._error = RemoteProtocolError(message)
        return self._error
