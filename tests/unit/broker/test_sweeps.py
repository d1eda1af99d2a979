"""What a broker does by itself: inactive topics, retention, and that sweeps keep running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from headgate.base.errors import InvariantError, StorageError
from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.ledger import LedgerSettings
from headgate.metadata.policies import Retention
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played

NAME = parse_topic(TOPIC)
OTHER = f"{TOPIC}-other"
SMALL_LEDGERS = LedgerSettings(segment_bytes=64 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)


async def abandon(world: World, *topics: str) -> None:
    """Make topics that hold a message and are used by nobody any more."""
    client = await world.connect()
    for topic in topics:
        producer = await client.producer(topic)
        await producer.send(b"x")
        await producer.close()
    client.close()


async def set_dynamic(world: World, name: str, value: str | None) -> None:
    await world.broker.writer.commit(world.broker.catalog.plan_setting(name, value))


def exists(world: World, topic: str) -> bool:
    return world.broker.catalog.topic(topic) is not None


# -- inactive topics ---------------------------------------------------------------------------


@played()
async def test_a_topic_that_nobody_used_for_a_whole_period_goes(world: World) -> None:
    await abandon(world, TOPIC)
    await asyncio.sleep(55)
    assert exists(world, TOPIC)
    await asyncio.sleep(70)
    assert not exists(world, TOPIC)
    assert TOPIC not in world.broker.engine.topics


@played()
async def test_what_keeps_a_topic(world: World) -> None:
    catalog, writer = world.broker.catalog, world.broker.writer
    kept = [f"{TOPIC}-{why}" for why in ("producer", "subscription", "reader", "retention")]
    await abandon(world, *kept)
    client = await world.connect()
    await client.producer(kept[0])
    await (await client.subscribe(kept[1], "s")).close()
    await client.subscribe(kept[2], "r", durable=False)
    await writer.commit(
        catalog.plan_topic_policies(
            parse_topic(kept[3]),
            retention=Retention(retention_time_in_minutes=10, retention_size_in_mb=10),
        )
    )
    await writer.commit(catalog.plan_create_partitioned(NAME, 2, now_ms=world.wall_ms()))
    world.broker.registry.load_all()
    await asyncio.sleep(300)
    assert all(exists(world, topic) for topic in kept)
    assert exists(world, f"{TOPIC}-partition-0")


@played()
async def test_a_topic_that_is_used_again_at_the_last_moment_stays(world: World) -> None:
    """It was found inactive, but another one's deletion took its time."""
    await abandon(world, TOPIC, OTHER)
    world.clock.advance(200 * NS_PER_S)
    world.lanes[2].freeze()
    sweep = asyncio.ensure_future(world.broker.sweeps.delete_inactive())
    await asyncio.sleep(0.1)
    client = await world.connect()
    consumer = await client.subscribe(OTHER, "s")
    await (await client.producer(OTHER)).send(b"must not go")
    client.abort()
    await asyncio.sleep(0.1)
    world.lanes[2].thaw()
    await sweep
    assert not exists(world, TOPIC)
    consumer = await (await world.connect()).subscribe(OTHER, "s")
    assert [(await consumer.receive()).payload for _ in range(2)] == [b"x", b"must not go"]


@played()
async def test_a_deletion_that_fails_leaves_the_others_theirs(world: World) -> None:
    await abandon(world, TOPIC, OTHER)
    world.clock.advance(200 * NS_PER_S)
    world.store.fail_next(StorageError("hiccup", retryable=True))
    await world.broker.sweeps.delete_inactive()
    assert [exists(world, topic) for topic in (TOPIC, OTHER)] == [True, False]
    await world.broker.sweeps.delete_inactive()
    assert not exists(world, TOPIC)


@played()
async def test_its_settings_count_at_once(world: World) -> None:
    await set_dynamic(world, "brokerDeleteInactiveTopicsFrequencySeconds", "3600")
    await abandon(world, TOPIC)
    await asyncio.sleep(200)
    assert exists(world, TOPIC)
    await set_dynamic(world, "brokerDeleteInactiveTopicsEnabled", "false")
    await set_dynamic(world, "brokerDeleteInactiveTopicsFrequencySeconds", "5")
    await asyncio.sleep(60)
    assert exists(world, TOPIC)
    await set_dynamic(world, "brokerDeleteInactiveTopicsEnabled", None)
    await asyncio.sleep(7)
    assert not exists(world, TOPIC)


# -- retention ---------------------------------------------------------------------------------


async def publish(world: World, count: int, size: int = 10) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    for _ in range(count):
        await producer.send(b"x" * size)
    client.close()


def held(world: World) -> tuple[int, int]:
    log = world.broker.engine.topics[TOPIC].log
    return log.first, log.end


@played(ledger=SMALL_LEDGERS)
async def test_acknowledged_ledgers_go(world: World) -> None:
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await publish(world, 35)
    await asyncio.sleep(130)
    assert held(world) == (0, 35)
    messages = [await consumer.receive() for _ in range(35)]
    await consumer.ack_through(messages[24].position)
    await asyncio.sleep(130)
    assert held(world) == (20, 35)
    world.crash()
    await world.start()
    assert held(world) == (20, 35)


@played(ledger=SMALL_LEDGERS)
async def test_a_reader_holds_nothing_back(world: World) -> None:
    client = await world.connect()
    reader = await client.subscribe(TOPIC, "r", durable=False, queue_size=0)
    await publish(world, 35)
    await world.broker.sweeps.retain()
    await asyncio.sleep(0.1)
    assert held(world) == (30, 35)
    subscription = world.broker.engine.topics[TOPIC].subscriptions["r"]
    assert subscription.backlog_messages == 5
    reader.flow(10)
    await asyncio.sleep(0.1)
    assert len(reader.queue) == 5


@pytest.mark.parametrize(
    ("minutes", "megabytes", "first"),
    [
        pytest.param(10, -1, 10, id="by age"),
        pytest.param(-1, 1, 20, id="by size"),
        pytest.param(10, 1, 20, id="whichever comes first"),
        pytest.param(-1, -1, 0, id="for ever"),
        pytest.param(0, 0, 30, id="not at all"),
    ],
)
def test_retention_keeps_what_it_says(minutes: int, megabytes: int, first: int) -> None:
    """Ten entries an hour old, then 25 of a tenth of a megabyte."""

    async def story(world: World) -> None:
        await publish(world, 10)
        world.clock.advance(3_600 * NS_PER_S)
        await publish(world, 25, size=105_000)
        broker = world.broker
        policy = Retention(retention_time_in_minutes=minutes, retention_size_in_mb=megabytes)
        await broker.writer.commit(
            broker.catalog.plan_namespace_policies(NAME.namespace, retention=policy)
        )
        await broker.sweeps.retain()
        await asyncio.sleep(0.1)
        assert held(world) == (first, 35)

    ledger = LedgerSettings(segment_bytes=256 * 1024, ledger_entries_max=10, ledger_age_ms_min=0)
    keep = {"defaultRetentionTimeInMinutes": "-1", "defaultRetentionSizeInMB": "-1"}
    played(ledger=ledger, settings=keep, limit_s=4_000)(story)()


# -- the sweeps themselves -----------------------------------------------------------------------


def with_failing_history(error: Exception) -> Callable[[], None]:
    async def story(world: World) -> None:
        def begin_round() -> bool:
            raise error

        world.observer.history.begin_round = begin_round  # type: ignore[method-assign]
        await asyncio.sleep(5)

    return played()(story)


def test_a_bug_in_a_sweep_is_reported() -> None:
    """The simulation ends a run for whatever is logged with its traceback."""
    with pytest.raises(KeyError, match="ours"):
        with_failing_history(KeyError("ours"))()


def test_a_broken_invariant_reaches_whoever_watches_the_loop() -> None:
    with pytest.raises(InvariantError, match="broken"):
        with_failing_history(InvariantError("broken"))()


@played()
async def test_a_sweep_that_failed_comes_again(world: World) -> None:
    rounds = []

    def begin_round() -> bool:
        rounds.append(world.now_s)
        raise StorageError("not now", retryable=True)

    world.observer.history.begin_round = begin_round  # type: ignore[method-assign]
    await asyncio.sleep(5.5)
    assert len(rounds) == 5
    world.broker.sweeps.stop()
    await asyncio.sleep(5)
    assert len(rounds) == 5
