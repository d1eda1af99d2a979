"""A change of permissions closes the clients that lose their right, and only those."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from unittest.mock import patch

import pytest

from headgate.base.identity import Identity
from headgate.base.names import NamespaceName, parse_topic
from headgate.base.schema_types import CompatibilityStrategy, SchemaType
from headgate.base.work_units import JOB_STEP_UNITS_MAX, PIECE_UNITS
from headgate.broker import rights_rollout
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.producers import ConnectionProducers
from headgate.broker.rights_rollout import RightsRollout
from headgate.broker.work.scheduler import JobClass
from headgate.engine.producer import Producer
from headgate.metadata.catalog import Change
from headgate.metadata.grants import Action
from headgate.metadata.policies import AutoTopicCreation
from headgate.metadata.rows import TenantRow
from headgate.testing import RefusedError, SimConsumer, SimProducer, World
from headgate.wire.codes import ProducerAccessMode, ServerError, SubscriptionType
from headgate.wire.messages import Schema

NS = NamespaceName("acme", "ns")
TOPIC, OTHER = "persistent://acme/ns/t", "persistent://acme/ns/other"
SETTINGS = {"authorizationEnabled": "true", "superUserRoles": "super"}


def avro(number: int) -> bytes:
    """A record with one field."""
    field = {"name": f"f{number}", "type": "int"}
    return json.dumps({"type": "record", "name": "R", "fields": [field]}).encode()


async def is_refused(attempt: Awaitable[object]) -> None:
    """Check that a command was refused for want of permission."""
    with pytest.raises(RefusedError) as refusal:
        await attempt
    assert refusal.value.code == ServerError.AUTHORIZATION_ERROR


class Story(World):
    """A broker with a tenant of an administrator, and clients with roles."""

    role = "super"

    def accept(self) -> Connection:
        connection = super().accept()
        connection.identity = Identity(self.role)
        return connection

    async def furnish(self) -> None:
        broker = await self.start()
        row = TenantRow(admin_roles=("admin",), allowed_clusters=("standalone",))
        await broker.commit(broker.catalog.plan_create_tenant("acme", row))
        await broker.commit(broker.catalog.plan_create_namespace(NS))
        for topic in (TOPIC, OTHER):
            await broker.registry.create(parse_topic(topic))

    async def grant(self, role: str, *actions: Action, topic: str = "") -> None:
        catalog, granted = self.broker.catalog, frozenset(actions)
        if topic:
            change = catalog.plan_topic_grant(parse_topic(topic), role, granted)
        else:
            change = catalog.plan_namespace_grant(NS, role, granted)
        await self.broker.commit(change)

    async def producer(self, role: str, topic: str = TOPIC) -> SimProducer:
        self.role = role
        return await (await self.connect()).producer(topic)

    async def consumer(self, role: str, name: str = "s", topic: str = TOPIC) -> SimConsumer:
        self.role = role
        client = await self.connect()
        return await client.subscribe(topic, name, kind=SubscriptionType.SHARED)

    def producers(self, topic: str = TOPIC) -> int:
        return len(self.broker.engine.topics[topic].producers)

    def consumers(self, name: str = "s", topic: str = TOPIC) -> int:
        return len(self.broker.engine.topics[topic].subscriptions[name].consumers)


def played(story: Callable[[Story], Awaitable[None]]) -> Callable[[], None]:
    async def whole(world: Story) -> None:
        await world.furnish()
        await asyncio.wait_for(story(world), 600)

    def test() -> None:
        with Story(7, settings=SETTINGS) as world:
            world.run(whole(world))

    test.__name__ = story.__name__
    return test


@played
async def test_a_revoked_grant_closes_its_producers_and_consumers_and_no_others(
    world: Story,
) -> None:
    for role in ("a", "b"):
        await world.grant(role, "produce", "consume")
    mine, theirs = await world.producer("a"), await world.producer("b")
    await world.consumer("a")
    await world.consumer("b")
    await mine.send(b"x")
    await world.grant("a", "produce")
    assert (world.producers(), world.consumers()) == (2, 1)
    await world.grant("a")
    # The answer to a revocation comes when it is in force.
    assert (world.producers(), world.consumers()) == (1, 1)
    await theirs.send(b"y")
    client = world.clients[0]
    assert client.is_open
    await is_refused(client.producer(TOPIC))


@played
async def test_a_grant_on_a_topic_is_revoked_there_alone(world: Story) -> None:
    for topic in (TOPIC, OTHER):
        await world.grant("a", "produce", topic=topic)
        await world.producer("a", topic)
    await world.broker.commit(world.broker.catalog.plan_topic_revoke(parse_topic(TOPIC), "a"))
    assert (world.producers(), world.producers(OTHER)) == (0, 1)


@played
async def test_partitions_lose_the_grants_of_their_topic(world: Story) -> None:
    whole = parse_topic("acme/ns/parts")
    catalog = world.broker.catalog
    await world.broker.commit(catalog.plan_create_partitioned(whole, 2, now_ms=1))
    await world.grant("a", "produce", topic=whole.full)
    part = whole.partition_name(1).full
    await world.producer("a", part)
    await world.broker.commit(catalog.plan_topic_revoke(whole, "a"))
    assert world.producers(part) == 0


@played
async def test_a_subscription_that_is_given_to_others_closes_its_consumers(world: Story) -> None:
    await world.grant("a", "consume")
    await world.consumer("a", "s")
    await world.consumer("a", "free")
    await world.broker.commit(world.broker.catalog.plan_subscription_grant(NS, "s", ["b"]))
    assert (world.consumers("s"), world.consumers("free")) == (0, 1)
    await world.broker.commit(world.broker.catalog.plan_subscription_auth_mode(NS, "Prefix"))
    assert world.consumers("free") == 0


@played
async def test_an_administrator_that_is_dismissed_loses_its_clients(world: Story) -> None:
    await world.producer("admin")
    await world.producer("super")
    catalog = world.broker.catalog
    same = TenantRow(admin_roles=("admin", "b"), allowed_clusters=("standalone",))
    await world.broker.commit(catalog.plan_update_tenant("acme", same))
    assert world.producers() == 2
    none = TenantRow(allowed_clusters=("standalone",))
    await world.broker.commit(catalog.plan_update_tenant("acme", none))
    assert world.producers() == 1


@played
async def test_a_producer_that_is_being_made_when_its_grant_goes_is_not_made(
    world: Story,
) -> None:
    await world.grant("a", "produce", "consume")
    world.role = "a"
    client = await world.connect()
    new = "persistent://acme/ns/new"
    making = [
        asyncio.ensure_future(client.producer(new)),
        asyncio.ensure_future(client.subscribe(new, "s")),
    ]
    revoking = asyncio.ensure_future(world.grant("a"))
    for attempt in making:
        await is_refused(attempt)
    await revoking


@played
async def test_a_consumer_whose_grant_goes_while_it_waits_changes_no_subscription(
    world: Story,
) -> None:
    """Its own client, which answers no PING, let it wait for as long as that takes."""
    await world.grant("a", "consume")
    limit = world.broker.catalog.plan_namespace_policies(NS, max_consumers_per_subscription=1)
    await world.broker.commit(limit)
    world.role = "a"
    silent, client = await world.connect(), await world.connect()
    shared = partial(client.subscribe, TOPIC, "s", kind=SubscriptionType.SHARED, name="c")
    await silent.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, name="c")
    silent.answers_pings = False
    attempt = asyncio.ensure_future(shared(properties={"k": "v"}))
    await asyncio.sleep(0.1)
    await world.grant("a")
    assert not attempt.done()
    await is_refused(attempt)
    assert not world.broker.engine.topics[TOPIC].subscriptions["s"].properties


@played
async def test_seeks_and_deletions_that_wait_are_not_carried_out_when_the_grant_is_gone(
    world: Story,
) -> None:
    """They waited for changes of the same subscription, which the role itself may have asked for.
    Its consumers are closed by then, so they cannot be asked about."""
    await world.grant("a", "consume")
    consumer = await world.consumer("a")
    subscription = world.broker.engine.topics[TOPIC].subscriptions["s"]
    for asks in (partial(SimConsumer.seek, publish_time_ms=1), SimConsumer.unsubscribe):
        change = partial(world.broker.subscriptions.set_properties, subscription, {})
        before = [asyncio.ensure_future(change()) for _ in range(20)]
        attempt = asyncio.ensure_future(asks(consumer))
        await asyncio.sleep(0.005)
        await world.grant("a")
        assert not attempt.done()
        await is_refused(attempt)
        assert (subscription.resets_count, subscription.removed) == (0, False)
        await asyncio.gather(*before)
        await world.grant("a", "consume")
        consumer = await world.consumer("a")


@played
async def test_producers_that_wait_for_the_topic_lose_their_place_with_their_grant(
    world: Story,
) -> None:
    """One command of a role kept all others from the topic for as long as its connection stayed,
    also after its grant was gone."""
    for role in ("a", "b", "c"):
        await world.grant(role, "produce")
    holder = await world.producer("b")
    waiting = []
    for role in ("a", "c", "a"):
        world.role = role
        client = await world.connect()
        mode = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
        waiting.append(asyncio.ensure_future(client.producer(TOPIC, access_mode=mode)))
    await asyncio.sleep(0.1)
    await world.grant("a")
    for attempt in (waiting[0], waiting[2]):
        await is_refused(attempt)
    assert not waiting[1].done()
    await world.grant("c")
    with pytest.raises(RefusedError):
        await waiting[1]
    await world.producer("b")
    assert holder.is_open
    assert world.producers() == 2


@played
async def test_a_producer_that_waits_for_the_topic_does_not_get_it_without_its_grant(
    world: Story,
) -> None:
    """Each whose turn came before it was asked about raised the topic's epoch."""
    await world.grant("a", "produce")
    await world.grant("b", "produce")
    waits = ProducerAccessMode.WAIT_FOR_EXCLUSIVE
    world.role = "b"
    holder = await (await world.connect()).producer(TOPIC, access_mode=waits)
    world.role = "a"
    client = await world.connect()
    asked = [client.producer(TOPIC, access_mode=waits) for _ in range(3)]
    attempts = [asyncio.ensure_future(each) for each in asked]
    await asyncio.sleep(0.1)
    with patch.object(RightsRollout, "apply", lambda *_: None):
        await world.grant("a")
    await holder.close()
    for attempt in attempts:
        await is_refused(attempt)
    access = world.broker.engine.topics[TOPIC].access
    assert access is not None
    assert (access.epoch, access.is_idle) == (holder.topic_epoch, True)


@played
async def test_clients_that_wait_create_no_topics_when_their_grant_is_gone(world: Story) -> None:
    """A tenant's new topics are stored a few at once: a thousand of a connection went on."""
    await world.grant("a", "produce", "consume")
    world.role = "a"
    client, names = await world.connect(), [f"persistent://acme/ns/new{n}" for n in range(600)]
    attempts = [asyncio.ensure_future(client.producer(name)) for name in names[::2]]
    attempts += [asyncio.ensure_future(client.subscribe(name, "s")) for name in names[1::2]]
    topics = world.broker.engine.topics
    while len(topics) < 5:
        await asyncio.sleep(0.0005)
    await world.grant("a")
    before = len(topics)
    refused = await asyncio.gather(*attempts, return_exceptions=True)
    assert len(topics) <= before + 64 < len(names) // 2
    assert {each.code for each in refused if isinstance(each, RefusedError)} == {
        ServerError.AUTHORIZATION_ERROR
    }


@played
async def test_partitions_are_not_made_on_demand_when_the_grant_is_gone(world: Story) -> None:
    catalog = world.broker.catalog
    creation = AutoTopicCreation(True, "partitioned", 2)
    change = catalog.plan_namespace_policies(NS, auto_topic_creation=creation)
    await world.broker.commit(change)
    await world.grant("a", "produce")
    world.role = "a"
    client, names = await world.connect(), [f"persistent://acme/ns/new{n}" for n in range(300)]
    asked = [asyncio.ensure_future(client.partitions(name)) for name in names]
    await asyncio.sleep(0.002)
    await world.grant("a")
    before = len(catalog.topics(NS))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(each, RefusedError) for each in answers) > len(names) // 2
    assert len(catalog.topics(NS)) <= before + 64 * 2


@played
async def test_producers_that_wait_for_others_add_no_schema_when_their_grant_is_gone(
    world: Story,
) -> None:
    """Changes of a topic's schema run one after the other: those of a hundred producers of a role
    went on for as long as that takes."""
    await world.grant("a", "produce")
    catalog = world.broker.catalog
    free = CompatibilityStrategy.ALWAYS_COMPATIBLE
    change = catalog.plan_namespace_policies(NS, schema_compatibility_strategy=free)
    await world.broker.commit(change)
    world.role = "a"
    client = await world.connect()
    schemas = [Schema(name="s", type=SchemaType.AVRO, schema_data=avro(n)) for n in range(60)]
    attempts = [asyncio.ensure_future(client.producer(TOPIC, schema=each)) for each in schemas]
    await asyncio.sleep(0.02)
    await world.grant("a")
    before = len(catalog.schemas(parse_topic(TOPIC)))
    ends = await asyncio.gather(*attempts, return_exceptions=True)
    refused = [end for end in ends if isinstance(end, RefusedError)]
    assert {end.code for end in refused} == {ServerError.AUTHORIZATION_ERROR}
    assert 0 < before < len(schemas) // 2
    # One may have begun.
    assert len(catalog.schemas(parse_topic(TOPIC))) <= before + 1


@played
async def test_a_producer_whose_grant_goes_while_it_waits_for_a_dead_one_does_not_take_its_place(
    world: Story,
) -> None:
    """It raised the topic's epoch five seconds after its grant was gone."""
    await world.grant("a", "produce")
    await world.grant("b", "produce")
    world.role = "b"
    silent, mode = await world.connect(), ProducerAccessMode.EXCLUSIVE
    holder = await silent.producer(TOPIC, access_mode=mode)
    silent.answers_pings = False
    world.role = "a"
    client = await world.connect()
    attempt = asyncio.ensure_future(client.producer(TOPIC, access_mode=mode))
    await asyncio.sleep(0.1)
    await world.grant("a")
    assert not attempt.done()
    await is_refused(attempt)
    access = world.broker.engine.topics[TOPIC].access
    assert access is not None
    assert access.epoch == holder.topic_epoch


@played
async def test_a_topic_epoch_that_waits_for_its_tenant_is_not_stored_without_a_grant(
    world: Story,
) -> None:
    """The producer had the access, and its epoch waited behind the new topics of its tenant."""
    await world.grant("a", "produce")
    world.role = "a"
    client, names = await world.connect(), [f"persistent://acme/ns/new{n}" for n in range(400)]
    before = [asyncio.ensure_future(client.producer(name)) for name in names]
    await asyncio.sleep(0.002)
    mode = ProducerAccessMode.EXCLUSIVE
    attempt = asyncio.ensure_future(client.producer(TOPIC, access_mode=mode))
    await asyncio.sleep(0.002)
    access = world.broker.engine.topics[TOPIC].access
    assert access is not None
    assert access.holder is not None
    await world.grant("a")
    await is_refused(attempt)
    await asyncio.gather(*before, return_exceptions=True)
    row = world.broker.catalog.topic(TOPIC)
    assert row is not None
    assert row.epoch is None
    assert access.is_idle


@played
async def test_very_many_clients_that_lose_their_right_are_freed_one_by_one(world: Story) -> None:
    """They were freed with the list that the walk goes through, all in one turn."""
    await world.grant("a", "produce", "consume")
    world.role = "a"
    client = await world.connect()
    for number in range(20):
        await client.producer(TOPIC)
        await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED, name=f"c{number}")
    held, close = [0], ConnectionProducers.close_producer

    def closed(port: ConnectionProducers, producer_id: int) -> None:
        held.append(held[-1] + 1)
        close(port, producer_id)

    with (
        patch.object(Producer, "__del__", lambda _: held.append(held[-1] - 1), create=True),
        patch.object(ConnectionProducers, "close_producer", closed),
    ):
        await world.grant("a")
    assert world.producers() == world.consumers() == 0
    assert (max(held), held[-1]) == (1, 0)


@played
async def test_many_topics_are_asked_about_in_slices_within_a_second(world: Story) -> None:
    rights_rollout_copied = rights_rollout.COPIED_MAX
    await world.grant("a", "produce")
    count = 300
    world.role = "a"
    client = await world.connect()
    for number in range(count):
        await client.producer(f"persistent://acme/ns/t{number}")
    rights_rollout.COPIED_MAX = 10  # type: ignore[misc]
    try:
        began_s = world.now_s
        await world.grant("a")
    finally:
        rights_rollout.COPIED_MAX = rights_rollout_copied  # type: ignore[misc]
    assert world.now_s - began_s < 1
    assert not any(topic.producers for topic in world.broker.engine.topics.values())
    assert client.is_open


@played
async def test_requests_about_the_tenant_do_not_hold_up_the_end_of_a_right(world: Story) -> None:
    """500 `explain` of a role kept its right in use for 43 s after it was taken away."""
    await world.grant("a", "produce", "consume")
    await world.producer("a")
    for number in range(60):
        await world.consumer("a", f"s{number}")
    give_way, apply = world.broker.work.give_way, RightsRollout.apply
    crowd: list[asyncio.Task[None]] = []
    did = [0]

    async def request(job_class: JobClass) -> None:
        for _ in range(30):
            await give_way(PIECE_UNITS, job_class, "acme")
            did[0] += 1

    def apply_in_crowd(rollout: RightsRollout, change: Change) -> None:
        for job_class in (JobClass.ADMIN, JobClass.COMMAND):
            crowd.extend(asyncio.create_task(request(job_class)) for _ in range(100))
        apply(rollout, change)

    RightsRollout.apply = apply_in_crowd  # type: ignore[method-assign]
    try:
        await world.grant("a")
    finally:
        RightsRollout.apply = apply  # type: ignore[method-assign]
    assert (world.producers(), world.consumers("s59")) == (0, 0)
    assert did[0] < len(crowd)
    await asyncio.gather(*crowd)


@played
async def test_changes_while_a_walk_runs_share_its_next_round(world: Story) -> None:
    await world.grant("a", "produce")
    await world.producer("a")
    rights = world.broker._policy_updates._rights
    catalog = world.broker.catalog
    for number in range(20):
        await world.grant(f"r{number}", "produce")
        assert rights._walks == {}, "a grant takes no right away"
    changes = [catalog.plan_namespace_grant(NS, f"r{n}", frozenset()) for n in range(20)]
    walks = []
    for change in changes:
        await world.broker.writer.commit(change)
        walks.append(len(rights._walks))
    assert max(walks) <= 1
    for change in changes:
        await rights.when_in_force(change)
    assert rights._walks == {}
    assert JOB_STEP_UNITS_MAX > rights_rollout.CLIENT_CLOSED


@played
async def test_grants_stay_when_a_topic_is_only_inactive_and_go_when_it_is_deleted(
    world: Story,
) -> None:
    await world.grant("a", "produce", topic=TOPIC)
    await asyncio.sleep(200)
    catalog = world.broker.catalog
    assert catalog.topic(TOPIC) is None
    producer = await world.producer("a")
    await producer.send(b"x")
    await world.broker.registry.delete(parse_topic(TOPIC), force=True)
    assert catalog.topic_grants(TOPIC).roles == {}
