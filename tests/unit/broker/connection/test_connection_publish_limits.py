"""Publish limits on one connection in virtual time: which SENDs wait, and which continue."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.metadata.policies import BacklogQuota, PublishRate
from headgate.testing import ConnectionLostError, World
from headgate.wire import client as frames
from headgate.wire.codes import CommandType
from tests.unit.broker.adaptive_play import Publisher
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import (
    done,
    in_order,
    limit_topic,
    send_many,
    server_side,
    set_dynamic,
)

OTHER = f"{TOPIC}-other"
NAME = parse_topic(TOPIC)
WINDOW = 1_000
"""What a client sends unanswered by default, and what a connection may have appended so."""


@played(settings={"keepAliveIntervalSeconds": "30"}, limit_s=7_200)
async def test_a_producer_held_for_five_minutes_keeps_its_connection(world: World) -> None:
    """Rules 3.1 and 3.2: every send completes in order, and who shares the connection notices
    nothing: receipts, acknowledgements, permits, lookups and pings go on."""
    client = await world.connect()
    await limit_topic(world, 3)
    held = await client.producer(TOPIC)
    neighbour = await client.producer(OTHER)
    consumer = await client.subscribe(OTHER, "s", queue_size=10)
    receipts = send_many(held, WINDOW)
    for second in range(300):
        began_s = world.now_s
        await neighbour.send(b"%d" % second)
        message = await consumer.receive()
        await consumer.ack(message.position)
        if second % 50 == 0:
            await client.lookup(OTHER)
            assert server_side(world, client).producer_port.parked_bytes > 0
        assert world.now_s - began_s < 0.1
        await asyncio.sleep(1 - (world.now_s - began_s))
    assert client.is_open
    assert 3 * 299 <= done(receipts) <= 3 * 301 + 1
    await asyncio.gather(*receipts)
    assert in_order(receipts)
    assert not client.unexpected
    assert (
        server_side(world, client).producer_port.parked_bytes
        == world.broker.engine.parked.bytes
        == 0
    )


@played(settings={"maxPendingPublishRequestsPerConnection": "4"})
async def test_beyond_its_unanswered_sends_a_connection_is_read_on(world: World) -> None:
    """Rule 3.1: parked SENDs do not count, appended and unanswered ones do."""
    client = await world.connect()
    producer, neighbour = await client.producer(TOPIC), await client.producer(OTHER)
    world.lanes[0].freeze()
    receipts = send_many(producer, 10)
    others = send_many(neighbour, 3)
    await asyncio.sleep(0.1)
    server = server_side(world, client)
    assert not server.socket_paused
    topic = world.broker.engine.topics[TOPIC]
    assert topic.publishing.pending_count == 4
    assert topic.publishing.parking is not None
    assert topic.publishing.parking.waiting(ParkCause.PENDING_LIMIT).messages == 6
    await client.lookup(TOPIC)
    world.lanes[0].thaw()
    await asyncio.gather(*receipts, *others)
    assert in_order(receipts)
    assert in_order(others)
    assert server.producer_port.pending_count == 0


@played(settings={"maxPendingPublishRequestsPerConnection": "2"})
async def test_another_maximum_of_unanswered_sends_counts_at_once(world: World) -> None:
    """Rule 3.1: ``maxPendingPublishRequestsPerConnection`` is dynamic."""
    producer = await (await world.connect()).producer(TOPIC)
    topic = world.broker.engine.topics[TOPIC]
    world.lanes[0].freeze()
    receipts = send_many(producer, 10)
    await asyncio.sleep(0.1)
    assert topic.publishing.pending_count == 2
    await set_dynamic(world, "maxPendingPublishRequestsPerConnection", "7")
    await asyncio.sleep(0.01)
    assert topic.publishing.pending_count == 7
    world.lanes[0].thaw()
    await asyncio.gather(*receipts)


@played()
async def test_one_send_that_is_parked_while_nothing_else_happens_goes_in_time(
    world: World,
) -> None:
    """Rule 3.2: no turn of the loop but its own has to come."""
    await limit_topic(world, 2)
    producer = await (await world.connect()).producer(TOPIC)
    await asyncio.gather(*send_many(producer, 2))
    began_s = world.now_s
    await producer.send(b"late")
    assert 0.9 < world.now_s - began_s < 1.1


# -- a socket that is not read ---------------------------------------------------------------------


@played(settings={"headgateMaxParkedBytesPerConnection": "10400", "keepAliveIntervalSeconds": "30"})
async def test_a_paused_peer_hears_from_the_broker_and_is_read_on_at_half(world: World) -> None:
    """Rule 3.1: a PONG every 20 seconds, which keeps official clients from giving up."""
    client = await world.connect()
    await limit_topic(world, 1)
    producer = await client.producer(TOPIC)
    heard: list[float] = []
    receive = client._receive

    def listen(command: object, body: bytes) -> None:
        if command.type == CommandType.PONG:  # type: ignore[attr-defined]
            heard.append(world.now_s)
        receive(command, body)  # type: ignore[arg-type]

    client._receive = listen  # type: ignore[method-assign, assignment]
    began_s = world.now_s
    receipts = [producer.send_nowait(b"x" * 20) for _ in range(120)]
    await asyncio.sleep(1)
    server = server_side(world, client)
    assert server.socket_paused
    parked_bytes = server.producer_port.parked_bytes
    assert 10_400 < parked_bytes < 10_700
    while server.socket_paused:
        await asyncio.sleep(0.1)
    assert server.producer_port.parked_bytes <= 5_200
    paused_s = world.now_s - began_s
    assert paused_s > 25
    assert [round(at - began_s) for at in heard] == list(range(20, int(paused_s) + 1, 20))
    await asyncio.gather(*receipts)
    assert in_order(receipts)


@played(settings={"headgateMaxParkedBytesPerConnection": "3000"})
async def test_too_many_parked_sends_under_a_limit_have_the_limit_as_cause(world: World) -> None:
    """Rule 3.5: not on memory; a neighbour on the connection that is not read waits for that."""
    client = await world.connect()
    await limit_topic(world, 1)
    producer, neighbour = await client.producer(TOPIC), await client.producer(OTHER)
    send_many(producer, 200)
    neighbour.send_nowait(b"x")
    await asyncio.sleep(5)
    assert server_side(world, client).socket_paused
    report = await world.observer.explain_topic(NAME)
    publishing = report["publishing"]
    assert [held["cause"] for held in publishing["parked"]] == ["topic_rate"]
    assert publishing["parked"][0]["unread"] == 1
    assert publishing["sentence"].startswith(
        "1 producer waits for the topic's publish limit of 1 msg/s (topic policy): "
    )
    assert (
        "; its connection is not read until half of them are accepted; held for"
        in (publishing["sentence"])
    )
    found = (await world.observer.explain_topic(parse_topic(OTHER)))["publishing"]
    assert [held["cause"] for held in found["parked"]] == ["memory"]
    assert "is not read, because too much waits in memory" in found["sentence"]
    topics = world.broker.engine.topics
    assert ParkCause.MEMORY not in topics[TOPIC].publishing.parking.causes(  # type: ignore[union-attr]
        world.broker.engine.now_ns
    )
    assert neighbour is not None


@played(settings={"headgateMaxParkedBytesPerConnection": "3000"})
async def test_another_bound_counts_at_once(world: World) -> None:
    """Rule 3.1: ``headgateMaxParkedBytesPerConnection`` is dynamic."""
    client = await world.connect()
    await limit_topic(world, 1)
    producer = await client.producer(TOPIC)
    send_many(producer, 200)
    await asyncio.sleep(0.5)
    server = server_side(world, client)
    assert server.socket_paused
    await set_dynamic(world, "headgateMaxParkedBytesPerConnection", "1000000")
    await asyncio.sleep(0.5)
    assert not server.socket_paused
    assert world.broker.engine.topics[TOPIC].publishing.parking.messages > 190  # type: ignore[union-attr]


@played(settings={"headgateMaxParkedBytesPerConnection": "3000"})
async def test_a_connection_that_ends_while_it_is_paused_leaves_nothing(world: World) -> None:
    """Rule 3.4."""
    client = await world.connect()
    await limit_topic(world, 1)
    send_many(await client.producer(TOPIC), 200)
    await asyncio.sleep(0.5)
    assert world.broker.engine.parked._paused
    client.abort()
    await asyncio.sleep(0.5)
    parked = world.broker.engine.parked
    assert (parked.bytes, parked._producers, parked._paused) == (0, {}, {})
    assert not world.broker.connections.paused


# -- what is forgotten, and what is not ------------------------------------------------------------


@played()
async def test_closing_a_producer_forgets_what_it_parked(world: World) -> None:
    """Rule 3.4; and what was appended before is answered before the close is."""
    client = await world.connect()
    await limit_topic(world, 2)
    producer = await client.producer(TOPIC, name="p")
    world.lanes[0].freeze()
    receipts = send_many(producer, 20)
    await asyncio.sleep(0.1)
    closing = asyncio.ensure_future(producer.close())
    await asyncio.sleep(0.1)
    assert server_side(world, client).producer_port.parked_bytes == 0
    world.lanes[0].thaw()
    await closing
    assert done(receipts) == 2
    assert isinstance(receipts[2].exception(), ConnectionLostError)
    await asyncio.sleep(3)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.log.end == 2
    began_s = world.now_s
    await (await client.producer(TOPIC, name="p")).send(b"new")
    assert world.now_s - began_s < 0.5


@played()
async def test_a_producer_that_comes_again_under_its_id_forgets_what_it_parked(
    world: World,
) -> None:
    """Rule 3.4: replaced by a silent connection's heir."""
    await limit_topic(world, 2)
    silent = await world.connect()
    held = await silent.producer(TOPIC, name="p")
    send_many(held, 20)
    await asyncio.sleep(0.1)
    silent.transport.silence()  # type: ignore[attr-defined]
    heir = await (await world.connect()).producer(TOPIC, name="p")
    assert world.broker.engine.parked.bytes == 0
    stored = world.broker.engine.topics[TOPIC].log.end
    await heir.send(b"mine")
    assert world.broker.engine.topics[TOPIC].log.end == stored + 1


@played()
async def test_an_unload_forgets_what_waits_and_forgives_nothing(world: World) -> None:
    """Rules 3.2 and 3.4: clients send it again, and the window goes on."""
    client = await world.connect()
    await limit_topic(world, 10)
    producer = await client.producer(TOPIC)
    receipts = send_many(producer, 30)
    await asyncio.sleep(0.1)
    assert done(receipts) == 10
    await world.broker.registry.unload(NAME)
    assert world.broker.engine.parked.bytes == 0
    again = await client.producer(TOPIC)
    receipts = send_many(again, 20)
    await asyncio.sleep(0.7)
    assert done(receipts) == 0
    await asyncio.sleep(0.5)
    assert 1 <= done(receipts) <= 12
    await asyncio.gather(*receipts)
    assert world.broker.engine.topics[TOPIC].log.end == 30


@played()
async def test_deleting_a_topic_forgets_what_waits(world: World) -> None:
    """Rule 3.4."""
    client = await world.connect()
    await limit_topic(world, 1)
    send_many(await client.producer(TOPIC), 20)
    await asyncio.sleep(0.1)
    await world.broker.registry.delete(NAME, force=True)
    engine = world.broker.engine
    assert (engine.parked.bytes, engine.parked._producers, engine.admission.gate.demand) == (
        0,
        {},
        0,
    )


# -- batches and chunks ----------------------------------------------------------------------------


@played()
async def test_a_batch_counts_with_its_messages_and_is_never_split(world: World) -> None:
    """Rule 3.2."""
    client = await world.connect()
    await limit_topic(world, 100)
    producer = await client.producer(TOPIC)
    receipts = send_many(producer, 100, batch=[b"x"] * 10)
    await asyncio.sleep(0.9)
    assert done(receipts) == 10
    await asyncio.sleep(5)
    assert 58 <= done(receipts) <= 60
    await asyncio.gather(*receipts)
    assert in_order(receipts)


@played()
async def test_chunks_wait_one_by_one_in_their_order(world: World) -> None:
    """Rule 3.1: each chunk is an entry, and they may share a sequence id."""
    client = await world.connect()
    await limit_topic(world, 2)
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s")
    producer.sequence_id = 0
    for number in range(6):
        entry = producer.entry(b"chunk %d" % number)
        client.write(frames.send_head(producer.producer_id, 0, len(entry), is_chunk=True) + entry)
    await asyncio.sleep(0.9)
    topic = world.broker.engine.topics[TOPIC]
    assert topic.log.end == 2
    payloads = [(await consumer.receive()).payload for _ in range(6)]
    assert payloads == [b"chunk %d" % number for number in range(6)]
    (held,) = topic.producers.values()
    assert held.chunks_published == 6


# -- changes act at once ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tight", "loose"),
    [
        ("maxPublishRatePerTopicInMessages", "5", "40"),
        ("maxPublishRatePerTopicInBytes", "250", "2000"),
        ("brokerPublisherThrottlingMaxMessageRate", "5", "40"),
        ("brokerPublisherThrottlingMaxByteRate", "250", "2000"),
    ],
)
def test_the_brokers_settings_act_at_once(name: str, tight: str, loose: str) -> None:
    """Rule 3.3, for a topic that is loaded and a producer that is held."""

    async def story(world: World) -> None:
        producer = await (await world.connect()).producer(TOPIC)
        await asyncio.gather(*send_many(producer, 50))
        await set_dynamic(world, name, tight)
        await asyncio.sleep(1)
        receipts = send_many(producer, 200)
        await asyncio.sleep(3)
        slow = done(receipts)
        assert 4 * 3 - 2 <= slow <= 5 * 4 + 2
        await set_dynamic(world, name, loose)
        await asyncio.sleep(2.1)
        assert done(receipts) - slow >= 60
        await set_dynamic(world, name, None)
        await asyncio.sleep(0.1)
        assert done(receipts) == 200
        assert in_order(receipts)

    played()(story)()


@pytest.mark.parametrize("level", ["topic", "namespace"])
def test_policies_act_at_once(level: str) -> None:
    """Rule 3.3."""

    async def story(world: World) -> None:
        catalog, commit = world.broker.catalog, world.broker.writer.commit

        async def put(rate: PublishRate | None) -> None:
            if level == "topic":
                await commit(catalog.plan_topic_policies(NAME, publish_rate=rate))
            else:
                await commit(catalog.plan_namespace_policies(NAME.namespace, publish_rate=rate))

        producer = await (await world.connect()).producer(TOPIC)
        await put(PublishRate(10, -1))
        receipts = send_many(producer, 300)
        await asyncio.sleep(0.9)
        assert done(receipts) == 10
        await put(PublishRate(100, -1))
        await asyncio.sleep(0.1)
        assert done(receipts) > 10
        await asyncio.sleep(0.8)
        assert 90 <= done(receipts) <= 110
        await put(None)
        await asyncio.sleep(0.1)
        assert done(receipts) == 300

    played()(story)()


@played()
async def test_a_limit_that_is_lowered_leaves_no_hole(world: World) -> None:
    """Rules 1.5 and 3.3: each second carries the limit of that second; also where it was removed
    in between, while nothing was sent."""
    await limit_topic(world, 300)
    publisher = Publisher(world, await world.connect(), TOPIC, 1_000)
    await asyncio.sleep(2)
    for limit in (300, 225, 169, 100):
        await limit_topic(world, limit)
        before = publisher.received
        await asyncio.sleep(1)
        assert publisher.received - before == pytest.approx(limit, abs=0.02 * limit + 2)
    publisher.per_s = 0
    while publisher.unanswered:
        await asyncio.sleep(0.02)
    await limit_topic(world)
    await limit_topic(world, 50)
    publisher.per_s = 1_000
    before = publisher.received
    await asyncio.sleep(1)
    assert publisher.received - before == pytest.approx(50, abs=3)


@played()
async def test_a_policy_of_unlimited_releases_at_once(world: World) -> None:
    """Rule 3.3: also from what holds further out."""
    await set_dynamic(world, "maxPublishRatePerTopicInMessages", "1")
    producer = await (await world.connect()).producer(TOPIC)
    receipts = send_many(producer, 50)
    await asyncio.sleep(0.5)
    assert done(receipts) == 1
    change = world.broker.catalog.plan_topic_policies(
        NAME, publish_rate=PublishRate(unlimited=True)
    )
    await world.broker.writer.commit(change)
    await asyncio.sleep(0.1)
    assert done(receipts) == 50


@played()
async def test_a_quota_and_a_limit_hold_together(world: World) -> None:
    """Rule 3.3: the acknowledgement comes over the held producer's own connection."""
    client = await world.connect()
    await limit_topic(world, 20)
    consumer = await client.subscribe(TOPIC, "s")
    quotas = {"destination_storage": BacklogQuota("producer_request_hold", limit_size=400)}
    change = world.broker.catalog.plan_topic_policies(NAME, backlog_quotas=quotas)
    await world.broker.writer.commit(change)
    producer = await client.producer(TOPIC)
    receipts = send_many(producer, 60)
    await asyncio.sleep(5)
    parking = world.broker.engine.topics[TOPIC].publishing.parking
    assert parking is not None
    assert parking.waiting(ParkCause.BACKLOG_QUOTA).producers == 1
    assert done(receipts) < 20
    for _ in range(60):
        message = await consumer.receive()
        consumer.ack_nowait(message.position)
    await asyncio.gather(*receipts)
    assert in_order(receipts)
