"""Terminated topics: no more messages, also after kill -9; consumers read to the end."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.facade.admin_facade import AdminFacade
from headgate.metadata.errors import RefusalError
from headgate.testing import ConnectionLostError, RefusedError, SimClient, World
from headgate.wire.codes import ProducerAccessMode, ServerError, SubscriptionType
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def terminate(world: World) -> Position:
    return await world.ask(AdminFacade(world.broker, world.observer).terminate_topic(NAME))


async def refusal(client: SimClient) -> ServerError:
    with pytest.raises(RefusedError) as refused:
        await client.producer(TOPIC)
    return refused.value.code


@played()
async def test_a_terminated_topic_takes_no_more(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    sent = [producer.send_nowait(b"%d" % i) for i in range(50)]
    last = await terminate(world)
    found = await asyncio.gather(*sent, return_exceptions=True)
    receipts = [each for each in found if not isinstance(each, BaseException)]
    assert len(receipts) == world.broker.engine.topics[TOPIC].log.end
    assert receipts[-1:] == ([last] if receipts else [])
    assert not producer.is_open
    assert await refusal(client) == ServerError.TOPIC_TERMINATED_ERROR
    for _ in receipts:
        await consumer.receive()
    assert await terminate(world) == last  # it stays as it is
    stats = await AdminFacade(world.broker, world.observer).internal_stats(NAME, metadata=False)
    assert (stats.state, stats.last_confirmed_entry) == ("Terminated", str(last))
    reader = await client.reader(TOPIC, Position(-1, -1))
    assert await reader.last_message_id() == last
    assert client.is_open


@played()
async def test_it_stays_terminated_over_unloads_and_kill_nine(world: World) -> None:
    client = await world.connect()
    position = await (await client.producer(TOPIC)).send(b"last")
    assert await terminate(world) == position
    await world.ask(AdminFacade(world.broker, world.observer).unload_topic(NAME))
    assert await refusal(client) == ServerError.TOPIC_TERMINATED_ERROR
    world.crash()
    await world.start()
    assert await terminate(world) == position
    client = await world.connect()
    assert await refusal(client) == ServerError.TOPIC_TERMINATED_ERROR
    reader = await client.reader(TOPIC, Position(-1, -1))
    assert (await reader.receive()).position == position
    facade = AdminFacade(world.broker, world.observer)
    await world.ask(facade.delete_topic(NAME, force=True))
    assert await (await client.producer(TOPIC)).send(b"a new topic of that name")


@played()
async def test_consumers_of_clients_that_know_it_learn_of_the_end(world: World) -> None:
    java = await world.connect(client_version="Pulsar-Java-v4.0.8")
    other = await world.connect(client_version="Pulsar-CPP-v4.2.0")
    producer = await java.producer(TOPIC)
    await producer.send(b"x")
    consumer = await java.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    silent = await other.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=0)
    at_end = await java.subscribe(TOPIC, "at end", earliest=False)
    await terminate(world)
    await asyncio.sleep(1)
    assert (consumer.ends_count, at_end.ends_count) == (0, 1)
    message = await consumer.receive()
    await asyncio.sleep(1)
    assert consumer.ends_count == 0  # it may come again
    await consumer.ack(message.position)
    await asyncio.sleep(1)
    assert (consumer.ends_count, silent.ends_count) == (1, 0)
    newcomer = await java.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    await asyncio.sleep(1)
    assert (consumer.ends_count, newcomer.ends_count) == (1, 1)
    assert other.is_open


@played()
async def test_producers_that_wait_are_refused(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    waiting = [
        asyncio.create_task(
            client.producer(TOPIC, access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
        )
        for _ in range(2)
    ]
    await asyncio.sleep(1)
    last = await terminate(world)
    assert last.entry_id == -1
    for task in waiting:
        with pytest.raises(RefusedError) as refused:
            await task
        assert refused.value.code == ServerError.TOPIC_TERMINATED_ERROR
    assert await refusal(client) == ServerError.TOPIC_TERMINATED_ERROR


@played()
async def test_a_termination_that_cannot_be_stored_changes_nothing(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    world.store.fail_next(StorageError("the metadata's disk is full", retryable=True))
    with pytest.raises(StorageError, match="is full"):
        await terminate(world)
    assert await (await client.producer(TOPIC)).send(b"as ever")


@played()
async def test_producers_that_wait_get_their_turn_if_it_cannot_be_stored(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC, access_mode=ProducerAccessMode.EXCLUSIVE)
    waiting = [
        asyncio.create_task(
            client.producer(TOPIC, access_mode=ProducerAccessMode.WAIT_FOR_EXCLUSIVE)
        )
        for _ in range(2)
    ]
    await asyncio.sleep(1)
    world.store.fail_next(StorageError("the metadata's disk is full", retryable=True))
    with pytest.raises(StorageError, match="is full"):
        await terminate(world)
    first = await waiting[0]
    assert await first.send(b"as ever")
    assert not waiting[1].done()
    await first.close()
    assert await (await waiting[1]).send(b"and again")


@played()
async def test_what_cannot_be_terminated(world: World) -> None:
    with pytest.raises(RefusalError) as refused:
        await terminate(world)
    assert refused.value.status == 404
    telemetry = parse_topic(world.broker.settings.headgateTelemetryTopic)
    facade = AdminFacade(world.broker, world.observer)
    with pytest.raises(RefusalError, match="belongs to the broker"):
        await world.ask(facade.terminate_topic(telemetry))


def test_a_crash_leaves_a_topic_as_it_was_or_terminated() -> None:
    """Whoever got the answer finds the topic terminated with the same last message; nothing that
    got a receipt is lost, and nothing follows."""
    outcomes = set()
    for seed in range(40):
        answers: list[Position] = []
        receipts: list[Position] = []

        async def story(
            world: World,
            answers: list[Position] = answers,
            receipts: list[Position] = receipts,
        ) -> bool:
            await world.start()
            client = await world.connect()
            producer = await client.producer(TOPIC)

            async def publish() -> None:
                while True:
                    receipts.append(await producer.send(b"x"))

            async def end() -> None:
                await asyncio.sleep(world.rng.random() * 0.02)
                answers.append(await terminate(world))

            tasks = [asyncio.create_task(publish()), asyncio.create_task(end())]
            await asyncio.sleep(0.005 + world.rng.random() * 0.03)
            world.crash()
            await asyncio.gather(*tasks, return_exceptions=True)
            await world.start()
            topic = world.broker.engine.topics[TOPIC]
            last = topic.log.position(topic.log.end - 1)
            assert not receipts or last >= receipts[-1]
            assert not answers or (topic.terminated and answers == [last])
            client = await world.connect()
            if topic.terminated:
                assert await refusal(client) == ServerError.TOPIC_TERMINATED_ERROR
            else:
                assert await (await client.producer(TOPIC)).send(b"y") > last
            return topic.terminated

        with World(seed) as world:
            outcomes.add((world.run(story(world)), bool(answers)))
    assert outcomes >= {(True, True), (False, False)}


@played()
async def test_the_client_of_a_closed_producer_is_not_disconnected(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    producer_id = producer.producer_id
    await terminate(world)
    with pytest.raises(ConnectionLostError):
        producer.send_nowait(b"the test client knows that it is closed")
    assert producer_id not in client._producers
    assert client.is_open
