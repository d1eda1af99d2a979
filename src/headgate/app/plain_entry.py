"""Lets new connections of a port without TLS begin in turns of their networks.

What a client may ask for before the broker knows who it is costs some tenths of a millisecond: its
connection, its credentials, a line of the log. A crowd that asks again and again would keep the
system's line of all clients full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from headgate.app.entry_turns import EntryTurns, fail, hand_on
from headgate.app.tls.gates import ConnectionGate
from headgate.broker.connection.address_counts import address_of, peer_network_of
from headgate.wire.limits import BUFFER_BYTES_START

BEGUN_PER_TURN: Final = 4
"""Connections without TLS that begin in one turn of the loop, of all ports together. One costs
about a tenth of a millisecond, and its credentials as much again."""

SILENT_S: Final = 1.0
"""A client that says nothing for so long has its turn all the same. Until then it costs little, and
many of a crowd have left."""

EARLY_BYTES_MAX: Final = BUFFER_BYTES_START
"""What is read of a connection that waits; more stays with the system."""


class PlainPort:
    """The protocol factory of one port: an entry for each connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        gate: ConnectionGate,
        turns: EntryTurns,
        refused: Callable[[str], bytes],
    ) -> None:
        """``refused`` makes the answer to a connection that must end, of the reason."""
        self.loop = loop
        self.gate = gate
        self.turns = turns
        self.refused = refused
        self.waiting: set[PlainEntry] = set()
        self.room = memoryview(bytearray(EARLY_BYTES_MAX))
        """Where all read, one after the other."""

    def entry(self, make: Callable[[], asyncio.BaseProtocol]) -> PlainEntry:
        """For one connection, whose protocol ``make`` makes when its turn comes."""
        return PlainEntry(self, make)

    def close(self) -> None:
        """End connections that wait."""
        for entry in list(self.waiting):
            entry.end()


class PlainEntry(asyncio.BufferedProtocol):
    """One connection until its turn comes."""

    __slots__ = ("_address", "_early", "_make", "_port", "_timer", "_transport")

    def __init__(self, port: PlainPort, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._port = port
        self._make = make
        self._transport: asyncio.Transport
        self._address = ""
        self._early = b""
        self._timer: asyncio.TimerHandle | None = None
        """Until it is in the line."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        port, self._transport = self._port, cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername")
        self._address = address_of(peername)
        if peername is None or not port.gate.admit(transport):
            # Without a peer the client has left already, which bytes that came before hide.
            self._transport.abort()
            return
        if refusal := port.gate.refusal(self._address):
            self._transport.write(port.refused(refusal))
            self._transport.close()
            return
        port.gate.added(self._address)
        port.waiting.add(self)
        self._timer = port.loop.call_later(SILENT_S, self._wait)

    def _wait(self) -> None:
        """Wait for the turn."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._port.turns.wait(self, peer_network_of(self._address))

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._port.room

    def buffer_updated(self, nbytes: int) -> None:
        if self.has_ended:  # it was refused
            return
        self._early += self._port.room[:nbytes]
        self._transport.pause_reading()
        self._wait()

    def eof_received(self) -> None:
        """The client has left; the loop closes the transport."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.end()

    @property
    def has_ended(self) -> bool:
        """Whether the connection has ended, or its protocol has taken over."""
        return self not in self._port.waiting

    def begin(self) -> int:
        """Make the connection's protocol; 0 if the connection has ended meanwhile, else 1."""
        transport = self._transport
        if self.has_ended or transport.is_closing():
            return 0
        self._leave()
        early, self._early = self._early, b""
        try:
            protocol = self._make()
            transport.pause_reading()
            transport.set_protocol(protocol)
            transport.resume_reading()  # how a loop reads is settled when it begins to read
            hand_on(transport, protocol, early)
        except Exception as error:
            message = "the protocol of a connection failed at its beginning"
            fail(self._port.loop, transport, message, error)
        return 1

    def end(self) -> None:
        """End the connection. A second call does nothing."""
        if self.has_ended:
            return
        self._leave()
        if self._timer is None:
            self._port.turns.lost()
        else:
            self._timer.cancel()
            self._timer = None
        self._transport.abort()

    def _leave(self) -> None:
        self._port.waiting.discard(self)
        self._port.gate.left(self._address)
