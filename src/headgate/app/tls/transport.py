"""The transport of a connection over TLS, with what the one below it holds."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from headgate.app.tls.record_reading import RecordReads
from headgate.base.units import KIB

UNSENT_BYTES_MAX: Final = 64 * KIB
"""Unsent bytes at which the protocol is told to stop writing, as without TLS; the loop's own bound
for TLS is eight times as large."""

UNREAD_BYTES_MAX: Final = 64 * KIB
"""Received bytes that wait to be decrypted, beyond one read."""


class TlsTransport(asyncio.Transport):
    """The loop's transport of TLS, which also counts and pauses the one of the socket.

    The loop's transport forgets bytes that it has encrypted and handed to the socket's transport.
    So without this a client that does not read would seem to have read everything. And while a
    protocol pauses reading, it would still take up to 300 KiB from the socket.
    """

    __slots__ = (
        "_inner", "_plain", "_reads",
        "abort", "get_extra_info", "is_closing", "write", "writelines",
    )  # fmt: skip

    def __init__(
        self, inner: asyncio.Transport, plain: asyncio.Transport, reads: RecordReads
    ) -> None:
        """``inner`` is the transport of TLS over ``plain``, which gets its bytes from ``reads``."""
        self._inner = inner
        self._plain = plain
        self._reads = reads
        inner.set_write_buffer_limits(high=UNSENT_BYTES_MAX)
        limit: Any = getattr(inner, "set_read_buffer_limits", None)
        if limit is not None:
            limit(high=UNREAD_BYTES_MAX)
        # Attributes in place of methods: each write passes no second function.
        self.write = inner.write  # type: ignore[method-assign]
        self.writelines = inner.writelines  # type: ignore[method-assign]
        self.abort = inner.abort  # type: ignore[method-assign]
        self.is_closing = inner.is_closing  # type: ignore[method-assign]
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]

    def get_write_buffer_size(self) -> int:
        """Bytes that the socket has not taken, encrypted or not."""
        return self._inner.get_write_buffer_size() + self._plain.get_write_buffer_size()

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
        self._inner.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand received bytes to another protocol."""
        self._inner.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """What receives the bytes."""
        return self._inner.get_protocol()

    def can_write_eof(self) -> bool:
        """TLS has no half-closed connections here."""
        return False
