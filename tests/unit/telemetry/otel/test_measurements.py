"""The walk over everything that is measured: names, times, batches, and what changes meanwhile."""

from __future__ import annotations

import asyncio

from headgate.base.names import parse_topic
from headgate.base.units import MIB, NS_PER_MS, NS_PER_S
from headgate.broker.service import Broker
from headgate.engine.types import SubscriptionType
from headgate.telemetry.otel import measurements
from headgate.telemetry.otel.measurements import Measurement, batches
from headgate.testing import World
from tests.unit.telemetry.support import NAME, publish, topic_of

INCOMING = "pulsar.broker.topic.message.incoming.count"
OF_TOPIC = {
    "pulsar.domain": "persistent",
    "pulsar.tenant": "public",
    "pulsar.namespace": "public/default",
    "pulsar.topic": NAME,
}


async def everything(broker: Broker) -> dict[str, list[Measurement]]:
    """All measurements by name."""
    taken: dict[str, list[Measurement]] = {}
    async for batch in batches(broker):
        for name, values in batch.by_name.items():
            taken.setdefault(name, []).extend(values)
    return taken


def of_topic(taken: dict[str, list[Measurement]], name: str, topic: str = NAME) -> Measurement:
    """The one measurement of a topic."""
    (found,) = [each for each in taken[name] if each.attributes["pulsar.topic"] == topic]
    return found


def test_names_and_times_of_a_topic_and_who_is_connected() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        loaded_ms = world.wall_ms()
        await publish(world, 5)
        await asyncio.sleep(10)
        client = await world.connect()
        connected_ms = world.wall_ms()
        consumer = await client.subscribe(NAME, "s", name="c", kind=SubscriptionType.SHARED)
        producer = await client.producer(NAME, name="p")
        await producer.send(b"one more")
        await consumer.ack((await consumer.receive()).position)
        await asyncio.sleep(10)
        taken = await everything(broker)
        incoming = of_topic(taken, INCOMING)
        assert (incoming.attributes, incoming.value) == (OF_TOPIC, 6)
        assert abs(incoming.since_ns - loaded_ms * NS_PER_MS) < NS_PER_S
        assert abs(incoming.at_ns - world.wall_ms() * NS_PER_MS) < NS_PER_S
        (acked,) = taken["pulsar.broker.consumer.message.ack.count"]
        assert acked.attributes == OF_TOPIC | {
            "pulsar.subscription.name": "s",
            "pulsar.subscription.type": "Shared",
            "pulsar.consumer.name": "c",
            "pulsar.consumer.id": consumer.consumer_id,
        }
        assert acked.value == 1
        assert abs(acked.since_ns - connected_ms * NS_PER_MS) < NS_PER_S
        (published,) = taken["pulsar.broker.producer.message.incoming.count"]
        assert published.attributes == OF_TOPIC | {
            "pulsar.producer.name": "p",
            "pulsar.producer.id": producer.producer_id,
            "pulsar.producer.access_mode": "shared",
        }
        assert published.value == 1
        assert taken["pulsar.broker.connection.count"][0].since_ns == broker.started_ms * NS_PER_MS

    with World() as world:
        world.run(scenario(world))


def test_a_partition_has_the_name_of_the_whole_and_its_number() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        plan = broker.catalog.plan_create_partitioned(parse_topic(NAME), 2, now_ms=world.wall_ms())
        await broker.writer.commit(plan)
        await publish(world, 3, f"{NAME}-partition-1")
        incoming = of_topic(await everything(broker), INCOMING)
        assert incoming.attributes == OF_TOPIC | {"pulsar.partition.index": 1}

    with World() as world:
        world.run(scenario(world))


def test_allowed_properties_of_a_topic_are_attributes_in_small_letters() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 1)
        broker.settings.exposeCustomTopicMetricLabelsEnabled = True
        broker.settings.allowedTopicPropertyKeysForMetrics = "SLA_tier"
        properties = {"SLA_tier": "gold", "team": "red"}
        await broker.commit(broker.catalog.plan_topic_properties(parse_topic(NAME), properties))
        incoming = of_topic(await everything(broker), INCOMING)
        assert incoming.attributes == OF_TOPIC | {"sla_tier": "gold"}

    with World() as world:
        world.run(scenario(world))


def test_a_topic_that_is_loaded_again_counts_from_then() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        topic = await publish(world, 5)
        before = of_topic(await everything(broker), INCOMING)
        await asyncio.sleep(10)
        await broker.registry.unload(topic.name)
        broker.registry.get(topic.name)
        assert topic_of(broker) is not topic
        after = of_topic(await everything(broker), INCOMING)
        assert (before.value, after.value) == (5, 0)
        assert after.since_ns > before.at_ns

    with World() as world:
        world.run(scenario(world))


def test_consumers_that_share_a_name_are_one_sum() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        for _ in range(2):
            client = await world.connect()
            await client.subscribe(NAME, "s", name="same", kind=SubscriptionType.SHARED)
        await publish(world, 20)
        await asyncio.sleep(1)
        (sent,) = (await everything(broker))["pulsar.broker.consumer.message.outgoing.count"]
        assert sent.value == 20

    with World() as world:
        world.run(scenario(world))


def test_many_subjects_come_in_batches_with_the_loop_going_on(monkeypatch) -> None:
    monkeypatch.setattr(measurements, "BATCH_MEASUREMENTS", 100)
    monkeypatch.setattr(measurements, "SLICE_MEASUREMENTS", 20)

    async def scenario(world: World) -> None:
        broker = await world.start()
        names = [f"{NAME}-{number}" for number in range(40)]
        for name in names:
            await broker.registry.create(parse_topic(name))
        turns = 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            if turning:
                broker.loop.call_soon(turn)

        found: list[str] = []
        sizes = []
        async for batch in batches(broker):
            turning = False
            sizes.append(batch.size)
            assert batch.size == sum(map(len, batch.by_name.values()))
            found += [str(each.attributes["pulsar.topic"]) for each in batch.by_name[INCOMING]]
            if len(sizes) == 1:  # what is gone or new when its turn comes
                await broker.registry.delete(parse_topic(names[-1]), force=False)
                await broker.registry.create(parse_topic(f"{NAME}-late"))
            turning = True
            turn()
        assert sorted(found) == sorted(names[:-1])
        assert min(sizes[:-1]) >= 100
        assert max(sizes) < 150
        assert turns >= (sum(sizes) - sizes[0]) // 50

    with World() as world:
        world.run(scenario(world))


def test_long_names_of_clients_make_no_request_that_a_collector_refuses() -> None:
    """Proxies before collectors take a megabyte by default."""
    long = "\U0001f600" * 500

    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        topic = f"{NAME}{long[:400]}"
        for number in range(60):
            await client.subscribe(
                topic, long, name=f"{long}{number}", kind=SubscriptionType.SHARED
            )
        sizes, consumers = [], set()
        async for batch in batches(broker):
            each = [value for values in batch.by_name.values() for value in values]
            texts = [str(text) for value in each for text in value.attributes.values()]
            sizes.append(sum(len(text.encode()) for text in texts))
            consumers |= {value.attributes.get("pulsar.consumer.name") for value in each}
        assert max(sizes) < MIB
        assert len(consumers - {None}) == 60

    with World() as world:
        world.run(scenario(world))


def test_all_values_of_a_topic_and_of_a_subscription_are_of_one_turn(monkeypatch) -> None:
    monkeypatch.setattr(measurements, "BATCH_MEASUREMENTS", 1)
    quota = "pulsar.broker.topic.storage.backlog.quota.limit.size"
    limit = "headgate.effective.limit"

    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        await client.subscribe(NAME, "s")
        plan = broker.catalog.plan_setting("dispatchThrottlingRatePerSubscriptionInMsg", "7")
        await broker.writer.commit(plan)
        count = 0
        async for batch in batches(broker):
            names = set(batch.by_name)
            count += (INCOMING in names) + ("headgate.subscription.state.seconds" in names)
            assert (INCOMING in names) == (quota in names)
            if "headgate.subscription.state.seconds" in names:
                assert limit in names
            await asyncio.sleep(1)  # a slow collector
        assert count >= 2

    with World() as world:
        world.run(scenario(world))
