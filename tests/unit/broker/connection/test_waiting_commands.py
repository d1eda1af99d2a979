"""Commands that wait are bounded, and their errors are answered."""

from __future__ import annotations

import asyncio
import logging
import weakref
from typing import Any

import pytest

from headgate.base.units import GIB, KIB
from headgate.base.work_units import COMMAND_CANCELLED, SLICE_UNITS
from headgate.broker.connection.bounds import COMMANDS_MAX
from headgate.broker.connection.client_connection import owner_of
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.left_acknowledgements import LeftAcknowledgements
from headgate.broker.connection.waiting_commands import WaitingCommands
from headgate.broker.held_memory import PROPERTY_BYTES, WAITING_BYTES
from headgate.broker.left_memory import LEFT_PART, LeftMemory
from headgate.engine.errors import NotAllowedError
from headgate.testing import RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ProducerAccessMode, ServerError
from headgate.wire.frame import encode_frame
from headgate.wire.messages import BaseCommand
from tests.unit.broker.connection.iterations import Iterations
from tests.unit.broker.playing import TOPIC, played


def server_side(world: World) -> Connection:
    (connection,) = world.broker.connections
    return connection


class Charged:
    """Notes what is charged, and what ended connections have left."""

    def __init__(self) -> None:
        self.charged: list[int] = []
        self.charge = self.charged.append
        self.left = Left()


class Left(LeftMemory):
    """Notes what ended connections leave."""

    def __init__(self) -> None:
        super().__init__(lambda: GIB)
        self.noted: list[int] = []

    def leave(self, owner: str, size_bytes: int) -> None:
        super().leave(owner, size_bytes)
        self.noted.append(size_bytes)


def asked(request_id: int = 7) -> BaseCommand:
    command = BaseCommand(type=CommandType.UNSUBSCRIBE)
    command.unsubscribe.request_id = request_id
    command.unsubscribe.consumer_id = 1
    return command


async def answer_to(world: World, client: SimClient, work: Any) -> Any:
    server_side(world)._waiting_commands.add(work(), asked())
    await asyncio.sleep(0.1)
    return client.unexpected.pop()


@played()
async def test_what_is_refused_is_answered(world: World) -> None:
    async def refused() -> None:
        raise NotAllowedError("not that")

    answer = await answer_to(world, await world.connect(), refused)
    assert (answer.error.request_id, answer.error.message) == (7, "not that")


def test_an_error_of_ours_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        raise KeyError("ours")

    async def story(world: World) -> None:
        world._watch.close()
        answer = await answer_to(world, await world.connect(), failing)
        assert answer.error.error == ServerError.UNKNOWN_ERROR
        assert answer.error.message == "Internal error of the broker"

    with caplog.at_level(logging.ERROR):
        played()(story)()
    assert "a command failed with an internal error" in caplog.text


@played()
async def test_what_waits_is_counted_until_it_is_done(world: World) -> None:
    await world.connect()
    waiting = server_side(world)._waiting_commands
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()

    for number in range(COMMANDS_MAX):
        assert not waiting.is_full
        waiting.add(work(), asked(number))
    assert waiting.is_full
    assert not waiting.has_room
    assert waiting.count == COMMANDS_MAX
    assert waiting.taken_bytes > COMMANDS_MAX * WAITING_BYTES
    gate.set()
    await asyncio.sleep(0.1)
    assert (waiting.count, waiting.taken_bytes, waiting.has_room) == (0, 0, True)


@played()
async def test_what_is_given_up_before_it_begins_is_closed(world: World) -> None:
    """Nothing warns of a coroutine that was never awaited."""
    await world.connect()
    memory = Charged()
    charged, left = memory.charged, memory.left.noted
    loop = asyncio.get_running_loop()
    waiting = WaitingCommands(server_side(world), loop, memory, LeftAcknowledgements())

    async def never() -> None:
        raise AssertionError

    waiting.add(never(), asked())
    large = asked()
    large.lookupTopic.topic, large.lookupTopic.request_id = "t" * 2 * KIB, 7
    waiting.add(never(), large)
    assert list(waiting.cancel()) == [COMMAND_CANCELLED] * 2
    await asyncio.sleep(0.1)
    assert waiting.count == 0
    assert len(charged) == 2, "a small one does not count at once"
    assert charged[0] > 0 == sum(charged), "it is free at once"
    assert len(left) == 3
    assert left[0] > charged[0], "both count until they are cancelled"
    assert sum(left) == 0


@played()
async def test_a_real_refusal(world: World) -> None:
    client = await world.connect()
    with pytest.raises(RefusedError):
        await client.request(lambda i: frames.unsubscribe(i, 42))
    assert await client.partitions(TOPIC) == 0


@played()
async def test_producers_that_wait_for_one_that_may_be_dead_are_charged(world: World) -> None:
    """For the seconds until its connection is taken for dead, a task stands for each of them, and
    its properties are in memory."""
    holder, client = await world.connect(), await world.connect()
    await holder.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    holder.answers_pings = False
    count, properties = 20, 50
    for number in range(count):
        command = BaseCommand(type=CommandType.PRODUCER)
        asked_for = command.producer
        asked_for.topic, asked_for.producer_id, asked_for.request_id = TOPIC, number, number
        asked_for.producer_access_mode = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
        for index in range(properties):
            asked_for.metadata.add(key=str(index), value="")
        client.write(encode_frame(command))
    await asyncio.sleep(3)
    held = world.broker.client_memory.held
    assert held.commands > count * (WAITING_BYTES + properties * PROPERTY_BYTES)
    assert held.descriptions < WAITING_BYTES  # none of them is connected
    await asyncio.sleep(6)
    assert world.broker.client_memory.held.commands == 0


@played()
async def test_thousands_that_wait_on_connections_that_end_are_cancelled_in_slices(
    world: World,
) -> None:
    """60 connections with 1,000 each that ended together held the event loop for 1.3 s."""
    cancelled = Iterations(3_000)

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.note()

    for _ in range(10):
        await world.connect()
    connections = list(world.broker.connections)
    for connection in connections:
        for _ in range(300):
            connection.run_waiting(never(), asked())
    await asyncio.sleep(0.1)
    cancelled.begin()
    for connection in connections:
        connection.abort()
    memory = world.broker.client_memory
    assert memory.by_kind()["commands"] >= 2_000 * WAITING_BYTES, "it is no growth of garbage"
    await asyncio.sleep(5)
    assert memory.by_kind()["commands"] == 0
    assert len(cancelled.noted) == 3_000
    assert cancelled.most() <= 2 * SLICE_UNITS // COMMAND_CANCELLED


@played()
async def test_who_leaves_with_many_that_wait_again_and_again_waits_in_the_end(
    world: World,
) -> None:
    """Connections that sent 100 SUBSCRIBEs each and left were faster than the slices that cancel
    them: 1.3 MB/s took 50 MB a second more, without an end, which no bound saw."""
    holder, client = await world.connect(), await world.connect()
    await holder.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    holder.answers_pings = False  # so they wait until it is taken for dead
    (connection,) = [each for each in world.broker.connections if not each.producers]
    memory, owner = world.broker.client_memory, owner_of(connection)
    left_bytes = memory.bytes_max // LEFT_PART + 1
    memory.left.leave(owner, left_bytes)
    assert memory.by_kind()["commands"] == left_bytes
    client.write(b"".join(exclusive(number) for number in range(10)))
    await asyncio.sleep(0.2)
    assert connection._waiting_commands.count == 1
    memory.left.leave(owner, -left_bytes)
    await asyncio.sleep(0.2)
    assert connection._waiting_commands.count == 10
    memory.left.leave(owner, left_bytes)
    client.write(exclusive(10) + exclusive(11))
    await asyncio.sleep(0.2)
    assert connection._waiting_commands.count == 11
    client.abort()
    await asyncio.sleep(0.2)
    assert memory.left.total == left_bytes
    connection.resume_reading()
    assert not memory.left._waiting, "it has ended"


def exclusive(number: int) -> bytes:
    """A PRODUCER that waits as long as another one has the topic."""
    mode = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
    return frames.producer(number, number, TOPIC, access_mode=mode)


@played()
async def test_what_is_cancelled_is_freed_before_the_others_are(world: World) -> None:
    """An ended task keeps the frames of its handler, 4 KB: 107,000 were 0.3 GB that nobody was
    charged with any more."""
    await world.connect()
    waiting = WaitingCommands(
        server_side(world), asyncio.get_running_loop(), Charged(), LeftAcknowledgements()
    )
    for _ in range(2):
        waiting.add(asyncio.sleep(9), asked())
    await asyncio.sleep(0.1)
    first = weakref.ref(next(iter(waiting._tasks)))
    steps = waiting.cancel()
    next(steps)
    await asyncio.sleep(0.1)
    assert first() is None
    assert waiting.count == 1
    for _ in steps:
        pass
