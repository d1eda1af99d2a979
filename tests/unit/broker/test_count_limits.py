"""Limits on numbers of producers, consumers and subscriptions, as clients see them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST
from headgate.base.work_units import CLIENT_CLOSED, SLICE_UNITS
from headgate.broker import count_limits
from headgate.engine.errors import TooManySubscriptionsError
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.metadata.errors import RefusalError
from headgate.testing import World
from headgate.testing.client import SimClient
from headgate.testing.errors import RefusedError
from headgate.wire.codes import ServerError, SubscriptionType
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import set_dynamic
from tests.unit.policy.rig import Rig

NAME = parse_topic(TOPIC)
SHARED, FAILOVER = SubscriptionType.SHARED, SubscriptionType.FAILOVER


async def refusal(request: Awaitable[Any]) -> tuple[ServerError, str]:
    with pytest.raises(RefusedError) as caught:
        await request
    return caught.value.code, caught.value.message


async def on_topic(world: World, **policies: object) -> None:
    await world.broker.commit(world.broker.catalog.plan_topic_policies(NAME, **policies))


def silence(client: SimClient) -> None:
    """Its machine is gone: nothing arrives any more, and nobody says so."""
    client.transport.silence()  # type: ignore[attr-defined]


PRODUCERS = (ServerError.PRODUCER_BUSY, f"Topic '{TOPIC}' reached max producers limit")


@played(settings={"maxProducersPerTopic": "2"})
async def test_a_producer_too_many_is_refused_and_those_present_stay(world: World) -> None:
    client = await world.connect()
    first = await client.producer(TOPIC)
    second = await client.producer(TOPIC)
    assert await refusal(client.producer(TOPIC)) == PRODUCERS
    assert await client.producer(f"{TOPIC}-2")
    await on_topic(world, max_producers_per_topic=1)
    assert await refusal(client.producer(TOPIC)) == PRODUCERS
    assert await first.send(b"a")
    assert await second.send(b"b")
    await first.close()
    assert await refusal(client.producer(TOPIC)) == PRODUCERS
    await second.close()
    await client.producer(TOPIC)
    await on_topic(world, max_producers_per_topic=0)
    await client.producer(TOPIC)


@played(settings={"maxProducersPerTopic": "1"})
async def test_a_producer_takes_the_place_of_its_own_dead_connection(world: World) -> None:
    dead = await world.connect()
    await dead.producer(TOPIC, name="p")
    silence(dead)
    client = await world.connect()
    assert await refusal(client.producer(TOPIC, name="q")) == PRODUCERS
    begin = world.loop.time()
    producer = await client.producer(TOPIC, name="p")
    assert world.loop.time() - begin < 6, "as long as the broker waits for a sign of life"
    assert await producer.send(b"x")
    other = await world.connect()
    assert "already connected" in (await refusal(other.producer(TOPIC, name="p")))[1]


@played(settings={"maxProducersPerTopic": "2"})
async def test_producers_that_come_together_do_not_pass_the_limit(world: World) -> None:
    client = await world.connect()
    found = await asyncio.gather(
        *(client.producer(TOPIC) for _ in range(5)), return_exceptions=True
    )
    assert sum(isinstance(one, RefusedError) for one in found) == 3


ON_TOPIC = (ServerError.CONSUMER_BUSY, "Topic reached max consumers limit")
ON_SUBSCRIPTION = (ServerError.CONSUMER_BUSY, "Subscription reached max consumers limit")


@played(settings={"maxConsumersPerTopic": "2"})
async def test_consumers_and_readers_of_all_subscriptions_count_for_the_topic(world: World) -> None:
    client = await world.connect()
    first = await client.subscribe(TOPIC, "a")
    reader = await client.reader(TOPIC, EARLIEST)
    assert await refusal(client.subscribe(TOPIC, "b")) == ON_TOPIC
    assert await refusal(client.reader(TOPIC, EARLIEST, name="r2")) == ON_TOPIC
    topic = world.broker.registry.get(NAME)
    assert topic is not None
    assert sorted(topic.subscriptions) == ["a", "reader"], "a refused consumer leaves nothing"
    await reader.close()
    await client.subscribe(TOPIC, "b")
    await first.close()
    assert topic.consumers_count == 1
    await client.subscribe(TOPIC, "a")
    topic.fence()
    assert topic.consumers_count == 0


@pytest.mark.parametrize("kind", [SHARED, FAILOVER])
def test_a_subscription_has_its_own_limit(kind: SubscriptionType) -> None:
    @played(settings={"maxConsumersPerSubscription": "1"})
    async def story(world: World) -> None:
        client = await world.connect()
        await client.subscribe(TOPIC, "s", kind=kind)
        assert await refusal(client.subscribe(TOPIC, "s", kind=kind)) == ON_SUBSCRIPTION
        await client.subscribe(TOPIC, "t", kind=kind)
        await set_dynamic(world, "maxConsumersPerSubscription", "2")
        await client.subscribe(TOPIC, "s", kind=kind)
        assert await refusal(client.subscribe(TOPIC, "s", kind=kind)) == ON_SUBSCRIPTION

    story()


@pytest.mark.parametrize("kind", [SHARED, FAILOVER])
def test_without_a_limit_a_crowd_of_one_subscription_has_a_bound(
    kind: SubscriptionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_limits, "CONSUMERS_OF_SUBSCRIPTION_MAX", 2)

    @played()
    async def story(world: World) -> None:
        client, other = await world.connect(), await world.connect()
        first = await client.subscribe(TOPIC, "s", kind=kind)
        await client.subscribe(TOPIC, "s", kind=kind)
        code, text = await refusal(other.subscribe(TOPIC, "s", kind=kind))
        assert code is ServerError.CONSUMER_BUSY
        assert text == "Subscription s has 2 consumers: no more are allowed"
        await other.subscribe(TOPIC, "t", kind=kind)
        await first.close()
        await other.subscribe(TOPIC, "s", kind=kind)

    story()


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"maxConsumersPerSubscription": "1"}, SHARED),
        ({"maxConsumersPerTopic": "1"}, SHARED),
        ({"maxConsumersPerTopic": "1"}, SubscriptionType.EXCLUSIVE),
    ],
)
def test_a_consumer_takes_the_place_of_its_own_dead_connection(
    settings: dict[str, str], kind: SubscriptionType
) -> None:
    @played(settings=settings)
    async def story(world: World) -> None:
        dead = await world.connect()
        await dead.subscribe(TOPIC, "s", kind=kind, name="c")
        client = await world.connect()
        assert (await refusal(client.subscribe(TOPIC, "s", kind=kind, name="c")))[0] == (
            ServerError.CONSUMER_BUSY
        ), "its connection is alive"
        silence(dead)
        begin = world.loop.time()
        await client.subscribe(TOPIC, "s", kind=kind, name="c")
        assert world.loop.time() - begin < 6, "as long as the broker waits for a sign of life"
        topic = world.broker.registry.get(NAME)
        assert topic is not None
        assert topic.consumers_count == 1

    story()


SUBSCRIPTIONS = f"Exceed the maximum number of subscriptions of the topic: {TOPIC}"


@played(settings={"maxConsumersPerSubscription": "1"})
async def test_a_consumer_takes_the_place_of_a_dead_connection_with_many_clients(
    world: World,
) -> None:
    """Their disconnecting takes slices: the broker does not wait for the last one."""
    dead = await world.connect()
    for number in range(2 * SLICE_UNITS // CLIENT_CLOSED):
        await dead.producer(TOPIC, name=f"p{number}")
    await dead.subscribe(TOPIC, "s", kind=SHARED, name="c")
    silence(dead)
    client = await world.connect()
    await client.subscribe(TOPIC, "s", kind=SHARED, name="c")
    assert len(world.broker.engine.topics[TOPIC].subscriptions["s"].consumers) == 1


@played(settings={"maxSubscriptionsPerTopic": "2"})
async def test_durable_subscriptions_count_however_they_are_created(world: World) -> None:
    client = await world.connect()
    facade = AdminFacade(world.broker, world.observer)
    await client.reader(TOPIC, EARLIEST)
    one = await client.subscribe(TOPIC, "a")
    found = await asyncio.gather(
        *(client.subscribe(TOPIC, name) for name in "bcd"), return_exceptions=True
    )
    errors = [error for error in found if isinstance(error, RefusedError)]
    assert [(error.code, error.message) for error in errors] == [
        (ServerError.NOT_ALLOWED_ERROR, SUBSCRIPTIONS)
    ] * 2, "those that are being stored count"
    with pytest.raises(RefusalError) as caught:
        await facade.create_subscription(NAME, "e", AtPosition(EARLIEST), {})
    assert (caught.value.status, caught.value.reason) == (412, SUBSCRIPTIONS)
    await client.reader(TOPIC, EARLIEST, name="another")
    await one.close()
    await client.subscribe(TOPIC, "a")
    await on_topic(world, max_subscriptions_per_topic=3)
    await facade.create_subscription(NAME, "e", AtPosition(EARLIEST), {})
    await facade.delete_subscription(NAME, "e", force=False)
    await client.subscribe(TOPIC, "f")


class Uncounted(dict[str, Any]):
    """Subscriptions that nobody may look through: there may be very many."""

    def values(self) -> Any:
        raise AssertionError("all subscriptions are looked at")


@played(settings={"maxSubscriptionsPerTopic": "2"})
async def test_a_limit_on_subscriptions_looks_at_none(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "a")
    await client.subscribe(TOPIC, "b")
    topic = world.broker.engine.topics[TOPIC]
    topic.subscriptions, present = Uncounted(topic.subscriptions), topic.subscriptions
    with pytest.raises(TooManySubscriptionsError):
        world.broker.count_limits.check_subscription(topic, 0, 2)
    topic.subscriptions = present


@played(settings={"headgateMaxSubscriptionsPerTenant": "2"})
async def test_the_subscriptions_of_a_tenant_are_counted_over_all_of_its_topics(
    world: World,
) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "a")
    await client.reader(TOPIC, EARLIEST)  # is not stored
    outcomes = await asyncio.gather(
        *(client.subscribe(f"{TOPIC}-2", name) for name in "bcd"), return_exceptions=True
    )
    assert [isinstance(each, RefusedError) for each in outcomes] == [False, True, True]
    code, text = outcomes[1].code, outcomes[1].message  # type: ignore[union-attr]
    assert code is ServerError.NOT_ALLOWED_ERROR
    assert text.startswith("Tenant public may have 2 subscriptions on all of its topics together")
    facade = AdminFacade(world.broker, world.observer)
    with pytest.raises(RefusalError, match="Tenant public may have 2"):
        await facade.create_subscription(NAME, "e", AtPosition(EARLIEST), {})
    other = parse_topic(f"{TOPIC}-3")
    await client.producer(other.full)
    await world.broker.registry.unload(parse_topic(f"{TOPIC}-2"))
    # The log has its subscription: else unloads again and again would pass the limit.
    assert world.broker.engine.durable_by_tenant == {"public": 2}
    with pytest.raises(RefusalError, match="Tenant public may have 2"):
        await facade.create_subscription(other, "e", AtPosition(EARLIEST), {})
    world.broker.registry.get(parse_topic(f"{TOPIC}-2"))
    with pytest.raises(RefusalError, match="Tenant public may have 2"):
        await facade.create_subscription(other, "e", AtPosition(EARLIEST), {})
    await world.broker.registry.delete(parse_topic(f"{TOPIC}-2"), force=True)
    await client.subscribe(TOPIC, "f")


@played(settings={"maxTopicsPerNamespace": "1"})
async def test_a_topic_too_many_is_not_created_by_its_use(world: World) -> None:
    client = await world.connect()
    await client.producer(TOPIC)
    expected = (ServerError.NOT_ALLOWED_ERROR, "Exceed maximum number of topics in namespace.")
    assert await refusal(client.producer(f"{TOPIC}-2")) == expected
    assert await refusal(client.subscribe(f"{TOPIC}-2", "s")) == expected
    await client.subscribe(TOPIC, "s")
    await set_dynamic(world, "allowAutoTopicCreationType", "partitioned")
    assert await refusal(client.partitions(f"{TOPIC}-2")) == expected
    assert await client.partitions(TOPIC) == 0
    await set_dynamic(world, "maxTopicsPerNamespace", "2")
    assert await client.partitions(f"{TOPIC}-2") == 1


SEVEN = (
    "brokerMaxConnections",
    "brokerMaxConnectionsPerIp",
    "maxTopicsPerNamespace",
    "maxSubscriptionsPerTopic",
    "maxProducersPerTopic",
    "maxConsumersPerTopic",
    "maxConsumersPerSubscription",
)


@pytest.mark.parametrize("value", ["0", "-1"])
def test_as_in_pulsar_0_and_less_are_no_limit(value: str) -> None:
    @played(settings=dict.fromkeys(SEVEN, value))
    async def story(world: World) -> None:
        for _ in range(2):
            client = await world.connect()
            await client.producer(TOPIC)
            await client.producer(f"{TOPIC}-2")
            await client.subscribe(TOPIC, "s", kind=SHARED)
            await client.subscribe(TOPIC, "t", kind=SHARED)

    story()


@played(settings={"maxTopicsPerNamespace": "1", "maxSubscriptionsPerTopic": "1"})
async def test_at_a_limit_what_exists_is_used_on(world: World) -> None:
    """As in Pulsar a limit is checked when something is created, and not when it is used."""
    client = await world.connect()
    await client.subscribe(TOPIC, "s", kind=SHARED)
    await set_dynamic(world, "maxTopicsPerNamespace", "1")
    await on_topic(world, max_subscriptions_per_topic=1)
    other = await world.connect()
    await other.producer(TOPIC)
    await other.subscribe(TOPIC, "s", kind=SHARED)
    assert (await refusal(other.subscribe(TOPIC, "t")))[0] == ServerError.NOT_ALLOWED_ERROR
    await other.reader(TOPIC, EARLIEST)


@played(settings={"maxProducersPerTopic": "1", "maxConsumersPerTopic": "1"})
async def test_each_partition_has_its_own_count(world: World) -> None:
    await world.broker.commit(world.broker.catalog.plan_create_partitioned(NAME, 2, now_ms=1))
    client = await world.connect()
    for partition in (f"{TOPIC}-partition-0", f"{TOPIC}-partition-1"):
        await client.producer(partition)
        await client.subscribe(partition, "s", kind=SHARED)
        assert (await refusal(client.producer(partition)))[0] == ServerError.PRODUCER_BUSY
        found = await refusal(client.subscribe(partition, "s", kind=SHARED))
        assert found == ON_TOPIC


@played(settings={"maxSameAddressProducersPerTopic": "2", "maxSameAddressConsumersPerTopic": "1"})
async def test_one_address_has_so_many_clients_of_a_topic(world: World) -> None:
    client, other = await world.connect(), await world.connect()
    first = await client.producer(TOPIC)
    await other.producer(TOPIC)
    assert await refusal(other.producer(TOPIC)) == (
        ServerError.PRODUCER_BUSY,
        f"Topic '{TOPIC}' reached max same address producers limit",
    )
    await client.producer(f"{TOPIC}-2")
    topic = world.broker.engine.topics[TOPIC]
    next(iter(topic.producers.values())).address = "/198.51.100.7:6000"
    await other.producer(TOPIC)
    assert first.is_open
    await client.subscribe(TOPIC, "a")
    assert await refusal(other.subscribe(TOPIC, "b")) == (
        ServerError.CONSUMER_BUSY,
        "Topic reached max same address consumers limit",
    )
    await set_dynamic(world, "maxSameAddressConsumersPerTopic", "0")
    await other.subscribe(TOPIC, "b")


class NoRoomForPublic:
    """The memory of a process that is near its limit."""

    part = 0.1

    def may_keep_more(self, tenant: str) -> bool:
        return tenant != "public"


def test_at_the_limit_on_memory_new_partitions_get_no_subscriptions() -> None:
    """They get those of the others; partitions without any are created."""
    counts = Rig().resolver.counts
    limits = count_limits.CountLimits(counts, NoRoomForPublic())
    with pytest.raises(TooManySubscriptionsError, match="near the limit on its memory"):
        limits.check_partitions(parse_topic(TOPIC), 2, lambda: 3, 100)
    assert limits.check_partitions(parse_topic(TOPIC), 2, lambda: 0, 100) == 0
    other = parse_topic("persistent://acme/ns/orders")
    assert limits.check_partitions(other, 2, lambda: 3, 100) == 0
