"""Planned garbage collection: short, paced, complete only while nobody uses the broker."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from headgate.app.garbage_collection import (
    AIM_NS,
    AUTOMATIC,
    AUTOMATIC_MAX,
    COMPLETE_PERIOD_S,
    ENDED_BYTES_MIN,
    ENDED_MAX,
    GROWN_BYTES_MIN,
    GROWN_SHARE,
    LOOK_S_MIN,
    MIDDLE_NS,
    PAUSE_S_MAX,
    PAUSE_S_MIN,
    REST_FACTOR,
    REST_S_MIN,
    Activity,
    Collector,
    GarbageCollection,
    pause_after,
)
from headgate.app.run import activity_of
from headgate.base.names import parse_topic
from headgate.base.units import MIB, NS_PER_MS, NS_PER_S
from headgate.broker.work.turn_meter import TurnMeter
from headgate.testing import World
from headgate.testing.loop import SimLoop
from headgate.wire.codes import SubscriptionType

TOPIC = "persistent://public/default/t"


class FakeCollector:
    """Notes what is collected; each collection of young objects takes ``young_ns``."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.young_ns = 100_000
        self.complete_ns = 100_000
        self.own_count = 0
        """Python's own collections since the last one of the middle generation."""
        self._young_count = 0
        self._used_ns = 0
        self.collector = Collector(
            self._collect,
            lambda: self._note("freeze"),
            lambda: self._note("unfreeze"),
            self._used,
            lambda: self._young_count + self.own_count,
        )

    def _collect(self, generation: int) -> int:
        self._note(f"{generation}")
        self._used_ns += self.complete_ns if generation == 2 else self.young_ns
        return 0

    def _note(self, call: str) -> None:
        self._young_count = self._young_count + 1 if call == "0" else 0
        self.own_count = self.own_count if call == "0" else 0
        self.calls.append(call)

    def _used(self) -> int:
        return self._used_ns


class FakeMemory:
    """Of what the process occupies a part is free."""

    def __init__(self) -> None:
        self.bytes = 100 * MIB
        self.free_bytes = 0
        self.looks = 0

    def used_bytes_max(self) -> int:
        return self.bytes + self.free_bytes

    def used_bytes(self) -> int:
        self.looks += 1
        return self.bytes


class Stage:
    """A planned collection in virtual time."""

    def __init__(self) -> None:
        self.loop = SimLoop()
        self.fake = FakeCollector()
        self.activity = Activity(0, 0)
        self.memory = FakeMemory()
        meter = TurnMeter(self.loop.clock)
        self.collection = GarbageCollection(
            self.loop,
            meter,
            lambda: self.activity,
            self.memory,
            self.fake.collector,
        )

    def run(self, seconds: float, *, busy: bool = False) -> list[str]:
        async def wait() -> None:
            for _ in range(int(seconds)):
                self.activity = Activity(self.activity.commits + busy, self.activity.ended)
                await asyncio.sleep(1)

        self.fake.calls.clear()
        self.loop.run_until_complete(wait())
        return self.fake.calls.copy()


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    made.collection.start()
    yield made
    made.collection.stop()
    made.loop.close()


def test_the_pause_follows_how_long_the_last_collection_took() -> None:
    assert pause_after(0.02, AIM_NS) == pytest.approx(0.02)
    assert pause_after(0.024, 2 * AIM_NS) == pytest.approx(0.012)
    assert pause_after(0.012, 1) == pytest.approx(0.024)
    assert pause_after(PAUSE_S_MIN, 100 * AIM_NS) == PAUSE_S_MIN
    assert pause_after(PAUSE_S_MAX, 0) == PAUSE_S_MAX


def test_what_there_is_at_the_start_is_not_visited_again(stage: Stage) -> None:
    assert stage.fake.calls == ["freeze"]
    stage.fake.young_ns = 0
    assert set(stage.run(10)) == {"0"}


def test_what_lived_through_two_collections_is_frozen(stage: Stage) -> None:
    stage.fake.young_ns = MIDDLE_NS // 4
    calls = stage.run(20, busy=True)
    middle = calls.index("1")
    assert calls[middle - 1 : middle + 2] == ["0", "1", "freeze"]
    assert calls[:middle].count("0") <= 4 + 1


def test_collections_come_more_often_the_longer_they_take(stage: Stage) -> None:
    few = stage.run(10, busy=True).count("0")
    stage.fake.young_ns = 4 * AIM_NS
    assert stage.run(10, busy=True).count("0") > 2 * few


def test_a_complete_collection_waits_until_nobody_uses_the_broker(stage: Stage) -> None:
    assert "2" not in stage.run(COMPLETE_PERIOD_S * 2)  # nothing has ended
    stage.activity = Activity(1, ENDED_MAX - 1)
    assert "2" not in stage.run(COMPLETE_PERIOD_S * 2, busy=True)
    calls = stage.run(60)
    assert calls.count("2") == stage.collection.complete_count == 1
    at = calls.index("2")
    assert calls[at - 1 : at + 2] == ["unfreeze", "2", "freeze"]
    assert "2" not in stage.run(COMPLETE_PERIOD_S - 120)


def test_a_complete_collection_does_not_wait_where_very_many_have_ended(stage: Stage) -> None:
    stage.run(COMPLETE_PERIOD_S * 2, busy=True)
    stage.memory.bytes += ENDED_BYTES_MIN
    stage.activity = Activity(stage.activity.commits, ENDED_MAX - 1)
    assert "2" not in stage.run(60, busy=True)
    stage.activity = Activity(stage.activity.commits, ENDED_MAX)
    assert stage.run(60, busy=True).count("2") == 1


def test_those_that_come_and_go_and_leave_nothing_bring_no_complete_collection(
    stage: Stage,
) -> None:
    """Readers of one role, 84 a second, brought one each ten minutes. It takes as long as others
    have objects: 2.5 s with 100,000 commands that wait."""
    stage.run(COMPLETE_PERIOD_S * 2, busy=True)
    stage.memory.bytes += ENDED_BYTES_MIN - 1
    stage.activity = Activity(stage.activity.commits, 10 * ENDED_MAX)
    assert "2" not in stage.run(60, busy=True)


def test_a_complete_collection_comes_when_the_process_has_grown(stage: Stage) -> None:
    """Two cycles that a client made by refused schemas took 0.6 GB each in 6 s, and would have
    stayed for ten minutes."""
    stage.run(60, busy=True)
    stage.memory.bytes += GROWN_BYTES_MIN - 1
    assert "2" not in stage.run(60, busy=True)
    stage.memory.bytes += 1
    assert stage.run(60, busy=True).count("2") == 1  # it freed nothing: that much is in use
    stage.memory.bytes += 3 * GROWN_BYTES_MIN
    assert stage.run(3, busy=True).count("2") == 1
    stage.memory.bytes += int(GROWN_SHARE * stage.memory.bytes) - 1
    assert "2" not in stage.run(60, busy=True)
    stage.memory.bytes = 100 * MIB
    stage.run(60, busy=True)
    stage.memory.bytes += 4 * GROWN_BYTES_MIN
    assert "2" not in stage.run(60, busy=True)  # as before: this is no growth


def test_memory_that_is_free_for_the_next_objects_is_no_growth(stage: Stage) -> None:
    """What a collection frees stays with the process: from there, each growth would add more."""
    stage.memory.free_bytes = 10 * GROWN_BYTES_MIN
    assert "2" not in stage.run(60, busy=True)
    assert 1 < stage.memory.looks <= 60 / LOOK_S_MIN + 1


def test_complete_collections_for_growth_take_a_small_part_of_the_time(stage: Stage) -> None:
    stage.fake.complete_ns = 2 * NS_PER_S
    stage.memory.bytes = 10 * GROWN_BYTES_MIN
    stage.run(REST_S_MIN)
    assert stage.collection.complete_count == 1
    for _ in range(REST_FACTOR * 2 - 10):
        stage.memory.bytes *= 2
        stage.run(1)
    assert stage.collection.complete_count == 1
    stage.run(20)
    assert stage.collection.complete_count == 2


def test_it_ends_when_it_is_stopped(stage: Stage) -> None:
    stage.collection.stop()
    assert stage.run(10) == []


def test_a_long_collection_is_a_long_turn() -> None:
    stage = Stage()
    clock = stage.loop.clock
    meter = TurnMeter(clock)

    class Slow(FakeCollector):
        def _collect(self, generation: int) -> int:
            self.young_ns = 30 * NS_PER_MS
            return super()._collect(generation)

    collection = GarbageCollection(
        stage.loop, meter, lambda: Activity(0, 0), FakeMemory(), Slow().collector
    )
    collection.start()
    stage.run(3)
    assert meter.longest() == (30 * NS_PER_MS, "garbage collection of generation 0")
    collection.stop()
    stage.loop.close()


def test_ended_topics_and_subscriptions_are_counted() -> None:
    async def play(world: World) -> None:
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s")
        await consumer.unsubscribe()
        await world.broker.registry.delete(parse_topic(TOPIC), force=True)

    with World() as world:
        world.run(world.start())
        before = activity_of(world.broker)
        world.run(play(world))
        assert activity_of(world.broker).ended == before.ended + 2


def test_what_pythons_own_collections_left_is_frozen_without_a_visit(stage: Stage) -> None:
    """They come in a turn that makes very many objects: a visit held the loop for 48 ms."""
    stage.run(1)
    stage.fake.own_count = AUTOMATIC_MAX + 1
    calls = stage.run(1)
    assert calls[:2] == ["0", "freeze"]
    assert "freeze" not in calls[2:]
    assert "1" not in calls


def test_what_few_of_them_left_is_visited_first(stage: Stage) -> None:
    """Frozen without a visit, cycles among it stay until a complete collection."""
    stage.run(1)
    stage.fake.own_count = AUTOMATIC_MAX
    assert stage.run(1)[:3] == ["0", "1", "freeze"]


def test_the_next_collection_comes_soon_after_one_of_pythons_own(stage: Stage) -> None:
    stage.fake.young_ns = 0
    few = stage.run(1).count("0")
    stage.fake.own_count = 1
    assert stage.run(1).count("0") > 2 * few


def test_pythons_own_collections_are_short() -> None:
    """One of 50,000 objects held the loop for 20 to 40 ms."""
    assert AUTOMATIC[0] <= 5_000


def test_python_counts_its_own_collections_beside_ours() -> None:
    gc.freeze()  # to thaw it would thaw all modules, too, for the tests that follow
    before = Collector().young_count()
    gc.collect(0)
    assert Collector().young_count() == before + 1


LIMITS = {
    "dispatchThrottlingRatePerTopicInMsg": "1000",
    "dispatchThrottlingRatePerSubscriptionInMsg": "1000",
    "maxPublishRatePerTopicInMessages": "1000",
    "brokerDeduplicationEnabled": "true",
    "backlogQuotaDefaultLimitBytes": "1000000",
}


def test_what_ended_is_freed_without_a_collection() -> None:
    """Cycles would stay until a complete collection: unloads of topics with 20,000 subscriptions
    took 33 MB each time, and another 600 s could pass."""

    async def used(world: World) -> list[weakref.ref[object]]:
        client = await world.connect()
        producer = await client.producer(TOPIC)
        await producer.send(b"first")
        for kind in (
            SubscriptionType.EXCLUSIVE,
            SubscriptionType.SHARED,
            SubscriptionType.FAILOVER,
        ):
            consumer = await client.subscribe(TOPIC, kind.name, kind=kind)
            await consumer.receive()
            await consumer.close()
        await producer.close()
        await asyncio.sleep(1)
        topic = world.broker.registry.loaded(parse_topic(TOPIC))
        assert topic is not None
        return [weakref.ref(topic), *map(weakref.ref, topic.subscriptions.values())]

    async def play(world: World) -> None:
        registry, name = world.broker.registry, parse_topic(TOPIC)
        gone = await used(world)
        await registry.unload(name)
        await asyncio.sleep(1)
        assert [one() for one in gone] == [None] * 4
        assert registry.get(name) is not None
        gone = await used(world)
        assert len(gone) == 4
        await registry.delete(name, force=True)
        await asyncio.sleep(1)
        assert [one() for one in gone] == [None] * 4

    with World(settings=LIMITS) as world:
        world.run(world.start())
        gc.disable()
        try:
            world.run(play(world))
        finally:
            gc.enable()
