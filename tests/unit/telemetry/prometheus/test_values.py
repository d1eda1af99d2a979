"""The page's numbers of writes, reads, connections and lookups are those of what happened."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.positions import EARLIEST
from headgate.base.units import MIB
from headgate.ledger import LedgerSettings
from headgate.testing import RefusedError, World
from tests.unit.telemetry.support import NAME, Sample, publish, read_page, rendered, value_of

HOST = {"broker": "127.0.0.1", "metric": "broker_connection"}


async def samples_of(world: World) -> list[Sample]:
    return read_page(await rendered(world.broker))[1]


async def next_minute(world: World) -> None:
    """Until the minute that buckets cover begins."""
    await asyncio.sleep(60 - world.clock.monotonic_ns() / 1e9 % 60)


def buckets(samples: list[Sample], name: str) -> dict[str, float]:
    """Those of one histogram that are not zero, its sum left out."""
    found = {s.name.removeprefix(f"{name}_"): s.value for s in samples if s.name.startswith(name)}
    return {bucket: value for bucket, value in found.items() if value and bucket != "sum"}


def test_buckets_tell_the_last_whole_minute() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await next_minute(world)
        await publish(world, 3, size=50)
        await publish(world, 2, size=90_000)
        await publish(world, 1, size=2_000_000)
        samples = await samples_of(world)
        assert buckets(samples, "pulsar_entry_size") == {}
        await next_minute(world)
        samples = await samples_of(world)
        sizes = buckets(samples, "pulsar_entry_size")
        assert sizes == {"le_128": 3, "le_100_kb": 2, "le_overflow": 1, "count": 6}
        topic = world.broker.engine.topics[NAME]
        assert value_of(samples, "pulsar_entry_size_sum") == topic.bytes_in()
        for name in ("pulsar_storage_write_latency", "pulsar_storage_ledger_write_latency"):
            # Entries are sent one by one; a disk of the simulation takes 0.2 to 3 ms.
            found = buckets(samples, name)
            assert found.pop("count") == 6
            assert sum(found.values()) == 6
            assert set(found) <= {"le_0_5", "le_1", "le_5"}
            assert 6 * 200 <= value_of(samples, f"{name}_sum") <= 6 * 3_100
        await next_minute(world)
        assert buckets(await samples_of(world), "pulsar_entry_size") == {}

    with World() as world:
        world.run(scenario(world))


def test_rates_of_entries_stored_and_read_from_disk() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 50, size=100_000)
        await asyncio.sleep(20)
        samples = await samples_of(world)
        assert value_of(samples, "pulsar_storage_write_rate", topic=NAME) == 0
        await publish(world, 10, size=100)
        consumer = await (await world.connect()).subscribe(NAME, "s", queue_size=100)
        for _ in range(60):
            await consumer.receive()
        samples = await samples_of(world)
        written = value_of(samples, "pulsar_storage_write_rate", topic=NAME)
        read = value_of(samples, "pulsar_storage_read_rate", topic=NAME)
        # Over the same time, so they are as the counts are.
        assert read / written == pytest.approx(
            broker.engine.topics[NAME].entries_read / 10, rel=0.01
        )
        assert broker.engine.topics[NAME].entries_read >= 50
        assert value_of(samples, "pulsar_storage_read_cache_misses_rate", topic=NAME) == read
        assert value_of(samples, "pulsar_broker_storage_read_rate") == read
        assert value_of(samples, "pulsar_broker_storage_read_cache_misses_rate") == read
        assert value_of(samples, "pulsar_broker_storage_write_rate") == written

    with World(
        settings={"managedLedgerCacheSizeMB": "1"}, ledger=LedgerSettings(segment_bytes=16 * MIB)
    ) as world:
        world.run(scenario(world))


def test_connections_and_lookups_are_counted() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        client = await world.connect()
        before = await samples_of(world)
        other = await world.connect()
        await other.lookup(NAME)
        with pytest.raises(RefusedError):
            await other.lookup("persistent://public/nowhere/t")
        other.close()
        world.open_connection()
        await asyncio.sleep(30)
        samples = await samples_of(world)
        changes = {
            s.name: s.value - value_of(before, s.name)
            for s in samples
            if "connection" in s.name or "lookup" in s.name
        }
        assert changes == {
            "pulsar_broker_throttled_connections": 0,
            "pulsar_broker_lookup_answers_total": 1,
            "pulsar_broker_lookup_failures_total": 1,
            "pulsar_broker_lookup_pending_requests": 0,
            "pulsar_active_connections": 0,
            "pulsar_connection_created_total_count": 2,
            "pulsar_connection_create_success_count": 1,
            "pulsar_connection_create_fail_count": 1,
            "pulsar_connection_closed_total_count": 2,
            "headgate_connections_refused_total": 0,
            "headgate_client_memory_slowed_connections": 0,
        }
        assert value_of(samples, "pulsar_active_connections", **HOST) == 1
        client.close()

    with World() as world:
        world.run(scenario(world))


def test_connections_that_are_read_no_further_are_reported() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        producer = await (await world.connect()).producer(NAME)
        world.lanes[0].freeze()
        sent = [producer.send_nowait(b"x") for _ in range(8)]
        await asyncio.sleep(0.1)
        samples = await samples_of(world)
        assert value_of(samples, "pulsar_broker_throttled_connections") == 1
        assert value_of(samples, "pulsar_publish_rate_limit_times", topic=NAME) == 1
        world.lanes[0].thaw()
        await asyncio.gather(*sent)
        await asyncio.sleep(0.1)
        samples = await samples_of(world)
        assert value_of(samples, "pulsar_broker_throttled_connections") == 0
        assert value_of(samples, "pulsar_publish_rate_limit_times", topic=NAME) >= 1

    with World(settings={"maxPendingPublishRequestsPerConnection": "5"}) as world:
        world.run(scenario(world))


def test_ages_of_backlogs_are_shown_on_request_only() -> None:
    name = "pulsar_subscription_storage_backlog_age_seconds"

    async def scenario(world: World) -> None:
        broker = await world.start()
        client = await world.connect()
        for subscription in ("owes", "owes nothing"):
            await client.subscribe(NAME, subscription, queue_size=0)
        await client.reader(NAME, EARLIEST, queue_size=0)
        await publish(world, 1)
        await asyncio.sleep(42)
        done = broker.engine.topics[NAME].subscriptions["owes nothing"]
        done.skip_to(1)
        assert all(s.name != name for s in await samples_of(world))
        broker.settings.exposeSubscriptionBacklogAgeInPrometheus = True
        ages = [s for s in await samples_of(world) if s.name == name]
        assert [(s.labels["subscription"], s.value) for s in ages] == [("owes", 42)]

    with World() as world:
        world.run(scenario(world))
