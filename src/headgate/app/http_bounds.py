"""Uvicorn's HTTP protocol with bounds on each request.

The size of a request's head is bounded, and the time for the request and for reading its response.
Uvicorn leaves these bounds to a proxy. Without them a single client could fill the broker's memory
with one header line, or hold connections and tasks for ever. What all connections hold together has
a bound, too (:mod:`headgate.broker.http_memory`), and what they have of each turn of the event loop
(:mod:`headgate.app.http_turns`). Every refusal has a JSON body with a reason.

A client may send requests ahead. They are parsed in small pieces, and no more while some wait for
the answer to an earlier one: a read of a quarter of a megabyte may have 14,000.

A client may offer to change to another protocol (``Upgrade: h2c``, as the JDK's does by default).
This class ignores the offer. Uvicorn would run the request without its body, and could not parse
the rest of the connection.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headgate.app.http_connections import HttpConnections
from headgate.app.http_old import PlainAnswer
from headgate.app.http_refusal import refusal_answer, refusing
from headgate.app.http_transport import HttpTransport, ignored
from headgate.app.http_turns import HttpTurns, KeptBytes, starts_of
from headgate.app.served_requests import ServedRequests
from headgate.broker.connection.address_counts import address_of, peer_network_of
from headgate.broker.http_memory import REQUEST_BYTES, HttpMemory
from headgate.wire.frame import TLS_RECORD

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

HEAD_BYTES_MAX = 64 * 1024
"""Bound on request line and headers together; exceeded by one read at most."""

HEADERS_MAX = 256
"""Headers of one request. The shortest take thirty times their bytes as parsed."""

HEADER_BYTES = 150
"""What a parsed header takes beside its text."""

UNREAD_BODY_BYTES_MAX = 64 * 1024
"""Bytes behind a head that carry nothing of a body: extensions of chunks, and trailers behind the
last one. A few reads may exceed it. The parser keeps a trailer until it is whole."""

PIECE_BYTES = 256
"""Bytes that the parser gets at once: at most 14 requests, or 42 chunks of a body. It cannot be
stopped amid them."""

BODY_PIECE_BYTES = 16 * 1024
"""Bytes of a body of known length that it gets at once."""

SLICE_BYTES = 4 * 1024
"""Bytes of a connection that are parsed before others have their turn; exceeded by one piece."""

HEAD_TIMEOUT_S = 10.0
"""Time for the head, from the connection or from the head's first byte."""

BODY_TIMEOUT_S = 30.0
"""Time for a body, from the end of the head. It starts again if the broker pauses reading."""

WRITE_TIMEOUT_S = 30.0
"""Time that a client may take to read a response, beyond the time at :data:`READ_BYTES_PER_S_MIN`.
One that reads nothing for so long is disconnected: it would keep the response in memory."""

READ_BYTES_PER_S_MIN = 16 * 1024
"""A client that reads a long response more slowly is disconnected, however regularly it reads."""

LENGTH_DIGITS_MAX = 20
"""Of a body's length. One with more digits begins with zeros, and is parsed in small pieces."""

_OFFER = frozenset({b"upgrade", b"http2-settings"})
"""Headers that offer another protocol, and their names in ``Connection``."""


class BoundedHttpProtocol(HttpToolsProtocol):
    """One connection to the web port."""

    _head_bytes = 0
    _headers_count = 0
    _parsed_bytes = 0
    """What the headers of the present head take as parsed."""
    _in_head = False
    _in_body = False
    _empty_bytes = 0
    """Bytes since the last ones of a body."""
    _just_begun = False
    _timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None
    _patience_s = WRITE_TIMEOUT_S
    """How long the client may still let the broker wait while it reads the present response."""
    _paused_s = 0.0
    """When the client last began to read too slowly."""
    _unread_bytes = 0
    """What it had not read then; 0 once it has."""
    _requests = 0
    """Requests that are not answered."""
    _content_bytes = 0
    """Bytes of their bodies, and of their heads beyond ``REQUEST_BYTES``."""
    memory: HttpMemory | None = None
    """Bounds what all connections hold; a subclass has it."""
    others: HttpConnections | None = None
    """Bounds the number of connections; a subclass has it."""
    _address = _network = ""
    _is_counted = False
    _peer_certificate: dict[str, Any] | None = None
    _limit_s = HEAD_TIMEOUT_S
    turns: HttpTurns | None = None
    """Shared by all connections of a loop; a subclass has it."""
    _turns: HttpTurns
    _reading: HttpTransport
    _kept: KeptBytes
    """Bytes to parse."""
    _served: ServedRequests
    _data = b""
    """The bytes in the parser."""
    _content_left = 0
    """Bytes of a body of known length that are not parsed."""
    _declined: bytes | None = None
    """The head of the present request without its offer, until it is parsed again."""

    @staticmethod
    def admit(_: asyncio.BaseTransport) -> bool:
        """Whether to serve a new connection; a subclass decides."""
        return True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._reading, self._kept = HttpTransport(transport), KeptBytes()
        self._served = ServedRequests()
        self._turns = self.turns or HttpTurns(self.loop, time.perf_counter)
        super().connection_made(cast(asyncio.Transport, self._reading))
        self._reading.on_resume, self._reading.on_close = self._go_on, self._time_the_end
        if not self.admit(transport):
            transport.abort()
            return
        self._peer_certificate = transport.get_extra_info("peercert") or None
        self._address = address_of(transport.get_extra_info("peername"))
        self._network = peer_network_of(self._address)
        if self.others is not None:
            if refusal := self.others.refusal(self._address):
                self._refuse(503, refusal)
                return
            self.others.added(self._address)
            self._is_counted = True
        self._wait(HEAD_TIMEOUT_S)

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more. What it asked right before is answered if that takes no wait.
        Over TLS the loop would drop what waits to be encrypted."""
        if self.transport.can_write_eof():
            self.loop.call_soon(self.transport.close)
            return True
        self.transport.close()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_write_timer()
        self._turns.leave(self, self._network)
        self._kept.clear()
        self._reading.on_close = ignored  # uvicorn asks for an end now
        if self._is_counted and self.others is not None:
            self._is_counted = False
            self.others.left(self._address)
        if self.memory is not None:
            self.memory.hold(self, 0, self._address)
            held_bytes = REQUEST_BYTES + self._content_bytes
            if self._requests and not self._served.leave(self.memory, self._address, held_bytes):
                self.memory.end(self._address)
        self._requests = 0
        super().connection_lost(exc)
        self._break_circles()

    def _break_circles(self) -> None:
        """Let a reference count free this connection and its requests: the collector no longer
        visits what lived for a tenth of a second. A request that is still served ends by itself."""
        self._unset_keepalive_if_required()
        self._reading.on_resume = ignored
        self.pipeline.clear()
        self.cycle = self.scope = None  # type: ignore[assignment]

    # -- the response's time -----------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client reads more slowly than the broker writes."""
        super().pause_writing()
        self._reading.is_unread = True
        self._begin_write_timer()
        self._hold()

    def resume_writing(self) -> None:
        """The client has read what was written."""
        if self._unread_bytes:
            self._count_read(self._unread_bytes)
        self._stop_write_timer()
        self._reading.end_if_read()
        if not self._requests or self.transport.is_closing():
            self._time_the_rest()
        self._hold()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """The last part of a response is written, though perhaps not read."""
        is_lost = not self._requests  # a request is served to its end
        if self._requests:
            self._requests -= 1
            if not self._requests:
                self._content_bytes = 0
                if self.memory is not None:
                    self.memory.end(self._address)
            self._hold()
        super().on_response_complete()
        self._go_on()
        if self._write_timer is None and not is_lost:
            self._time_the_rest()

    def _time_the_rest(self) -> None:
        """Nothing more is written, and nobody tells when the rest is read. An end would wait for
        it, also for what ends TLS."""
        self._patience_s = WRITE_TIMEOUT_S
        if self.transport.get_write_buffer_size() or self.transport.is_closing():
            self._begin_write_timer()

    def _time_the_end(self) -> None:
        """An end may wait for its client, even if all answers are read: for bytes of TLS itself."""
        if self._write_timer is None:
            self._time_the_rest()
            self._hold()

    def _begin_write_timer(self) -> None:
        self._stop_write_timer()
        self._paused_s = self.loop.time()
        self._unread_bytes = self.transport.get_write_buffer_size()
        left_s = max(self._patience_s, 0.0) + self._unread_bytes / READ_BYTES_PER_S_MIN
        limit_s = min(left_s, WRITE_TIMEOUT_S)
        self._write_timer = self.loop.call_later(limit_s, self._write_timed_out)

    def _stop_write_timer(self) -> None:
        self._unread_bytes = 0
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _count_read(self, read_bytes: int) -> None:
        """The client has read so much since the write timer began."""
        waited_s = self.loop.time() - self._paused_s
        credit_s = read_bytes / READ_BYTES_PER_S_MIN
        self._patience_s = min(self._patience_s - waited_s + credit_s, WRITE_TIMEOUT_S)

    def _write_timed_out(self) -> None:
        """The transport tells only of an end that is near: a client may have read megabytes."""
        self._write_timer = None
        left_bytes = self.transport.get_write_buffer_size()
        read_bytes = self._unread_bytes - left_bytes
        if not left_bytes and not self.transport.is_closing():
            self._unread_bytes = 0
        elif read_bytes <= 0:  # it read nothing, or the end waits for something else
            self._abort()
            return
        else:
            self._count_read(read_bytes)
            if self._patience_s <= 0:
                self._abort()
                return
            self._begin_write_timer()
        self._hold()

    def end_if_idle(self) -> None:
        """End the connection at once if its client waits for nothing."""
        if not self._requests and not self.transport.get_write_buffer_size():
            self._abort()

    def _abort(self) -> None:
        """End the connection at once: closing would wait for the client. What the application still
        writes is dropped and does not fail."""
        if self.cycle is not None:
            self.cycle.disconnected = True
        self._kept.clear()
        self.transport.abort()

    # -- what it holds -----------------------------------------------------------------------

    def _hold(self) -> None:
        if self.memory is None:
            return
        held_bytes = self._requests * REQUEST_BYTES + self._content_bytes + self._unread_bytes
        held_bytes += self._kept.held_bytes
        if self._in_head:
            held_bytes += self._long_head_bytes()
        self.memory.hold(self, held_bytes, self._address)

    def _long_head_bytes(self) -> int:
        """What the present head takes beyond ``REQUEST_BYTES``. The parser keeps a header until it
        is whole."""
        return max(0, max(self._parsed_bytes, self._head_bytes) - REQUEST_BYTES)

    def end_for_memory(self, reason: str) -> None:
        """All connections hold too much, and this one most."""
        if self._unread_bytes:
            self._abort()
        else:
            self._refuse(503, reason)

    def _refuse(self, status: int, reason: str) -> None:
        """Answer in place of the application, if it has not begun to, and end the connection. The
        application then finds its client gone."""
        if self.transport.is_closing():
            return
        self._kept.clear()
        if self.pipeline:  # the answer to an earlier request may have begun
            self._abort()
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        if self.others is not None and status < 500:
            self.others.note_refusal(status, self._address, reason, "")
        self.transport.write(refusal_answer(status, reason))
        self._begin_write_timer()
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, or too long."""
        if self._data.startswith(TLS_RECORD):
            msg = "TLS at a port of HTTP: https:// belongs to the port webServicePortTls"
        if self.others is not None:
            self.others.lines.info("%s is disconnected: %s", self._address, msg)
        self._refuse(400, msg)

    # -- the request -----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._kept.add(data)
        if self._may_parse():
            self._turns.parse(self, self._network)
        self._settle()

    def parse_some(self) -> bool:
        """Parse a slice of what has arrived; returns whether there is another to be parsed now."""
        left_bytes = SLICE_BYTES
        while left_bytes > 0 and self._may_parse():
            self._data = self._kept.take(self._piece_bytes())
            left_bytes -= len(self._data)
            self._receive(self._data)
        self._data = b""
        self._settle()
        return self._may_parse()

    def _may_parse(self) -> bool:
        """Whether there are bytes, and no requests that wait, nor too much of a body."""
        is_waiting = self.flow.read_paused or self.pipeline or self.transport.is_closing()
        return bool(self._kept) and not is_waiting

    def _piece_bytes(self) -> int:
        if self._in_body and self._declined is None and self._content_left:
            return min(self._content_left, BODY_PIECE_BYTES)
        return PIECE_BYTES

    def _settle(self) -> None:
        """Charge what is left to parse; read no more before it is parsed."""
        if self.transport.is_closing():
            self._kept.clear()
        self._hold()
        self._reading.keep(bool(self._kept))

    def _go_on(self) -> None:
        """What kept the connection from parsing may be over."""
        if self._may_parse():
            self._turns.parse_later(self, self._network)
        elif self._kept:
            self._settle()

    def _start_asgi_task(self, cycle: Any, app: ASGI3Application) -> None:
        """Begin a request in its turn, unless its client is gone by then."""

        def begin() -> int:
            if cycle.disconnected or self.transport.is_closing():
                if self._requests:  # no answer begins the time of the end
                    self._time_the_end()
                return 0
            starts = starts_of(cycle.scope)
            watched = self._served.watched(app, self._turns.further(self._network), starts)
            super(BoundedHttpProtocol, self)._start_asgi_task(cycle, watched)
            return starts

        self._turns.start(begin, self._network)

    def _receive(self, data: bytes) -> None:
        self._just_begun = False
        self._empty_bytes += len(data)
        self._parse(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            if not self._just_begun:  # else most of it may belong to the request before
                self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self.send_400_response(f"Request head too long: {HEAD_BYTES_MAX} bytes are allowed")
            elif self._headers_count > HEADERS_MAX:
                self._refuse_headers()
            elif self._long_head_bytes():
                self._hold()
        elif self._in_body and self._empty_bytes > UNREAD_BODY_BYTES_MAX:
            self._refuse_trailers()

    def _parse(self, data: bytes) -> None:
        """Only a request ends the time of a kept connection, which uvicorn ends with any byte:
        blank lines, and the rest of a body that was answered before, are followed by no answer,
        behind which it would begin again."""
        idle, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        super().data_received(data)
        if idle is not None:
            if self._in_head or self._requests:
                idle.cancel()
            else:
                self.timeout_keep_alive_task = idle

    def _refuse_headers(self) -> None:
        if self._requests:
            self._abort()  # an answer now would be taken for that to an earlier request
        else:
            self.send_400_response(f"Too many headers: {HEADERS_MAX} are allowed")

    def _refuse_trailers(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()  # another answer would be taken for that to the next request
        else:
            self.send_400_response(
                f"Trailers too long: {UNREAD_BODY_BYTES_MAX} bytes are allowed, and ignored"
            )

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        # So that an application can end a connection whose response it cannot finish.
        self.scope["extensions"] = {
            "headgate.abort": {"call": self._abort},
            "headgate.is_open": {"call": self._is_open},
            # What ssl's getpeercert says of the client's certificate, which TLS has verified; None
            # without one.
            "headgate.peer_certificate": self._peer_certificate,  # type: ignore[dict-item]
        }
        self._head_bytes = self._headers_count = self._parsed_bytes = self._content_left = 0
        self._in_head = self._just_begun = True
        self._in_body = False
        if self._unread_bytes and not self.transport.get_write_buffer_size():
            self._stop_write_timer()  # it was for the answer before, which is read
        if self._timer is None:
            self._wait(HEAD_TIMEOUT_S)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. One behind the body is dropped: the application must not take it for one that
        a proxy let pass, and nothing needs it."""
        if not self._in_head:
            return
        self._headers_count += 1
        if (
            name.lower() == b"content-length"
            and value.isdigit()
            and len(value) <= LENGTH_DIGITS_MAX
        ):
            self._content_left = int(value)
        if self._headers_count <= HEADERS_MAX:
            self._parsed_bytes += len(name) + len(value) + HEADER_BYTES
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The body comes next."""
        if self._headers_count > HEADERS_MAX:
            self._refuse_headers()  # what follows asks whether the connection is closing
        self._in_head, self._in_body, self._empty_bytes = False, True, 0
        self._stop_waiting()
        self._wait(BODY_TIMEOUT_S)
        if any(name == b"upgrade" for name, _ in self.headers) and self.parser.should_upgrade():
            self._declined = self._head_without_offer()
        else:
            self._begin_request()

    def _begin_request(self) -> None:
        refusal = ""
        self._requests += 1
        self._content_bytes += self._long_head_bytes()
        if self.memory is not None:
            if self._requests == 1:
                refusal = self.memory.begin(self._address)
            self._hold()
        if self.transport.is_closing():
            refusal = "The connection ends"  # it was told: what it asked must not be done
        served = self.app
        if refusal:
            self.app = refusing(refusal)
        try:
            self._begin_cycle()
        finally:
            self.app = served

    def _begin_cycle(self) -> None:
        if self.parser.get_http_version() != "1.0":
            super().on_headers_complete()
            return
        plain = PlainAnswer(cast(Any, self.app))
        self.app = cast(Any, plain)
        super().on_headers_complete()
        plain.cycle = self.cycle

    def on_body(self, body: bytes) -> None:
        """Some bytes of a body. The application holds them until it has answered; those that come
        after its answer are dropped."""
        super().on_body(body)
        self._empty_bytes = 0
        self._content_left = max(0, self._content_left - len(body))
        if self.cycle is None or self.cycle.response_complete:
            return
        self._content_bytes += len(body)
        self._hold()

    def _is_open(self) -> bool:
        """Whether a client may still read a response."""
        return not self.transport.is_closing()

    def on_message_complete(self) -> None:
        """The last byte of a request."""
        self._in_body = False
        if self._declined is None:
            self._stop_waiting()
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Parse the head again without its offer, and what follows it, with a new parser.

        The old parser stops after a head with an offer, or with CONNECT.
        """
        stopped, head = sys.exception(), self._declined
        if head is None or stopped is None:
            self.transport.close()
            return
        self._declined = None
        self._kept.put_back(head + self._data[stopped.args[0] :])
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
        self._timer = self.loop.call_later(limit_s, self._read_timed_out)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def timeout_keep_alive_handler(self) -> None:
        """No further request came in time. A client that has sent its FIN over TLS may have ended
        the connection, which waits for it."""
        self.transport.close()

    def _read_timed_out(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            self._time_the_end()
        elif self.flow.read_paused or self._kept:
            self._wait(self._limit_s)
        elif self._in_head and self._requests:
            self._abort()  # an answer now would be taken for that to an earlier request
        elif self._in_head:
            self._refuse(408, f"The head did not arrive within {HEAD_TIMEOUT_S:.0f} s")
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self._refuse(408, f"The body did not arrive within {BODY_TIMEOUT_S:.0f} s")
