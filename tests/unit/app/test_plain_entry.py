"""New connections of ports without TLS: limits first, then turns of networks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
import uvloop

from headgate.app.entry_turns import ACCEPTED_PER_TURN, EntryTurns
from headgate.app.plain_entry import (
    BEGUN_PER_TURN,
    EARLY_BYTES_MAX,
    SILENT_S,
    PlainEntry,
    PlainPort,
)
from headgate.app.ports import Ports
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.listener_handles import handles_of
from headgate.policy.settings import Settings
from headgate.testing import World
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop
from tests.unit.app.test_entry_turns import Stream, Wire
from tests.unit.app.tls.test_entry import TOO_MANY, Gate
from tests.unit.broker.playing import played
from tests.unit.broker.test_server import FakeServer, listen


class Plain:
    """A port whose parts are fakes, in virtual time."""

    def __init__(self) -> None:
        self.loop, self.gate = SimLoop(ManualClock()), Gate()
        self.turns = EntryTurns(self.loop, BEGUN_PER_TURN)
        self.port = PlainPort(self.loop, self.gate, self.turns, str.encode)
        self.made = list[Stream]()

    def make(self) -> Stream:
        self.made.append(Stream())
        return self.made[-1]

    def connect(self) -> tuple[PlainEntry, Resumed]:
        wire = Resumed()
        entry = self.port.entry(self.make)
        entry.connection_made(wire)
        return entry, wire

    def run(self, seconds: float = 0.0) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


class Resumed(Wire):
    """Reads again when it is told to."""

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture
def plain() -> Any:
    made = Plain()
    yield made
    made.loop.close()


def feed(entry: PlainEntry, data: bytes) -> None:
    entry.get_buffer(-1)[: len(data)] = data
    entry.buffer_updated(len(data))


def test_limits_come_first_and_say_why(plain: Plain) -> None:
    plain.gate.reason = TOO_MANY
    entry, wire = plain.connect()
    assert (wire.ended, wire.written) == ("closed", TOO_MANY.encode())
    feed(entry, b"what it sent meanwhile")
    plain.gate.has_descriptors = False
    assert plain.connect()[1].ended == "aborted"
    entry.connection_lost(None)
    plain.run(2 * SILENT_S)
    assert (plain.gate.open, plain.made, plain.port.waiting) == ([], [], set())


def test_who_speaks_has_its_protocol_with_what_it_said(plain: Plain) -> None:
    entry, wire = plain.connect()
    plain.run()
    assert not plain.made
    feed(entry, b"hello")
    assert wire.is_paused, "what follows stays in the socket"
    assert plain.gate.open == ["/10.0.0.1:5"]
    plain.run()
    assert [made.received for made in plain.made] == [[b"hello"]]
    assert wire.protocol is plain.made[0]
    assert (wire.is_paused, plain.gate.open) == (False, []), "its protocol counts it from now on"
    plain.run(2 * SILENT_S)
    assert len(plain.made) == 1


def test_who_is_silent_has_its_protocol_later(plain: Plain) -> None:
    _, wire = plain.connect()
    plain.run(SILENT_S / 2)
    assert not plain.made
    plain.run(SILENT_S)
    assert [made.received for made in plain.made] == [[]]
    assert wire.protocol is plain.made[0]


def test_who_leaves_is_counted_no_more_and_gets_no_protocol(plain: Plain) -> None:
    silent, waiting = plain.connect()[0], plain.connect()[0]
    feed(waiting, b"hello")
    for entry in (silent, waiting, silent):
        entry.connection_lost(None)
    assert (plain.gate.open, plain.port.waiting) == ([], set())
    plain.run(2 * SILENT_S)
    assert not plain.made


def test_who_has_left_before_it_is_accepted_takes_no_place(plain: Plain) -> None:
    """uvloop knows no address of it, and its first bytes hide its end until it has had its turn."""
    wire = Resumed(None)
    entry = plain.port.entry(plain.make)
    entry.connection_made(wire)
    assert (wire.ended, plain.gate.open, plain.port.waiting) == ("aborted", [], set())
    feed(entry, b"hello")
    entry.connection_lost(None)
    plain.run(2 * SILENT_S)
    assert not plain.made


def test_a_port_that_closes_ends_those_that_wait(plain: Plain) -> None:
    wires = [plain.connect()[1] for _ in range(3)]
    plain.port.close()
    assert [wire.ended for wire in wires] == ["aborted"] * 3
    plain.run(2 * SILENT_S)
    assert (plain.gate.open, plain.made) == ([], [])


def test_a_protocol_that_fails_at_its_beginning_is_told_to_the_loop(plain: Plain) -> None:
    def fail() -> asyncio.BaseProtocol:
        raise ValueError("broken")

    wire = Resumed()
    entry = plain.port.entry(fail)
    entry.connection_made(wire)
    feed(entry, b"hello")
    with pytest.raises(ValueError, match="broken"):
        plain.run()
    assert wire.ended == "aborted"


NEW_LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


class Noted(asyncio.BufferedProtocol):
    """Notes whose it is and what it gets, and sends it back."""

    def __init__(self, begun: list[str]) -> None:
        self.begun, self.room = begun, bytearray(8)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.begun.append(transport.get_extra_info("peername")[0])

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.room

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.room[:nbytes]))


class NotedStream(asyncio.Protocol):
    """The same without a buffer of its own."""

    def __init__(self, begun: list[str]) -> None:
        self.begun = begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.begun.append(transport.get_extra_info("peername")[0])

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@pytest.mark.parametrize("new_loop", NEW_LOOPS)
@pytest.mark.parametrize("protocol", [Noted, NotedStream])
def test_who_comes_behind_a_crowd_of_another_address_does_not_wait_for_it(
    new_loop: Callable[[], asyncio.AbstractEventLoop], protocol: Callable[[list[str]], Any]
) -> None:
    """The system's line is that of all: 6,000 connections of one address kept others from a plain
    port for 1.7 to 3.5 s, and for 14 s while a role sent commands."""
    begun = list[str]()
    data = b"x" * (2 * EARLY_BYTES_MAX + 1)

    async def story() -> bytes:
        loop = asyncio.get_running_loop()
        listener = socket.create_server(("127.0.0.1", 0), backlog=1_000)
        address = listener.getsockname()
        crowd = [socket.create_connection(address) for _ in range(400)]
        for each in crowd:
            each.send(b"hello")
        reader, writer = await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
        writer.write(data)
        port = PlainPort(loop, Gate(), EntryTurns(loop, BEGUN_PER_TURN), str.encode)
        make = partial(port.entry, partial(protocol, begun))
        servers = [
            await loop.create_server(make, sock=each)
            for each in handles_of(listener, ACCEPTED_PER_TURN)
        ]
        echoed = await reader.readexactly(len(data))
        while len(begun) <= len(crowd):
            await asyncio.sleep(0)
        writer.close()
        for each in (*crowd, *servers):
            each.close()
        await asyncio.sleep(0)
        return echoed

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(story()) == data
    # A quarter of those before it, for each that begins sixteen at most were accepted.
    assert begun.index("127.0.0.2") <= 400 * BEGUN_PER_TURN // ACCEPTED_PER_TURN + 20


@played()
async def test_the_plain_port_of_a_broker_has_such_a_line(world: World) -> None:
    asked = listen(world, FakeServer())
    async with AsyncExitStack() as stack:
        ports = Ports.open(Settings(brokerServicePort=0, webServicePort=-1), stack)
        pace: Any = None
        await ports.serve_binary(world.broker, None, pace, Connection, stack)
        assert len(asked) == ACCEPTED_PER_TURN
        assert {each["sock"].getsockname() for each in asked} == {asked[0]["sock"].getsockname()}
        entry = asked[0]["factory"]()
        wire = Resumed()
        entry.connection_made(wire)
        assert not world.broker.connections
        assert world.broker.connection_limits._unauthenticated.total == 1
        await asyncio.sleep(2 * SILENT_S)
        assert len(world.broker.connections) == 1
        assert world.broker.connection_limits._unauthenticated.total == 1
        assert isinstance(wire.protocol, Connection)
        wire.protocol.connection_lost(None)
        assert world.broker.connection_limits._unauthenticated.total == 0
        for each in asked[1:]:
            each["sock"].close()
