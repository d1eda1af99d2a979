"""What changed, and nothing else: the sampler over a whole broker in virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST, LATEST
from headgate.base.units import NS_PER_S
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition, OlderThan
from headgate.record.fields import STATE_FIELD_NAMES, Kind, Nature, field_names
from headgate.telemetry.records import row_buffer
from headgate.telemetry.records import sampler as samples
from headgate.telemetry.records.sampler import MESSAGE_ROWS, SLICE_SUBJECTS, Sampler
from headgate.telemetry.records.subjects import SubscriptionTrack
from headgate.testing import SimConsumer, World
from headgate.wire.codes import SubscriptionType
from tests.unit.telemetry.records.watching import Row, Watch, events, names, watch
from tests.unit.telemetry.support import NAME, limit, publish, topic_of


def test_only_what_changed_has_a_row() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 3)
        await publish(world, 1, "persistent://public/default/quiet")
        client = await world.connect()
        await client.subscribe(NAME, "s")
        first = await own.after(1)
        assert sorted(names(first, Kind.TOPIC, "topic")) == [
            NAME, "persistent://public/default/quiet",
        ]  # fmt: skip
        assert names(first, Kind.SUBSCRIPTION) == ["s"]
        assert not any((await own.after(1)).values())
        await publish(world, 1)
        second = await own.after(1)
        assert names(second, Kind.TOPIC, "topic") == [NAME]
        assert names(second, Kind.SUBSCRIPTION) == ["s"]
        assert second[Kind.TOPIC][0]["covered_from_ns"] == first[Kind.TOPIC][0]["covered_to_ns"]
        everything = await own.after(1, full=True)
        assert len(everything[Kind.TOPIC]) == 2
        assert len(everything[Kind.SUBSCRIPTION]) == 1

    with World() as world:
        world.run(scenario(world))


def test_what_a_ttl_expires_is_a_row_at_once_and_an_event_of_the_minute() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        await publish(world, 3)
        catalog = own.broker.catalog
        plan = catalog.plan_topic_policies(parse_topic(NAME), message_ttl_in_seconds=10)
        await world.ask(own.broker.commit(plan))
        (before,) = (await own.after(1))[Kind.SUBSCRIPTION]
        assert before["expired"] == 0
        assert before.get("expired_by_ttl_ns") is None
        expired = await own.after(12)
        (row,) = expired[Kind.SUBSCRIPTION]
        assert (row["expired"], row["expired_by_ttl_ns"]) == (3, 10 * NS_PER_S)
        assert row["expired_by_source"] == "topic policy"
        assert events(expired) == []
        assert events(await own.after(1, full=True)) == ["expiry"]
        # The event of a topic that is unloaded comes with its last row.
        await publish(world, 2)
        await asyncio.sleep(12)
        own.broker.engine.unload_topic(topic_of(own.broker))
        assert events(await own.after(1)) == ["expiry"]

    with World() as world:
        world.run(scenario(world))


def test_nothing_of_the_brokers_own_topics() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        topic = await own.broker.registry.create(
            parse_topic(own.broker.settings.headgateTelemetryTopic)
        )
        client = await world.connect()
        await client.subscribe(topic.name.full, "pipeline")
        await limit(own.broker, 5, topic.name.full)
        assert not any((await own.after(1, full=True)).values())
        own.broker.engine.unload_topic(topic)
        assert not any((await own.after(1, full=True)).values())

    with World() as world:
        world.run(scenario(world))


@pytest.mark.parametrize("seed", range(4))
def test_every_backlog_adds_up_in_every_window(seed: int) -> None:
    """Growth is appended + rewound - acked - skipped - expired, whatever happens; what is
    cumulative never falls, spans have no holes, states fill the time."""

    async def scenario(world: World) -> None:
        own = await watch(world)
        deeds = Deeds(world, random.Random(seed))
        await publish(world, 20)
        before: dict[str, Row] = {}
        found: dict[tuple[str, int], int] = {}
        for _ in range(25):
            deed = await deeds.one()
            window = await own.after(1)
            for row in window[Kind.SUBSCRIPTION]:
                name = row["subscription"]
                gained = row["appended"] + row["rewound"]
                lost = row["acked"] + row["skipped"] + row["expired"]
                # A subscription that is loaded finds its old backlog; a new one counts from zero.
                old = row["backlog_messages"] - gained + lost
                assert old == 0 or deed == "unload" or (name, row["counting_since_ns"]) in found
                assert found.setdefault((name, row["counting_since_ns"]), old) == old, deed
                spent_ns = sum(row.get(field) or 0 for field in STATE_FIELD_NAMES)
                assert spent_ns == row["covered_to_ns"] - row["counting_since_ns"]
                if row["gone"]:
                    before.pop(name, None)
                    continue
                last = before.get(name)
                covered_from_ns = row["counting_since_ns"]
                if last is not None and last["counting_since_ns"] == row["counting_since_ns"]:
                    covered_from_ns = last["covered_to_ns"]
                    for field in field_names(Kind.SUBSCRIPTION, Nature.CUMULATIVE):
                        assert (row.get(field) or 0) >= (last.get(field) or 0), (deed, field)
                assert row["covered_from_ns"] == covered_from_ns
                before[name] = row
        assert len(deeds.done) > 7

    with World(seed) as world:
        world.run(scenario(world))


class Deeds:
    """What producers, consumers and operators do, one after the other, by chance."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.facade = AdminFacade(world.broker, world.observer)
        self.name = parse_topic(NAME)
        self.chance = chance
        self.done: set[str] = set()
        self._next = 0
        self._consumers: list[SimConsumer] = []

    async def one(self) -> str:
        """Do something and say what."""
        names = self.facade.subscriptions(self.name)
        deeds = [self.publish, self.subscribe, self.create]
        if names:
            deeds += [self.skip, self.clear, self.seek, self.expire, self.delete, self.unload]
        if any(consumer.is_open and consumer.queue for consumer in self._consumers):
            deeds += [self.acknowledge] * 4 + [self.redeliver]
        deed = self.chance.choice(deeds)
        await deed()
        self.done.add(deed.__name__)
        return deed.__name__

    def some(self) -> str:
        return self.chance.choice(list(self.facade.subscriptions(self.name)))

    async def publish(self) -> None:
        await publish(self.world, self.chance.randint(1, 9))

    async def subscribe(self) -> None:
        client = await self.world.connect()
        self._next += 1
        earliest = self.chance.random() < 0.5
        consumer = await client.subscribe(
            NAME, f"s{self._next}", kind=SubscriptionType.SHARED, earliest=earliest
        )
        self._consumers.append(consumer)

    async def create(self) -> None:
        self._next += 1
        at = self.chance.choice([EARLIEST, LATEST])
        await self.facade.create_subscription(self.name, f"s{self._next}", AtPosition(at), {})

    async def skip(self) -> None:
        await self.facade.skip_messages(self.name, self.some(), self.chance.randint(1, 5))

    async def clear(self) -> None:
        await self.facade.clear_backlog(self.name, self.some())

    async def seek(self) -> None:
        at = self.chance.choice([EARLIEST, LATEST])
        await self.facade.reset_cursor(self.name, self.some(), AtPosition(at))

    async def expire(self) -> None:
        await self.facade.expire_messages(self.name, self.some(), OlderThan(2))

    async def delete(self) -> None:
        await self.facade.delete_subscription(self.name, self.some(), force=True)

    async def unload(self) -> None:
        await self.facade.unload_topic(self.name)

    async def acknowledge(self) -> None:
        for consumer in self._consumers:
            if consumer.is_open and consumer.queue:
                await consumer.ack(consumer.receive_nowait().position)

    async def redeliver(self) -> None:
        for consumer in self._consumers:
            if consumer.is_open:
                consumer.redeliver()


def test_a_subscription_that_goes_has_a_last_row() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        topic = await publish(world, 5)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s", queue_size=2)
        await own.after(1)
        await asyncio.sleep(0.5)
        await consumer.unsubscribe()
        ended_ns = own.broker.clock.wall_ns()
        window = await own.after(0.5)
        (row,) = window[Kind.SUBSCRIPTION]
        assert (row["subscription"], row["gone"], row["backlog_messages"]) == ("s", True, 5)
        assert abs(row["covered_to_ns"] - ended_ns) < NS_PER_S // 10
        assert row["incarnation"] == topic.incarnation
        (of_topic,) = window[Kind.TOPIC]
        assert (of_topic["gone"], of_topic["backlog_bytes"]) == (False, 0)
        assert not any((await own.after(1)).values())

    with World() as world:
        world.run(scenario(world))


def test_a_name_made_anew_is_another_subject() -> None:
    async def scenario(world: World) -> None:
        own = await watch(world)
        await publish(world, 5)
        first = (await own.after(1))[Kind.TOPIC][0]
        await AdminFacade(own.broker, world.observer).delete_topic(parse_topic(NAME), force=True)
        await publish(world, 2)
        last, new = (await own.after(1))[Kind.TOPIC]
        assert (last["gone"], last["incarnation"]) == (True, first["incarnation"])
        assert new["incarnation"] > first["incarnation"]
        assert (new["gone"], new["msgs_in"]) == (False, 2)
        assert new["counting_since_ns"] == new["covered_from_ns"] >= last["covered_to_ns"]

    with World() as world:
        world.run(scenario(world))


def test_after_a_restart_old_backlogs_are_not_rewound() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await publish(world, 6)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s")
        await consumer.ack((await consumer.receive()).position)
        await world.stop()
        own = await watch(world)
        window = await own.after(1)
        (row,) = window[Kind.SUBSCRIPTION]
        assert (row["backlog_messages"], row["appended"], row["rewound"]) == (5, 0, 0)
        assert row["state"] == "no_consumer"

    with World() as world:
        world.run(scenario(world))


def test_many_subjects_come_in_parts_and_let_others_run() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        for i in range(600):
            await broker.registry.create(parse_topic(f"persistent://public/default/t{i}"))
        own = Watch(broker)
        await asyncio.sleep(1)
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.get_running_loop().create_task(count_turns())
        parts = await own.parts()
        counting.cancel()
        sizes = [len(part[Kind.TOPIC]["topic"]) for part in parts]
        assert sum(sizes) == 600
        assert len(sizes) == 3
        assert max(sizes) <= MESSAGE_ROWS + samples.SLICE_SUBJECTS
        assert turns >= 600 // samples.SLICE_SUBJECTS

    with World() as world:
        world.run(scenario(world))


def test_a_topic_that_goes_during_the_walk_is_reported_with_the_next_window() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        for i in range(100):
            await broker.registry.create(parse_topic(f"persistent://public/default/t{i}"))
        own = Watch(broker)
        await asyncio.sleep(1)
        walking = asyncio.get_running_loop().create_task(own.window())
        await asyncio.sleep(0)
        last = topic_of(broker, "persistent://public/default/t99")
        broker.engine.unload_topic(last)
        seen = names(await walking, Kind.TOPIC, "topic")
        assert len(seen) == 99
        (row,) = (await own.after(1))[Kind.TOPIC]
        assert (row["topic"], row["gone"]) == (last.name.full, True)

    with World() as world:
        world.run(scenario(world))


def test_it_may_begin_on_a_broker_that_runs() -> None:
    async def scenario(world: World) -> None:
        broker = await world.start()
        await publish(world, 3)
        client = await world.connect()
        consumer = await client.subscribe(NAME, "s")
        await limit(broker, 9)
        await asyncio.sleep(1)
        assert len(consumer.queue) == 3
        own = Watch(broker)
        window = await own.after(1)
        (row,) = window[Kind.SUBSCRIPTION]
        assert (row["appended"], row["backlog_messages"]) == (0, 3)
        (limiter,) = window[Kind.LIMITER]
        assert (limiter["limit"], limiter["granted"]) == (9, 0)
        assert events(window) == []

    with World() as world:
        world.run(scenario(world))


def test_very_many_events_come_in_parts() -> None:
    """2,000 events in one message held the loop for 27 ms."""

    async def scenario(world: World) -> None:
        own = await watch(world)
        for number in range(3 * MESSAGE_ROWS + 5):
            own.sampler.events.add(number + 1, "restart")
        parts = await own.parts()
        counts = [len(part[Kind.EVENT]["event"]) for part in parts if Kind.EVENT in part]
        assert counts == [MESSAGE_ROWS] * 3 + [5]
        times = [at for part in parts for at in part.get(Kind.EVENT, {}).get("time_ns", ())]
        assert times == list(range(1, 3 * MESSAGE_ROWS + 6))

    with World() as world:
        world.run(scenario(world))


def test_last_rows_without_room_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic with 10,000 subscriptions that is unloaded made 10,000 rows, to keep 4,096."""
    made: list[str] = []
    row = SubscriptionTrack.row

    def counted(track: SubscriptionTrack, *arguments: Any) -> Any:
        made.append(track.name)
        return row(track, *arguments)

    async def scenario(world: World) -> None:
        own = await watch(world)
        topic = await own.broker.registry.create(parse_topic(NAME))
        for number in range(10):
            topic.add_subscription(f"s{number}", AckSet(-1), cursor_id=None)
        await asyncio.sleep(1)
        monkeypatch.setattr(row_buffer, "LAST_ROWS_MAX", 4)
        monkeypatch.setattr(SubscriptionTrack, "row", counted)
        own.broker.engine.unload_topic(topic)
        assert len(made) == 4
        assert own.sampler.dropped_rows_count == 10 - 4 + 1  # and that of the topic

    with World() as world:
        world.run(scenario(world))


def test_very_many_that_end_during_a_window_are_freed_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100,000 readers that ended while the window had them in a list were freed with it: 70 ms."""
    freed: list[int] = [0]
    monkeypatch.setattr(
        SubscriptionTrack, "__del__", lambda _: freed.append(freed.pop() + 1), raising=False
    )

    async def scenario(world: World) -> None:
        own = await watch(world)
        topic = await own.broker.registry.create(parse_topic(NAME))
        for number in range(4 * SLICE_SUBJECTS):
            topic.add_subscription(f"s{number}", AckSet(-1), cursor_id=None)
        await asyncio.sleep(1)

        async def pause(_: Sampler) -> None:
            for name in list(topic.subscriptions):
                topic.remove_subscription(name)
            freed.append(0)
            await asyncio.sleep(0)

        monkeypatch.setattr(Sampler, "_give_way", pause)
        await own.window()

    with World() as world:
        world.run(scenario(world))
    assert max(freed[1:]) <= SLICE_SUBJECTS
