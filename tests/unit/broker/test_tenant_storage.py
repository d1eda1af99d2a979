"""The bound on what a tenant stores: exact, without loss, and of no harm to other tenants."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.base.units import MIB
from headgate.metadata.rows import TenantRow
from headgate.testing import World
from headgate.testing.errors import ConnectionLostError, RefusedError
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import set_dynamic

BODY = b"x" * 100_000
SECOND = f"{TOPIC}-2"
OTHER = "persistent://other/ns/t"
LIMITED = {"headgateMaxStoragePerTenantMB": "1"}
SETTING = "headgateMaxStoragePerTenantMB"


def stored(world: World, tenant: str = "public") -> int:
    """What a tenant stores, as it is counted."""
    tenants = world.broker.engine.tenant_storage.tenants()
    return {each.owner: each.bytes for each in tenants}[tenant]


async def fill(world: World, *topics: str) -> None:
    """Publish to topics of a tenant, a MiB to each of which a subscription keeps all, until all
    producers are closed because an entry had no room."""
    client, producers = await world.connect(), []
    for topic in topics:
        await client.subscribe(topic, "keeps")
        producers.append(await client.producer(topic))
    sends = [producers[n % len(topics)].send(BODY) for n in range(12 * len(topics))]
    outcomes = await asyncio.gather(*sends, return_exceptions=True)
    lost = [each for each in outcomes if isinstance(each, BaseException)]
    assert all(isinstance(each, ConnectionLostError) for each in lost)
    assert len(outcomes) - len(lost) == 10
    assert not any(producer.is_open for producer in producers)
    client.close()


async def refusal(world: World, topic: str) -> RefusedError:
    client = await world.connect()
    with pytest.raises(RefusedError) as refused:
        await client.producer(topic)
    return refused.value


@played(settings=LIMITED)
async def test_a_tenant_stores_no_more_than_its_bound_and_loses_nothing(world: World) -> None:
    await fill(world, TOPIC, SECOND)
    assert MIB - len(BODY) - 100 < stored(world) <= MIB
    refused = await refusal(world, f"{TOPIC}-3")
    assert refused.code is ServerError.PRODUCER_BLOCKED_QUOTA_EXCEEDED_EXCEPTION
    said = f"tenant public stores {stored(world):,} bytes of 1,048,576, and has to come down to 95"
    assert said in refused.message


@played(settings=LIMITED)
async def test_consumers_make_room_and_a_deletion_does(world: World) -> None:
    await fill(world, TOPIC)
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "keeps")
    for _ in range(10):
        await consumer.ack((await consumer.receive()).position)
    await asyncio.sleep(30)  # they are trimmed
    assert stored(world) == 0
    await fill(world, SECOND)
    assert "stores" in (await refusal(world, TOPIC)).message
    await world.broker.registry.delete(parse_topic(SECOND), force=True)
    assert stored(world) == 0
    await client.producer(TOPIC)


@played(settings=LIMITED)
async def test_other_tenants_go_on(world: World) -> None:
    broker, row = world.broker, TenantRow(allowed_clusters=("standalone",))
    await broker.commit(broker.catalog.plan_create_tenant("other", row))
    await broker.commit(broker.catalog.plan_create_namespace(NamespaceName("other", "ns")))
    await fill(world, TOPIC)
    await fill(world, OTHER)
    assert stored(world, "other") == stored(world)


@played(settings=LIMITED)
async def test_unloads_and_restarts_keep_the_count(world: World) -> None:
    await fill(world, TOPIC)
    before = stored(world)
    await world.broker.registry.unload(parse_topic(TOPIC))
    assert stored(world) == before
    await refusal(world, SECOND)
    await world.stop()
    await world.start()
    assert stored(world) == before
    client = await world.connect()
    producer = await client.producer(TOPIC)  # no entry was refused since the start
    with pytest.raises(ConnectionLostError):
        await producer.send(BODY)
    await refusal(world, TOPIC)


@played(settings=LIMITED)
async def test_a_smaller_entry_has_room_beside_a_larger_one_that_has_none(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "keeps")
    producer, other = await client.producer(TOPIC), await client.producer(TOPIC)
    for _ in range(10):
        await producer.send(BODY)
    with pytest.raises(ConnectionLostError):
        await producer.send(BODY)
    await other.send(b"small")  # who is connected goes on as far as there is room


@played()
async def test_the_bound_is_set_and_raised_while_the_broker_runs(world: World) -> None:
    client = await world.connect()
    await client.subscribe(TOPIC, "keeps")
    producer = await client.producer(TOPIC)
    for _ in range(12):
        await producer.send(BODY)
    await set_dynamic(world, SETTING, "1")
    with pytest.raises(ConnectionLostError):
        await producer.send(BODY)
    await refusal(world, TOPIC)
    await set_dynamic(world, SETTING, "2")
    await (await client.producer(TOPIC)).send(BODY)


@played(settings=LIMITED)
async def test_reports_say_why_producers_are_refused(world: World) -> None:
    await fill(world, TOPIC)
    said = (
        f"tenant public stores {stored(world):,} bytes of 1,048,576, and has to come down to 95 %"
    )
    topic = await world.observer.explain_topic(parse_topic(TOPIC))
    assert topic["publishing"]["sentence"].startswith(said)
    assert topic["publishing"]["sentence"].endswith(": its producers are refused")
    assert said in world.observer.storage_state().sentence
    assert topic["storage"]["sentence"] == ""  # the topic's own answer says it once
    report = await world.observer.explain_storage(5)
    expected = {"tenant": "public", "bytes": stored(world), "bytesMax": MIB, "isFull": True}
    assert report["tenants"] == [expected]
