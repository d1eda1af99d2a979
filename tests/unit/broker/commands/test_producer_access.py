"""Producers in all access modes, played by simulated clients: also over unloads and crashes."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.broker.commands.producing import TOPIC_EPOCH_MAX
from headgate.facade.admin_facade import AdminFacade
from headgate.testing import ConnectionLostError, RefusedError, SimClient, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, ProducerAccessMode, ServerError
from headgate.wire.messages import BaseCommand
from tests.unit.broker.playing import TOPIC, played

SHARED = ProducerAccessMode.SHARED
EXCLUSIVE = ProducerAccessMode.EXCLUSIVE
WAIT = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
FENCING = ProducerAccessMode.EXCLUSIVE_WITH_FENCING


async def refusal(client: SimClient, mode: ProducerAccessMode, **options: object) -> ServerError:
    with pytest.raises(RefusedError) as refused:
        await client.producer(TOPIC, access_mode=mode, **options)  # type: ignore[arg-type]
    return refused.value.code


@played()
async def test_one_that_waits_gets_a_second_answer_to_the_same_request(world: World) -> None:
    client = await world.connect()
    first = await client.producer(TOPIC, access_mode=EXCLUSIVE)
    other = await world.connect()
    second = asyncio.create_task(other.producer(TOPIC, name="second", access_mode=WAIT))
    third = asyncio.create_task(other.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(40)  # longer than the client's operation timeout
    assert other.queued_producers[0] == "second"
    assert not second.done()
    assert await refusal(other, SHARED) == ServerError.PRODUCER_BUSY
    await first.close()
    assert await refusal(other, EXCLUSIVE) == ServerError.PRODUCER_FENCED
    assert (await second).topic_epoch == 1
    assert await (await second).send(b"alone")
    assert not third.done()
    await (await second).close()
    assert (await third).topic_epoch == 2


@played()
async def test_one_that_waits_may_give_up(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=EXCLUSIVE)
    leaving = asyncio.create_task(other.producer(TOPIC, access_mode=WAIT))
    closing = await world.connect()
    closed = asyncio.create_task(closing.producer(TOPIC, access_mode=WAIT))
    last = asyncio.create_task(client.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.access is not None
    assert topic.access.waiting_count == 3
    other.abort()
    closing_id = next(iter(closing._producers))
    await closing.request(lambda i: frames.close_producer(i, closing_id))
    await asyncio.sleep(1)
    assert topic.access.waiting_count == 1
    with pytest.raises(ConnectionLostError):
        await leaving
    await first.close()
    assert await (await last).send(b"its turn")
    assert not closed.done()
    closed.cancel()


@played()
async def test_sends_of_one_that_waits_break_the_protocol(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    await client.producer(TOPIC, access_mode=EXCLUSIVE)
    waiting = asyncio.create_task(other.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    (producer,) = other._producers.values()
    assert await refusal_of_the_same(other, producer.producer_id) == ServerError.SERVICE_NOT_READY
    producer.send_nowait(b"too early")
    with pytest.raises(ConnectionLostError):
        await waiting


async def refusal_of_the_same(client: SimClient, producer_id: int) -> ServerError:
    with pytest.raises(RefusedError) as refused:
        await client.request(lambda i: frames.producer(i, producer_id, TOPIC))
    return refused.value.code


@played()
async def test_fencing_closes_the_others_and_refuses_those_that_wait(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    shared = [await client.producer(TOPIC) for _ in range(40)]
    waiting = asyncio.create_task(other.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    sent = [producer.send_nowait(b"x") for producer in shared]
    fencing = await other.producer(TOPIC, access_mode=FENCING)
    with pytest.raises(RefusedError) as refused:
        await waiting
    assert refused.value.code == ServerError.PRODUCER_FENCED
    assert not any(producer.is_open for producer in shared)
    found = await asyncio.gather(*sent, return_exceptions=True)
    receipts = [each for each in found if not isinstance(each, BaseException)]
    assert len(receipts) == world.broker.engine.topics[TOPIC].log.end  # none is lost
    assert await fencing.send(b"alone") > max(receipts, default=Position(0, 0))
    assert await refusal(client, SHARED) == ServerError.PRODUCER_BUSY
    assert client.is_open


@played()
async def test_the_last_of_two_that_fence_at_once_has_the_topic(world: World) -> None:
    clients = [await world.connect() for _ in range(4)]
    await clients[0].producer(TOPIC)
    found = await asyncio.gather(
        *(client.producer(TOPIC, access_mode=FENCING) for client in clients),
        return_exceptions=True,
    )
    topic = world.broker.engine.topics[TOPIC]
    assert len(topic.producers) == 1
    assert topic.access is not None
    assert topic.access.holder is next(iter(topic.producers.values()))
    for result in found:
        if isinstance(result, RefusedError):
            assert result.code == ServerError.PRODUCER_FENCED


@played()
async def test_a_producer_of_an_epoch_that_is_over_is_fenced(world: World) -> None:
    client = await world.connect()
    first = await client.producer(TOPIC, name="p", access_mode=EXCLUSIVE)
    assert first.topic_epoch == 0
    client.abort()
    client = await world.connect()
    again = await client.producer(TOPIC, name="p", access_mode=EXCLUSIVE, topic_epoch=0)
    assert again.topic_epoch == 0
    other = await client.producer(TOPIC, access_mode=FENCING)
    assert other.topic_epoch == 1
    await other.close()
    for mode in (EXCLUSIVE, WAIT, FENCING):
        assert await refusal(client, mode, topic_epoch=0) == ServerError.PRODUCER_FENCED
    shared = await client.producer(TOPIC)
    assert shared.topic_epoch == 1
    code = await refusal(client, EXCLUSIVE, topic_epoch=(1 << 64) - 1)
    assert code == ServerError.NOT_ALLOWED_ERROR


@played()
async def test_a_dead_holder_gives_way(world: World) -> None:
    silent, client = await world.connect(), await world.connect()
    await silent.producer(TOPIC, access_mode=EXCLUSIVE)
    silent.transport.silence()
    before_s = world.now_s
    await client.producer(TOPIC)
    assert world.now_s - before_s < 6


@played()
async def test_the_epoch_survives_an_unload_and_kill_nine(world: World) -> None:
    client = await world.connect()
    for expected in range(3):
        producer = await client.producer(TOPIC, access_mode=EXCLUSIVE)
        assert producer.topic_epoch == expected
        await producer.close()
    facade = AdminFacade(world.broker, world.observer)
    await world.ask(facade.unload_topic(parse_topic(TOPIC)))
    holder = await client.producer(TOPIC, access_mode=EXCLUSIVE)
    assert holder.topic_epoch == 3
    waiting = asyncio.create_task(client.producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    await world.ask(facade.unload_topic(parse_topic(TOPIC)))
    with pytest.raises(RefusedError) as refused:
        await waiting
    assert refused.value.code == ServerError.SERVICE_NOT_READY
    world.crash()
    await world.start()
    client = await world.connect()
    assert await refusal(client, EXCLUSIVE, topic_epoch=2) == ServerError.PRODUCER_FENCED
    assert (await client.producer(TOPIC, access_mode=EXCLUSIVE)).topic_epoch == 4


@played()
async def test_an_epoch_that_the_broker_gave_is_taken_again_whatever_others_brought(
    world: World,
) -> None:
    """One who brings the highest epoch keeps no later producer from coming back."""
    client = await world.connect()
    greedy = await client.producer(TOPIC, access_mode=EXCLUSIVE, topic_epoch=TOPIC_EPOCH_MAX)
    await greedy.close()
    first = await client.producer(TOPIC, access_mode=EXCLUSIVE)
    given = first.topic_epoch
    assert given == TOPIC_EPOCH_MAX + 1
    await first.close()
    for mode in (EXCLUSIVE, SHARED):  # a client brings what it was told, in any mode
        again = await client.producer(TOPIC, access_mode=mode, topic_epoch=given)
        assert again.topic_epoch == given
        await again.close()
    code = await refusal(client, EXCLUSIVE, topic_epoch=given + 1)
    assert code == ServerError.NOT_ALLOWED_ERROR


def test_no_epoch_is_given_twice_over_crashes() -> None:
    for seed in range(12):
        given: list[int] = []

        async def story(world: World, given: list[int] = given) -> None:
            for _ in range(5):
                await world.start()
                client = await world.connect()

                async def one_after_another(client: SimClient = client) -> None:
                    while True:
                        producer = await client.producer(TOPIC, access_mode=FENCING)
                        assert producer.topic_epoch is not None
                        given.append(producer.topic_epoch)

                task = asyncio.create_task(one_after_another())
                await asyncio.sleep(world.rng.random() * 0.05)
                world.crash()
                with pytest.raises(ConnectionLostError):
                    await task

        with World(seed) as world:
            world.run(story(world))
        assert given == sorted(set(given)), f"seed {seed}"


@played()
async def test_an_epoch_that_cannot_be_stored_costs_one_answer(world: World) -> None:
    client = await world.connect()
    await (await client.producer(TOPIC)).close()
    world.store.fail_next(StorageError("the metadata's disk is full", retryable=True))
    assert await refusal(client, EXCLUSIVE) == ServerError.PERSISTENCE_ERROR
    assert (await client.producer(TOPIC, access_mode=EXCLUSIVE)).topic_epoch == 0


@played(settings={"maxProducersPerTopic": "1"})
async def test_a_full_topic_can_be_fenced_and_waited_for(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    waiting = asyncio.create_task((await world.connect()).producer(TOPIC, access_mode=WAIT))
    await asyncio.sleep(1)
    assert not waiting.done()
    fencing = await client.producer(TOPIC, access_mode=FENCING)
    assert await fencing.send(b"alone")
    with pytest.raises(RefusedError):
        await waiting


@played()
async def test_the_frames_of_one_that_waits(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC, access_mode=EXCLUSIVE)
    other.write(frames.producer(77, 5, TOPIC, name="w", access_mode=WAIT))
    await asyncio.sleep(1)
    await first.close()
    await asyncio.sleep(1)
    found: list[BaseCommand] = [
        c for c in other.unexpected if c.type == CommandType.PRODUCER_SUCCESS
    ]
    assert [c.producer_success.producer_ready for c in found] == [False, True]
    assert {c.producer_success.request_id for c in found} == {77}
    assert not found[0].producer_success.HasField("topic_epoch")
    assert found[1].producer_success.topic_epoch == 1
