"""All connections together carry out a bounded number of commands in each iteration of the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.units import KIB, MIB
from headgate.broker.connection.bounds import COLD_WORK, LOOP_WORK, TURN_WORK_MAX
from headgate.broker.connection.command_budget import CommandBudget
from headgate.broker.connection.connection import Connection
from headgate.testing import NetworkProfile, SimClient, World
from headgate.wire import client as frames
from tests.unit.broker.playing import TOPIC, played

QUICK = NetworkProfile(0, 0, piece_bytes_max=MIB, window_bytes=16 * MIB)


class Loop:
    """Notes what it should call in the next iteration."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, action: Callable[[], None]) -> None:
        self.soon.append(action)

    def iterate(self) -> None:
        """Call what was noted."""
        soon, self.soon = self.soon, []
        for action in soon:
            action()


class Client:
    """A connection with work of so many units, of which it does a part at each turn."""

    def __init__(self, budget: CommandBudget, units: int, turns: list[Client]) -> None:
        self._budget = budget
        self.units = units
        self._turns = turns

    def turn_came(self) -> None:
        if self._budget.left <= 0 and not self._budget.renew():
            self._budget.wait(self)
            return
        self._turns.append(self)
        used = min(self.units, TURN_WORK_MAX)
        self.units -= used
        self._budget.left -= used
        if self.units:
            self._budget.wait(self)


def make_budget() -> tuple[CommandBudget, Loop]:
    loop: Any = Loop()
    return CommandBudget(loop), loop


def test_a_quiet_broker_asks_for_an_iteration_only_after_half_a_budget() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    for _ in range(LOOP_WORK):
        Client(budget, 1, turns).turn_came()
    assert (len(turns), loop.soon) == (LOOP_WORK, [])
    Client(budget, 1, turns).turn_came()
    assert (len(turns), len(loop.soon)) == (LOOP_WORK + 1, 1)
    loop.iterate()
    assert (budget.left, loop.soon) == (LOOP_WORK, [])


def test_connections_beyond_the_budget_have_their_turns_in_order() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    clients = [Client(budget, 3 * TURN_WORK_MAX, turns) for _ in range(50)]
    for client in clients:
        client.turn_came()
    per_iteration = 2 * LOOP_WORK // TURN_WORK_MAX
    assert turns == clients[:per_iteration]
    assert budget.waiting_count == 50
    while loop.soon:
        before = len(turns)
        loop.iterate()
        assert len(turns) - before <= per_iteration
    assert Counter(turns) == dict.fromkeys(clients, 3)
    assert turns[per_iteration : per_iteration + len(clients)] == clients
    assert budget.waiting_count == 0


def test_an_error_of_one_leaves_the_others_in_line() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []

    class Broken(Client):
        def turn_came(self) -> None:
            raise RuntimeError

    for _ in range(2 * LOOP_WORK // TURN_WORK_MAX):
        Client(budget, TURN_WORK_MAX, turns).turn_came()
    assert budget.left <= 0
    waits = Client(budget, 1, turns)
    budget.wait(Broken(budget, 1, turns))
    budget.wait(waits)
    with pytest.raises(RuntimeError):
        loop.iterate()
    loop.iterate()
    assert turns[-1] is waits


# -- connections ------------------------------------------------------------------------------

CLIENTS = 60
PINGS = 3 * TURN_WORK_MAX // COLD_WORK


def server_side(world: World, client: SimClient) -> Connection:
    """The broker's connection of a client."""
    (found,) = (c for c in world.broker.connections if c._transport is client.transport._peer)  # type: ignore[attr-defined]
    return found


def watch_frames(world: World, connections: list[Connection]) -> list[int]:
    """How many frames connections are sent in each iteration of the loop, from now on."""
    counts, loop = [0], world.loop
    run_once = loop._run_once  # type: ignore[attr-defined]

    def iteration() -> None:
        counts.append(0)
        run_once()

    def watch(write: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def written(frame: bytes) -> None:
            counts[-1] += 1
            write(frame)

        return written

    for connection in connections:
        connection.write = watch(connection.write)  # type: ignore[method-assign]
    loop._run_once = iteration  # type: ignore[attr-defined]
    return counts


async def flood(connections: list[Connection], clients: list[SimClient], data: bytes) -> None:
    """Have ``data`` arrive on all connections in one iteration of the loop."""
    for connection, client in zip(connections, clients, strict=True):
        connection._transport.pause_reading()
        client.write(data)
    await asyncio.sleep(0.1)
    for connection in connections:
        connection._transport.resume_reading()


async def pongs(clients: list[SimClient], count: int) -> None:
    """Return when all clients together got so many PONGs."""
    while sum(len(client.unexpected) for client in clients) < count:
        await asyncio.sleep(0.001)


@played(network=QUICK)
async def test_many_connections_that_flood_at_once_share_each_iteration(world: World) -> None:
    clients = [await world.connect() for _ in range(CLIENTS)]
    producer = await (await world.connect()).producer(TOPIC)
    connections = [server_side(world, client) for client in clients]
    counts = watch_frames(world, connections)
    await flood(connections, clients, frames.ping() * PINGS)
    await producer.send(b"in between")
    await pongs(clients, CLIENTS * PINGS)
    assert sum(counts) == CLIENTS * PINGS
    assert max(counts) * COLD_WORK <= 3 * (LOOP_WORK + TURN_WORK_MAX)
    assert world.broker.command_budget.waiting_count == 0


@played(network=QUICK)
async def test_many_connections_with_one_command_each_share_each_iteration(world: World) -> None:
    """Such a connection waits in line without a pause of its socket."""
    clients = [await world.connect() for _ in range(10 * CLIENTS)]
    connections = [server_side(world, client) for client in clients]
    counts = watch_frames(world, connections)
    await flood(connections, clients, frames.ping())
    await pongs(clients, len(clients))
    assert max(counts) * COLD_WORK <= 3 * (LOOP_WORK + TURN_WORK_MAX)
    assert not any(connection.socket_paused for connection in connections)


@played(network=QUICK)
async def test_what_arrives_on_a_connection_in_line_stays_in_its_socket(world: World) -> None:
    clients = [await world.connect() for _ in range(4 * LOOP_WORK // TURN_WORK_MAX)]
    connections = [server_side(world, client) for client in clients]
    largest, in_line = [0], [0]
    budget, begin_turn = world.broker.command_budget, world.broker.begin_turn

    def looked() -> None:
        largest[0] = max(largest[0], *(each._decoder.buffer_bytes for each in connections))
        in_line[0] = max(in_line[0], budget.waiting_count)
        begin_turn()

    world.broker.begin_turn = looked  # type: ignore[method-assign]
    pings_count = 150 * KIB // len(frames.ping())
    await flood(connections, clients, frames.ping() * pings_count)
    await pongs(clients, len(clients) * pings_count)
    assert in_line[0] > 0
    assert 64 * KIB < largest[0] <= 128 * KIB


@played(network=QUICK)
async def test_connections_that_end_in_line_are_passed_over(world: World) -> None:
    clients = [await world.connect() for _ in range(CLIENTS)]
    connections = [server_side(world, client) for client in clients]
    await flood(connections, clients, frames.ping() * PINGS)
    while not world.broker.command_budget.waiting_count:
        await asyncio.sleep(0)
    for connection in connections[1:]:
        connection.abort()
    await pongs(clients[:1], PINGS)
    assert world.broker.command_budget.waiting_count == 0
