"""New partitions get the subscriptions of the other partitions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from headgate.admin.app import AdminApp
from headgate.base.ack_set import AckSet
from headgate.base.errors import InputError, StorageError
from headgate.base.names import TopicName, parse_topic
from headgate.base.positions import LATEST
from headgate.base.units import NS_PER_MS
from headgate.base.work_units import SLICE_UNITS, SUBSCRIPTION_REMOVED
from headgate.broker.partition_subscriptions import SLICE_ITEMS, SLICE_PARTITIONS
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.metadata.errors import RefusalError
from headgate.testing import World
from headgate.testing.errors import RefusedError
from tests.unit.admin.client import ask_async
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.test_registry import NAME, create_partitioned, soon


async def grow(world: World, count: int) -> None:
    facade = AdminFacade(world.broker, world.observer)
    plan = facade.catalog.plan_grow_partitioned
    await facade.commit(plan(NAME, count, now_ms=world.wall_ms()))


async def subscribe(
    world: World, part: TopicName, name: str = "s", properties: dict[str, str] | None = None
) -> None:
    facade = AdminFacade(world.broker, world.observer)
    at = AtPosition(LATEST)
    await facade.create_subscription(part, name, at, properties or {"of": name})


def part(index: int) -> TopicName:
    return NAME.partition_name(index)


def live(world: World, index: int) -> Topic:
    topic = world.broker.registry.get(part(index))
    assert topic is not None
    return topic


def incomplete(world: World) -> list[str]:
    catalog = world.broker.catalog
    rows = [catalog.topic(name) for name in catalog.topics(NAME.namespace)]
    return [row.name for row in rows if row is not None and row.lacks_subscriptions]


@played()
async def test_new_partitions_have_the_durable_subscriptions_of_all_others(world: World) -> None:
    await create_partitioned(world, 2)
    assert incomplete(world) == []
    await subscribe(world, part(0))
    await subscribe(world, part(1), "only here")
    client = await world.connect()
    await client.reader(part(0).full, LATEST)
    await grow(world, 4)
    assert incomplete(world) == []
    for index in (2, 3):
        subscriptions = live(world, index).subscriptions
        assert set(subscriptions) == {"s", "only here"}
        assert subscriptions["s"].properties == {"of": "s"}
        assert subscriptions["s"].cursor_id is not None
    assert set(live(world, 0).subscriptions) >= {"s"}
    assert "only here" not in live(world, 0).subscriptions  # what is there is left alone


@played(settings={"maxSubscriptionsPerTopic": "3"})
async def test_partitions_that_would_get_more_than_a_topic_may_have_are_refused(
    world: World,
) -> None:
    await create_partitioned(world, 2)
    for index in (0, 1):
        for number in (0, 1):
            await subscribe(world, part(index), f"s{index}-{number}")
    with pytest.raises(RefusalError, match="would get the 4 subscriptions of the others: 3 are"):
        await grow(world, 3)
    await world.broker.registry.delete(part(1), force=True)
    await grow(world, 3)  # and makes the deleted one again
    assert set(live(world, 1).subscriptions) == {"s0-0", "s0-1"}
    await subscribe(world, part(2), "own")
    await subscribe(world, part(1), "own too")
    await world.broker.registry.delete(part(0), force=True)
    client = await world.connect()
    with pytest.raises(RefusedError, match="would get the 4 subscriptions"):
        await client.producer(part(0).full)


@played(settings={"headgateMaxSubscriptionsPerTenant": "10"})
async def test_partitions_at_once_do_not_pass_the_limit_of_their_tenant(world: World) -> None:
    await create_partitioned(world, 1)
    await subscribe(world, part(0), "a")
    await subscribe(world, part(0), "b")
    for _ in range(2):  # what is abandoned is promised no more
        promised = world.broker.registry.partition_subscriptions._promised
        growing = [soon(grow(world, count)) for count in (3, 5, 6)]
        outcomes = await asyncio.gather(*growing, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), type(None), RefusalError]
        assert "may have 10 subscriptions" in str(outcomes[2])
        assert world.broker.engine.durable_by_tenant["public"] == 10
        assert not promised
        await world.broker.registry.delete(NAME, force=True)
        assert "public" not in world.broker.engine.durable_by_tenant
        await create_partitioned(world, 1)
        await subscribe(world, part(0), "a")
        await subscribe(world, part(0), "b")


@played(settings={"headgateMaxSubscriptionsPerTenant": "4"})
async def test_what_an_abandoned_change_was_promised_is_free_again(world: World) -> None:
    await create_partitioned(world, 1)
    await subscribe(world, part(0), "a")
    partitions = world.broker.registry.partition_subscriptions
    change = world.broker.catalog.plan_grow_partitioned(NAME, 4, now_ms=world.wall_ms())
    assert partitions._promised == {"public": {NAME: 3}}
    with pytest.raises(RefusalError, match="may have 4 subscriptions"):
        partitions.check_room(NAME, 1)
    world.broker.catalog.abandon_all()
    del change
    await grow(world, 4)
    assert set(live(world, 3).subscriptions) == {"a"}


@played()
async def test_they_owe_every_message_also_one_that_comes_first(world: World) -> None:
    """The producer is there before the administrator is answered."""
    await create_partitioned(world, 1)
    await subscribe(world, part(0))
    world.lanes[0].freeze()
    growing = soon(grow(world, 2))
    await asyncio.sleep(1)
    assert incomplete(world) == [part(1).full]
    client = await world.connect()
    producer = await client.producer(part(1).full)
    receipt = producer.send_nowait(b"x")
    await asyncio.sleep(1)
    assert not growing.done()
    world.lanes[0].thaw()
    await growing
    await receipt
    consumer = await client.subscribe(part(1).full, "s", earliest=False)
    assert (await consumer.receive()).payload == b"x"


@played()
async def test_a_partition_that_is_made_by_using_it(world: World) -> None:
    await create_partitioned(world, 2)
    await subscribe(world, part(0))
    await world.broker.registry.delete(part(1), force=True)
    client = await world.connect()
    producer = await client.producer(part(1).full)
    await producer.send(b"x")
    assert live(world, 1).subscriptions["s"].backlog_entries == 1
    assert incomplete(world) == []


@played()
async def test_a_partition_that_is_made_again_while_the_deleted_one_is_dropped(
    world: World,
) -> None:
    """Dropping many subscriptions takes slices. The new partition must not be taken for the old."""
    broker = world.broker
    begin_turn = broker.begin_turn

    def begin_slow_turn() -> None:
        world.clock.advance(NS_PER_MS)
        begin_turn()

    broker.work._begin_turn = begin_slow_turn
    await create_partitioned(world, 2)
    await subscribe(world, part(0))
    for number in range(30 * SLICE_UNITS // SUBSCRIPTION_REMOVED):
        live(world, 1).add_subscription(f"s{number}", AckSet(-1), cursor_id=100_000 + number)
    deletion = soon(broker.registry.delete(part(1), force=True))
    while broker.catalog.topic(part(1).full) is not None:
        await asyncio.sleep(0.0001)
    growth = soon(grow(world, 2))
    while broker.catalog.topic(part(1).full) is None:
        await asyncio.sleep(0.0001)
    assert not deletion.done()
    made = live(world, 1)
    assert set(made.subscriptions) == {"s"}
    await growth
    await deletion
    assert live(world, 1) is made
    assert incomplete(world) == []


@played()
async def test_growing_twice_and_to_the_same_count(world: World) -> None:
    """What is missing is made again; what is there gets nothing that was deleted on purpose."""
    await create_partitioned(world, 2)
    await subscribe(world, part(0))
    await asyncio.gather(grow(world, 3), grow(world, 3))
    await AdminFacade(world.broker, world.observer).delete_subscription(part(2), "s", force=False)
    await world.broker.registry.delete(part(0), force=True)
    await subscribe(world, part(1))
    await grow(world, 3)
    assert "s" in live(world, 0).subscriptions
    assert "s" not in live(world, 2).subscriptions


@played()
async def test_a_topic_named_like_a_partition_that_becomes_one(world: World) -> None:
    client = await world.connect()
    await (await client.producer(part(0).full)).send(b"x")
    await subscribe(world, part(0))
    await create_partitioned(world, 2)
    await AdminFacade(world.broker, world.observer).commit(
        world.broker.catalog.plan_grow_partitioned(NAME, 2, now_ms=1)
    )
    assert set(live(world, 1).subscriptions) == {"s"}


@played()
async def test_a_subscription_that_is_being_made_just_then(world: World) -> None:
    await create_partitioned(world, 1)
    live(world, 0)
    world.lanes[0].freeze()
    making = soon(subscribe(world, part(0)))
    await asyncio.sleep(0.5)
    growing = soon(grow(world, 2))
    await asyncio.sleep(0.5)
    world.lanes[0].thaw()
    await asyncio.gather(making, growing)
    assert set(live(world, 1).subscriptions) == {"s"}


@played()
async def test_a_start_goes_on_where_the_last_one_was_cut(
    world: World,
) -> None:
    await create_partitioned(world, 2)
    await subscribe(world, part(0))
    world.lanes[0].freeze()
    growing = soon(grow(world, 3))
    await asyncio.sleep(1)
    assert incomplete(world) == [part(2).full]
    world.crash()
    await asyncio.wait([growing], timeout=1)
    await world.start()
    assert set(live(world, 2).subscriptions) == {"s"}
    await asyncio.sleep(1)
    assert incomplete(world) == []


def test_created_subscriptions_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """A line for each partition with all names was megabytes of log for one request."""

    @played()
    async def story(world: World) -> None:
        await create_partitioned(world, 1)
        await grow(world, 2)
        for number in range(50):
            await subscribe(world, part(0), "s" * 500 + str(number))
        await grow(world, 202)

    with caplog.at_level(logging.INFO, "headgate.topics"):
        story()
    assert f"{TOPIC} got, with the subscriptions of the others: 200" in caplog.text
    assert caplog.text.count("with the subscriptions of the others") == 1
    assert len(caplog.text) < 5_000


@played()
async def test_no_deletion_is_undone_by_a_mark_that_stayed(world: World) -> None:
    """The mark could not be taken away; a deletion waits for that, or fails with it."""
    await create_partitioned(world, 1)
    await subscribe(world, part(0))
    world.lanes[0].freeze()
    growing = soon(grow(world, 2))
    await asyncio.sleep(1)
    world.store.fail_next(StorageError("hiccup", retryable=True), 2)
    world.lanes[0].thaw()
    with pytest.raises(StorageError):
        await growing
    await asyncio.sleep(1)
    assert incomplete(world) == [part(1).full]
    await AdminFacade(world.broker, world.observer).delete_subscription(part(1), "s", force=False)
    assert incomplete(world) == []
    world.crash()
    await world.start()
    assert "s" not in live(world, 1).subscriptions


@played()
async def test_long_properties_are_not_multiplied_by_the_partitions(world: World) -> None:
    """A request of a role that may consume took a gigabyte, and one that adds partitions, too."""
    long = {"k": "v" * 60_000}
    await create_partitioned(world, 2)
    await subscribe(world, part(0), "long", long)
    await subscribe(world, part(0), "short", {"k": "v"})
    await grow(world, 200)
    for index in (2, 199):
        subscriptions = live(world, index).subscriptions
        assert subscriptions["long"].properties == {}
        assert subscriptions["short"].properties == {"k": "v"}
    assert live(world, 0).subscriptions["long"].properties == long  # what is there is left alone
    with pytest.raises(InputError, match="of a topic with 200 partitions"):
        await subscribe(world, part(1), "more", long)
    facade = AdminFacade(world.broker, world.observer)
    with pytest.raises(RefusalError, match="of a topic with 200 partitions"):
        await facade.set_subscription_properties(part(2), "long", long)


@played()
async def test_partitions_that_get_much_are_loaded_one_by_one(world: World) -> None:
    await create_partitioned(world, 1)
    crowd = {f"{number}": "" for number in range(200)}
    for number in range(SLICE_ITEMS // 200 + 1):
        await subscribe(world, part(0), f"s{number}", crowd)
    loaded, subscriptions = (
        world.broker.engine.topics,
        world.broker.registry.partition_subscriptions,
    )
    in_a_slice: list[int] = []
    own_loading_many = subscriptions.loading_many

    @contextmanager
    def loading_many() -> Iterator[None]:
        before = len(loaded)
        with own_loading_many():
            yield
        in_a_slice.append(len(loaded) - before)

    subscriptions.loading_many = loading_many  # type: ignore[method-assign]
    await grow(world, 1 + SLICE_PARTITIONS)
    assert in_a_slice == [1] * SLICE_PARTITIONS
    assert len(live(world, SLICE_PARTITIONS).subscriptions) == SLICE_ITEMS // 200 + 1


CROWD = 40


async def most_loaded_while(world: World, begin: Callable[[], Awaitable[object]]) -> int:
    """The most topics that one iteration of the loop loads, of those that get subscriptions, while
    a request comes amid the growth of a topic."""
    await create_partitioned(world, 1)
    for number in range(3):
        await subscribe(world, part(0), f"s{number}")
    registry, loop = world.broker.registry, world.loop
    loads: list[int] = [0]
    """In each iteration; the last one is the present one."""
    own_loaded = registry.partition_subscriptions.topic_loaded

    def loaded(topic: Topic) -> None:
        if not loads[-1]:
            loop.call_soon(loads.append, 0)
        loads[-1] += 1
        own_loaded(topic)

    registry.partition_subscriptions.topic_loaded = loaded  # type: ignore[method-assign]
    # What completes them in the background loads them as well: here it comes after all others.
    done = asyncio.Event()
    own_complete = registry.partition_subscriptions._complete_alone

    async def complete_alone(base: TopicName) -> None:
        await done.wait()
        await own_complete(base)

    registry.partition_subscriptions._complete_alone = complete_alone  # type: ignore[method-assign]
    plan = world.broker.catalog.plan_grow_partitioned(NAME, 1 + CROWD, now_ms=world.wall_ms())
    await world.broker.writer.commit(plan)
    world.broker.registry.partition_subscriptions.applied(plan)
    await begin()
    done.set()
    assert sum(loads) == CROWD
    assert all(len(live(world, index).subscriptions) == 3 for index in range(1 + CROWD))
    return max(loads)


@played()
async def test_a_crowd_of_producers_loads_new_partitions_one_by_one(world: World) -> None:
    """100 subscriptions are 5 ms of each: a hundred PRODUCERs held the loop for half a second."""
    client = await world.connect()

    async def crowd() -> None:
        await asyncio.gather(*[client.producer(part(1 + index).full) for index in range(CROWD)])

    assert await most_loaded_while(world, crowd) == 1


@played()
async def test_a_request_about_all_new_partitions_loads_them_one_by_one(world: World) -> None:
    facade = AdminFacade(world.broker, world.observer)
    app = AdminApp(facade, world.clock)
    path = "/admin/v2/persistent/public/default/orders/partitioned-stats"

    async def ask() -> None:
        assert (await ask_async(app, "GET", path, b"", {})).status == 200

    assert await most_loaded_while(world, ask) == 1


@played()
async def test_topics_that_grow_at_once_load_their_partitions_in_turn(world: World) -> None:
    """Each had a slice of its own in each iteration: 30 of them took 0.2 s of it."""
    catalog, writer, registry = world.broker.catalog, world.broker.writer, world.broker.registry
    bases = [parse_topic(f"persistent://public/default/grown{number}") for number in range(12)]
    for base in bases:
        await writer.commit(catalog.plan_create_partitioned(base, 1, now_ms=world.wall_ms()))
        await subscribe(world, base.partition_name(0), "s")
    loads: list[int] = [0]
    own_loaded = registry.partition_subscriptions.topic_loaded

    def loaded(topic: Topic) -> None:
        if not loads[-1]:
            world.loop.call_soon(loads.append, 0)
        loads[-1] += 1
        own_loaded(topic)

    registry.partition_subscriptions.topic_loaded = loaded  # type: ignore[method-assign]
    count, now_ms = 1 + SLICE_PARTITIONS, world.wall_ms()
    plans = [catalog.plan_grow_partitioned(base, count, now_ms=now_ms) for base in bases]
    await asyncio.gather(*map(world.broker.commit, plans))
    assert sum(loads) == len(bases) * SLICE_PARTITIONS
    assert max(loads) == SLICE_PARTITIONS
