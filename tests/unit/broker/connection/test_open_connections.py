"""The set of open connections counts what it is given and resumes what is paused, in slices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.open_connections import RESUMED_MAX, OpenConnections
from headgate.broker.info import BrokerCounts


class Admission:
    """Refuses everything."""

    def admit(self, transport: asyncio.BaseTransport) -> bool:
        return False


class Limits:
    """Refuses everything, with the address; notes who is there."""

    def __init__(self) -> None:
        self.present: list[str] = []
        self.authenticated_ones: list[str] = []
        self.lines = self.role_lines = object()

    def refusal(self, address: str) -> str:
        return f"no {address}"

    def added(self, address: str, memory_units: int) -> None:
        self.present.append(address)

    def authenticated(self, address: str, memory_units: int) -> None:
        assert memory_units == 1
        self.authenticated_ones.append(address)

    def removed(self, address: str, memory_units: int, *, is_authenticated: bool) -> None:
        assert memory_units == 1
        assert is_authenticated == (address in self.authenticated_ones)
        self.present.remove(address)


class Peer:
    """A connection that reports when it is resumed."""

    def __init__(self, address: str, resumed: list[str]) -> None:
        self.address = address
        self._resumed = resumed

    memory_units = 1

    def resume_reading(self) -> None:
        self._resumed.append(self.address)


def test_connections_are_counted_and_resumed_in_the_order_in_which_they_paused() -> None:
    admission: Any = Admission()
    limits: Any = Limits()
    memory = ClientMemory(1, lambda: 0)
    connections = OpenConnections(admission, limits, memory, BrokerCounts(), [].append)
    resumed: list[str] = []
    one: Any = Peer("/b:1", resumed)
    other: Any = Peer("/a:2", resumed)
    for each in (one, other):
        connections.add(each)
        connections.paused[each] = None
    for _ in range(2):
        connections.authenticated(other)
    assert limits.authenticated_ones == ["/a:2"]
    assert (len(connections), set(connections)) == (2, {one, other})
    assert limits.present == ["/b:1", "/a:2"]
    connections.resume_reading()
    assert resumed == ["/b:1", "/a:2"]
    for each in (one, other):
        connections.discard(each)
        assert each not in connections
    counts = connections.counts
    assert not connections.paused
    assert (counts.connections_accepted, counts.connections_closed) == (2, 2)
    assert counts.connections_failed == 1, "the one without a CONNECT"
    assert not connections.admit(asyncio.BaseTransport())
    assert (limits.present, connections.refusal("/c:3")) == ([], "no /c:3")


def test_many_paused_connections_are_resumed_in_slices() -> None:
    """A commit that ends looks at a bounded number of them, and at each of them in the end."""
    admission: Any = Admission()
    limits: Any = Limits()
    soon: list[Callable[[], None]] = []
    memory = ClientMemory(1, lambda: 0)
    connections = OpenConnections(admission, limits, memory, BrokerCounts(), soon.append)
    resumed: list[str] = []
    peers: list[Any] = [Peer(f"/a:{number}", resumed) for number in range(2 * RESUMED_MAX + 1)]
    connections.paused = dict.fromkeys(peers)
    connections.resume_reading()
    assert len(resumed) == RESUMED_MAX
    del connections.paused[peers[-1]]  # it ended meanwhile
    connections.resume_reading()  # another commit: those behind are looked at first, then all again
    assert (len(resumed), len(soon)) == (RESUMED_MAX, 1)
    while soon:
        before = len(resumed)
        soon.pop()()
        assert len(resumed) - before <= RESUMED_MAX
        assert len(soon) <= 1
    assert set(resumed) == {peer.address for peer in peers[:-1]}
    assert resumed[RESUMED_MAX] == peers[RESUMED_MAX].address
    assert len(resumed) == 3 * RESUMED_MAX
