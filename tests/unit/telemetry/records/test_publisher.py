"""The telemetry topic as any client finds it: records at the clock's multiples, none missing."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from headgate.admin.app import AdminApp
from headgate.base.ack_set import AckSet
from headgate.base.errors import InvariantError
from headgate.base.names import parse_topic
from headgate.base.units import MIB, NS_PER_S
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.facade.admin_facade import AdminFacade
from headgate.record.codec import Batch
from headgate.record.fields import FULL_PERIOD_NS, MESSAGE_BYTES_MAX, Kind
from headgate.telemetry.records.publisher import PRODUCER_NAME, TelemetryPublisher
from headgate.testing import RefusedError, World
from headgate.wire.entry import parse_metadata, payload_of
from tests.unit.admin.client import ask_async
from tests.unit.telemetry.support import NAME, bodies, publish, records, rows, start

INTERVAL_S = 10
BOOT_ID = "00010203-0405-4607-8809-0a0b0c0d0e0f"


def kinds(batch: Batch) -> dict[Kind, int]:
    return {kind: count for kind, count in batch.rows.items() if count}


async def run_for(publisher: TelemetryPublisher, seconds: float) -> None:
    publisher.start()
    await asyncio.sleep(seconds)


def test_windows_end_at_multiples_of_the_interval_and_leave_no_hole() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        begun_ns = world.clock.wall_ns()
        await run_for(publisher, 65)
        batches = records(broker)
        assert len(batches) in (6, 7)
        ends_ns = [batch.header.window_end_ns for batch in batches]
        assert [end_ns % (INTERVAL_S * NS_PER_S) for end_ns in ends_ns] == [0] * len(batches)
        starts_ns = [batch.header.window_start_ns for batch in batches]
        assert starts_ns[1:] == ends_ns[:-1]
        assert begun_ns - NS_PER_S < starts_ns[0] <= begun_ns
        assert [batch.seq for batch in batches] == list(range(len(batches)))
        assert not any(batch.header.clock_step for batch in batches)
        for batch in batches:
            header = batch.header
            assert (header.source, header.cluster) == ("standalone/127.0.0.1:8080", "standalone")
            assert (header.broker, header.boot_id) == ("127.0.0.1:8080", BOOT_ID)

    with World() as world:
        world.run(scenario(world))


def test_a_message_as_a_client_sees_it() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world, source="east")
        await run_for(publisher, 25)
        topic = broker.engine.topics[broker.settings.headgateTelemetryTopic]
        found = bodies(broker, topic)
        for seq, body in enumerate(found):
            metadata = parse_metadata(body)
            assert metadata.producer_name == PRODUCER_NAME
            assert metadata.sequence_id == seq
            assert {p.key: p.value for p in metadata.properties} == {
                "headgate.record": "1", "source": "east", "boot": BOOT_ID, "seq": str(seq),
            }  # fmt: skip
        client = await world.connect()
        consumer = await client.subscribe(topic.name.full, "reader")
        received = [(await consumer.receive()).payload for _ in found]
        assert received == [payload_of(body) for body in found]
        # Only the broker produces there.
        with pytest.raises(RefusedError):
            await client.producer(topic.name.full)

    with World() as world:
        world.run(scenario(world))


def test_only_changes_and_once_a_minute_everything() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        await publish(world, 3)
        client = await world.connect()
        await client.subscribe(NAME, "s")
        await run_for(publisher, 130)
        batches = records(broker)
        first, *others = batches
        assert kinds(first) == {Kind.TOPIC: 1, Kind.SUBSCRIPTION: 1, Kind.EVENT: 1}
        for batch in others:
            crossed = batch.header.window_start_ns // FULL_PERIOD_NS
            is_full = batch.header.window_end_ns // FULL_PERIOD_NS != crossed
            expected = {Kind.TOPIC: 1, Kind.SUBSCRIPTION: 1} if is_full else {}
            assert kinds(batch) == expected
        assert sum(bool(kinds(batch)) for batch in others) == 2
        told = rows(batches, Kind.SUBSCRIPTION)
        assert [row["counting_since_ns"] for row in told] == [told[0]["counting_since_ns"]] * 3
        assert [row["covered_from_ns"] for row in told[1:]] == [
            row["covered_to_ns"] for row in told[:-1]
        ]

    with World() as world:
        world.run(scenario(world))


def test_a_start_is_reported() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        await publish(world, 1)
        await run_for(publisher, 11)
        (event,) = rows(records(broker), Kind.EVENT)
        assert event["event"] == "restart"
        assert json.loads(event["inputs"]) == {"boot": BOOT_ID, "version": "simulated"}
        assert json.loads(event["outcome"]) == {"topics": 1}

    with World() as world:
        world.run(scenario(world))


def test_a_change_through_the_admin_api_is_an_event() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        await publish(world, 1)
        await run_for(publisher, 15)
        app = AdminApp(AdminFacade(broker, world.observer), world.clock, broker.audit)
        path = f"/admin/v2/{NAME.replace('://', '/')}/dispatchRate"
        answer = await ask_async(app, "POST", path, b'{"dispatchThrottlingRateInMsg": 9}')
        assert answer.status == 204
        await ask_async(app, "POST", path, b"{")  # refused
        await asyncio.sleep(15)
        found = [row for row in rows(records(broker), Kind.EVENT) if row["event"] == "admin_change"]
        assert [row["topic"] for row in found] == [NAME]
        assert json.loads(found[0]["inputs"]) == {"operation": "topic.policy.write", "role": ""}

    with World() as world:
        world.run(scenario(world))


def test_a_window_that_fails_by_an_error_of_ours_is_not_the_last(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        world._watch.close()
        connected, left = publisher._connected, [3]

        async def failing() -> tuple[Producer, Topic]:
            left[0] -= 1
            if left[0] >= 0:
                raise KeyError("ours")
            return await connected()

        publisher._connected = failing  # type: ignore[method-assign]
        await run_for(publisher, 65)
        assert len(records(broker)) in (3, 4)
        assert publisher.statistics().failures == 3

    with World() as world, caplog.at_level(logging.INFO):
        world.run(scenario(world))
    assert caplog.text.count("a window of telemetry failed with an internal error") == 1
    assert "telemetry is published to persistent://headgate/telemetry/samples again" in caplog.text


def test_a_broken_invariant_in_a_window_ends_the_process() -> None:
    async def scenario(world: World) -> None:
        _, publisher = await start(world)

        async def failing() -> tuple[Producer, Topic]:
            raise InvariantError("two owners")

        publisher._connected = failing  # type: ignore[method-assign]
        await run_for(publisher, 65)

    with World() as world, pytest.raises(InvariantError, match="two owners"):
        world.run(scenario(world))


def test_stopping_publishes_what_is_known() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        await run_for(publisher, 11)
        await publish(world, 4)
        await publisher.stop()
        await publisher.stop()
        await asyncio.sleep(1)
        last = records(broker)[-1]
        assert last.header.window_end_ns % (INTERVAL_S * NS_PER_S) != 0
        assert rows([last], Kind.TOPIC)[0]["msgs_in"] == 4
        topic = broker.engine.topics[broker.settings.headgateTelemetryTopic]
        assert not topic.producers
        count = len(records(broker))
        await asyncio.sleep(30)
        assert len(records(broker)) == count

    with World() as world:
        world.run(scenario(world))


def test_it_can_be_switched_off() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        await run_for(publisher, 30)
        await publisher.stop()
        assert records(broker) == []
        assert broker.settings.headgateTelemetryTopic not in broker.engine.topics

    with World(settings={"headgateTelemetryEnabled": "false"}) as world:
        world.run(scenario(world))


def test_its_name_and_interval_are_settings() -> None:
    name = "persistent://ops/telemetry/east"

    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        await run_for(publisher, 10)
        assert len(records(broker)) >= 9
        assert broker.engine.topics[name].is_system

    settings = {"headgateTelemetryTopic": name, "headgateTelemetryIntervalMs": "1000"}
    with World(settings=settings) as world:
        world.run(scenario(world))


def test_another_boot_counts_anew_under_another_id() -> None:
    async def scenario(world: World) -> None:
        _, publisher = await start(world)
        await publish(world, 2)
        await run_for(publisher, 21)
        await publisher.stop()
        await world.stop()
        broker = await world.start()
        second = TelemetryPublisher(broker, entropy=lambda size: b"\xff" * size)
        await run_for(second, 11)
        batches = records(broker)
        boots = list(dict.fromkeys(batch.header.boot_id for batch in batches))
        assert len(boots) == 2
        later = [batch for batch in batches if batch.header.boot_id == boots[1]]
        assert [batch.seq for batch in later] == list(range(len(later)))
        assert {batch.header.source for batch in batches} == {"standalone/127.0.0.1:8080"}
        (topic,) = rows(later[:1], Kind.TOPIC)
        assert topic["msgs_in"] == 0

    with World() as world:
        world.run(scenario(world))


@pytest.mark.parametrize(
    ("step_s", "is_told"),
    [(0.05, False), (0.5, True), (45.0, True), (-3.0, True), (-40.0, True), (-4_000.0, True)],
)
def test_a_step_of_the_wall_clock(step_s: float, is_told: bool) -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        publisher.start()
        await asyncio.sleep(15)
        world.clock.step_wall(round(step_s * NS_PER_S))
        await asyncio.sleep(25)
        steps = [batch.header.clock_step for batch in records(broker)]
        assert steps.count(True) == is_told
        assert len(steps) in (3, 4, 5)
        for batch in records(broker):
            assert batch.header.window_start_ns < batch.header.window_end_ns

    with World() as world:
        world.run(scenario(world))


@pytest.mark.parametrize("step_s", [-4_000, -10 * 365 * 86_400])
def test_after_a_clock_went_back_rows_go_on(step_s: int) -> None:
    """Else a subject would say nothing before the clock comes to where it was."""

    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        publisher.start()
        topic = await broker.registry.create(parse_topic(NAME))
        topic.add_subscription("s", AckSet(-1), cursor_id=1)
        await asyncio.sleep(65)
        world.clock.step_wall(step_s * NS_PER_S)
        await asyncio.sleep(150)
        later = [b for b in records(broker) if b.header.window_end_ns < broker.started_ms * 10**6]
        for kind in (Kind.TOPIC, Kind.SUBSCRIPTION):
            told = rows(later, kind)
            assert len(told) >= 2
            assert len({row["counting_since_ns"] for row in told}) == 1, "the stream is the same"
            ends = [row["covered_to_ns"] for row in told]
            assert [row["covered_from_ns"] for row in told[1:]] == ends[:-1]

    with World() as world:
        world.run(scenario(world))


def test_a_window_that_is_too_large_for_a_message_is_several() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        topic = await broker.registry.create(parse_topic(NAME))
        for i in range(2_500):
            topic.add_subscription(f"{i}-{'x' * 480}", AckSet(-1), cursor_id=i + 1)
        await publisher.publish_window(broker.clock.wall_ns() + NS_PER_S)
        await asyncio.sleep(1)
        topic = broker.engine.topics[broker.settings.headgateTelemetryTopic]
        sizes = [len(payload_of(body)) for body in bodies(broker, topic)]
        batches = records(broker)
        assert sum(sizes) > MIB
        told = [parse_metadata(body) for body in bodies(broker, topic)]
        assert [metadata.sequence_id for metadata in told] == list(range(len(told)))
        assert [p.value for m in told for p in m.properties if p.key == "seq"] == [
            str(seq) for seq in range(len(told))
        ]
        assert max(sizes) <= MESSAGE_BYTES_MAX
        assert [batch.seq for batch in batches] == list(range(len(batches)))
        assert len({batch.header for batch in batches}) == 1
        assert len({row["subscription"] for row in rows(batches, Kind.SUBSCRIPTION)}) == 2_500
        assert len(rows(batches, Kind.TOPIC)) == 1
        assert publisher.statistics().messages == len(batches)

    with World() as world:
        world.run(scenario(world))


def test_its_topic_may_be_unloaded_under_it() -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        publisher.start()
        await asyncio.sleep(15)
        await broker.registry.unload(parse_topic(broker.settings.headgateTelemetryTopic))
        await asyncio.sleep(20)
        assert [batch.seq for batch in records(broker)] == list(range(len(records(broker))))
        assert len(records(broker)) >= 3
        assert publisher.statistics().failures == 0

    with World() as world:
        world.run(scenario(world))


def test_a_full_disk_is_said_once_and_its_end_too(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        broker, publisher = await start(world)
        publisher.start()
        await asyncio.sleep(15)
        sent = len(records(broker))
        await publish(world, 5)
        world.fs.capacity_bytes = world.fs.used_bytes()
        producing = asyncio.ensure_future(publish(world, 100, size=100_000))
        # Until what was set apart is full.
        await asyncio.sleep(40)
        failures = publisher.statistics().failures
        assert failures >= 2
        world.fs.capacity_bytes = None
        producing.cancel()
        await asyncio.sleep(60)
        batches = records(broker)
        assert len(batches) > sent
        assert publisher.statistics().failures <= failures + 1
        # What was lost was resolution, no amount.
        stored = broker.engine.topics[NAME].messages_in()
        assert stored > 5
        assert rows(batches, Kind.TOPIC)[-1]["msgs_in"] == stored
        seqs = [batch.seq for batch in batches]
        assert seqs == sorted(set(seqs))
        assert seqs[-1] > len(seqs) - 1  # what was not stored shows as a gap

    with caplog.at_level(logging.INFO, "headgate.telemetry"), World() as world:
        world.run(scenario(world))
    told = [r.getMessage() for r in caplog.records if r.name == "headgate.telemetry"]
    assert len(told) == 2
    assert told[0].startswith("telemetry is not published to persistent://headgate/telemetry/samp")
    assert told[1].endswith("again")


def test_statistics(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        _, publisher = await start(world)
        await run_for(publisher, 35)
        told = publisher.statistics()
        assert told.windows == told.messages
        assert told.windows in (3, 4)
        assert (told.failures, told.dropped_events, told.dropped_rows) == (0, 0, 0)

    with World() as world:
        world.run(scenario(world))
    assert [r for r in caplog.records if r.name == "headgate.telemetry"] == []
