"""The transport of a connection over TLS, with what the one below it holds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from headgate.app.tls.record_reading import RecordReads
from headgate.base.units import KIB
from headgate.broker.connection.ended_connection import ENDED_TRANSPORT, no_bytes
from headgate.broker.connection.frame_writer import PART_BYTES

UNSENT_BYTES_MAX: Final = 64 * KIB
"""Unsent bytes at which the protocol is told to stop writing, as without TLS; the loop's own bound
for TLS is eight times as large."""

UNSENT_BYTES_LOW: Final = UNSENT_BYTES_MAX // 4
"""Unsent bytes at which it may go on."""

WRITE_BYTES: Final = 32 * KIB
"""Bytes that TLS encrypts at once, and no more before the socket's transport takes them. TLS keeps
a buffer as large as the most that was in it, as long as the connection lives: a message of 5 MB
took 6 MB of each connection that had got one."""

UNREAD_BYTES_MAX: Final = 64 * KIB
"""Received bytes that wait to be decrypted, beyond one read. TLS keeps what its protocol does not
take, without a bound, and decrypts no more than the protocol has room for before it is asked again:
one that pauses and resumes all the time would take little, and get another read each time."""


class TlsTransport(asyncio.Transport):
    """The loop's transport of TLS, which also counts and pauses the one of the socket.

    The loop's transport forgets bytes that it has encrypted and handed to the socket's transport.
    So without this a client that does not read would seem to have read everything. And while a
    protocol pauses reading, it would still take up to 300 KiB from the socket. What is written goes
    to TLS in pieces, while the socket takes them: what waits is not encrypted, and copied only if
    it is small.
    """

    __slots__ = (
        "_held", "_held_bytes", "_inner", "_is_stopped", "_plain", "_reads", "_unread_bytes",
        "get_extra_info", "is_closing",
    )  # fmt: skip

    def __init__(
        self, inner: asyncio.Transport, plain: asyncio.Transport, reads: RecordReads
    ) -> None:
        """``inner`` is the transport of TLS over ``plain``, which gets its bytes from ``reads``."""
        self._inner = inner
        self._plain = plain
        self._reads = reads
        self._held: deque[memoryview[int] | bytearray] = deque()
        """What TLS does not have yet. Parts below :data:`PART_BYTES` are joined: a view takes 200
        bytes beside a PONG."""
        self._held_bytes = 0
        self._is_stopped = False
        """Whether the protocol was told to stop writing."""
        reads.writes = self
        inner.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        limit: Any = getattr(inner, "set_read_buffer_limits", None)
        if limit is not None:
            limit(high=UNREAD_BYTES_MAX)
        self._unread_bytes: Callable[[], int] = getattr(inner, "get_read_buffer_size", no_bytes)
        # Attributes in place of methods: each call passes no second function.
        self.is_closing = inner.is_closing  # type: ignore[method-assign]
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send bytes behind all others."""
        if self._held or self._reads.is_full or len(data) > WRITE_BYTES:
            self._hold([data])
        else:
            self._inner.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        """Send several pieces of bytes."""
        data = list(list_of_data)
        if self._held or self._reads.is_full or sum(map(len, data)) > WRITE_BYTES:
            self._hold(data)
        else:
            self._inner.writelines(data)

    def _hold(self, data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        if self.is_closing():
            return
        for each in data:
            last = self._held[-1] if self._held else None
            if len(each) >= PART_BYTES:
                self._held.append(memoryview(each))
            elif isinstance(last, bytearray) and len(last) < WRITE_BYTES:
                last += each
            elif each:
                self._held.append(bytearray(each))
            self._held_bytes += len(each)
        self.go_on()
        if self._held_bytes > UNSENT_BYTES_MAX and not self._is_stopped:
            self._is_stopped = True
            self._protocol.pause_writing()

    def go_on(self) -> None:
        """Let TLS encrypt what waits, as far as the socket's transport takes it."""
        while self._held and not self._reads.is_full:
            self._inner.writelines(self._next_pieces())
        if self._is_stopped and self._held_bytes <= UNSENT_BYTES_LOW:
            self._is_stopped = False
            self._protocol.resume_writing()

    def finish(self) -> None:
        """Write all that waits, and drop what comes behind it: the loop's transport would log a
        line for each piece, for as long as the peer does not read."""
        self._write_rest()
        self._inner, self._unread_bytes = ENDED_TRANSPORT, no_bytes
        self.is_closing = ENDED_TRANSPORT.is_closing  # type: ignore[method-assign]

    def _write_rest(self) -> None:
        """Let TLS encrypt all that waits: the connection ends behind it, and the protocol is told
        of no room any more."""
        self._is_stopped = False
        held, self._held_bytes = list(self._held), 0
        self._held.clear()
        if held:
            self._inner.writelines(held)

    def has_many_answers(self) -> bool:
        """Whether TLS has much to send of its own. While the socket is full it gets nothing else,
        before a close."""
        return not self.is_closing() and self._inner.get_write_buffer_size() > UNSENT_BYTES_MAX

    def has_much_unread(self) -> bool:
        """Whether TLS has as many bytes to decrypt as make it stop the socket."""
        return not self.is_closing() and self._unread_bytes() >= UNREAD_BYTES_MAX

    def forget_connection(self) -> None:
        """The connection has ended. A request that goes on to be served refers to this, and would
        keep what its client has not read, and the buffers of TLS."""
        self._held.clear()
        self._held_bytes = 0
        self._inner = self._plain = ENDED_TRANSPORT
        self._unread_bytes = no_bytes
        self.is_closing = ENDED_TRANSPORT.is_closing  # type: ignore[method-assign]
        self.get_extra_info = ENDED_TRANSPORT.get_extra_info  # type: ignore[method-assign]

    def _next_pieces(self) -> list[memoryview[int] | bytearray]:
        pieces: list[memoryview[int] | bytearray] = []
        room = WRITE_BYTES
        while self._held and room:
            data = self._held.popleft()
            if len(data) > room:
                view = memoryview(data)
                self._held.appendleft(view[room:])
                data = view[:room]
            pieces.append(data)
            room -= len(data)
        self._held_bytes -= WRITE_BYTES - room
        return pieces

    @property
    def _protocol(self) -> asyncio.BaseProtocol:
        return self._inner.get_protocol()

    def get_write_buffer_size(self) -> int:
        """Bytes that the socket has not taken, encrypted or not."""
        below = self._inner.get_write_buffer_size() + self._plain.get_write_buffer_size()
        return self._held_bytes + below

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Those of the bytes that are not handed to the socket's transport."""
        self._inner.set_write_buffer_limits(high, low)

    def pause_reading(self) -> None:
        """Take no more bytes from the socket."""
        self._inner.pause_reading()
        self._reads.pause_reading()

    def resume_reading(self) -> None:
        """Take bytes again: first those that were taken before."""
        self._reads.resume_reading()
        self._inner.resume_reading()

    def is_reading(self) -> bool:
        """Whether bytes are taken."""
        return self._inner.is_reading()

    def close(self) -> None:
        """Write what is left, then end TLS, for which the peer's answer must be read."""
        self._reads.resume_reading()
        self._write_rest()
        self._inner.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._held.clear()
        self._held_bytes = 0
        self._inner.abort()
        self._plain.abort()  # also if TLS knows nothing of it any more

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand received bytes to another protocol."""
        self._inner.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """What receives the bytes."""
        return self._inner.get_protocol()

    def can_write_eof(self) -> bool:
        """TLS has no half-closed connections here."""
        return False
