"""Few commands hold the index that they wait with, and no tenant's commands wait for others."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakSet

from headgate.base.names import NamespaceName
from headgate.base.positions import Position
from headgate.engine.topic import Topic
from headgate.metadata.rows import TenantRow
from headgate.storage.loaded_index import LOADED_MAX, LOADED_OF_TENANT_MAX
from headgate.testing import SimClient, SimConsumer, World
from headgate.wire import client as frames
from headgate.wire.codes import SubscriptionType
from tests.unit.broker.commands.test_acknowledging import COLD, backlog
from tests.unit.broker.playing import TOPIC, played

ENTRIES = 600


class Held:
    """What a read of the index brought, as long as somebody holds it."""

    def __init__(self, blocks: object) -> None:
        self.blocks = blocks


class Reads:
    """The reads of the index, and what they brought and is held."""

    def __init__(self, world: World, name: str = TOPIC) -> None:
        self.index = world.broker.logs.of(world.broker.engine.topics[name]).index
        self._load, self._reading_count = self.index.load, 0
        self.held, self.most = WeakSet[Held](), 0
        self.index.load = self.load  # type: ignore[method-assign]

    async def load(self, *args: Any) -> Any:
        self._reading_count += 1
        self.most = max(self.most, self._reading_count + len(self.held))
        try:
            brought = Held(await self._load(*args))
        finally:
            self._reading_count -= 1
        self.held.add(brought)
        return brought


async def stored(world: World, name: str) -> tuple[SimClient, SimConsumer, list[Position]]:
    """A consumer of a topic, and its entries, of which the first ones have no index in memory."""
    client = await world.connect()
    producer = await client.producer(name)
    consumer = await client.subscribe(name, "s", kind=SubscriptionType.SHARED, queue_size=1)
    positions = [await producer.send(b"x" * 100) for _ in range(ENTRIES)]
    await asyncio.sleep(20)
    assert world.broker.engine.topics[name].log.memory_first >= 400
    return client, consumer, positions


@played(ledger=COLD)
async def test_few_commands_hold_the_index_that_they_wait_with(world: World) -> None:
    """Reads were faster than turns: 10,000 ACKs of 60 ids over 20 connections held 1.2 GB of blocks
    that nobody is charged with."""
    client, consumer, positions = await stored(world, TOPIC)
    reads = Reads(world)
    parts = [positions[i : i + 4] for i in range(0, 400, 4)]
    client.write(b"".join(frames.ack(consumer.consumer_id, part) for part in parts))
    await asyncio.sleep(5)
    assert backlog(world) == ENTRIES - 400
    assert 1 < reads.most <= LOADED_OF_TENANT_MAX
    assert not reads.held


@played(ledger=COLD)
async def test_who_leaves_leaves_no_slot_behind(world: World) -> None:
    client, consumer, positions = await stored(world, TOPIC)
    reads = Reads(world)
    for pause_s in (0, 0.0001, 0.001, 0.01):
        leaver = await world.connect()
        leaving = await leaver.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, queue_size=0)
        parts = [positions[i : i + 4] for i in range(0, 200, 4)]
        leaver.write(b"".join(frames.ack(leaving.consumer_id, part) for part in parts))
        await asyncio.sleep(pause_s)
        leaver.close()
        await asyncio.sleep(5)
    before, reads.most = backlog(world), 0
    parts = [positions[i : i + 4] for i in range(200, 400, 4)]
    client.write(b"".join(frames.ack(consumer.consumer_id, part) for part in parts))
    await asyncio.sleep(5)
    assert backlog(world) == before - 200
    assert reads.most == LOADED_OF_TENANT_MAX
    assert not reads.held


@played(ledger=COLD)
async def test_tenants_whose_commands_take_long_hold_up_no_other_one(world: World) -> None:
    """Two tenants with 15,000 look-ups each had all slots, for as long as their lines took."""
    broker = world.broker
    row = TenantRow(admin_roles=(), allowed_clusters=("standalone",))
    crowds = []
    for tenant in ("a", "b"):
        await broker.commit(broker.catalog.plan_create_tenant(tenant, row))
        await broker.commit(broker.catalog.plan_create_namespace(NamespaceName(tenant, "n")))
        crowds.append(await stored(world, f"persistent://{tenant}/n/t"))
    client, consumer, positions = await stored(world, TOPIC)
    index, stuck = broker.logs.of(broker.engine.topics[TOPIC]).index, asyncio.Event()
    load, waits, own_loads = index.load, 0, 0

    async def slow_load(log: Any, ordinals: Any) -> Any:
        nonlocal waits, own_loads
        topic: Topic = broker.engine.by_number[log.number]
        if topic.name.tenant in "ab":
            waits += 1
            await stuck.wait()
        else:
            own_loads += 1
        return await load(log, ordinals)

    index.load = slow_load  # type: ignore[method-assign]
    for crowd, consuming, its in crowds:
        acks = [frames.ack(consuming.consumer_id, its[i : i + 4]) for i in range(100, 180, 4)]
        crowd.write(b"".join(acks))
    await asyncio.sleep(1)
    assert waits == LOADED_MAX
    await asyncio.wait_for(
        client.request(
            lambda i: frames.ack(consumer.consumer_id, positions[100:104], request_id=i)
        ),
        1,
    )
    assert waits == LOADED_MAX
    assert own_loads == 1
    assert backlog(world) == ENTRIES - 4
    stuck.set()
    await asyncio.sleep(5)
    for tenant in ("a", "b"):
        topic = broker.engine.topics[f"persistent://{tenant}/n/t"]
        assert topic.subscriptions["s"].backlog_entries == ENTRIES - 80
