"""The adaptive controller in a whole broker, in virtual time (law 5; the document's end to end)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from headgate.base.park_cause import ParkCause
from headgate.base.units import MIB, NS_PER_S
from headgate.base.work_units import SLICE_UNITS
from headgate.control import adaptive
from headgate.control.adaptive import PRODUCERS_AT_ONCE, AdaptiveThrottle
from headgate.engine.topic import Topic
from headgate.flow.adaptive.cycle import Decision, DecisionKind, Law, PublishLimit, Rule
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.limits.waiter_gate import WaiterGate
from headgate.ledger import LedgerSettings
from headgate.testing import World
from tests.unit.broker.adaptive_play import (
    ON,
    FakeMemory,
    Publisher,
    Reader,
    change_setting,
    controller,
    live,
    set_quota,
)
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import limit_topic
from tests.unit.control.test_adaptive_logger import BEGUN, ENDED

QUOTA_BYTES = 2_000_000
PREFIX = "adaptivePublisherThrottling"
DRAIN = {**ON, f"{PREFIX}Law": "drain"}
OBSERVE = {**ON, f"{PREFIX}ObserveOnly": "true"}
MEMORY = FakeMemory()
WATERMARKED = FakeMemory()


async def overloaded(world: World, *, drain_per_s: float = 100) -> tuple[Publisher, Reader]:
    """400 messages a second in, fewer out, under a size quota of two thousand messages."""
    await set_quota(world, QUOTA_BYTES)
    reader = Reader(await world.connect(), TOPIC, drain_per_s)
    await asyncio.sleep(0.1)
    return Publisher(world, await world.connect(), TOPIC, 400), reader


@played()
async def test_disabled_there_is_nothing_of_it(world: World) -> None:
    """Rule 5.1: no controller, no per-topic object."""
    publisher, _ = await overloaded(world)
    await asyncio.sleep(3)
    topic = await live(world)
    assert world.broker.adaptive is None
    assert (topic.publishing.control, topic.publishing.adaptive_limit, topic.publishing.gate) == (
        None,
        None,
        None,
    )
    assert world.broker.engine.published is None
    assert publisher.received > 1_000


@played(settings=ON)
async def test_without_pressure_nothing_is_limited(world: World) -> None:
    await set_quota(world, 100_000_000)
    reader = Reader(await world.connect(), TOPIC, 1_000)
    publisher = Publisher(world, await world.connect(), TOPIC, 400)
    await asyncio.sleep(30)
    topic = await live(world)
    assert topic.publishing.adaptive_limit is None
    assert controller(world).status.activations == 0
    assert publisher.received >= 400 * 29
    assert not topic.publishing.parking
    reader.stop()


@played(settings=ON)
async def test_a_backlog_slows_its_producer_smoothly_and_a_drain_lets_it_go(world: World) -> None:
    """Rules 5.1 and 5.6: by 25 % of the natural rate a cycle, up again by the same steps."""
    publisher, reader = await overloaded(world)
    topic, throttle = await live(world), controller(world)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    await asyncio.sleep(4)
    records = throttle.decisions(topic)
    first = records[0].decision
    assert first.kind is DecisionKind.ACTIVATED
    assert (first.law, first.old) == (Law.PRESSURE, None)
    limits = [record.decision.new for record in records]
    rates = [limit.messages_per_s for limit in limits if limit is not None]
    assert all(rate is not None for rate in rates)
    assert 300 <= (rates[0] or 0) <= 420
    assert all((later or 0) >= (rate or 0) - 0.26 * 420 for rate, later in pairwise(rates))
    assert throttle.active_count == 1
    assert topic.publishing.parking is not None
    assert (
        topic.publishing.parking.parked_ns(ParkCause.ADAPTIVE, world.broker.engine.now_ns)
        > NS_PER_S
    )
    publisher.per_s, reader.per_s = 50, 2_000
    await asyncio.sleep(30)
    last = throttle.decisions(topic)[-1].decision
    assert (last.kind, last.rule, last.new) == (DecisionKind.DEACTIVATED, Rule.CLEAR, None)
    assert topic.publishing.adaptive_limit is None
    assert throttle.active_count == 0


@played(settings=DRAIN)
async def test_law_drain_holds_the_backlog_below_the_quota(world: World) -> None:
    """Rule 5.5: the quota is never reached, and what consumers drain is used."""
    publisher, _ = await overloaded(world)
    topic = await live(world)
    most = 0
    quota = topic.quota
    assert quota is not None
    for _ in range(600):
        await asyncio.sleep(0.1)
        most = max(most, quota.backlog_bytes())
    assert 0.6 * QUOTA_BYTES < most < 0.9 * QUOTA_BYTES
    assert quota.stops is None
    before = publisher.received
    await asyncio.sleep(20)
    assert publisher.received - before >= 0.97 * 20 * 100
    assert controller(world).status.activations <= 3


@played(settings=OBSERVE)
async def test_observe_only_holds_nobody_and_says_what_it_would_do(world: World) -> None:
    """Rule 5.2; D3: no active topic is counted."""
    publisher, _ = await overloaded(world, drain_per_s=395)
    await set_quota(world, 100_000)
    topic, throttle = await live(world), controller(world)
    publisher.per_s = 420
    held: list[int] = []
    for _ in range(200):
        await asyncio.sleep(0.1)
        held.append(throttle.active_count)
    assert any(record.decision.observe_only for record in throttle.decisions(topic))
    assert set(held) == {0}
    assert throttle.status.activations == 0
    assert topic.publishing.adaptive_limit is None
    parking = topic.publishing.parking
    now_ns = world.broker.engine.now_ns
    assert parking is None or parking.parked_ns(ParkCause.ADAPTIVE, now_ns) == 0
    assert topic.publishing.gate is None


@played(settings={**ON, f"{PREFIX}IntervalMs": "50"})
async def test_d1_a_limit_that_is_looked_at_often_is_not_weaker_for_it(world: World) -> None:
    """Twenty cycles a second each find the second's window as the one before left it."""
    for name, value in (("BacklogLowWatermarkPct", "0.1"), ("BacklogHighWatermarkPct", "0.2")):
        await change_setting(world, f"{PREFIX}{name}", value)
    await overloaded(world, drain_per_s=1)
    topic = await set_quota(world, 10_000_000)
    while (
        topic.publishing.control is None
        or topic.publishing.control.figures().backlog_pressure < 1.0
    ):
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    floor = topic.publishing.adaptive_limit
    assert floor is not None
    assert floor.bytes is not None
    assert floor.messages is not None
    assert 38 <= floor.messages <= 42
    staged: list[int] = []
    for _ in range(200):
        await asyncio.sleep(0.05)
        staged.append(topic.publishing.staged_bytes)
    assert topic.publishing.adaptive_limit == floor
    entry_bytes = floor.bytes // floor.messages + 1
    in_a_second = [later - now for now, later in zip(staged, staged[20:], strict=False)]
    assert max(in_a_second) <= floor.bytes + entry_bytes
    assert min(in_a_second) >= 0.98 * floor.bytes - entry_bytes


@played(settings=ON)
async def test_d4_observe_only_releases_everything_within_100_ms(world: World) -> None:
    """Rule 5.2: whatever the interval."""
    await change_setting(world, f"{PREFIX}IntervalMs", "2000")
    publisher, _ = await overloaded(world, drain_per_s=1)
    topic = await live(world)
    await set_quota(world, 4_000_000)
    while topic.publishing.adaptive_limit is None or publisher.unanswered < 500:
        await asyncio.sleep(0.1)
    await change_setting(world, f"{PREFIX}ObserveOnly", "true")
    await asyncio.sleep(0.1)
    assert topic.publishing.adaptive_limit is None
    parking = topic.publishing.parking
    assert parking is not None
    assert parking.waiting(ParkCause.ADAPTIVE).producers == 0
    await change_setting(world, f"{PREFIX}ObserveOnly", "false")
    await asyncio.sleep(6)
    assert topic.publishing.adaptive_limit is not None


@played(settings=ON)
async def test_d13_what_was_set_while_it_ran_holds_after_a_restart(world: World) -> None:
    """Rule 5.2: an emergency switch that a restart forgets is none."""
    await change_setting(world, f"{PREFIX}ObserveOnly", "true")
    await change_setting(world, f"{PREFIX}Law", "drain")
    await change_setting(world, f"{PREFIX}IntervalMs", "200")
    await world.stop()
    await world.start()
    settings = controller(world).settings
    assert (settings.observe_only, settings.law) == (True, Law.DRAIN)
    assert settings.interval_ns == NS_PER_S // 5


@played(settings=ON)
async def test_d13_the_interval_is_dynamic_and_counts_at_once(world: World) -> None:
    """Rule 5.2: a change re-arms the pending cycle."""
    await change_setting(world, f"{PREFIX}IntervalMs", "600000")
    throttle = controller(world)
    await asyncio.sleep(5)
    before = throttle.status.last_evaluation_ms
    await change_setting(world, f"{PREFIX}IntervalMs", "100")
    await asyncio.sleep(1)
    assert throttle.status.last_evaluation_ms > before
    first = throttle.status.last_evaluation_ms
    await asyncio.sleep(1)
    assert throttle.status.last_evaluation_ms - first >= 900


@played(settings=ON, memory=WATERMARKED)
async def test_d13_the_memory_watermarks_are_dynamic(world: World) -> None:
    """Rule 5.1."""
    WATERMARKED.used = 500
    throttle = controller(world)
    await asyncio.sleep(2)
    assert throttle.status.memory_pressure == 0.0
    await change_setting(world, f"{PREFIX}MemoryLowWatermarkPct", "0.4")
    await asyncio.sleep(1.1)
    assert throttle.status.memory_pressure == pytest.approx(0.1 / 0.45)
    await change_setting(world, f"{PREFIX}MemoryHighWatermarkPct", "0.5")
    await asyncio.sleep(1.1)
    assert throttle.status.memory_pressure == 1.0


@played(settings=ON)
async def test_low_watermarks_press_as_early_as_they_say(world: World) -> None:
    """Rule 5.1: a backlog is not passed over for being small beside its quota."""
    for name, value in (("BacklogLowWatermarkPct", "0.05"), ("BacklogHighWatermarkPct", "0.15")):
        await change_setting(world, f"{PREFIX}{name}", value)
    await overloaded(world, drain_per_s=1)
    topic = await set_quota(world, 20_000_000)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    decision = controller(world).decisions(topic)[0].decision
    assert 0.05 < decision.inputs.backlog_bytes / 20_000_000 < 0.08


async def first_slice(world: World) -> list[Topic]:
    """Three topics that a cycle is about to limit, after the slice that looked at the first."""
    names = [f"{TOPIC}-{number}" for number in range(3)]
    topics = [await set_quota(world, 3_000_000, topic=name) for name in names]
    for name in names:
        Reader(await world.connect(), name, 1)
    await asyncio.sleep(0.1)
    for name in names:
        Publisher(world, await world.connect(), name, 400)
    await asyncio.sleep(5)
    await change_setting(world, f"{PREFIX}IntervalMs", "60000")
    await asyncio.sleep(1.2)
    assert controller(world).active_count == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adaptive, "SLICE_EVALUATIONS", 1)
        controller(world)._begin()
    assert controller(world).active_count == 1
    return topics


async def to_its_end(world: World) -> None:
    while controller(world)._cycle is not None:
        await asyncio.sleep(0)


@played(settings=ON)
async def test_d4_observe_only_between_two_slices_of_a_cycle_releases_everything(
    world: World,
) -> None:
    """Rule 5.2: the rest of the cycle limits nobody."""
    topics = await first_slice(world)
    world.broker.settings.adaptivePublisherThrottlingObserveOnly = True
    controller(world).settings_changed()
    await to_its_end(world)
    assert controller(world).active_count == 0
    assert [topic.publishing.adaptive_limit for topic in topics] == [None] * 3


@played(settings=ON)
async def test_a_controller_that_is_stopped_between_two_slices_limits_nobody(
    world: World,
) -> None:
    topics = await first_slice(world)
    controller(world).stop()
    await to_its_end(world)
    assert [topic.publishing.adaptive_limit for topic in topics] == [None] * 3


class BrokenLawError(Exception):
    """What no law raises."""


@played(settings=ON)
async def test_d14_and_d18_a_failing_controller_goes_on_and_leaves_no_limit(world: World) -> None:
    """Rule 5.1: counted, told with its trace, and limits stay until its deadline has passed."""
    publisher, reader = await overloaded(world, drain_per_s=1)
    await set_quota(world, 3_000_000)
    topic, throttle = await live(world), controller(world)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    evaluate = TopicControl.evaluate
    last_ms = throttle.status.last_evaluation_ms

    def fail(*_: object) -> None:
        raise BrokenLawError("of the law")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicControl, "evaluate", fail)
        # A world ends at an internal error; this one is meant.
        patch.setattr(logging.getLogger("headgate.adaptive"), "propagate", False)
        await asyncio.sleep(10)
        assert throttle.status.failures >= 9
        assert throttle.status.last_evaluation_ms - last_ms <= 1_100
        assert topic.publishing.adaptive_limit is not None
        await asyncio.sleep(25)
        assert topic.publishing.adaptive_limit is None
        assert throttle.active_count == 0
    assert TopicControl.evaluate is evaluate
    await asyncio.sleep(2)
    assert throttle.status.last_evaluation_ms > last_ms + 30_000
    publisher.stop()
    reader.stop()


def test_d15_lines_of_the_log_are_few(caplog: pytest.LogCaptureFixture) -> None:
    """What began and ended is told, steps are not; observe-only says what it would do."""
    caplog.set_level(logging.INFO, "headgate.adaptive")

    async def story(world: World) -> None:
        await world.start()
        publisher, reader = await overloaded(world)
        await asyncio.sleep(20)
        publisher.per_s, reader.per_s = 10, 2_000
        await asyncio.sleep(20)

    with World(7, settings=ON) as world:
        world.run(story(world))
    lines = [record.getMessage() for record in caplog.records if record.name == "headgate.adaptive"]
    enabled, *lines = lines
    assert enabled.startswith("[AdaptiveThrottle] ENABLED mode=live law=pressure interval=1000 ms")
    assert lines[0].startswith(f"[AdaptiveThrottle] ACTIVATED topic={TOPIC} memoryPressure=0 back")
    assert any(line.startswith(f"[AdaptiveThrottle] DEACTIVATED topic={TOPIC}") for line in lines)
    assert "naturalMsgRate=" in "".join(lines)
    assert len(lines) <= 4


def test_an_emergency_stop_and_the_return_to_live_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The document's troubleshooting: ACTIVATED while it is, DEACTIVATED when it is no more."""
    caplog.set_level(logging.INFO, "headgate.adaptive")

    async def story(world: World) -> None:
        await world.start()
        await limit_topic(world, 350)
        publisher, reader = await overloaded(world)
        while not controller(world).active_count:
            await asyncio.sleep(0.1)
        await asyncio.sleep(4)
        await change_setting(world, f"{PREFIX}ObserveOnly", "true")
        await asyncio.sleep(4)
        await change_setting(world, f"{PREFIX}ObserveOnly", "false")
        await asyncio.sleep(4)
        publisher.per_s, reader.per_s = 10, 2_000
        await asyncio.sleep(25)
        assert not controller(world).active_count

    with World(7, settings=ON) as world:
        world.run(story(world))
    lines = [line.removeprefix("[AdaptiveThrottle] ") for line in caplog.messages]
    turns = [line.split(" topic=")[0] for line in lines if "ACTIVATED" in line or "would" in line]
    assert turns == [
        "ACTIVATED", "DEACTIVATED", "OBSERVE-ONLY would-activate", "ACTIVATED", "DEACTIVATED",
    ]  # fmt: skip
    both = [line for line in lines if line.startswith(f"BOTH-LIMITS topic={TOPIC} adaptive=")]
    assert both
    assert " set=350 msg/s (topic policy): the tighter one applies, " in both[0]
    assert both[-1].endswith("adaptive controller in messages and bytes")


@played(settings=ON, memory=MEMORY, ledger=LedgerSettings(segment_bytes=64 * MIB))
async def test_d10_memory_pressure_slows_who_takes_the_memory(world: World) -> None:
    """Rule 5.3: the others, and the broker's own topics, keep their rate.

    The large topic takes the index of its newest messages: all of them are in one segment.
    """
    MEMORY.used = 100
    world.lanes[0].thaw()
    small = Publisher(world, await world.connect(), f"{TOPIC}-small", 5)
    large = Publisher(world, await world.connect(), f"{TOPIC}-large", 800)
    await asyncio.sleep(10)
    MEMORY.used = 850
    await asyncio.sleep(20)
    throttle = controller(world)
    assert throttle.status.memory_pressure == 1.0
    limited = {
        t.name.local for t in world.broker.engine.topics.values() if t.publishing.adaptive_limit
    }
    assert limited == {"orders-large"}
    MEMORY.used = 100
    await asyncio.sleep(30)
    assert not [t for t in world.broker.engine.topics.values() if t.publishing.adaptive_limit]
    small.stop()
    large.stop()


@played(settings=ON)
async def test_d11_a_quota_that_evicts_slows_nobody(world: World) -> None:
    await set_quota(world, 500_000, policy="consumer_backlog_eviction")
    reader = Reader(await world.connect(), TOPIC, 10)
    await asyncio.sleep(0.1)
    Publisher(world, await world.connect(), TOPIC, 400)
    await asyncio.sleep(20)
    topic = await live(world)
    assert topic.quota is not None
    assert topic.quota.evictions(topic.quota.quotas.size.type)[0] > 0  # type: ignore[union-attr]
    assert topic.publishing.adaptive_limit is None
    reader.stop()


@played(settings=DRAIN)
async def test_d12_acknowledgements_on_the_producers_connection_go_on(world: World) -> None:
    """The connection that drains the backlog is the one that publishes: it is not paused."""
    await set_quota(world, QUOTA_BYTES)
    client = await world.connect()
    reader = Reader(client, TOPIC, 100)
    await asyncio.sleep(0.1)
    publisher = Publisher(world, client, TOPIC, 400)
    topic = await live(world)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    before = publisher.received
    await asyncio.sleep(30)
    assert publisher.received - before >= 0.95 * 30 * 100
    assert not world.broker.connections.paused
    reader.stop()


@played(settings={**ON, "headgateMaxParkedBytesPerConnection": "200000"})
async def test_a_producer_that_is_closed_for_what_it_parked_was_not_closed_by_the_quota(
    world: World,
) -> None:
    """Its connection has a consumer, so it is not paused; the quota's figures are its own."""
    topic = await set_quota(world, 3_000_000)
    client = await world.connect()
    Reader(client, TOPIC, 1)
    await asyncio.sleep(0.1)
    publisher = Publisher(world, client, TOPIC, 400)
    while not topic.producers:
        await asyncio.sleep(0.1)
    while topic.producers:
        await asyncio.sleep(0.1)
    assert topic.publishing.adaptive_limit is not None
    assert topic.quota is not None
    assert topic.quota.exceeded is None
    assert topic.quota.stops is None
    publisher.stop()


@played(settings=ON)
async def test_d17_who_waits_does_not_wait_out_a_limit_that_has_ended(world: World) -> None:
    """At the end of the ramp, too, everybody goes on in the same moment."""
    publisher, _ = await overloaded(world, drain_per_s=1)
    topic = await set_quota(world, 3_000_000)
    while topic.publishing.adaptive_limit is None or publisher.unanswered < 900:
        await asyncio.sleep(0.1)
    await set_quota(world, -1)
    while topic.publishing.adaptive_limit is not None:
        assert topic.publishing.parking
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert not topic.publishing.parking
    assert controller(world).decisions(topic)[-1].decision.rule is Rule.CLEAR


@played(settings=ON)
async def test_an_unloaded_topic_is_forgotten(world: World) -> None:
    await overloaded(world, drain_per_s=1)
    topic, throttle = await live(world), controller(world)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    world.broker.begin_turn()
    topic.fence()
    world.broker.engine.unload_topic(topic)
    await asyncio.sleep(3)
    assert throttle.active_count == 0
    assert throttle.decisions(topic) == []


@played(settings=ON)
async def test_what_was_decided_about_a_topic_that_is_gone_is_forgotten(world: World) -> None:
    """Also where no cycle looks at it any more: its limit ended before."""
    publisher, reader = await overloaded(world)
    topic, throttle = await live(world), controller(world)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    publisher.per_s, reader.per_s = 50, 2_000
    await asyncio.sleep(30)
    publisher.stop()
    reader.stop()
    await asyncio.sleep(3)
    assert throttle.decisions(topic)
    world.broker.begin_turn()
    topic.fence()
    world.broker.engine.unload_topic(topic, deleted=True)
    await asyncio.sleep(2)
    assert throttle.decisions(topic) == []


@played(settings=ON)
async def test_to_release_an_unloaded_topic_changes_nothing_on_the_one_that_was_loaded_since(
    world: World,
) -> None:
    """They share one gate, so that an unload forgives nothing."""
    await limit_topic(world, 350)
    publisher, reader = await overloaded(world, drain_per_s=1)
    topic, throttle = await live(world), controller(world)
    while topic.publishing.adaptive_limit is None:
        await asyncio.sleep(0.1)
    await change_setting(world, f"{PREFIX}IntervalMs", "60000")
    publisher.stop()
    reader.stop()
    await world.broker.registry.unload(topic.name)
    again = await live(world)
    assert again is not topic
    await limit_topic(world, 1_000)
    throttle.stop()
    assert again.publishing.gate is not None
    assert [budget.limit for budget in again.publishing.gate.budgets] == [1_000]


@played(settings=ON)
async def test_a_cycle_touches_only_topics_that_published_or_are_limited(world: World) -> None:
    """Rule 5.1."""
    for number in range(5):
        await live(world, f"{TOPIC}-{number}")
    publisher = Publisher(world, await world.connect(), f"{TOPIC}-2", 50)
    looked: list[str] = []
    look = AdaptiveThrottle._evaluate

    def watched(self: AdaptiveThrottle, topic: object) -> None:
        looked.append(topic.name.local)  # type: ignore[attr-defined]
        look(self, topic)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AdaptiveThrottle, "_evaluate", watched)
        await asyncio.sleep(5)
    assert set(looked) == {"orders-2"}
    assert len(looked) >= 4
    publisher.stop()


def test_one_topic_that_always_fails_neither_floods_the_log_nor_toggles_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Rule 5.1: limits that were lifted because no cycle is whole begin anew, and end again after
    as long."""
    evaluate = TopicControl.evaluate
    bad: list[TopicControl] = []

    def fail(self: TopicControl, *rest: Any) -> Decision | None:
        if self in bad:
            raise BrokenLawError("of the law")
        return evaluate(self, *rest)

    async def story(world: World) -> None:
        await world.start()
        await overloaded(world, drain_per_s=1)
        await set_quota(world, 400_000_000, topic=f"{TOPIC}-bad", limit_s=10_000)
        Reader(await world.connect(), f"{TOPIC}-bad", 1)
        Publisher(world, await world.connect(), f"{TOPIC}-bad", 100)
        await set_quota(world, 20_000_000)
        topic = await live(world)
        while topic.publishing.adaptive_limit is None:
            await asyncio.sleep(0.1)
        control = (await live(world, f"{TOPIC}-bad")).publishing.control
        assert control is not None
        bad.append(control)
        await asyncio.sleep(45)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicControl, "evaluate", fail)
        patch.setattr(logging.getLogger("headgate.adaptive"), "propagate", False)
        logging.getLogger("headgate.adaptive").addHandler(caplog.handler)
        try:
            with World(7, settings=ON) as world:
                world.run(story(world))
        finally:
            logging.getLogger("headgate.adaptive").removeHandler(caplog.handler)
    lifted = [record for record in caplog.records if "RELEASED" in record.getMessage()]
    assert len(lifted) == 1


@played(settings=ON)
async def test_a_limit_of_very_many_producers_is_lifted_in_slices(world: World) -> None:
    """10,000 producers got another kind of limit in one turn, of 40 ms."""
    client, count = await world.connect(), 6 * PRODUCERS_AT_ONCE
    producers = [await client.producer(TOPIC) for _ in range(count)]
    topic, throttle = await live(world), controller(world)
    throttle._carry_out(topic, replace(BEGUN, new=PublishLimit(1_000_000, None)))
    await asyncio.gather(*[producer.send(b"x") for producer in producers])
    refreshed, most = [0], [0]
    refresh_path, run_once = WaiterGate.refresh_path, world.loop._run_once  # type: ignore[attr-defined]

    def refresh(gate: WaiterGate, now_ns: int) -> None:
        refreshed[-1] += 1
        refresh_path(gate, now_ns)

    def once() -> None:
        run_once()
        most[0] = max(most[0], refreshed[-1])
        refreshed.append(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaiterGate, "refresh_path", refresh)
        patch.setattr(world.loop, "_run_once", once)
        throttle._carry_out(topic, ENDED)
        await asyncio.sleep(0.1)
    assert sum(refreshed) == count
    assert most[0] <= SLICE_UNITS + PRODUCERS_AT_ONCE < count
    assert not any(gate.limited for gate in topic.publishing.gate.waiters)
