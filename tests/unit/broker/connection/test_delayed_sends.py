"""SENDs that ask for a delay which is too long, or whose topic delays nothing."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.names import parse_topic
from headgate.broker.connection.ordered_refusals import WAITING_MAX
from headgate.engine.types import SubscriptionType
from headgate.testing import RefusedError, SimProducer, World
from headgate.wire.codes import ServerError
from tests.unit.broker.playing import TOPIC, played

HOUR_MS = 3_600_000
LIMIT = {"delayedDeliveryMaxDelayInMillis": str(HOUR_MS - 1)}
REASON = "Exceeds max allowed delivery delay of 3599999 milliseconds"


async def answers_of(producer: SimProducer, text: str) -> list[str]:
    """Send at once a message for each letter, delayed ones for ``d``: in which order they end."""
    told: list[str] = []
    sent = []
    for number, letter in enumerate(text):
        future = producer.send_nowait(b"x", delay_ms=HOUR_MS if letter == "d" else 0)
        future.add_done_callback(lambda f, t=f"{letter}{number}": told.append(t))
        sent.append(future)
    ends = await asyncio.gather(*sent, return_exceptions=True)
    for letter, end in zip(text, ends, strict=True):
        assert isinstance(end, RefusedError) == (letter == "d")
        if isinstance(end, RefusedError):
            assert (end.code, end.message) == (ServerError.NOT_ALLOWED_ERROR, REASON)
    return told


@played(settings=LIMIT)
async def test_a_delay_beyond_the_limit_is_refused_and_the_producer_goes_on(world: World) -> None:
    client = await world.connect()
    producer, consumer = await client.producer(TOPIC), await client.subscribe(TOPIC, "s")
    assert await answers_of(producer, "d") == ["d0"]
    position = await producer.send(b"x")
    assert (await consumer.receive()).position == position
    assert client.is_open
    assert producer.is_open
    assert world.broker.counts.delays_ignored == 0


@pytest.mark.parametrize("text", ["md", "dm", "mmdmdd", "dddmmmd", "mdmdmdmd"])
def test_the_refusal_comes_in_the_order_of_the_sends(text: str) -> None:
    """A Java client ignores one that comes too early or too late, and its send times out."""

    @played(settings=LIMIT | {"maxPendingPublishRequestsPerConnection": "2"})
    async def story(world: World) -> None:
        producer = await (await world.connect()).producer(TOPIC)
        for _ in range(2):
            told = await answers_of(producer, text)
            assert [int(each[1:]) for each in told] == list(range(len(text)))
        (connection,) = world.broker.connections
        assert not connection.producer_port.refusals.by_producer

    story()


@played(settings=LIMIT)
async def test_of_a_producer_that_goes_nothing_is_left(world: World) -> None:
    client = await world.connect()
    producer, other = await client.producer(TOPIC), await client.producer(TOPIC)
    world.lanes[0].freeze()
    sent = [
        each.send_nowait(b"x", delay_ms=delay_ms)
        for each in (producer, other)
        for delay_ms in (0, HOUR_MS)
    ]
    await asyncio.sleep(0.1)
    (connection,) = world.broker.connections
    assert len(connection.producer_port.refusals.by_producer) == 2
    connection.producer_port.close_after_failure(producer.producer_id)
    assert list(connection.producer_port.refusals.by_producer) == [other.producer_id]
    assert connection.producer_port.refusals._waiting_count == 1
    world.lanes[0].thaw()
    await asyncio.gather(*sent, return_exceptions=True)
    assert not connection.producer_port.refusals.by_producer
    await other.send(b"x")


@played(settings={"delayedDeliveryEnabled": "false"} | LIMIT)
async def test_without_delayed_delivery_messages_come_at_once_and_are_counted(
    world: World,
) -> None:
    client = await world.connect()
    producer = await client.producer(TOPIC)
    consumer = await client.subscribe(TOPIC, "s", kind=SubscriptionType.SHARED)
    for _ in range(2):
        await producer.send(b"late", delay_ms=HOUR_MS)
        assert (await consumer.receive()).payload == b"late"
    await producer.send(b"", batch=[b"late"] * 3, delay_ms=HOUR_MS)
    await producer.send(b"now")
    assert world.broker.counts.delays_ignored == 5
    report = await world.observer.explain_topic(parse_topic(TOPIC), per_partition=False)
    assert report["publishing"]["delaysIgnored"] == 5


@played(settings={"delayedDeliveryMaxDelayInMillis": str(HOUR_MS)})
async def test_the_longest_delay_is_allowed(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x", delay_ms=HOUR_MS)
    with pytest.raises(RefusedError, match="3600000 milliseconds"):
        await producer.send(b"x", delay_ms=HOUR_MS + 1)
    with pytest.raises(RefusedError):
        await producer.send(b"", batch=[b"x"] * 3, delay_ms=HOUR_MS + 1)
    assert world.broker.counts.delays_refused == 4
    report = await world.observer.explain_topic(parse_topic(TOPIC), per_partition=False)
    assert report["publishing"]["delaysRefused"] == 4


@played(settings=LIMIT)
async def test_a_time_that_is_past_is_no_delay(world: World) -> None:
    producer = await (await world.connect()).producer(TOPIC)
    await producer.send(b"x", delay_ms=-HOUR_MS)


@played(settings=LIMIT)
async def test_a_producer_that_sends_on_and_on_takes_no_memory(world: World) -> None:
    """What waits behind a message that is not answered for long is bounded."""
    client = await world.connect()
    producer = await client.producer(TOPIC)
    world.lanes[0].freeze()
    plain = producer.send_nowait(b"x")
    late = [producer.send_nowait(b"x", delay_ms=HOUR_MS) for _ in range(WAITING_MAX + 5)]
    await asyncio.sleep(60)
    (connection,) = world.broker.connections
    assert (
        len(connection.producer_port.refusals.by_producer[producer.producer_id].waiting)
        == WAITING_MAX
    )
    world.lanes[0].thaw()
    await plain
    await asyncio.sleep(1)
    assert not connection.producer_port.refusals.by_producer
    assert [isinstance(f.exception(), RefusedError) for f in late[:3]] == [True] * 3
    assert sum(f.done() for f in late) == WAITING_MAX
    assert connection.producer_port.refusals._waiting_count == 0
    for future in late:
        assert not future.done() or future.exception()
    await producer.send(b"x")
