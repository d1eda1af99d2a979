"""Which topics have series of their own when there are too many, and what becomes of the others."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise

import pytest

from headgate.base.names import NamespaceName
from headgate.base.work_units import SLICE_UNITS
from headgate.engine.subscription import Subscription
from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.metadata.rows import TenantRow
from headgate.telemetry.prometheus.render import render
from headgate.telemetry.prometheus.shown_topics import (
    STAY_FACTOR,
    SUBJECTS_PER_UNIT,
    TopicChoice,
)
from headgate.testing import World
from tests.unit.telemetry.support import (
    Sample,
    limit,
    publish,
    quota,
    read_page,
    rendered,
    value_of,
)

BOUND = "headgateMetricsSubjectsMax"


def name_of(topic: str) -> str:
    return f"persistent://public/default/{topic}"


async def page_of(world: World, choice: TopicChoice | None = None) -> list[Sample]:
    text = b"".join((await render(world.broker, choice)).as_text()).decode()
    return [sample for sample in read_page(text)[1] if "system_topic" not in sample.labels]


def shown(samples: list[Sample]) -> set[str]:
    """The users' topics with series of their own."""
    topics = {s.labels["topic"] for s in samples if "topic" in s.labels}
    return {topic.rpartition("/")[2] for topic in topics if "/public/" in topic}


def bounded(subjects_max: int, **more: str) -> World:
    return World(settings={BOUND: str(subjects_max), "headgateTelemetryEnabled": "false", **more})


async def backlog(world: World, topic: str, messages: int) -> None:
    """A topic with one subscription that acknowledges nothing."""
    client = await world.connect()
    await client.subscribe(name_of(topic), "s", queue_size=0)
    if messages:
        await publish(world, messages, name_of(topic))
    client.close()
    await client.lost


def test_within_the_bound_all_topics_are_shown() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        for topic in ("a", "b"):
            await backlog(world, topic, 1)
        samples = await page_of(world)
        assert shown(samples) == {"a", "b"}
        assert value_of(samples, "headgate_metrics_topics_left_out") == 0
        assert value_of(samples, "headgate_metrics_subscriptions_left_out") == 0
        world.broker.settings.set(BOUND, "3")
        samples = await page_of(world)
        assert shown(samples) == {"a", "b"}
        assert value_of(samples, "headgate_metrics_subscriptions_left_out") == 1
        world.broker.settings.set(BOUND, "2")
        assert value_of(await page_of(world), "headgate_metrics_topics_left_out") == 1
        world.broker.settings.set(BOUND, "0")
        assert shown(await page_of(world)) == {"a", "b"}

    with bounded(4) as world:
        world.run(scenario(world))


def test_backlog_throttling_and_rate_come_first() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        for number in range(6):
            await backlog(world, f"idle{number}", 0)
        await backlog(world, "behind", 20)
        client = await world.connect()
        consumer = await client.subscribe(name_of("throttled"), "s", queue_size=0)
        await limit(world.broker, 1, name_of("throttled"))
        await publish(world, 10, name_of("throttled"))
        consumer.flow(100)
        fast = await client.producer(name_of("fast"))
        for _ in range(10):
            await fast.send(b"x" * 10)
            await asyncio.sleep(1)
        samples = await page_of(world)
        # Two subjects each for those with a subscription, one for the one without.
        assert shown(samples) == {"behind", "throttled", "fast"}
        assert value_of(samples, "headgate_metrics_topics_left_out") == 6
        assert value_of(samples, "headgate_metrics_subscriptions_left_out") == 6

    with bounded(5) as world:
        world.run(scenario(world))


def test_a_topic_whose_quota_stops_producers_is_shown_however_small_its_backlog_is() -> None:
    """Else ``BacklogQuotaReached`` would miss it."""

    async def scenario(world: World) -> None:
        broker = await world.start()
        for number in range(3):
            await backlog(world, f"large{number}", 20)
        await backlog(world, "stopped", 0)
        await quota(broker, limit_size=10, name=name_of("stopped"), policy=QuotaPolicy.EXCEPTION)
        await publish(world, 1, name_of("stopped"))
        stopped = broker.engine.topics[name_of("stopped")].quota
        assert stopped is not None
        assert stopped.exceeded is not None
        assert "stopped" in shown(await page_of(world))

    with bounded(4) as world:
        world.run(scenario(world))


def test_sums_without_a_topic_have_the_others() -> None:
    """A sum over a namespace is the same with and without the bound, in every summed series."""

    async def scenario(world: World) -> None:
        broker = await world.start()
        for number in range(5):
            await backlog(world, f"t{number}", number)
        await quota(broker, limit_size=300, name=name_of("t4"), policy=QuotaPolicy.EVICTION)
        await publish(world, 5, name_of("t4"))
        await asyncio.sleep(90)
        samples = await page_of(world)
        rest = {s.name for s in samples if s.labels.get("namespace") and "topic" not in s.labels}
        assert len(rest) > 30
        broker.settings.set(BOUND, "0")
        whole = await page_of(world)
        for name in rest - {"pulsar_out_messages_total", "pulsar_out_bytes_total"}:
            for one in (samples, whole):
                assert len({tuple(s.labels.items()) for s in one if s.name == name}) == len(
                    [s for s in one if s.name == name]
                )
            total, expected = (
                sum(s.value for s in one if s.name == name) for one in (samples, whole)
            )
            assert total == pytest.approx(expected), name
        assert value_of(samples, "pulsar_topics_count", namespace="public/default") == 5
        assert "pulsar_storage_backlog_quota_exceeded_evictions_total" in rest

    with bounded(4) as world:
        world.run(scenario(world))


def test_a_topic_with_too_many_subscriptions_shows_the_largest_backlogs() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        client = await world.connect()
        for number in range(10):
            await client.subscribe(name_of("wide"), f"s{number}", queue_size=0)
            await publish(world, 1, name_of("wide"))
        samples = await page_of(world)
        found = {s.labels["subscription"] for s in samples if "subscription" in s.labels}
        assert found == {"s0", "s1", "s2"}
        assert value_of(samples, "headgate_metrics_topics_left_out") == 0
        assert value_of(samples, "headgate_metrics_subscriptions_left_out") == 7

    with bounded(4) as world:
        world.run(scenario(world))


def test_a_topic_with_too_many_subscriptions_leaves_room_for_others() -> None:
    """One with 20,000 would hide all that is wrong elsewhere."""

    async def scenario(world: World) -> None:
        await world.start()
        client = await world.connect()
        for number in range(20):
            await client.subscribe(name_of("wide"), f"s{number}", queue_size=0)
        await publish(world, 50, name_of("wide"))
        await backlog(world, "behind", 5)
        await backlog(world, "idle", 0)
        samples = await page_of(world)
        assert shown(samples) == {"wide", "behind"}
        found = {s.labels["subscription"] for s in samples if "subscription" in s.labels}
        assert len(found) == 5 + 1  # the rest of the room is its own
        assert value_of(samples, "headgate_metrics_subscriptions_left_out") == 15 + 1

    with bounded(8) as world:
        world.run(scenario(world))


def test_topics_of_about_the_same_rank_do_not_replace_each_other() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await backlog(world, "old", 10)
        await backlog(world, "idle", 0)
        choice = TopicChoice()
        assert shown(await page_of(world, choice)) == {"old"}
        await backlog(world, "new", 11)
        assert shown(await page_of(world, choice)) == {"old"}
        assert shown(await page_of(world)) == {"new"}
        await publish(world, int(10 * STAY_FACTOR), name_of("new"))
        assert shown(await page_of(world, choice)) == {"new"}

    with bounded(2) as world:
        world.run(scenario(world))


def test_the_log_says_once_that_topics_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> list[int]:
        await world.start()
        choice, counts = TopicChoice(), []
        for bound in ("2", "2", "100", "2"):
            world.broker.settings.set(BOUND, bound)
            for number in range(3):
                await backlog(world, f"t{number}", 0)
            await page_of(world, choice)
            counts.append(sum(BOUND in record.getMessage() for record in caplog.records))
        return counts

    caplog.set_level(logging.WARNING, logger="headgate.metrics")
    with bounded(2) as world:
        assert world.run(scenario(world)) == [1, 1, 1, 2]


def test_a_topic_with_many_subscriptions_is_looked_at_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No turn of a page looks at more subscriptions than a slice has, whether they are shown or
    only summed."""

    async def scenario(world: World) -> int:
        broker = await world.start()
        topic = await publish(world, 1, name_of("wide"))
        for number in range(700):
            await broker.subscriptions.create(topic, f"s{number}", at_ordinal=0, properties={})
        looked, turns = 0, [0]
        kind = type(next(iter(topic.subscriptions.values())))
        of_one, begin = kind.current_rates, broker.engine.begin_turn

        def counted(self: Subscription) -> tuple[float, ...]:
            nonlocal looked
            looked += 1
            return of_one(self)

        def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
            turns.append(looked)
            begin(now_ns, now_ms, log_ms)

        with monkeypatch.context() as patch:
            patch.setattr(kind, "current_rates", counted)
            patch.setattr(broker.engine, "begin_turn", begun)
            await rendered(broker)
        assert looked >= 1_400
        return max(b - a for a, b in pairwise(turns))

    for bound in (100_000, 10):
        with bounded(bound) as world:
            assert world.run(scenario(world)) <= SLICE_UNITS * SUBJECTS_PER_UNIT + 2 < 700


def test_no_counter_of_evictions_moves_when_a_topic_gets_series_of_its_own() -> None:
    """``BacklogEvicted`` takes every change of the sum for lost messages."""
    name = "pulsar_storage_backlog_quota_exceeded_evictions_total"

    def evictions(samples: list[Sample]) -> tuple[float, bool]:
        rest = [s.value for s in samples if s.name == name and "topic" not in s.labels]
        return sum(rest), "evicting" in shown(samples)

    async def scenario(world: World) -> None:
        broker = await world.start()
        await backlog(world, "evicting", 0)
        await quota(broker, limit_size=300, name=name_of("evicting"), policy=QuotaPolicy.EVICTION)
        await publish(world, 5, name_of("evicting"))
        await asyncio.sleep(90)
        await backlog(world, "large", 100)
        choice = TopicChoice()
        before, is_shown = evictions(await page_of(world, choice))
        assert before > 0
        assert not is_shown
        large = broker.engine.topics[name_of("large")]
        large.subscriptions["s"].skip_to(large.log.end)
        after, is_shown = evictions(await page_of(world, choice))
        assert is_shown
        assert after == before

    with bounded(2) as world:
        world.run(scenario(world))


def test_a_tenant_with_very_many_topics_takes_no_series_of_another() -> None:
    """Else alerts about the others would not fire."""

    async def scenario(world: World) -> None:
        broker = await world.start()
        row = TenantRow(allowed_clusters=("standalone",))
        await broker.commit(broker.catalog.plan_create_tenant("little", row))
        await broker.commit(broker.catalog.plan_create_namespace(NamespaceName("little", "ns")))
        for number in range(20):
            await backlog(world, f"much{number}", 5)
        client = await world.connect()
        for topic in ("a", "b"):
            await client.subscribe(f"persistent://little/ns/{topic}", "s", queue_size=0)
            await publish(world, 1, f"persistent://little/ns/{topic}")
        samples = await page_of(world)
        topics = {s.labels["topic"] for s in samples if "topic" in s.labels}
        assert {t for t in topics if "/little/" in t} == {
            "persistent://little/ns/a",
            "persistent://little/ns/b",
        }
        assert len(shown(samples)) == 3

    with bounded(10) as world:
        world.run(scenario(world))
