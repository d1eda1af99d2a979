"""A socket's transport in virtual time, as uvloop's, with or without TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from headgate.app.http_bounds import BoundedHttpProtocol
from headgate.base.units import KIB

KERNEL_BYTES = 128 * KIB
"""What the kernel takes for a client that reads nothing."""
HIGH_BYTES = 64 * KIB
LOW_BYTES = 16 * KIB
"""Unsent bytes at which the protocol is told to stop writing, and to go on."""
TLS_CLOSE_S = 5.0
"""Time for the client to answer the end of TLS."""
NOTICE_BYTES = 24


class SimSocket(asyncio.Transport):
    """The broker's end of a connection. ``client_*`` are what its client does.

    Two ways of uvloop's TLS matter: it ends a connection behind the client's FIN without a word to
    the protocol, and behind the client's own end it has no time for what is left to be sent.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, address: str, is_tls: bool) -> None:
        super().__init__({"peername": (address, 5)})
        self._loop, self._is_tls = loop, is_tls
        self.protocol: BoundedHttpProtocol
        self.received = bytearray()
        """What the client has read."""
        self.reads_all = False
        """Whether it reads at once what comes."""
        self.is_lost = False
        self._kernel = bytearray()
        self._unsent = bytearray()
        self._own_bytes = 0
        """Unsent bytes of TLS itself."""
        self._is_closing = self._is_stopped = self._has_fin = self._has_notice = False
        self._is_reading = True
        self._arrived: list[bytes] = []
        self._close_timer: asyncio.TimerHandle | None = None

    # -- what the protocol asks for ----------------------------------------------------------

    def can_write_eof(self) -> bool:
        return not self._is_tls

    def is_closing(self) -> bool:
        return self._is_closing

    def get_write_buffer_size(self) -> int:
        return len(self._unsent) + self._own_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._is_closing, "uvloop's transport raises then"
        self._unsent += bytes(data)
        self._move()
        if len(self._unsent) > HIGH_BYTES and not self._is_stopped:
            self._is_stopped = True
            self.protocol.pause_writing()

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._loop.call_soon(self._deliver)

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if self._is_tls:
            self._own_bytes += NOTICE_BYTES
            if not self._has_notice:
                self._close_timer = self._loop.call_later(TLS_CLOSE_S, self.abort)
        self._move()

    def abort(self) -> None:
        self._is_closing = True
        self._loop.call_soon(self._lose)

    # -- what the client does ----------------------------------------------------------------

    def client_send(self, data: bytes) -> None:
        """Bytes arrive, unless it has ended its direction."""
        if not self._has_fin and not self._has_notice:
            self._arrived.append(data)
            self._deliver()

    def client_read(self, size: int) -> None:
        """It reads so many bytes of those that wait in its kernel."""
        self.received += self._kernel[:size]
        del self._kernel[:size]
        self._move()

    def client_updates_keys(self, size: int) -> None:
        """TLS owes it so many bytes, as for ``size / 27`` KEY_UPDATEs."""
        if self._is_tls and not self._is_closing:
            self._own_bytes += size
            self._move()
            if self._own_bytes > HIGH_BYTES:
                self.abort()

    def client_ends_tls(self) -> None:
        """It sends the notice that ends TLS."""
        if not self._is_tls or self._has_notice or self._has_fin:
            return
        self._has_notice = True
        self._stop_close_timer()
        if not self._is_closing:
            self.protocol.eof_received()
            self.close()
        self._move()

    def client_ends(self) -> None:
        """It sends its FIN."""
        if self._has_fin:
            return
        self._has_fin = True
        if self._is_tls:
            self._has_notice = True
            self._stop_close_timer()
            self.close()
            self._move()
        elif not self._is_closing and not self.protocol.eof_received():
            self.close()

    # ----------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        while self._arrived and self._is_reading and not self._is_closing:
            self.protocol.data_received(self._arrived.pop(0))

    def _move(self) -> None:
        """The kernel takes what it has room for; a client that reads all takes it from there."""
        while True:
            if self.reads_all:
                self.received += self._kernel
                self._kernel.clear()
            room = KERNEL_BYTES - len(self._kernel)
            own = min(self._own_bytes, room)
            self._own_bytes -= own
            taken = self._unsent[: room - own]
            del self._unsent[: room - own]
            self._kernel += taken + b"t" * own
            if not (own or taken) or not self.reads_all:
                break
        if self._is_stopped and len(self._unsent) <= LOW_BYTES and not self._is_closing:
            self._is_stopped = False
            self._loop.call_soon(self._resume)
        if self._is_closing and not self.get_write_buffer_size() and self._may_end():
            self._loop.call_soon(self._lose)

    def _may_end(self) -> bool:
        """Behind the end of TLS the client's own is waited for."""
        return not self._is_tls or self._has_notice

    def _resume(self) -> None:
        if not self.is_lost and not self._is_stopped:
            self.protocol.resume_writing()

    def _stop_close_timer(self) -> None:
        if self._close_timer is not None:
            self._close_timer.cancel()
            self._close_timer = None

    def _lose(self) -> None:
        if self.is_lost:
            return
        self.is_lost = True
        self._stop_close_timer()
        self._unsent.clear()
        self._own_bytes = 0
        cast(Callable[[Exception | None], None], self.protocol.connection_lost)(None)
