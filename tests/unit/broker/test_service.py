"""The broker as a whole: its turns, its start and end, and its dynamic settings."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.metadata.policies import DispatchRate
from headgate.testing import ConnectionLostError, RefusedError, World
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)


async def set_dynamic(world: World, name: str, value: str | None) -> None:
    await world.broker.writer.commit(world.broker.catalog.plan_setting(name, value))


async def delivered_per_s(world: World, *, seconds: int = 2) -> float:
    """Messages that a fast consumer of a large backlog gets each second."""
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    before = subscription.messages_sent
    await asyncio.sleep(seconds)
    return (subscription.messages_sent - before) / seconds


async def backlog(world: World, *, batch: int = 1, entries: int = 200) -> None:
    client = await world.connect()
    await (await client.subscribe(TOPIC, "s")).close()
    producer = await client.producer(TOPIC)
    payloads = [b"x"] * batch
    await asyncio.gather(
        *[producer.send_nowait(b"x", batch=payloads if batch > 1 else ()) for _ in range(entries)]
    )
    consumer = await client.subscribe(TOPIC, "s", queue_size=0)
    consumer.flow(1_000_000)


# -- start and end -------------------------------------------------------------------------------


@played()
async def test_the_first_start_makes_what_every_broker_has(world: World) -> None:
    catalog = world.broker.catalog
    assert catalog.tenants() == ["headgate", "public", "pulsar"]
    assert catalog.namespaces("public") == ["public/default"]
    assert world.broker.is_ready
    commits = world.store.commits
    await world.stop()
    await world.start()
    # The mark of the log's time at the end, and that it was started again.
    assert world.store.commits == commits + 2


@played()
async def test_stopping_stores_everything(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    positions = [await producer.send(b"%d" % index) for index in range(3)]
    await consumer.receive()
    consumer.ack_nowait(positions[0])
    await asyncio.sleep(0.01)
    broker = world.broker
    await world.stop()
    assert broker.closed.is_set()
    assert not broker.is_ready
    await world.start()
    assert world.broker.engine.topics[TOPIC].subscriptions["s"].backlog_messages == 2


@played()
async def test_stopping_ends_although_the_disk_is_gone(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)

    def plan(operation: object) -> None:
        if getattr(operation, "kind", "") == "sync":
            raise OSError(5, "input/output error")

    world.disk.plan = plan
    with pytest.raises(RefusedError):
        await producer.send(b"x")
    await world.stop()
    assert not world.is_running


@played()
async def test_what_is_sent_while_the_broker_stops_has_no_receipt(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    world.lanes[0].freeze()
    sent = producer.send_nowait(b"x")
    await asyncio.sleep(0.1)
    stopping = asyncio.ensure_future(world.stop())
    await asyncio.sleep(0.1)
    with pytest.raises(ConnectionLostError):
        await sent
    world.lanes[0].thaw()
    await stopping


@played()
async def test_settings_that_this_release_does_not_have_are_no_crash(world: World) -> None:
    """They were stored by another release; so was one that is not dynamic here."""
    await set_dynamic(world, "ofAnotherRelease", "1")
    await set_dynamic(world, "maxMessageSize", "2048")
    await set_dynamic(world, "dispatchThrottlingRateInMsg", "many")
    await set_dynamic(world, "defaultNumPartitions", "7")
    world.crash()
    await world.start()
    settings = world.broker.settings
    assert settings.maxMessageSize == 5 * 1024 * 1024
    assert settings.dispatchThrottlingRateInMsg == 0
    assert settings.defaultNumPartitions == 7
    await set_dynamic(world, "ofAnotherRelease", None)
    await set_dynamic(world, "defaultNumPartitions", None)
    assert settings.defaultNumPartitions == 1


# -- dynamic settings and policies act at once ---------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "dispatchThrottlingRateInMsg",
        "dispatchThrottlingRatePerTopicInMsg",
        "dispatchThrottlingRatePerSubscriptionInMsg",
    ],
)
def test_limits_of_messages(name: str) -> None:
    async def story(world: World) -> None:
        await set_dynamic(world, name, "10")
        await backlog(world)
        await asyncio.sleep(1)
        assert await delivered_per_s(world) == 10
        await set_dynamic(world, name, "30")
        await asyncio.sleep(1)
        assert await delivered_per_s(world) == 30
        await set_dynamic(world, name, None)
        await asyncio.sleep(0.1)
        assert world.broker.engine.topics[TOPIC].subscriptions["s"].messages_sent == 200

    played()(story)()


@pytest.mark.parametrize(
    "name",
    [
        "dispatchThrottlingRateInByte",
        "dispatchThrottlingRatePerTopicInByte",
        "dispatchThrottlingRatePerSubscriptionInByte",
    ],
)
def test_limits_of_bytes(name: str) -> None:
    async def story(world: World) -> None:
        await set_dynamic(world, name, "1")
        await backlog(world)
        size = world.broker.engine.topics[TOPIC].log.size_bytes(0)
        await set_dynamic(world, name, str(20 * size))
        await asyncio.sleep(2)
        assert await delivered_per_s(world) == pytest.approx(20, abs=1)

    played()(story)()


@played(settings={"dispatchThrottlingRateInMsg": "20"})
async def test_a_batch_may_count_as_one_message(world: World) -> None:
    await backlog(world, batch=10)
    await asyncio.sleep(1)
    assert await delivered_per_s(world) == 20
    await set_dynamic(world, "dispatchThrottlingOnBatchMessageEnabled", "true")
    await asyncio.sleep(1)
    assert await delivered_per_s(world) == 200


@played()
async def test_policies_of_topics_and_namespaces(world: World) -> None:
    catalog, commit = world.broker.catalog, world.broker.writer.commit
    await backlog(world)
    rate = DispatchRate(dispatch_throttling_rate_in_msg=10)
    await world.broker.registry.unload(NAME)
    await commit(catalog.plan_namespace_policies(NAME.namespace, dispatch_rate=rate))
    consumer = await (await world.connect()).subscribe(TOPIC, "s", queue_size=0)
    consumer.flow(1_000)
    await commit(
        catalog.plan_topic_policies(
            NAME, subscription_dispatch_rate=DispatchRate(dispatch_throttling_rate_in_msg=5)
        )
    )
    await asyncio.sleep(2)
    assert await delivered_per_s(world) == 5
    await commit(catalog.plan_topic_policies(NAME, subscription_dispatch_rate=None))
    await asyncio.sleep(1)
    assert await delivered_per_s(world) == 10


@played(settings={"maxPendingPublishRequestsPerConnection": "5"})
async def test_the_bound_on_pending_sends(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    topic = world.broker.engine.topics[TOPIC]
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x") for _ in range(50)]
    await asyncio.sleep(0.1)
    assert topic.publishing.pending_count == 5
    world.broker.settings.set("maxPendingPublishRequestsPerConnection", "0")
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
    world.lanes[0].freeze()
    sent = [producer.send_nowait(b"x") for _ in range(50)]
    await asyncio.sleep(0.1)
    assert topic.publishing.pending_count == 50
    world.lanes[0].thaw()
    await asyncio.gather(*sent)


@played(settings={"maxMessagePublishBufferSizeInMB": "1"})
async def test_the_bound_on_bytes_that_wait_for_the_disk(world: World) -> None:
    producers = [await (await world.connect()).producer(f"{TOPIC}-{i}") for i in range(4)]
    world.lanes[0].freeze()
    sent = [p.send_nowait(b"x" * 50_000) for p in producers for _ in range(40)]
    await asyncio.sleep(1)
    assert world.broker.log.staged_bytes < 2_000_000
    assert len(world.broker.connections.paused) == 4
    world.lanes[0].thaw()
    await asyncio.gather(*sent)
    assert not world.broker.connections.paused


# -- the turn ------------------------------------------------------------------------------------


@played()
async def test_the_wall_clock_may_step(world: World) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    await producer.send(b"before")
    for step_s in (3_600, -7_200):
        world.clock.step_wall(step_s * NS_PER_S)
        await asyncio.sleep(1.1)
        await producer.send(b"after")
        assert abs(world.broker.engine.now_ms - world.wall_ms()) < 1_000
    consumer = await client.subscribe(TOPIC, "s")
    assert len([await consumer.receive() for _ in range(3)]) == 3


@played()
async def test_following_the_clocks_begins_a_turn(world: World) -> None:
    engine = world.broker.engine
    for step_s in (0, 0.5, 3_600):
        world.clock.advance(NS_PER_S // 10)
        world.clock.step_wall(round(step_s * NS_PER_S))
        world.broker.update_clocks()
        assert engine.now_ns == world.clock.monotonic_ns()
        assert engine.now_ms == world.wall_ms()


@played()
async def test_names_are_never_given_twice(world: World) -> None:
    names = [world.broker.unique_name() for _ in range(3)]
    await asyncio.sleep(0.01)
    world.crash()
    await world.start()
    names += [world.broker.unique_name() for _ in range(3)]
    assert len(set(names)) == 6


@played()
async def test_a_refused_change_has_no_effect(world: World) -> None:
    world.store.fail_next(StorageError("hiccup", retryable=True))
    with pytest.raises(StorageError):
        await set_dynamic(world, "dispatchThrottlingRateInMsg", "1")
    await backlog(world)
    await asyncio.sleep(1)
    assert world.broker.engine.topics[TOPIC].subscriptions["s"].messages_sent == 200


@played()
async def test_a_large_backlog_is_handed_out_in_many_turns(world: World) -> None:
    """Nobody waits for a turn that takes long: other work is done in between."""
    client = await world.connect()
    await (await client.subscribe(TOPIC, "s")).close()
    producer = await client.producer(TOPIC)
    await asyncio.gather(*[producer.send_nowait(b"x") for _ in range(1_000)])
    sent_at_once = []
    broker = world.broker
    subscription = broker.engine.topics[TOPIC].subscriptions["s"]
    flush = broker.engine.flush

    def watched() -> bool:
        before = subscription.entries_sent
        more = flush()
        sent_at_once.append(subscription.entries_sent - before)
        return more

    broker.engine.flush = watched  # type: ignore[method-assign]
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=2_000)
    await asyncio.sleep(0.1)
    assert len(consumer.queue) == 1_000
    assert max(sent_at_once) <= 200
