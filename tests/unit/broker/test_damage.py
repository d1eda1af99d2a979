"""Damaged topics refuse and say where, until the damage is accepted; all others keep working."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.positions import EARLIEST
from headgate.broker.damage import damage_counts, damage_of, damage_text, damages
from headgate.engine.subscription import Subscription
from headgate.facade.admin_facade import AdminFacade
from headgate.facade.protocol import AtPosition
from headgate.ledger import ReadPlan
from headgate.ledger.format.records import CURSOR_ID, KIND_ACKS, PREFIX, PREFIX_BYTES
from headgate.metadata.errors import RefusalError
from headgate.testing import World
from headgate.testing.errors import RefusedError
from headgate.testing.world import DIRECTORY
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played

OTHER = "persistent://public/default/other"
NEWEST = "persistent://public/default/newest"
PLACE = "0000000000000001.log offset"


async def store(world: World, topic: str, *payloads: bytes) -> None:
    """Publish with a subscription ``s`` that has acknowledged nothing."""
    client = await world.connect()
    await client.subscribe(topic, "s")
    producer = await client.producer(topic)
    for payload in payloads:
        await producer.send(payload)
    client.close()
    await asyncio.sleep(0.2)


def spoil(world: World, payload: bytes) -> None:
    """Change two bytes of the record that holds ``payload``, on the disk."""
    for name in world.fs.list_directory(DIRECTORY):
        file = world.fs.open(f"{DIRECTORY}/{name}", writable=True)
        at = file.read_at(0, file.size()).find(payload)
        if at >= 0 and name.endswith(".log"):
            file.write_at(at, [b"?!"])
            file.sync_data()
            return
    raise AssertionError(payload)


def subscription(world: World, topic: str = TOPIC) -> Subscription:
    return world.broker.engine.topics[topic].subscriptions["s"]


async def damaged_world(world: World) -> None:
    """Two topics of three messages; after a kill the second message of one is damaged."""
    await store(world, TOPIC, b"first", b"the second", b"third")
    await store(world, OTHER, b"one", b"two", b"three")
    world.crash()
    spoil(world, b"the second")
    await world.start()


async def health(world: World) -> str:
    try:
        await AdminFacade(world.broker, world.observer).check_health()
    except RefusalError as error:
        return f"{error.status}: {error.reason}"
    return "ok"


@played()
async def test_the_damaged_topic_refuses_with_the_place_and_others_go_on(world: World) -> None:
    await damaged_world(world)
    client = await world.connect()
    for attempt in (client.producer(TOPIC), client.subscribe(TOPIC, "s")):
        with pytest.raises(RefusedError) as caught:
            await attempt
        assert caught.value.code == ServerError.PERSISTENCE_ERROR
        assert PLACE in str(caught.value)
        assert "headgate admin topics accept-damage" in str(caught.value)
    consumer = await client.subscribe(OTHER, "s")
    await (await client.producer(OTHER)).send(b"four")
    got = [(await consumer.receive()).payload for _ in range(4)]
    assert got == [b"one", b"two", b"three", b"four"]
    assert (await health(world)).startswith(
        f"500: damaged on the disk, and stopped until the damage is accepted: {TOPIC}"
    )


def test_each_start_says_what_is_damaged(caplog: pytest.LogCaptureFixture) -> None:
    @played()
    async def story(world: World) -> None:
        await damaged_world(world)
        assert f"stopped until the damage is accepted: {TOPIC} (" in caplog.text
        caplog.clear()
        world.crash()
        await world.start()
        (line,) = [line for line in caplog.messages if TOPIC in line]
        assert line.startswith("damaged on the disk")
        assert PLACE in line
        assert line.endswith("'headgate explain' shows what can be done")

    story()


@played()
async def test_the_admin_api_names_the_place_too(world: World) -> None:
    await damaged_world(world)
    facade, topic = AdminFacade(world.broker, world.observer), parse_topic(TOPIC)
    log = world.broker.engine.topics[TOPIC].log
    latest = AtPosition(EARLIEST)
    for attempt in (
        facade.entry(topic, log.position(0)),
        facade.last_message(topic),
        facade.create_subscription(topic, "new", latest, {}),
    ):
        with pytest.raises(RefusalError) as caught:
            await attempt
        assert caught.value.status == 500
        assert PLACE in caught.value.reason
    await facade.accept_damage(topic)
    assert (await facade.entry(topic, log.position(0))).payload == b"first"
    with pytest.raises(RefusalError, match="entry 1 of topic number"):
        await facade.entry(topic, log.position(1))


@played()
async def test_explain_and_figures_say_it_in_their_own_words(world: World) -> None:
    await damaged_world(world)
    broker = world.broker
    assert damage_counts(broker.engine) == (1, 0)
    (damage,) = damages(broker.engine)
    assert (damage.topic, damage.subscription) == (TOPIC, "")
    await asyncio.sleep(90)
    report = await world.observer.explain_topic(parse_topic(TOPIC))
    assert report["damage"].startswith(PLACE)
    assert report["sentence"].startswith("this topic is damaged on the disk and refuses producers")
    (own,) = report["subscriptions"]
    assert own["damage"] == report["damage"]
    assert own["sentence"] == report["sentence"]
    (shown,) = (await world.observer.explain_top(10))["damaged"]
    assert (shown["topic"], shown["subscription"]) == (TOPIC, None)
    sound = await world.observer.explain_topic(parse_topic(OTHER))
    assert (sound["damage"], sound["subscriptions"][0]["damage"]) == (None, None)


@played()
async def test_what_is_accepted_is_served_without_what_is_lost_also_after_a_restart(
    world: World,
) -> None:
    await damaged_world(world)
    await AdminFacade(world.broker, world.observer).accept_damage(parse_topic(TOPIC))
    assert await health(world) == "ok"
    for restart in (False, True, True):
        if restart:
            world.crash()
            await world.start()
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, "s")
        got = [(await consumer.receive()).payload for _ in range(2)]
        assert got == [b"first", b"third"]
        reader = await client.subscribe(TOPIC, "reader", durable=False, start=EARLIEST)
        got = [(await reader.receive()).payload for _ in range(2)]
        assert got == [b"first", b"third"]
        assert damage_text(world.broker.engine) == ""
        client.close()
        await asyncio.sleep(0.2)
    await (await (await world.connect()).producer(TOPIC)).send(b"fourth")


async def world_with_lost_last_messages(world: World) -> None:
    """Two topics of which the last messages lay in a sealed segment that is cut in its middle. Of
    the first, no message is left. A third topic is sound."""
    await store(world, NEWEST, b"whole")
    await store(world, OTHER, b"one", b"two")
    for payload in (b"three", b"four"):
        await store(world, TOPIC, payload)
        await store(world, OTHER, payload)
    await world.stop()
    await world.start()
    await store(world, NEWEST, b"newest")
    await world.stop()
    name = next(n for n in sorted(world.fs.list_directory(DIRECTORY)) if n.endswith(".log"))
    file = world.fs.open(f"{DIRECTORY}/{name}", writable=True)
    file.truncate(file.read_at(0, file.size()).find(b"three"))
    file.sync_data()
    await world.start()


LEFT: dict[str, list[bytes]] = {
    TOPIC: [],
    OTHER: [b"one", b"two"],
    NEWEST: [b"whole", b"newest"],
}


@played()
async def test_accepted_last_messages_stay_accepted_and_the_last_message_is_one_that_is_left(
    world: World,
) -> None:
    """A reader that reads up to the last message would wait for a lost one for ever."""
    await world_with_lost_last_messages(world)
    for topic in (TOPIC, OTHER):
        await AdminFacade(world.broker, world.observer).accept_damage(parse_topic(topic))
    for restart in (False, True, True):
        if restart:
            await world.stop()
            await world.start()
        assert await health(world) == "ok"
        facade = AdminFacade(world.broker, world.observer)
        client = await world.connect()
        for topic, left in LEFT.items():
            consumer = await client.subscribe(topic, "s")
            received = [await consumer.receive() for _ in left]
            assert [message.payload for message in received] == left
            last = await consumer.last_message_id()
            assert last == (received[-1].position if left else EARLIEST)
            found = await facade.last_message(parse_topic(topic))
            assert (found.position == last) if left else (found.position.entry_id == -1)
        client.close()
        await asyncio.sleep(0.2)
    await (await (await world.connect()).producer(TOPIC)).send(b"later")


@played()
async def test_nothing_of_a_damaged_topic_is_given_up(world: World) -> None:
    """Though all that is known to be owed is acknowledged: nobody knows what else there was."""
    client = await world.connect()
    consumer, producer = await client.subscribe(TOPIC, "s"), await client.producer(TOPIC)
    for payload in (b"first", b"the second", b"third"):
        await producer.send(payload)
        await consumer.ack((await consumer.receive()).position)
    await asyncio.sleep(0.5)
    world.crash()
    spoil(world, b"the second")
    await world.start()
    log = world.broker.engine.topics[TOPIC].log
    assert log.damage
    await asyncio.sleep(300)
    assert (log.first, log.end) == (0, 3)
    await AdminFacade(world.broker, world.observer).accept_damage(parse_topic(TOPIC))
    await asyncio.sleep(120)
    assert (log.first, log.end) == (3, 3)


@played()
async def test_a_restart_finds_what_was_not_accepted_damaged_again(world: World) -> None:
    await damaged_world(world)
    said = damage_text(world.broker.engine)
    for ending in (world.crash, world.stop):
        ended = ending()
        if ended is not None:
            await ended
        await world.start()
        assert damage_text(world.broker.engine) == said


def test_accepted_losses_are_skipped_without_a_read_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each took a failed read and a line in the log at level ERROR."""

    @played(settings={"managedLedgerCacheSizeMB": "1"})
    async def story(world: World) -> None:
        await skip_accepted_losses(world, caplog)

    story()


async def skip_accepted_losses(world: World, caplog: pytest.LogCaptureFixture) -> None:
    payloads = [b"message %02d" % at for at in range(40)]
    await store(world, TOPIC, *payloads)
    world.crash()
    for at in (5, 6, 7, 20, 30, 31):
        spoil(world, payloads[at])
    await world.start()
    facade = AdminFacade(world.broker, world.observer)
    await facade.accept_damage(parse_topic(TOPIC))
    await world.stop()
    await world.start()
    caplog.clear()
    log, reads = world.broker.log, list[ReadPlan]()
    fetch = log.fetch
    log.fetch = lambda plan: reads.append(plan) or fetch(plan)  # type: ignore[func-returns-value, method-assign]
    left = [payload for at, payload in enumerate(payloads) if at not in (5, 6, 7, 20, 30, 31)]
    for name in ("s", "again"):
        client = await world.connect()
        consumer = await client.subscribe(TOPIC, name, start=EARLIEST)
        assert [(await consumer.receive()).payload for _ in left] == left
        client.close()
    assert len(reads) <= 8
    assert "is damaged" not in caplog.text
    lines = [r.getMessage() for r in caplog.records if "skipped" in r.getMessage()]
    assert lines == [
        f"{TOPIC}: 6 lost entries between 1:5 and 1:31 are skipped, because their loss was accepted"
    ]


@played()
async def test_a_damaged_topic_can_be_deleted(world: World) -> None:
    await damaged_world(world)
    await AdminFacade(world.broker, world.observer).delete_topic(parse_topic(TOPIC), force=True)
    assert await health(world) == "ok"
    await store(world, TOPIC, b"anew")


@played()
async def test_a_subscription_that_meets_damage_shows_it_and_skips_it_once_it_is_accepted(
    world: World,
) -> None:
    await store(world, TOPIC, b"first", b"the second", b"third")
    world.crash()
    await world.start()
    await world.stop()  # all is below the checkpoint now: only a read finds it
    spoil(world, b"the second")
    await world.start()
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    assert (await consumer.receive()).payload == b"first"
    await asyncio.sleep(0.5)
    assert "entry 1 of topic" in damage_of(subscription(world))
    assert damage_counts(world.broker.engine) == (0, 1)
    assert f"{TOPIC}, subscription s (entry 1 of topic" in await health(world)
    (own,) = (await world.observer.explain_topic(parse_topic(TOPIC)))["subscriptions"]
    assert own["sentence"].startswith("its next message is damaged on the disk")
    await AdminFacade(world.broker, world.observer).accept_damage(parse_topic(TOPIC))
    assert (await consumer.receive()).payload == b"third"
    assert await health(world) == "ok"
    assert subscription(world).skipped_messages == 1


def spoil_acks(world: World, cursor_id: int) -> None:
    """Make an ACKS record unreadable."""
    for name in world.fs.list_directory(DIRECTORY):
        if not name.endswith(".log"):
            continue
        file = world.fs.open(f"{DIRECTORY}/{name}", writable=True)
        data = file.read_at(0, file.size())
        at = data.find(CURSOR_ID.pack(cursor_id), 64)
        while at >= 0:
            if PREFIX.unpack_from(data, at - PREFIX_BYTES)[2] == KIND_ACKS:
                file.write_at(at + 8, [b"\xff\xff\xff\xff"])
                file.sync_data()
                return
            at = data.find(CURSOR_ID.pack(cursor_id), at + 1)
    raise AssertionError(cursor_id)


@played()
async def test_a_damaged_subscription_is_healed_by_a_reset(world: World) -> None:
    await store(world, TOPIC, b"first", b"second")
    client = await world.connect()
    consumer = await client.subscribe(TOPIC, "s")
    await consumer.ack((await consumer.receive()).position)
    await asyncio.sleep(0.2)
    await (await client.producer(TOPIC)).send(b"third")
    cursor_id = subscription(world).cursor_id
    assert cursor_id is not None
    world.crash()
    spoil_acks(world, cursor_id)
    await world.start()
    assert "acknowledgements of this subscription" in subscription(world).damage
    client = await world.connect()
    with pytest.raises(RefusedError, match="subscription s, is damaged"):
        await client.subscribe(TOPIC, "s")
    await client.subscribe(TOPIC, "another")
    (own,) = [
        report
        for report in (await world.observer.explain_topic(parse_topic(TOPIC)))["subscriptions"]
        if report["damage"]
    ]
    assert own["sentence"].startswith("this subscription is damaged on the disk and refuses")
    topic = world.broker.engine.topics[TOPIC]
    subscription(world).reset(topic.log.first)
    await world.broker.when_durable()
    world.crash()
    await world.start()
    assert damage_text(world.broker.engine) == ""
    consumer = await (await world.connect()).subscribe(TOPIC, "s")
    assert (await consumer.receive()).payload == b"first"
