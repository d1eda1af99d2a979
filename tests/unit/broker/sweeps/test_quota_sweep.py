"""The periodic check of quotas: once per interval, in slices, observed once (rules 4.6, 4.7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.broker.slices import SLICE_TOPICS
from headgate.broker.sweeps.quota_sweep import BOUNDS_S, SLICE_SAMPLES, CheckDurations
from headgate.metadata.policies import BacklogQuota
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played
from tests.unit.engine.harness import FakeLog

OFF = {"backlogQuotaCheckEnabled": "false"}
SLOW = {"backlogQuotaCheckIntervalInSeconds": "600"}


async def set_quota(world: World, limit_bytes: int) -> None:
    await world.broker.registry.get_or_create(parse_topic(TOPIC), create=True)
    quotas = {"destination_storage": BacklogQuota("producer_request_hold", limit_size=limit_bytes)}
    change = world.broker.catalog.plan_topic_policies(parse_topic(TOPIC), backlog_quotas=quotas)
    await world.broker.writer.commit(change)


def checks_count(world: World) -> int:
    return sum(world.broker.quota_sweep.durations.counts)


# -- how long it took ----------------------------------------------------------------------------


def test_a_duration_is_in_the_bucket_that_it_does_not_exceed() -> None:
    durations = CheckDurations()
    for place, bound_s in enumerate(BOUNDS_S):
        durations.observe(round(bound_s * NS_PER_S))
        assert durations.counts[place] == 1
        durations.observe(round(bound_s * NS_PER_S) + 1)
        assert durations.counts[place + 1] == 1
        durations.counts[place] = durations.counts[place + 1] = 0


def test_the_bounds_are_pulsars_and_finer_below_them() -> None:
    """Rule 4.6."""
    assert BOUNDS_S == (0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
    durations = CheckDurations()
    assert durations.counts == [0] * 11
    durations.observe(301 * NS_PER_S)
    durations.observe(2 * NS_PER_MS)
    assert durations.counts == [1, *[0] * 9, 1]
    assert durations.sum_ns == 301 * NS_PER_S + 2 * NS_PER_MS


# -- when it runs --------------------------------------------------------------------------------


@played(settings={"backlogQuotaCheckIntervalInSeconds": "10"})
async def test_it_runs_once_in_each_interval_also_without_topics(world: World) -> None:
    assert not [t for t in world.broker.engine.topics.values() if not t.is_system]
    await asyncio.sleep(9.5)
    assert checks_count(world) == 0
    await asyncio.sleep(1)
    assert checks_count(world) == 1
    await asyncio.sleep(100)
    assert checks_count(world) == 11
    assert world.broker.quota_sweep.durations.counts[0] == 11


@played(settings=OFF | {"backlogQuotaCheckIntervalInSeconds": "10"})
async def test_nothing_is_checked_where_quotas_are_not_enforced(world: World) -> None:
    await set_quota(world, 0)
    producer = await (await world.connect()).producer(TOPIC)
    await (await world.connect()).subscribe(TOPIC, "s")
    await producer.send(b"x")  # a limit of 0 would hold it
    await asyncio.sleep(50)
    await world.broker.quota_sweep.check()
    assert checks_count(world) == 0


@played(settings=SLOW)
async def test_it_finds_nothing_and_mends_what_a_defect_left(world: World) -> None:
    """Rule 4.6: a defect is counted, and the producers it left waiting go on."""
    await set_quota(world, 10)
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    producer = await client.producer(TOPIC)
    await producer.send(b"x" * 100)
    waiting = producer.send_nowait(b"y")
    message = await consumer.receive()
    await asyncio.sleep(0.1)
    assert producer.is_open
    assert not waiting.done()
    topic, scheduler = world.broker.engine.topics[TOPIC], world.broker.engine.quotas
    await world.broker.quota_sweep.check()
    assert (scheduler.defects_count, checks_count(world)) == (0, 1)
    topic.quota.awaits_acks = False  # as if acknowledgements were not told
    consumer.ack_nowait(message.position)
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await world.broker.quota_sweep.check()
    await asyncio.sleep(0.1)
    assert waiting.done()
    assert (scheduler.defects_count, checks_count(world)) == (1, 2)
    assert world.broker.quota_sweep.durations.counts[0] == 2


# -- in slices -----------------------------------------------------------------------------------


def fill(world: World, count: int) -> None:
    """Topics with a quota of their namespace."""
    for number in range(count):
        name = parse_topic(f"persistent://public/default/many-{number}")
        world.broker.engine.load_topic(name, FakeLog(10_000 + number))


@played(settings=SLOW)
async def test_others_have_their_turn_between_slices(world: World) -> None:
    """Rule 4.7: no more topics than a slice between two turns of the loop, and none twice."""
    quotas = {"destination_storage": BacklogQuota("producer_request_hold", limit_size=10)}
    catalog = world.broker.catalog
    namespace = parse_topic(TOPIC).namespace
    await world.broker.writer.commit(
        catalog.plan_namespace_policies(namespace, backlog_quotas=quotas)
    )
    fill(world, 2 * SLICE_TOPICS + 7)
    await asyncio.sleep(0.5)
    slices: Counter[int] = Counter()
    scheduler, turns = world.broker.engine.quotas, [0]
    verify, sample = scheduler.verify, scheduler.sample
    seen: list[Any] = []

    def watched(topics: Any) -> None:
        slices[turns[0]] += len(topics)
        seen.extend(topics)
        verify(topics)

    scheduler.verify = watched  # type: ignore[method-assign]
    checking = asyncio.ensure_future(world.broker.quota_sweep.check())
    for _ in range(20):
        turns[0] += 1
        await asyncio.sleep(0)
    await checking
    assert max(slices.values()) == SLICE_TOPICS
    assert len(slices) == -(-len(world.broker.engine.topics) // SLICE_TOPICS)
    assert len(seen) == len(set(seen)) == len(world.broker.engine.topics)
    assert checks_count(world) == 1
    counts: list[int] = []

    def watched_sample(count: int) -> None:
        counts.append(count)
        sample(count)

    scheduler.sample = watched_sample  # type: ignore[method-assign]
    for quota in [t.quota for t in world.broker.engine.topics.values() if t.quota is not None]:
        if not quota.is_active:
            quota.is_active = True
            scheduler.follow(quota)
    wanted = scheduler.sample_count()
    await world.broker.quota_sweep.sample()
    assert sum(counts) == wanted > SLICE_SAMPLES
    assert max(counts) <= SLICE_SAMPLES


@played(settings=SLOW)
async def test_a_topic_that_goes_meanwhile_is_passed(world: World) -> None:
    await set_quota(world, 10)
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x")
    checking = asyncio.ensure_future(world.broker.quota_sweep.check())
    topic = world.broker.engine.topics[TOPIC]
    topic.fence()
    world.broker.engine.unload_topic(topic)
    await checking
    assert world.broker.engine.quotas.defects_count == 0
    assert checks_count(world) == 1
