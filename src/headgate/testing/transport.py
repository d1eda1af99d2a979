"""Connections in memory: two transports that hand each other bytes, late and in pieces.

Each side has a send buffer with marks (``pause_writing`` and ``resume_writing`` of the protocol)
and a receive window: when a side reads no further, the other side's buffer fills, as with TCP. A
connection can be closed (what was sent arrives first), aborted (it does not), or silenced: then
it is half open, and neither side is told anything.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate.base.units import KIB, NS_PER_MS, NS_PER_S, NS_PER_US
from headgate.testing.loop import SimLoop

_Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class NetworkProfile:
    """How a simulated network behaves."""

    delay_ns_min: int = 20 * NS_PER_US
    """Shortest time that a piece takes to arrive."""
    delay_ns_max: int = NS_PER_MS
    """Longest time that a piece takes to arrive; pieces never overtake each other."""
    piece_bytes_max: int = 64 * KIB
    """Largest piece that arrives at once; 1 delivers byte by byte."""
    window_bytes: int = 64 * KIB
    """Bytes that network and receiver buffer for a side that does not read."""
    write_high_bytes: int = 64 * KIB
    """Send buffer at which the protocol is asked to pause writing; a quarter resumes it."""


class SimNetwork:
    """Makes connections whose delays and pieces one seeded source decides."""

    def __init__(
        self, loop: SimLoop, rng: random.Random, profile: NetworkProfile | None = None
    ) -> None:
        self.loop = loop
        self.rng = rng
        self.profile = profile or NetworkProfile()
        self._next_port = 40_000

    def connect(
        self,
        server: asyncio.BaseProtocol,
        client: asyncio.BaseProtocol,
        *,
        server_context: contextvars.Context | None = None,
    ) -> tuple[SimTransport, SimTransport]:
        """Connect two protocols; returns the server's and the client's transport.

        ``server_context`` is the context in which the server's protocol is called.
        """
        self._next_port += 1
        server_context = server_context or contextvars.copy_context()
        server_side = SimTransport(self, server, server_context, self._next_port)
        client_side = SimTransport(self, client, contextvars.copy_context(), 6650)
        server_side._peer, client_side._peer = client_side, server_side
        server_context.run(server.connection_made, server_side)
        client.connection_made(client_side)
        return server_side, client_side


class SimTransport(asyncio.Transport):
    """One side of a connection. Made by :meth:`SimNetwork.connect`."""

    _peer: SimTransport

    def __init__(
        self,
        network: SimNetwork,
        protocol: asyncio.BaseProtocol,
        context: contextvars.Context,
        peer_port: int,
    ) -> None:
        super().__init__({"peername": ("127.0.0.1", peer_port)})
        self._network = network
        self._loop = network.loop
        self._protocol = protocol
        self._context = context
        self._outgoing = bytearray()
        """Written and not yet sent."""
        self._incoming = bytearray()
        """Arrived and not yet read by the protocol."""
        self._under_way_bytes = 0
        self._arrival_ns = 0
        self._reading = True
        self._writing_paused = False
        self._high_bytes = network.profile.write_high_bytes
        self._low_bytes = self._high_bytes // 4
        self._closing = False
        self._lost = False
        self._silent = False
        self._peer_is_done = False
        self._read_scheduled = False

    # -- what asyncio's transports do ------------------------------------------------------

    def write(self, data: _Bytes) -> None:
        """Send ``data``; nothing happens on a connection that is closing."""
        if self._closing or self._lost:
            return
        self._outgoing += data
        self._send()
        if len(self._outgoing) > self._high_bytes and not self._writing_paused:
            self._writing_paused = True
            self._call(self._protocol.pause_writing)

    def writelines(self, list_of_data: Iterable[_Bytes]) -> None:
        """Send several pieces as one."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """As a socket's transport."""
        return True

    def close(self) -> None:
        """Send what was written, then end the connection."""
        if not self._closing:
            self._closing = True
            self._reading = False
            self._send()
            if not self._outgoing:
                self._finish()

    def abort(self) -> None:
        """End the connection at once. Bytes in transit arrive before the other side sees the end;
        those that it has not read by then are lost."""
        self._closing = True
        self._outgoing.clear()
        self._incoming.clear()
        self._lose(None)
        self._peer._arrive_later(self._peer._reset)

    def is_closing(self) -> bool:
        """Whether it was closed, from either side."""
        return self._closing or self._lost

    def pause_reading(self) -> None:
        """Stop handing bytes to the protocol. A full window then stops the other side."""
        self._reading = False

    def resume_reading(self) -> None:
        """Go on after :meth:`pause_reading`."""
        if not self._closing:
            self._reading = True
            self._read_soon()

    def is_reading(self) -> bool:
        """Whether bytes are handed to the protocol."""
        return self._reading and not self._closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the marks of ``pause_writing`` and ``resume_writing``, in bytes."""
        self._high_bytes = self._network.profile.write_high_bytes if high is None else high
        self._low_bytes = self._high_bytes // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        """Low and high mark, in bytes."""
        return self._low_bytes, self._high_bytes

    def get_write_buffer_size(self) -> int:
        """Bytes written and not yet sent."""
        return len(self._outgoing)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol that receives the bytes."""
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Deliver the bytes to another protocol from now on."""
        self._protocol = protocol

    # -- what tests do -----------------------------------------------------------------------

    def silence(self) -> None:
        """Drop all bytes from now on, in both directions: a half-open connection."""
        self._silent = self._peer._silent = True

    # -- sending and receiving -----------------------------------------------------------------

    def _send(self) -> None:
        """Send as much as the other side's window takes."""
        peer, profile, rng = self._peer, self._network.profile, self._network.rng
        while self._outgoing and not self._lost:
            room = profile.window_bytes - len(peer._incoming) - peer._under_way_bytes
            if room <= 0:
                return
            size = min(len(self._outgoing), rng.randint(1, profile.piece_bytes_max), room)
            piece = bytes(self._outgoing[:size])
            del self._outgoing[:size]
            if not self._silent:
                peer._under_way_bytes += size
                peer._arrive_later(peer._arrived, piece)
        if self._writing_paused and len(self._outgoing) <= self._low_bytes:
            self._writing_paused = False
            self._loop.call_soon(
                self._unless_lost, self._protocol.resume_writing, context=self._context
            )
        if self._closing and not self._outgoing:
            self._finish()

    def _arrive_later(self, action: Any, *arguments: Any) -> None:
        """Run ``action`` on this side when a piece sent now arrives."""
        profile = self._network.profile
        delay_ns = self._network.rng.randint(profile.delay_ns_min, profile.delay_ns_max)
        # Strictly later than the one before: a loop's timers are not first in, first out.
        now_ns = self._loop.clock.monotonic_ns()
        self._arrival_ns = max(self._arrival_ns + 1, now_ns + delay_ns)
        self._loop.call_at(self._arrival_ns / NS_PER_S, action, *arguments, context=self._context)

    def _arrived(self, piece: bytes) -> None:
        if self._lost or self._silent:
            return
        self._under_way_bytes -= min(len(piece), self._under_way_bytes)
        self._incoming += piece
        self._read()

    def _read_soon(self) -> None:
        if not self._read_scheduled:
            self._read_scheduled = True
            self._loop.call_soon(self._read, context=self._context)

    def _read(self) -> None:
        """Hand the protocol the bytes that arrived, as long as it reads."""
        self._read_scheduled = False
        protocol = self._protocol
        while self._incoming and self._reading and not self._lost:
            if isinstance(protocol, asyncio.BufferedProtocol):
                buffer = memoryview(protocol.get_buffer(-1))
                size = min(len(buffer), len(self._incoming))
                buffer[:size] = self._incoming[:size]
                del self._incoming[:size]
                protocol.buffer_updated(size)
            elif isinstance(protocol, asyncio.Protocol):
                data = bytes(self._incoming)
                self._incoming.clear()
                protocol.data_received(data)
        if self._closing:
            self._incoming.clear()
        if self._peer._outgoing and not self._peer._lost:
            self._loop.call_soon(self._peer._send, context=self._peer._context)
        if self._peer_is_done and not self._incoming and not self._lost:
            self._end_of_input()

    # -- the end -----------------------------------------------------------------------------

    def _finish(self) -> None:
        """Close this side: everything written was sent."""
        if self._lost:
            return
        self._lose(None)
        if not self._silent:
            self._peer._arrive_later(self._peer._peer_closed)

    def _peer_closed(self) -> None:
        self._peer_is_done = True
        if not self._incoming or self._closing:
            self._end_of_input()

    def _end_of_input(self) -> None:
        if not self._lost:
            self._closing = True
            self._outgoing.clear()
            self._lose(None)

    def _reset(self) -> None:
        if not self._silent:
            self._closing = True
            self._outgoing.clear()
            self._incoming.clear()
            self._lose(ConnectionResetError("the peer aborted the connection"))

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = True
            self._loop.call_soon(self._end, error, context=self._context)

    def _end(self, error: Exception | None) -> None:
        """Tell the protocol, and refer to it no more, as transports of sockets do."""
        protocol, self._protocol = self._protocol, asyncio.BaseProtocol()
        protocol.connection_lost(error)

    def _unless_lost(self, action: Any) -> None:
        if not self._lost:
            action()

    def _call(self, action: Any) -> None:
        """Call the protocol from inside its own call (``write``): its context is in force."""
        action()
