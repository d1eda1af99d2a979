"""All connections together carry out a bounded number of commands in each iteration of the loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from headgate.base.units import KIB, MIB
from headgate.base.work_units import CONNECTION_ENDED, LOOP_UNITS, READ, TURN_UNITS, WAITED
from headgate.broker.connection.command_budget import SHORT_WORK, CommandBudget, LaterEnd
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

    def __init__(
        self, budget: CommandBudget, units: int, turns: list[Client], owner: str = "a"
    ) -> None:
        self._budget = budget
        self.units = units
        self._turns = turns
        self.owner = owner

    def turn_came(self) -> None:
        if self._budget.left <= 0 and not self._budget.renew():
            self._budget.wait(self, self.owner)
            return
        self._turns.append(self)
        used = min(self.units, TURN_UNITS)
        self.units -= used
        self._budget.left -= used
        if self.units:
            self._budget.wait(self, self.owner)


def make_budget() -> tuple[CommandBudget, Loop]:
    loop: Any = Loop()
    return CommandBudget(loop), loop


def test_a_quiet_broker_asks_for_an_iteration_only_after_half_a_budget() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    for _ in range(LOOP_UNITS):
        Client(budget, 1, turns).turn_came()
    assert (len(turns), loop.soon) == (LOOP_UNITS, [])
    Client(budget, 1, turns).turn_came()
    assert (len(turns), len(loop.soon)) == (LOOP_UNITS + 1, 1)
    loop.iterate()
    assert (budget.left, loop.soon) == (LOOP_UNITS, [])


def test_connections_beyond_the_budget_have_their_turns_in_order() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    clients = [Client(budget, 3 * TURN_UNITS, turns) for _ in range(50)]
    for client in clients:
        client.turn_came()
    per_iteration = 2 * LOOP_UNITS // TURN_UNITS
    assert turns == clients[:per_iteration]
    assert budget.waiting_count == 50
    while loop.soon:
        before = len(turns)
        loop.iterate()
        assert len(turns) - before <= per_iteration
    assert Counter(turns) == dict.fromkeys(clients, 3)
    assert turns[per_iteration : per_iteration + len(clients)] == clients
    assert budget.waiting_count == 0


GREEDY = 10_000
RATE_PER_S = 200
UNIT_S = 4e-6
"""What a unit of work costs."""


class Again(Client):
    """A connection that has as much to do again after each of its turns."""

    def turn_came(self) -> None:
        units = self.units
        super().turn_came()
        self.units = units
        self._budget.wait(self, self.owner, units)


class Neighbour:
    """A connection that gets a message 200 times a second, whatever waits already."""

    def __init__(self, budget: CommandBudget) -> None:
        self._budget = budget
        self._waiting: list[int] = []
        self.waits: list[int] = []
        """Iterations that each message waited."""
        self.iteration = 0

    def arrived(self) -> None:
        self._waiting.append(self.iteration)
        if len(self._waiting) == 1:
            self._budget.wait(self, "a", 1)

    def turn_came(self) -> None:
        self.waits += (self.iteration - since for since in self._waiting)
        self._budget.left -= len(self._waiting) + READ
        self._waiting.clear()


def test_one_with_little_to_do_does_not_wait_behind_ten_thousand_that_never_stop() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    crowd = [Again(budget, TURN_UNITS, turns) for _ in range(GREEDY)]
    neighbour = Neighbour(budget)
    for client in crowd:
        budget.wait(client, "a", TURN_UNITS)
    assert budget.renew(), "an iteration begins with these in line"
    now_s = due_s = 0.0
    while len(neighbour.waits) < 10 * RATE_PER_S:
        before = len(turns)
        while due_s <= now_s:
            neighbour.arrived()
            due_s += 1 / RATE_PER_S
        neighbour.iteration += 1
        loop.iterate()
        now_s += max(len(turns) - before, 1) * TURN_UNITS * UNIT_S
    assert max(neighbour.waits) == 1, "the next iteration begins with it"
    served = Counter(turns)
    assert len(turns) > GREEDY // 3
    assert set(served.values()) == {1}, "nobody has a second turn while others wait for the first"


def test_one_with_much_to_do_does_not_wait_for_ever_behind_those_with_little() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []

    lights = [Again(budget, 1, turns) for _ in range(GREEDY)]
    for light in lights:
        budget.wait(light, "a", 1)
    heavy = Client(budget, TURN_UNITS, turns)
    budget.wait(heavy, "a")
    assert budget.renew()
    iterations = 0
    while heavy not in turns:
        loop.iterate()
        iterations += 1
    assert iterations <= GREEDY // LOOP_UNITS + 2, "half of each iteration is for the oldest"


def iterations_beside(crowd_units: int, units: int) -> int:
    """Iterations until one of role ``b`` had 50 turns of so many units each, beside 400 of role
    ``a`` that never stop and have others."""
    budget, loop = make_budget()
    turns: list[Client] = []

    crowd = [Again(budget, crowd_units, turns) for _ in range(400)]
    neighbour = Again(budget, units, turns, "b")
    for client in (*crowd, neighbour):
        budget.wait(client, client.owner, client.units)
    assert budget.renew()
    iterations = 0
    while turns.count(neighbour) < 50:
        loop.iterate()
        iterations += 1
    assert len(set(turns)) == 1 + min(len(crowd), len(turns) - 50), "all of the crowd have turns"
    return iterations


def test_hundreds_of_one_role_with_much_to_do_hold_up_that_role_alone() -> None:
    assert iterations_beside(TURN_UNITS, TURN_UNITS) <= 50


def test_hundreds_of_one_role_with_little_to_do_hold_up_that_role_alone() -> None:
    assert iterations_beside(1, 1) <= 50
    assert iterations_beside(1, TURN_UNITS) <= 50


def turns_of_a_crowd(other_units: int) -> int:
    """The turns in 100 iterations of 300 of role ``b`` that have 10 units each at a time, beside 60
    of role ``a``: two thirds have one unit at a time, the others so many."""
    budget, loop = make_budget()
    turns: list[Client] = []

    others = [Again(budget, 1 if n % 3 else other_units, turns) for n in range(60)]
    crowd = [Again(budget, 10, turns, "b") for _ in range(300)]
    for client in (*others, *crowd):
        budget.wait(client, client.owner, client.units)
    assert budget.renew()
    for _ in range(100):
        loop.iterate()
    assert {*others, *crowd} == set(turns), "all have turns"
    return sum(client.owner == "b" for client in turns)


def test_few_of_one_role_with_much_to_do_do_not_hold_up_the_many_with_little_of_another() -> None:
    fourth = 100 * 2 * LOOP_UNITS // 4
    assert turns_of_a_crowd(TURN_UNITS) * 10 >= fourth
    assert turns_of_a_crowd(2 * LOOP_UNITS) * 10 >= fourth // 2


def test_crowds_that_end_leave_half_of_the_time_to_those_that_wait_for_longest() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    heavy = Client(budget, 3 * TURN_UNITS, turns)
    budget.wait(heavy, "a")
    for _ in range(3_000):
        # The end of a connection asks for room to end its clients.
        budget.wait(
            LaterEnd(budget, lambda: budget.left > 0 or budget.renew()), "b", CONNECTION_ENDED
        )
    assert budget.renew()
    iterations = 0
    while heavy.units:
        loop.iterate()
        iterations += 1
    assert iterations <= 4


def test_connections_wait_by_the_work_that_they_have() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []
    works = (TURN_UNITS, *reversed(SHORT_WORK), 0)
    clients = [Client(budget, 1, turns) for _ in works]
    for client, work in zip(clients, works, strict=True):
        budget.wait(client, "a", work)
    assert budget.renew()
    loop.iterate()
    least = [clients[-2], clients[-1]]
    assert turns == [*least, *reversed(clients[:-2])]


def test_an_error_of_one_leaves_the_others_in_line() -> None:
    budget, loop = make_budget()
    turns: list[Client] = []

    class Broken(Client):
        def turn_came(self) -> None:
            raise RuntimeError

    for _ in range(2 * LOOP_UNITS // TURN_UNITS):
        Client(budget, TURN_UNITS, turns).turn_came()
    assert budget.left <= 0
    waits = Client(budget, 1, turns)
    budget.wait(Broken(budget, 1, turns), "a")
    budget.wait(waits, "a")
    with pytest.raises(RuntimeError):
        loop.iterate()
    loop.iterate()
    assert turns[-1] is waits


# -- connections ------------------------------------------------------------------------------

CLIENTS = 60
PINGS = 3 * TURN_UNITS


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
    assert max(counts) <= 3 * (LOOP_UNITS + TURN_UNITS)
    assert world.broker.command_budget.waiting_count == 0


@played(network=QUICK)
async def test_many_connections_with_one_command_each_share_each_iteration(world: World) -> None:
    """Such a connection waits in line without a pause of its socket."""
    clients = [await world.connect() for _ in range(7 * CLIENTS)]
    connections = [server_side(world, client) for client in clients]
    counts = watch_frames(world, connections)
    await flood(connections, clients, frames.ping())
    await pongs(clients, len(clients))
    assert max(counts) * (1 + READ + WAITED) <= 3 * (LOOP_UNITS + TURN_UNITS)
    assert not any(connection.socket_paused for connection in connections)


@played(network=QUICK)
async def test_thousands_that_leave_at_once_are_closed_a_few_in_each_iteration(
    world: World,
) -> None:
    clients = [await world.connect() for _ in range(7 * CLIENTS)]
    connections = [server_side(world, client) for client in clients]
    budget = world.broker.command_budget
    at_once = [not connection.eof_received() for connection in connections].count(True)
    assert 0 < at_once * CONNECTION_ENDED <= 3 * LOOP_UNITS + CONNECTION_ENDED
    assert budget.waiting_count == len(clients) - at_once  # what closed the others is the loop
    iterations = 0
    while budget.waiting_count:
        await asyncio.sleep(0)
        iterations += 1
    closed = [connection for connection in connections if not connection.is_open]
    assert len(closed) == len(clients) - at_once
    assert iterations >= len(closed) * CONNECTION_ENDED // (3 * LOOP_UNITS)


@played(network=QUICK)
async def test_over_tls_the_loop_closes_at_once(world: World) -> None:
    """A transport of TLS cannot stay open after the end of what is read. It is closed before the
    loop does it, because it has bytes that the loop does not know."""
    connection = server_side(world, await world.connect())
    budget = world.broker.command_budget
    budget.renew()
    budget.left = 0
    connection._transport.can_write_eof = lambda: False  # type: ignore[method-assign]
    transport = connection._transport
    assert not connection.eof_received()
    assert transport.is_closing()
    assert budget.waiting_count == 0


class _Sent(asyncio.Transport):
    """Keeps what a client writes."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.frames.append(bytes(data))


def receive(connection: Connection, data: bytes) -> None:
    """Have ``data`` arrive in this iteration of the loop."""
    connection.get_buffer(len(data))[: len(data)] = data
    connection.buffer_updated(len(data))


async def neighbour_waits(world: World, crowd: bytes) -> list[int]:
    """Iterations of the loop until each of 20 messages is taken, beside clients that send ``crowd``
    all at once."""
    clients = [await world.connect() for _ in range(2 * CLIENTS)]
    client = await world.connect()
    producer = await client.producer(TOPIC)
    neighbour, sent = server_side(world, client), _Sent()
    turns: list[int] = []
    arrived: list[int] = []
    client.transport = sent
    turn_came = neighbour.turn_came

    def noted() -> None:
        turns.append(len(counts))
        turn_came()

    neighbour.turn_came = noted  # type: ignore[method-assign]
    connections = [server_side(world, each) for each in clients]
    counts = watch_frames(world, connections)
    await flood(connections, clients, crowd)
    budget = world.broker.command_budget
    for _ in range(2_000):
        await asyncio.sleep(0)
        if len(arrived) == 20:
            break
        if not neighbour._is_in_line and budget.waiting_count and budget.left <= 0:
            arrived.append(len(counts))
            producer.send_nowait(b"in between")
            receive(neighbour, sent.frames.pop())
    while budget.waiting_count:
        await asyncio.sleep(0)
    assert world.broker.engine.topics[TOPIC].log.staged_end == 20
    return [at - since for at, since in zip(turns, arrived, strict=True)]


@played(network=QUICK)
async def test_a_neighbour_of_clients_that_flood_publishes_in_the_next_iteration(
    world: World,
) -> None:
    assert await neighbour_waits(world, frames.ping() * PINGS) == [1] * 20


@played(network=QUICK)
async def test_a_neighbour_of_half_made_frames_publishes_in_the_next_iteration(
    world: World,
) -> None:
    head = (2 * MIB).to_bytes(4) + (16).to_bytes(4)
    assert await neighbour_waits(world, head + bytes(MIB)) == [1] * 20


@played(network=QUICK)
async def test_what_buffers_grow_by_while_there_is_no_room_counts_later(world: World) -> None:
    """A read of a connection in line may take memory; the iteration of its turn pays for that."""
    client = await world.connect()
    connection, budget = server_side(world, client), world.broker.command_budget
    budget.left = 0
    assert budget.renew(), "the second half"
    budget.left = 0
    head = (2 * MIB).to_bytes(4) + (16).to_bytes(4)
    receive(connection, head + bytes(8 * KIB - len(head)))
    assert budget.waiting_count == 1
    assert connection._work_owed >= 2
    owed = connection._work_owed
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection._work_owed == 0
    assert budget.left == LOOP_UNITS - READ - WAITED - owed


@played(network=QUICK)
async def test_what_arrives_on_a_connection_in_line_stays_in_its_socket(world: World) -> None:
    clients = [await world.connect() for _ in range(4 * LOOP_UNITS // TURN_UNITS)]
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
    assert largest[0] == 64 * KIB


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
