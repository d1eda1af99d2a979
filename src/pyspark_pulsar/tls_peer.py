"""TLS over a socket that receives much at a time.

A socket of :mod:`ssl` asks the system twice for each record, and a broker may make a record of each
message: 12 us for 1 KiB. This one decrypts from memory what one system call brought.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_RECEIVE_BYTES: Final = 256 * 1024


class TlsPeer:
    """A connection with TLS. Its methods raise :class:`OSError`, which includes those of ssl."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str) -> None:
        """``plain`` is connected to ``host``."""
        self._plain = plain
        self._arrived, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._to_send, server_hostname=host)

    def shake_hands(
        self, deadline_s: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Carry out the handshake, until ``deadline_s`` of the monotonic clock at most."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                left_s = deadline_s - monotonic()
                if left_s <= 0:
                    raise TimeoutError("no TLS handshake in time") from None
                self.settimeout(left_s)
                self._flush()
                self._receive()
            finally:
                with suppress(OSError):
                    self._flush()  # the end of the handshake, or an alert

    def settimeout(self, value: float | None, /) -> None:
        """Bound each system call, in seconds."""
        self._plain.settimeout(value)

    def recv_into(self, buffer: memoryview, /) -> int | None:
        """Fill the begin of a buffer with what has arrived, or what one system call brings.

        0 if the connection ended; None if there is no whole record yet.
        """
        count = self._decrypted(buffer)
        if count is None:
            self._receive()
            count = self._decrypted(buffer)
        self._flush()  # an answer of TLS itself
        return count

    def sendall(self, data: bytes, /) -> None:
        """Send everything."""
        self._tls.write(data)
        self._flush()

    def close(self) -> None:
        """End the connection."""
        self._plain.close()

    def _decrypted(self, buffer: memoryview) -> int | None:
        """The bytes of all records that have arrived, as far as they fit; None without one."""
        read: Any = self._tls.read  # given a buffer, it returns a number
        size, count = len(buffer), 0
        while count < size:
            try:
                more = read(size - count, buffer[count:])
            except ssl.SSLWantReadError:
                return count or None
            except ssl.SSLZeroReturnError:
                return count
            if not more:
                return count
            count += more
        return count

    def _receive(self) -> None:
        data = self._plain.recv(_RECEIVE_BYTES)
        if data:
            self._arrived.write(data)
        else:
            self._arrived.write_eof()

    def _flush(self) -> None:
        if self._to_send.pending:
            self._plain.sendall(self._to_send.read())
