"""Uvicorn's HTTP protocol with bounds for the head of a request: its size and its time.

Uvicorn leaves both to a proxy in front of it; here a single client could otherwise fill the
broker's memory with one header line, or hold connections for ever without a word.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
"""Longest request line and headers together; what one read brings may come on top."""

HEAD_TIMEOUT_S = 10.0
"""How long a client may take for them, from its connection or from their first byte."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection to the web port."""

    _head_bytes = 0
    _in_head = False
    _just_begun = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See :class:`asyncio.Protocol`."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        self._just_begun = False
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if not self._just_begun:  # else most of it may belong to the request before
            self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self.send_400_response(f"Request head too long: {HEAD_BYTES_MAX} bytes are allowed")

    def on_message_begin(self) -> None:
        """See httptools: the first byte of a request."""
        super().on_message_begin()
        self._head_bytes = 0
        self._in_head = self._just_begun = True
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """See httptools: the body comes next."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._too_late)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_late(self) -> None:
        self._head_timer = None
        self.transport.close()
