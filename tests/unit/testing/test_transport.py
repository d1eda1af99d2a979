"""Connections in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from headgate.base.units import NS_PER_MS
from headgate.testing.loop import SimLoop
from headgate.testing.transport import NetworkProfile, SimNetwork, SimTransport


class Side(asyncio.Protocol):
    """Writes down what happens to it."""

    transport: SimTransport

    def __init__(self) -> None:
        self.received = b""
        self.pieces = 0
        self.lost: list[Exception | None] = []
        self.paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.pieces += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False


class Wire:
    """A connection of two sides, and time."""

    def __init__(self, profile: NetworkProfile | None = None, seed: int = 1) -> None:
        self.loop = SimLoop()
        network = SimNetwork(self.loop, random.Random(seed), profile)
        self.server, self.client = Side(), Side()
        network.connect(self.server, self.client)

    def pass_s(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire()
    yield wire
    wire.loop.close()


def test_bytes_arrive_whole_in_order_and_later(wire: Wire) -> None:
    sent = random.Random(2).randbytes(200_000)
    wire.client.transport.write(sent[:7])
    wire.client.transport.writelines([sent[7:100_000], sent[100_000:]])
    assert not wire.server.received
    wire.pass_s(1)
    assert wire.server.received == sent
    assert wire.client.transport.get_extra_info("peername") == ("127.0.0.1", 6650)


def test_a_network_may_deliver_byte_by_byte() -> None:
    wire = Wire(NetworkProfile(piece_bytes_max=1))
    wire.client.transport.write(b"seven b")
    wire.pass_s(1)
    assert (wire.server.received, wire.server.pieces) == (b"seven b", 7)
    wire.loop.close()


def test_the_same_seed_gives_the_same_pieces() -> None:
    pieces = []
    for _ in range(2):
        wire = Wire(seed=5)
        wire.client.transport.write(bytes(300_000))
        wire.pass_s(0.002)
        pieces.append((wire.server.pieces, len(wire.server.received)))
        wire.loop.close()
    assert pieces[0] == pieces[1]
    assert pieces[0][0] > 0


def test_who_does_not_read_holds_the_other_up(wire: Wire) -> None:
    wire.server.transport.pause_reading()
    assert not wire.server.transport.is_reading()
    wire.client.transport.write(bytes(300_000))
    assert wire.client.paused
    wire.pass_s(1)
    assert not wire.server.received
    assert wire.client.paused
    assert wire.client.transport.get_write_buffer_size() > 0
    wire.server.transport.resume_reading()
    wire.pass_s(1)
    assert len(wire.server.received) == 300_000
    assert not wire.client.paused


def test_closing_lets_what_was_sent_arrive(wire: Wire) -> None:
    wire.client.transport.write(bytes(100_000))
    wire.client.transport.close()
    wire.client.transport.write(b"too late")
    wire.pass_s(1)
    assert len(wire.server.received) == 100_000
    assert (wire.client.lost, wire.server.lost) == ([None], [None])


def test_aborting_loses_what_is_not_sent_and_tells_the_peer(wire: Wire) -> None:
    wire.server.transport.pause_reading()
    wire.client.transport.write(bytes(300_000))
    wire.pass_s(1)
    wire.client.transport.abort()
    wire.pass_s(1)
    assert not wire.server.received
    assert isinstance(wire.server.lost[0], ConnectionResetError)
    assert wire.client.lost == [None]


@pytest.mark.parametrize("seed", range(20))
def test_what_arrived_before_an_abort_has_no_gap(seed: int) -> None:
    """Some of it has arrived and is not read, some is under way: the second never comes alone."""
    slow = NetworkProfile(delay_ns_max=20 * NS_PER_MS, piece_bytes_max=100)
    wire = Wire(slow, seed)
    data = bytes(range(250)) * 8
    wire.client.transport.write(data)
    wire.pass_s(0.004)
    wire.server.transport.pause_reading()
    wire.pass_s(0.004)
    wire.client.transport.abort()
    wire.server.transport.resume_reading()
    wire.pass_s(1)
    wire.loop.close()
    assert data.startswith(wire.server.received)
    assert wire.server.lost


def test_a_silenced_connection_is_half_open(wire: Wire) -> None:
    wire.client.transport.silence()
    wire.client.transport.write(b"nobody hears this")
    wire.client.transport.close()
    wire.pass_s(100)
    assert not wire.server.received
    assert not wire.server.lost
    assert wire.client.lost == [None]


def test_pieces_take_as_long_as_the_profile_says() -> None:
    wire = Wire(NetworkProfile(delay_ns_min=5 * NS_PER_MS, delay_ns_max=5 * NS_PER_MS))
    wire.client.transport.write(b"x")
    wire.pass_s(0.0049)
    assert not wire.server.received
    wire.pass_s(0.0002)
    assert wire.server.received == b"x"
    wire.loop.close()
