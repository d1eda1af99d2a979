"""A whole broker on virtual time: started, stopped, cut off, started again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.testing import ConnectionLostError, World
from tests.unit.broker.playing import TOPIC, played


def trace(seed: int) -> list[str]:
    """What happens, and when, to a client of a broker that loses its power once."""
    lines: list[str] = []

    async def story(world: World) -> None:
        await world.start()
        for cut in (True, False):
            client = await world.connect()
            producer = await client.producer(TOPIC)
            consumer = await client.subscribe(TOPIC, "s")
            consumer.on_arrival = lambda message: lines.append(
                f"{world.now_s:.9f} {message.position} {message.payload!r}"
            )
            for number in range(30):
                position = await producer.send(b"%d" % number)
                lines.append(f"{world.now_s:.9f} {position}")
            producer.send_nowait(b"under way")
            if cut:
                await asyncio.sleep(0.0005)
                world.crash()
                await client.lost
                await world.start()

    with World(seed) as world:
        world.run(story(world))
    return lines


def test_the_same_seed_gives_the_same_trace() -> None:
    first = trace(5)
    assert first == trace(5)
    assert len(first) > 100


def test_another_seed_gives_another_trace() -> None:
    assert trace(5) != trace(6)


@played()
async def test_a_crash_keeps_what_was_promised(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    receipts = [await producer.send(b"%d" % number) for number in range(5)]
    world.crash()
    assert not world.is_running
    with pytest.raises(RuntimeError, match="not running"):
        world.broker  # noqa: B018
    await client.lost
    await world.start()
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    assert [(await consumer.receive()).position for _ in range(5)] == receipts


@played()
async def test_a_stop_makes_everything_durable_and_admits_nobody(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    position = await producer.send(b"x")
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.receive()
    consumer.ack_nowait(position)
    await asyncio.sleep(0.01)
    world.lanes[0].freeze()
    stopping = asyncio.ensure_future(world.stop())
    await asyncio.sleep(0.01)
    with pytest.raises(RuntimeError, match="not running"):
        await world.connect()
    world.lanes[0].thaw()
    await stopping
    await client.lost
    world.fs = world.fs.crash_clone()
    broker = await world.start()
    assert broker.engine.topics[TOPIC].subscriptions["s"].backlog_entries == 0


@played()
async def test_asking_ends_with_the_power(world: World) -> None:
    world.lanes[0].freeze()
    asking = asyncio.ensure_future(world.ask(world.broker.when_durable()))
    world.broker.log.create_cursor(1, "s", AckSet(), {})
    await asyncio.sleep(0.1)
    world.crash()
    with pytest.raises(ConnectionLostError, match="the power was cut"):
        await asking
    await world.start()
    assert await world.ask(asyncio.sleep(0, "answered")) == "answered"


@played()
async def test_an_asked_refusal_is_raised(world: World) -> None:
    async def refuse() -> None:
        raise StorageError("no", retryable=True)

    with pytest.raises(StorageError, match="no"):
        await world.ask(refuse())


@played()
async def test_power_can_be_cut_while_it_starts(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).send(b"x")
    world.crash()

    def cut(_: object) -> None:
        raise OSError("no power")

    world.disk.plan = cut  # type: ignore[assignment]
    with pytest.raises(StorageError):
        await world.start()
    world.crash()
    assert (await world.start()).engine.topics[TOPIC].log.end == 1


def test_an_error_of_the_brokers_own_ends_the_run() -> None:
    async def story(world: World) -> None:
        await world.start()
        try:
            raise KeyError("a bug")
        except KeyError:
            logging.getLogger("headgate.somewhere").exception("caught")
        await asyncio.sleep(1)

    with World() as world, pytest.raises(KeyError, match="a bug"):
        world.run(story(world))


def test_time_passes_only_when_it_is_let() -> None:
    with World() as world:
        before_s, before_ms = world.now_s, world.wall_ms()
        world.advance(2.5)
        assert world.now_s - before_s == pytest.approx(2.5)
        assert world.wall_ms() - before_ms == 2_500
