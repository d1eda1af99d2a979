"""Policies of many topics are put in force in slices, and the answer waits for the last one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from headgate.base.names import NamespaceName, parse_topic
from headgate.base.work_units import (
    CLIENT_CLOSED,
    PIECE_UNITS,
    SLICE_UNITS,
    SUBSCRIPTION_RESOLVED,
    TOPIC_LIMIT_RESOLVED,
    TOPIC_RESOLVED,
)
from headgate.broker import policy_rollout
from headgate.broker.policy_rollout import PolicyKinds, PolicyRollout
from headgate.broker.work.scheduler import JobClass
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.metadata.policies import DispatchRate, PublishRate, Retention
from headgate.testing import World
from tests.unit.broker.playing import played

TOPICS = 300
NAMESPACE = parse_topic("persistent://public/default/t").namespace
TURN_TOPICS_MAX = SLICE_UNITS // TOPIC_RESOLVED + 1
TURN_LIMITS_MAX = SLICE_UNITS // TOPIC_LIMIT_RESOLVED + 1


def counting(calls: Counter[str], name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    """``inner``, which is counted by ``name``."""

    def counted(*arguments: Any) -> Any:
        calls[name] += 1
        return inner(*arguments)

    return counted


async def with_topics(world: World, count: int = TOPICS) -> list[Topic]:
    registry = world.broker.registry
    for number in range(count):
        await registry.create(parse_topic(f"persistent://public/default/t{number}"))
    return list(world.broker.engine.topics.values())


def count_by_turn(world: World) -> Counter[int]:
    """How many topics the engine resolves in each turn from now on."""
    engine = world.broker.engine
    resolve, begin, turn = engine.limits_in_steps, engine.begin_turn, 0
    counts: Counter[int] = Counter()

    def resolved(topic: Topic) -> Iterator[None]:
        counts[turn] += 1
        yield from resolve(topic)

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        nonlocal turn
        turn += 1
        begin(now_ns, now_ms, log_ms)

    engine.limits_in_steps = resolved  # type: ignore[method-assign]
    engine.begin_turn = begun  # type: ignore[method-assign]
    return counts


async def set_rate(world: World, messages: int) -> None:
    broker = world.broker
    rate = DispatchRate(messages)
    await broker.commit(broker.catalog.plan_namespace_policies(NAMESPACE, dispatch_rate=rate))


def limits(topics: list[Topic]) -> set[int]:
    return {topic.limit.messages or 0 if topic.limit else 0 for topic in topics if topic.is_live}


@played()
async def test_a_namespaces_policy_is_put_in_force_in_slices_before_the_answer(
    world: World,
) -> None:
    topics = await with_topics(world)
    counts = count_by_turn(world)
    await set_rate(world, 70)
    assert limits(topics) == {70}
    assert counts.total() == TOPICS
    assert max(counts.values()) <= TURN_LIMITS_MAX


@played()
async def test_a_dynamic_setting_is_put_in_force_in_slices_before_the_answer(
    world: World,
) -> None:
    topics = await with_topics(world)
    counts = count_by_turn(world)
    broker = world.broker
    name = "dispatchThrottlingRatePerTopicInMsg"
    await broker.commit(broker.catalog.plan_setting(name, "80"))
    assert limits(topics) == {80}
    assert max(counts.values()) <= TURN_TOPICS_MAX


@played()
async def test_a_walk_over_very_many_topics_looks_at_those_of_its_scope(world: World) -> None:
    """They are found chunk by chunk among all topics: a copy of 100,000 would hold the loop."""
    topics = await with_topics(world)
    namespace = parse_topic("persistent://public/other/t").namespace
    broker = world.broker
    await broker.commit(broker.catalog.plan_create_namespace(namespace))
    other = await broker.registry.create(parse_topic("persistent://public/other/t"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy_rollout, "COPIED_MAX", 10)
        catalog = broker.catalog
        rate = DispatchRate(50)
        await broker.commit(catalog.plan_namespace_policies(NAMESPACE, dispatch_rate=rate))
        assert {each.limit is not None for each in topics} == {True}
        assert other.limit is None
        await broker.commit(catalog.plan_setting("dispatchThrottlingRatePerTopicInMsg", "70"))
        assert other.limit is not None
        assert other.limit.messages == 70


@played()
async def test_a_changed_limit_resolves_neither_quotas_nor_the_other_limits(world: World) -> None:
    """A POST of a dispatch rate took 51 s with 100,000 topics, most of it for other policies."""
    await with_topics(world)
    broker, engine = world.broker, world.broker.engine
    calls: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "quotas_in_steps",
            "policies_in_steps",
            "publish_limit_in_steps",
            "limits_in_steps",
        ):
            patch.setattr(engine, name, counting(calls, name, getattr(engine, name)))
        for policies, resolved in (
            ({"dispatch_rate": DispatchRate(50)}, {"limits_in_steps"}),
            ({"subscription_dispatch_rate": DispatchRate(50)}, {"limits_in_steps"}),
            ({"publish_rate": PublishRate(50)}, {"publish_limit_in_steps"}),
            ({"retention": Retention(1, 1)}, {"quotas_in_steps", "policies_in_steps"}),
        ):
            calls.clear()
            change = broker.catalog.plan_namespace_policies(NAMESPACE, **policies)
            await broker.commit(change)
            assert resolved <= {name for name, count in calls.items() if count >= TOPICS}
            if "retention" not in policies:
                assert set(calls) == resolved


@played()
async def test_changes_of_two_kinds_during_a_walk_are_both_put_in_force(world: World) -> None:
    topics = await with_topics(world)
    broker = world.broker
    catalog = broker.catalog
    changes = [
        broker.commit(catalog.plan_namespace_policies(NAMESPACE, dispatch_rate=DispatchRate(10))),
    ]
    tasks = [asyncio.ensure_future(change) for change in changes]
    await asyncio.sleep(0)
    await tasks[0]
    for policies in ({"publish_rate": PublishRate(20)}, {"dispatch_rate": DispatchRate(30)}):
        change = catalog.plan_namespace_policies(NAMESPACE, **policies)
        tasks.append(asyncio.ensure_future(broker.commit(change)))
        await asyncio.sleep(0.01)
    await asyncio.gather(*tasks)
    for topic in topics:
        assert topic.limit is not None
        assert topic.limit.messages == 30
        assert topic.publishing.limit is not None
        assert topic.publishing.limit.messages == 20


@played()
async def test_changes_while_a_walk_runs_share_the_next_one(world: World) -> None:
    topics = await with_topics(world)
    broker = world.broker
    counts = count_by_turn(world)
    rollout = PolicyRollout(broker.engine, broker.work, broker.loop)
    for _ in range(10):
        rollout.apply("all", broker.engine.topics.values)
        await asyncio.sleep(0)
    await rollout.when_in_force(["all"])
    assert counts.total() == 2 * len(topics)
    assert max(counts.values()) <= TURN_TOPICS_MAX
    await rollout.when_in_force(["all"])


@played()
async def test_a_change_waits_for_its_own_scope_alone(world: World) -> None:
    """A tenant that changes its policies without an end would hold up the changes of all others."""
    topics = await with_topics(world)
    broker, catalog = world.broker, world.broker.catalog
    await broker.commit(catalog.plan_create_namespace(NamespaceName("public", "other")))
    rollout = broker._policy_updates._rollout
    rollout.apply(str(NAMESPACE), lambda: topics)
    rate = DispatchRate(10)
    change = catalog.plan_namespace_policies(NamespaceName("public", "other"), dispatch_rate=rate)
    committed = asyncio.ensure_future(broker._policy_updates.when_in_force(change))
    await asyncio.sleep(0)
    assert rollout._walks
    assert committed.done()
    own = catalog.plan_namespace_policies(NAMESPACE, dispatch_rate=rate)
    committed = asyncio.ensure_future(broker._policy_updates.when_in_force(own))
    await asyncio.sleep(0)
    assert rollout._walks
    assert not committed.done()
    await committed
    catalog.abandon_all()


@played()
async def test_requests_about_the_tenant_do_not_hold_up_its_policies(world: World) -> None:
    """A role with 500 of them kept a limit of its own from being in force for seconds."""
    topics = await with_topics(world)
    give_way, apply = world.broker.work.give_way, PolicyRollout.apply
    crowd: list[asyncio.Task[None]] = []
    did = [0]

    async def request() -> None:
        for _ in range(50):
            await give_way(PIECE_UNITS, JobClass.ADMIN, "public")
            did[0] += 1

    def apply_in_crowd(rollout: PolicyRollout, *arguments: Any) -> None:
        crowd.extend(asyncio.create_task(request()) for _ in range(200))
        apply(rollout, *arguments)

    PolicyRollout.apply = apply_in_crowd  # type: ignore[method-assign]
    try:
        await set_rate(world, 7)
    finally:
        PolicyRollout.apply = apply  # type: ignore[method-assign]
    assert limits(topics) == {7}
    assert did[0] < 2 * len(crowd)
    await asyncio.gather(*crowd)


@played()
async def test_a_few_topics_do_not_wait_for_the_walk_of_many(world: World) -> None:
    topics = await with_topics(world)
    broker, own = world.broker, topics[-1]
    counts = count_by_turn(world)
    rollout = PolicyRollout(broker.engine, broker.work, broker.loop)
    rollout.apply("all", broker.engine.topics.values)
    await asyncio.sleep(0)
    before = counts.total()
    assert before <= TURN_TOPICS_MAX
    rollout.apply("own", lambda: [own])
    assert counts.total() == before + 1


@played()
async def test_a_topic_that_is_unloaded_during_a_walk_is_left_out(world: World) -> None:
    topics = await with_topics(world)
    broker = world.broker
    counts = count_by_turn(world)
    rollout = PolicyRollout(broker.engine, broker.work, broker.loop)
    rollout.apply("all", broker.engine.topics.values)
    await asyncio.sleep(0)
    topics[-1].fence()
    broker.engine.unload_topic(topics[-1])
    await rollout.when_in_force(["all"])
    assert counts.total() == len(topics) - 1


@played()
async def test_one_topics_policy_looks_at_no_other_topic(world: World) -> None:
    topics = await with_topics(world, 50)
    counts = count_by_turn(world)
    broker, own = world.broker, topics[7]
    plan = broker.catalog.plan_topic_policies(own.name, dispatch_rate=DispatchRate(5))
    await broker.commit(plan)
    assert counts.total() == 1
    assert limits(topics) == {0, 5}


@played()
async def test_a_topic_with_many_subscriptions_gets_a_policy_in_slices(world: World) -> None:
    await with_topics(world, 1)
    topic = world.broker.engine.topics["persistent://public/default/t0"]
    broker = world.broker
    for number in range(300):
        await broker.subscriptions.create(topic, f"s{number}", at_ordinal=0, properties={})
    turns, begin = [0], broker.engine.begin_turn
    put = broker.engine._put_in_force

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        turns.append(0)
        begin(now_ns, now_ms, log_ms)

    def counted(subscription: Subscription) -> None:
        turns[-1] += 1
        put(subscription)

    broker.engine.begin_turn = begun  # type: ignore[method-assign]
    broker.engine._put_in_force = counted  # type: ignore[method-assign]
    await set_rate(world, 7)
    assert sum(turns) == 300
    assert max(turns) <= 2 * SLICE_UNITS // SUBSCRIPTION_RESOLVED + 1
    assert limits([topic]) == {7}


async def set_setting(world: World, name: str, value: str) -> None:
    await world.broker.commit(world.broker.catalog.plan_setting(name, value))


@played()
async def test_another_kind_of_the_brokers_dispatch_limit_reaches_topics_in_slices(
    world: World,
) -> None:
    """The answer waits until every subscription is under the new kind."""
    topics, broker = await with_topics(world), world.broker
    for topic in topics:
        await broker.subscriptions.create(topic, "s", at_ordinal=0, properties={})
    gates = [topic.subscriptions["s"].gate for topic in topics]
    turns, begin = [0], broker.engine.begin_turn

    def limited_count() -> int:
        return sum(gate.limited for gate in gates)

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        turns.append(limited_count())
        begin(now_ns, now_ms, log_ms)

    broker.engine.begin_turn = begun  # type: ignore[method-assign]
    await set_setting(world, "dispatchThrottlingRateInMsg", "100")
    assert limited_count() == TOPICS
    await set_setting(world, "dispatchThrottlingRateInMsg", "0")
    assert limited_count() == 0
    steps = [abs(after - before) for before, after in pairwise(turns)]
    assert 0 < max(steps) <= TURN_TOPICS_MAX


@played()
async def test_another_kind_of_the_brokers_publish_limit_reaches_producers_in_slices(
    world: World,
) -> None:
    client, broker = await world.connect(), world.broker
    producers = [await client.producer(f"persistent://public/default/t{n}") for n in range(150)]
    await set_setting(world, "brokerPublisherThrottlingMaxMessageRate", "1000000")
    for producer in producers:
        await producer.send(b"x")
    topics = [t for t in broker.engine.topics.values() if not t.is_system]
    found = [next(iter(topic.producers.values())) for topic in topics]
    turns, begin = [0], broker.engine.begin_turn

    def unlimited_count() -> int:
        return sum(not (p.gate and p.gate.limited) for p in found)

    def begun(now_ns: int, now_ms: int, log_ms: int) -> None:
        turns.append(unlimited_count())
        begin(now_ns, now_ms, log_ms)

    broker.engine.begin_turn = begun  # type: ignore[method-assign]
    assert unlimited_count() == 0
    await set_setting(world, "brokerPublisherThrottlingMaxMessageRate", "0")
    assert unlimited_count() == len(found) == 150
    steps = [abs(after - before) for before, after in pairwise(turns)]
    assert 0 < max(steps) <= TURN_TOPICS_MAX


@played()
async def test_a_topic_that_is_unloaded_amid_it_changes_nothing_of_its_successor(
    world: World,
) -> None:
    """Both have the same log. Deduplication took the producers of the later one for gone."""
    broker, name = world.broker, parse_topic("persistent://public/default/t")
    setting = broker.catalog.plan_namespace_policies(NAMESPACE, deduplication=True)
    await broker.commit(setting)
    client = await world.connect()
    await client.producer(name.full)
    engine, topic = broker.engine, broker.engine.topics[name.full]

    def pausing(_: Topic) -> Iterator[None]:
        yield  # as before each of very many producers that it closes

    engine.send_rules_in_steps = pausing  # type: ignore[method-assign]
    steps = PolicyRollout(engine, broker.work, world.loop)._resolve(topic, PolicyKinds.OTHERS)
    assert next(steps) == CLIENT_CLOSED
    await broker.registry.unload(name)
    producer = await client.producer(name.full, name="p")
    await producer.send(b"x")
    table = engine.topics[name.full].log.sequences
    assert table is not None
    list(steps)
    assert "p" not in table._inactive
