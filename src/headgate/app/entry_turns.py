"""The line of new connections between the system's line and their protocol.

The system keeps one line of all clients that wait for a port, and serves it in order. So a port
accepts faster than a crowd can connect, and new connections wait here, where networks take turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

from headgate.app.tls.handshake_steps import EndedCount
from headgate.base.fair_queue import NestedFairQueue
from headgate.broker.connection.address_counts import wide_network_of

ACCEPTED_PER_TURN: Final = 16
"""Connections that a port accepts in one turn of the loop."""


class Entry(Protocol):
    """A new connection."""

    def begin(self) -> int:
        """Go on; 0 if the connection has ended meanwhile, else 1."""

    @property
    def has_ended(self) -> bool:
        """Whether it waits for nothing more."""


class Entrance(Protocol):
    """What makes the entry of each connection of a port."""

    def entry(self, make: Callable[[], asyncio.BaseProtocol], /) -> asyncio.BaseProtocol:
        """For one connection, whose protocol ``make`` makes behind the entry."""

    def close(self) -> None:
        """End connections that are still in their entry."""


class EntryTurns:
    """Lets a few entries begin in each turn of the loop, for all ports that share it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, begun_per_turn: int) -> None:
        self._loop = loop
        self._begun_per_turn = begun_per_turn
        self._waiting: NestedFairQueue[Entry] = NestedFairQueue()
        """By wide network and network: a crowd of one makes its own wait."""
        self._ended = EndedCount()
        self._is_due = False

    def wait(self, entry: Entry, network: str = "") -> None:
        """Call ``entry.begin()`` when its turn comes, among those of all networks."""
        self._waiting.add(wide_network_of(network), network, entry)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._turn)

    def lost(self) -> None:
        """An entry has ended while it waited. A crowd's turn may never come: others of the same
        network are added faster than it has turns."""
        if self._ended.add(len(self._waiting)):
            self._waiting.drop(lambda entry: entry.has_ended)

    def _turn(self) -> None:
        begun = 0
        while self._waiting and begun < self._begun_per_turn:
            begun += self._waiting.take().begin()
        self._is_due = bool(self._waiting)
        if self._is_due:
            self._loop.call_soon(self._turn)


def hand_on(transport: asyncio.Transport, protocol: asyncio.BaseProtocol, received: bytes) -> None:
    """Let a connection's own protocol take over, with the bytes that arrived before it existed."""
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    early = memoryview(received)
    while early and not transport.is_closing():
        if isinstance(protocol, asyncio.BufferedProtocol):
            room = cast(memoryview, protocol.get_buffer(len(early)))
            size = min(len(room), len(early))
            room[:size] = early[:size]
            protocol.buffer_updated(size)
        else:
            size = len(early)
            cast(asyncio.Protocol, protocol).data_received(bytes(early))
        early = early[size:]


def fail(
    loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, message: str, error: Exception
) -> None:
    """End a connection whose protocol failed at its beginning, as the loop does for a protocol of a
    socket: a broken invariant must be seen now."""
    transport.abort()
    loop.call_exception_handler({"message": message, "exception": error})
