"""Networks take turns in the line of new connections."""

from __future__ import annotations

import asyncio

from headgate.app.entry_turns import EntryTurns, hand_on
from headgate.app.tls.handshake_steps import LOST_MIN
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from tests.unit.app.tls.test_entry import Socket

BEGUN_PER_TURN = 3


class Entry:
    """Notes its turn."""

    def __init__(self, name: str, begun: list[str]) -> None:
        self.name, self.begun, self.has_ended = name, begun, False

    def begin(self) -> int:
        if self.has_ended:
            return 0
        self.begun.append(self.name)
        return 1


def test_the_many_of_one_network_wait_for_each_other_alone() -> None:
    loop, begun = SimLoop(ManualClock()), list[str]()
    turns = EntryTurns(loop, BEGUN_PER_TURN)
    for number in range(100):
        turns.wait(Entry(f"crowd {number}", begun), "10.0.0.1")
    turns.wait(Entry("other", begun), "10.0.1.1")
    loop.run_until_complete(asyncio.sleep(0))
    assert begun[:BEGUN_PER_TURN] == ["crowd 0", "other", "crowd 1"]
    assert len(begun) < 4 * BEGUN_PER_TURN
    loop.run_until_complete(asyncio.sleep(1))
    loop.close()
    assert len(begun) == 101
    assert not turns._waiting


def test_those_that_ended_leave_the_line_and_take_no_turn() -> None:
    loop, begun = SimLoop(ManualClock()), list[str]()
    turns = EntryTurns(loop, BEGUN_PER_TURN)
    entries = [Entry(f"{number}", begun) for number in range(4 * LOST_MIN)]
    for entry in entries:
        turns.wait(entry, "10.0.0.1")
    for entry in entries[:-1]:
        entry.has_ended = True
        turns.lost()
    assert len(turns._waiting) < 2 * LOST_MIN
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert begun == [entries[-1].name]


class Buffered(asyncio.BufferedProtocol):
    """Has room for a few bytes at once."""

    def __init__(self) -> None:
        self.room, self.received = bytearray(4), b""

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.room[:nbytes]


class Stream(asyncio.Protocol):
    """Ends its connection with the first bytes."""

    def __init__(self) -> None:
        self.received = list[bytes]()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received.append(data)
        self.transport.close()


class Wire(Socket):
    """Takes any protocol."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol


def test_a_protocol_gets_what_came_before_it() -> None:
    wire, buffered, stream = Wire(), Buffered(), Stream()
    hand_on(wire, buffered, b"0123456789")
    assert (buffered.received, wire.protocol) == (b"0123456789", buffered)
    hand_on(wire, stream, b"0123456789")
    assert (stream.received, wire.ended) == ([b"0123456789"], "closed")
    late = Stream()
    hand_on(wire, late, b"0123456789")
    assert late.received == [], "its connection is closing"
