"""Shares the event loop among the connections to the web ports.

A read may bring thousands of requests, and one turn of the loop may serve hundreds of reads. What
is parsed in one turn has a bound, whatever arrived, and so has the number of requests that begin.
The rest waits for later turns, in which other callbacks of the loop have their time, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from headgate.base.fair_queue import NestedFairQueue, NestedFairSet
from headgate.base.units import KIB
from headgate.broker.connection.address_counts import wide_network_of

TURN_S: Final = 0.008
"""Time for parsing in one turn of the loop; a slice of one connection may exceed it."""

STARTS_MAX: Final = 16
"""Requests that begin in one turn: a short one is answered in half a millisecond."""

HEAD_BYTES_PER_START: Final = 4 * KIB
"""A request with a longer head counts as several: to read a query takes half a microsecond a byte.
"""


class Parses(Protocol):
    """A connection with bytes to parse."""

    def parse_some(self) -> bool:
        """Parse one slice; returns whether there is another that can be parsed now."""


class KeptBytes:
    """Bytes that arrived and are not parsed."""

    __slots__ = ("_reads", "held_bytes")

    def __init__(self) -> None:
        self._reads: deque[memoryview[int]] = deque()
        self.held_bytes = 0
        """How many there are. They take at most twice as much: a read is kept whole at first."""

    def __bool__(self) -> bool:
        return bool(self._reads)

    def add(self, data: bytes) -> None:
        """Behind all others."""
        if data:
            self._reads.append(memoryview(data))
            self.held_bytes += len(data)

    def put_back(self, data: bytes) -> None:
        """Before all others."""
        if data:
            self._reads.appendleft(memoryview(data))
            self.held_bytes += len(data)

    def take(self, size_max: int) -> bytes:
        """The first ones: at most ``size_max``, and not beyond one read."""
        read = self._reads.popleft()
        taken, rest = bytes(read[:size_max]), read[size_max:]
        if rest:
            is_small = 2 * len(rest) < len(read.obj)  # type: ignore[arg-type]  # bytes
            self._reads.appendleft(memoryview(bytes(rest)) if is_small else rest)
        self.held_bytes -= len(taken)
        return taken

    def clear(self) -> None:
        """Drop them all."""
        self._reads.clear()
        self.held_bytes = 0


def starts_of(scope: Mapping[str, Any]) -> int:
    """How many of :data:`STARTS_MAX` a request takes, by the length of its head."""
    head_bytes = len(scope["raw_path"]) + len(scope["query_string"])
    head_bytes += sum(len(name) + len(value) for name, value in scope["headers"])
    return 1 + head_bytes // HEAD_BYTES_PER_START


class HttpTurns:
    """The turns of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, now_s: Callable[[], float]) -> None:
        """``now_s`` moves within a turn, other than the time of uvloop."""
        self._loop = loop
        self._now_s = now_s
        self._to_parse: NestedFairSet[Parses] = NestedFairSet()
        """By wide network, which take turns, and address, which do in each: one slice may take as
        long as a whole turn, and one machine may have thousands of addresses."""
        self._to_start: NestedFairQueue[Callable[[], int]] = NestedFairQueue()
        self._used_s = 0.0
        self._started = 0
        self._is_armed = False

    def parse(self, connection: Parses, address: str = "") -> None:
        """Let a connection from ``address`` parse now, or in its turn if others wait or this turn
        is used up."""
        self._arm()
        while not self._to_parse and self._has_time():
            if not self._parse_slice(connection):
                return
        self._to_parse.add(wide_network_of(address), address, connection)

    def parse_later(self, connection: Parses, address: str = "") -> None:
        """Let it parse in its turn."""
        self._arm()
        self._to_parse.add(wide_network_of(address), address, connection)

    def leave(self, connection: Parses, address: str = "") -> None:
        """It has ended."""
        self._to_parse.discard(wide_network_of(address), address, connection)

    def start(self, begin: Callable[[], int], address: str = "") -> None:
        """Begin a request now or in its turn. ``begin`` returns how many starts it took; 0 if it
        had to begin no more. Of those that wait, ``address``es take turns: one may send hundreds at
        once."""
        self._arm()
        if self._to_start or self._started >= STARTS_MAX:
            self._to_start.add(wide_network_of(address), address, begin)
        else:
            self._started += begin()

    def further(self, address: str) -> Callable[[int], Awaitable[None]]:
        """What a request of ``address`` awaits with a number of further starts, before it goes on,
        when its body is whole or what many wait for has come. Its client may choose when that is,
        for hundreds at one instant."""
        return partial(self._further, address)

    async def _further(self, address: str, starts: int) -> None:
        turn: asyncio.Future[None] = self._loop.create_future()

        def go_on() -> int:
            if not turn.done():
                turn.set_result(None)
            return starts

        self.start(go_on, address)
        await turn

    def _has_time(self) -> bool:
        return self._used_s < TURN_S

    def _parse_slice(self, connection: Parses) -> bool:
        begun_s = self._now_s()
        try:
            return connection.parse_some()
        finally:
            self._used_s += self._now_s() - begun_s

    def _arm(self) -> None:
        """See to it that the next turn of the loop has its own bounds."""
        if not self._is_armed:
            self._is_armed = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_armed = False
        self._used_s, self._started = 0.0, 0
        if self._to_parse or self._to_start:
            self._arm()  # first: a failure must not hold up the others
        while self._to_start and self._started < STARTS_MAX:
            self._started += self._to_start.take()()
        while self._to_parse and self._has_time():
            address, connection = self._to_parse.take()
            if self._parse_slice(connection):
                self._to_parse.add(wide_network_of(address), address, connection)
