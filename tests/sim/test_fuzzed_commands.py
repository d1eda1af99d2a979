"""Commands in every wrong order, about clients of other connections, and with every bit flipped: a
client harms only its own connection."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.base import bounded_lines
from headgate.base.positions import Position
from headgate.base.units import INT32_MAX
from headgate.testing import SimClient, SimConsumer, SimProducer, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from headgate.wire.commands import COMMANDS
from tests.sim.command_frames import About, every_command
from tests.unit.broker.playing import TOPIC, played

WILD = f"{TOPIC}-wild"
STEP_S = 0.05
"""Virtual time in which the broker carries out what a wild client sent."""


class Victim:
    """A client whose ids the wild ones name. It holds a message that it has not acknowledged."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.client: SimClient
        self.producer: SimProducer
        self.consumer: SimConsumer
        self._held: Position

    async def begin(self) -> About:
        self.client = await self._world.connect()
        self.producer = await self.client.producer(TOPIC)
        self.consumer = await self.client.subscribe(TOPIC, "s")
        self._held = await self.producer.send(b"held")
        assert (await self.consumer.receive()).position == self._held
        return About(TOPIC, "s", self.producer.producer_id, self.consumer.consumer_id, self._held)

    async def check(self) -> None:
        """Nothing of it was closed, moved, acknowledged or delivered elsewhere."""
        assert self.client.is_open
        assert not self.client.unexpected
        position = await self.producer.send(b"fine")
        message = await asyncio.wait_for(self.consumer.receive(), 60)
        assert message.position == position
        await self.consumer.ack(position)
        topic = self._world.broker.engine.topics[TOPIC]
        assert set(topic.producers) == {self.producer.name}
        assert [*topic.subscriptions] == ["s"]
        assert topic.subscriptions["s"].backlog_entries == 1  # what it holds


async def wild_client(world: World, sent: list[bytes]) -> SimClient:
    """A connection that has sent ``sent`` and does not look at what comes back."""
    wild = world.open_connection()
    wild.data_received = lambda _: None  # type: ignore[method-assign]
    for frame in sent:
        if wild.is_open:
            wild.write(frame)
    await asyncio.sleep(STEP_S)
    return wild


CLOSES = {CommandType.CONNECT, CommandType.AUTH_RESPONSE}
"""Commands that have no place on an open connection."""
UNKNOWN_OK = {CommandType.SEND}
"""Ends the connection if it is about a producer that the connection does not have."""


@played()
async def test_every_pair_of_commands_about_the_clients_of_another_connection(
    world: World,
) -> None:
    """19 built commands and all others, each before and after each: on an open connection that has
    no producer and no consumer, with the ids of one that has."""
    victim = Victim(world)
    about = await victim.begin()
    made = every_command(about)
    assert set(made) == set(COMMANDS)
    # These are about a topic by its name. Whoever may, may: the victim shares its topic.
    shares = {CommandType.PRODUCER, CommandType.SUBSCRIBE, CommandType.GET_OR_CREATE_SCHEMA}
    kinds = [kind for kind in made if kind not in shares]
    for first in kinds:
        for second in kinds:
            wild = await wild_client(world, [frames.connect(), made[first], made[second]])
            if not {first, second} & (CLOSES | UNKNOWN_OK):
                assert wild.is_open, (first, second)
            wild.abort()
        await victim.check()
    await asyncio.sleep(1)
    assert len(world.broker.connections) == 1


@played()
async def test_every_pair_of_commands_before_connect(world: World) -> None:
    victim = Victim(world)
    made = every_command(await victim.begin())
    for first in made:
        wild = await wild_client(world, [made[first], frames.connect(), frames.ping()])
        assert not wild.is_open, first
        wild.abort()
    await victim.check()


@played()
async def test_every_pair_of_commands_with_clients_of_its_own(world: World) -> None:
    """Close before create, acknowledge before subscribe, seek after unsubscribe, twice the same."""
    victim = Victim(world)
    await victim.begin()
    own = every_command(About(WILD, "w", 3, 4, Position(0, 0)))
    create = [own[CommandType.PRODUCER], own[CommandType.SUBSCRIBE]]
    for first in own:
        for second in own:
            before = [frames.connect(), *create] if second % 2 else [frames.connect()]
            wild = await wild_client(world, [*before, own[first], own[second], *create])
            wild.abort()
        await victim.check()
    await asyncio.sleep(70)
    assert len(world.broker.connections) == 1
    assert world.broker.catalog.in_flight_count == 0
    left = world.broker.engine.topics.get(WILD)
    if left is not None:
        assert not left.producers
        assert not any(each.consumers for each in left.subscriptions.values())


@pytest.mark.parametrize("part", range(4))
def test_every_bit_of_every_command_flipped(
    part: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each frame with one wrong bit, on a connection of its own."""
    # The lines of the log show that the frames arrived, so none is left out.
    monkeypatch.setattr(bounded_lines, "ROLE_LINES_PER_MINUTE", INT32_MAX)
    monkeypatch.setattr(bounded_lines, "ALL_ROLES_LINES_PER_MINUTE", INT32_MAX)

    async def story(world: World) -> None:
        victim = Victim(world)
        await victim.begin()
        own = every_command(About(WILD, "w", 3, 4, Position(0, 0)))
        create = [frames.connect(), own[CommandType.PRODUCER], own[CommandType.SUBSCRIBE]]
        for kind in sorted(own)[part::4]:
            frame = own[kind]
            for bit in range(len(frame) * 8):
                flipped = bytearray(frame)
                flipped[bit // 8] ^= 1 << bit % 8
                wild = world.open_connection()
                wild.data_received = lambda _: None  # type: ignore[method-assign]
                wild.write(b"".join([*create, flipped]))
                await asyncio.sleep(STEP_S)
                wild.abort()
            await victim.check()
            errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
            assert not errors
            # The frames arrived: some bits break the protocol. One line tells of each.
            assert 0 < len(caplog.records) <= 12 * len(frame) * 8
            caplog.clear()
        await asyncio.sleep(70)
        assert len(world.broker.connections) == 1
        assert world.broker.catalog.in_flight_count == 0
        world.crash()
        await world.start()

    with caplog.at_level(logging.INFO, "headgate"):
        played(limit_s=36_000)(story)()
