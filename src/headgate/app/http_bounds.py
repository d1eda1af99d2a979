"""Uvicorn's HTTP protocol with bounds for a request: the size of its head, the time of all and of
its answer.

Uvicorn leaves them to a proxy in front of it; here a single client could otherwise fill the
broker's memory with one header line, or hold connections and tasks for ever without a word.

A client may offer to go on in another protocol (``Upgrade: h2c``, as the JDK's does by default).
The offer is declined by answering as if it had not been made. Uvicorn would carry the request out
without its body, and understand nothing more on the connection.
"""

from __future__ import annotations

import asyncio
import sys

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
"""Longest request line and headers together; what one read brings may come on top."""

HEAD_TIMEOUT_S = 10.0
"""How long a client may take for them, from its connection or from their first byte."""

BODY_TIMEOUT_S = 30.0
"""How long a client may take for a body, from the end of the head. Time in which this side reads
nothing from it is not the client's: then it gets as much again."""

WRITE_TIMEOUT_S = 30.0
"""How long a client may take for what is written to it at a time, 256 KiB at most. Who asks and
does not read would otherwise keep an answer in memory for ever."""

_OFFER = frozenset({b"upgrade", b"http2-settings"})
"""Headers that offer another protocol, and what ``Connection`` says of them."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection to the web port."""

    _head_bytes = 0
    _in_head = False
    _just_begun = False
    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _limit_s = HEAD_TIMEOUT_S
    _data = b""
    """What is being read."""
    _unread = b""
    """What is read next, before anything else that arrives."""
    _declined: bytes | None = None
    """The head of the present request without its offer, while it was not read again."""

    @staticmethod
    def refuses(_: asyncio.BaseTransport) -> bool:
        """Whether a connection is one too many. A subclass knows."""
        return False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.refuses(transport):
            transport.abort()
        else:
            self._wait(HEAD_TIMEOUT_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_write_timer()
        super().connection_lost(exc)

    # -- the answer's time -----------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._begin_write_timer()

    def resume_writing(self) -> None:
        """It took what was written."""
        self._stop_write_timer()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """The last of an answer is written, though perhaps not taken."""
        super().on_response_complete()
        if self._write_timer is None and self.transport.get_write_buffer_size():
            self._begin_write_timer()

    def _begin_write_timer(self) -> None:
        self._stop_write_timer()
        self._write_timer = self.loop.call_later(WRITE_TIMEOUT_S, self._not_taken)

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _not_taken(self) -> None:
        self._write_timer = None
        if self.transport.get_write_buffer_size():
            self._abort()

    def _abort(self) -> None:
        """End the connection; closing would wait for the client again. What the application writes
        until it hears of that goes nowhere, instead of failing."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self.transport.abort()

    # -- the request -----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        while data:
            self._data, self._unread = data, b""
            self._receive(data)
            data = self._unread
        self._data = b""

    def _receive(self, data: bytes) -> None:
        self._just_begun = False
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        if not self._just_begun:  # else most of it may belong to the request before
            self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self.send_400_response(f"Request head too long: {HEAD_BYTES_MAX} bytes are allowed")

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        # So that an application can end a connection whose answer it cannot finish.
        self.scope["extensions"] = {"headgate.abort": {"call": self._abort}}
        self._head_bytes = 0
        self._in_head = self._just_begun = True
        if self._timer is None:
            self._wait(HEAD_TIMEOUT_S)

    def on_headers_complete(self) -> None:
        """The body comes next."""
        self._in_head = False
        self._stop_waiting()
        self._wait(BODY_TIMEOUT_S)
        if any(name == b"upgrade" for name, _ in self.headers) and self.parser.should_upgrade():
            self._declined = self._head_without_offer()
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        if self._declined is None:
            self._stop_waiting()
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """The parser has stopped after a head with an offer (or a CONNECT). With a new
        one, read the head again without the offer, and what came behind it."""
        stopped, head = sys.exception(), self._declined
        if head is None or stopped is None:
            self.transport.close()
            return
        self._declined = None
        self._unread = head + self._data[stopped.args[0] :]
        self.parser = type(self.parser)(self)

    def _head_without_offer(self) -> bytes:
        lines = [
            b"%s %s HTTP/%s"
            % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        ]
        for name, value in self.headers:
            if name == b"connection":
                tokens = [token.strip() for token in value.split(b",")]
                value = b", ".join(token for token in tokens if token.lower() not in _OFFER)
            if name not in _OFFER and (value or name != b"connection"):
                lines.append(name + b": " + value)
        return b"\r\n".join([*lines, b"", b""])

    def _wait(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._timer = self.loop.call_later(limit_s, self._too_late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._timer = None
        if self.flow.read_paused:
            self._wait(self._limit_s)
        else:
            self.transport.close()
