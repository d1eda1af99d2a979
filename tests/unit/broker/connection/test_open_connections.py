"""The set of open connections counts what it is given and resumes what is paused, in order."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.open_connections import OpenConnections
from headgate.broker.info import BrokerCounts


class Admission:
    """Refuses everything."""

    def admit(self, transport: asyncio.BaseTransport) -> bool:
        return False


class Limits:
    """Refuses everything, with the address; notes who is there."""

    def __init__(self) -> None:
        self.present: list[str] = []

    def refusal(self, address: str) -> str:
        return f"no {address}"

    def added(self, address: str) -> None:
        self.present.append(address)

    def removed(self, address: str) -> None:
        self.present.remove(address)


class Peer:
    """A connection that reports when it is resumed."""

    def __init__(self, address: str, resumed: list[str], peer: object | None = None) -> None:
        self.address = address
        self.peer = peer
        self._resumed = resumed

    def resume_reading(self) -> None:
        self._resumed.append(self.address)


def test_connections_are_counted_and_resumed_in_the_order_of_their_addresses() -> None:
    admission: Any = Admission()
    limits: Any = Limits()
    memory = ClientMemory(1, lambda: 0)
    connections = OpenConnections(admission, limits, memory, BrokerCounts())
    resumed: list[str] = []
    one: Any = Peer("/b:1", resumed)
    other: Any = Peer("/a:2", resumed, peer=object())
    for each in (one, other):
        connections.add(each)
        connections.paused.add(each)
    assert (len(connections), set(connections)) == (2, {one, other})
    assert limits.present == ["/b:1", "/a:2"]
    connections.resume_reading()
    assert resumed == ["/a:2", "/b:1"]
    for each in (one, other):
        connections.discard(each)
        assert each not in connections
    counts = connections.counts
    assert not connections.paused
    assert (counts.connections_accepted, counts.connections_closed) == (2, 2)
    assert counts.connections_failed == 1, "the one without a CONNECT"
    assert not connections.admit(asyncio.BaseTransport())
    assert (limits.present, connections.refusal("/c:3")) == ([], "no /c:3")
