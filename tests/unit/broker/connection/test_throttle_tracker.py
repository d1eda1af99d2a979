"""Throttle types as Pulsar has them, and which connections count as throttled."""

from __future__ import annotations

import asyncio

import pytest

from headgate.base.park_cause import ParkCause
from headgate.broker.connection.throttle_tracker import THROTTLE_TYPES, ThrottleType
from headgate.testing import World
from tests.unit.broker.playing import TOPIC, played
from tests.unit.broker.publishing import limit_topic, send_many, server_side, set_dynamic

PULSARS_SEVEN = [
    "ConnectionMaxPendingPublishRequestsExceeded",
    "IOThreadMaxPendingPublishBytesExceeded",
    "TopicPublishRate",
    "ResourceGroupPublishRate",
    "BrokerPublishRate",
    "ConnectionOutboundBufferFull",
    "ConnectionPauseReceivingCooldownRateLimit",
]

# -- the constants: code of others indexes by their ordinals ---------------------------------------


def test_pulsars_seven_keep_their_order() -> None:
    assert [each.name for each in ThrottleType][:7] == PULSARS_SEVEN
    assert [each.ordinal for each in ThrottleType] == list(range(8))


def test_the_adaptive_one_is_the_eighth_and_last() -> None:
    assert list(ThrottleType)[-1] is ThrottleType.AdaptivePublishRate
    assert ThrottleType.AdaptivePublishRate.ordinal == 7


def test_the_adaptive_one_is_reentrant() -> None:
    """One topic's release must not release another's on the same connection."""
    assert ThrottleType.AdaptivePublishRate.is_reentrant


def test_which_of_pulsars_are_reentrant() -> None:
    assert {each.name for each in ThrottleType if each.is_reentrant} == {
        "TopicPublishRate",
        "ResourceGroupPublishRate",
        "AdaptivePublishRate",
    }


def test_every_cause_has_its_type_but_quota_and_disk_which_throttle_nobody() -> None:
    assert set(THROTTLE_TYPES) == set(ParkCause)
    assert [cause for cause, kind in THROTTLE_TYPES.items() if kind is None] == [
        ParkCause.BACKLOG_QUOTA,
        ParkCause.DISK_FULL,
    ]
    kinds = [kind for kind in THROTTLE_TYPES.values() if kind is not None]
    assert len(set(kinds)) == len(kinds)


# -- what counts ---------------------------------------------------------------------------------

OTHER, THIRD = f"{TOPIC}-other", f"{TOPIC}-third"


@played()
async def test_one_limited_topic_throttles_every_topic_of_its_connection(world: World) -> None:
    """Rule 3.5, as Pulsar counts ``pulsar_publish_rate_limit_times``: 1, 1, 0."""
    client = await world.connect()
    await limit_topic(world, 5)
    producer = await client.producer(TOPIC)
    neighbour = await client.producer(OTHER)
    await (await world.connect()).producer(THIRD)
    send_many(producer, 20)
    send_many(neighbour, 20)
    await asyncio.sleep(1.5)
    topics = [world.broker.engine.topics[name] for name in (TOPIC, OTHER, THIRD)]
    assert [topic.publishing.throttled_count for topic in topics] == [1, 1, 0]
    assert topics[1].publishing.parking is None  # the truth is in series of Headgate's own
    await asyncio.sleep(4)
    send_many(producer, 20)
    await asyncio.sleep(0.5)
    assert [topic.publishing.throttled_count for topic in topics] == [2, 2, 0]


@played()
async def test_a_connection_is_throttled_while_any_of_its_producers_is(world: World) -> None:
    """Rule 3.5: reentrant, so that one topic's release does not end another's."""
    client, counts = await world.connect(), world.broker.counts
    await limit_topic(world, 5)
    await limit_topic(world, 1, topic=OTHER)
    first, second = await client.producer(TOPIC), await client.producer(OTHER)
    send_many(first, 8)
    send_many(second, 4)
    await asyncio.sleep(0.5)
    throttle = server_side(world, client).throttle
    assert (counts.throttles_begun, counts.throttles_ended) == (1, 0)
    await asyncio.sleep(1.5)
    assert throttle.is_by(ParkCause.TOPIC_RATE)
    assert not throttle.pauses_reading
    assert (counts.throttles_begun, counts.throttles_ended) == (1, 0)
    await asyncio.sleep(3)
    assert not throttle.is_by(ParkCause.TOPIC_RATE)
    assert (counts.throttles_begun, counts.throttles_ended) == (1, 1)


@played()
async def test_the_limits_of_broker_and_topic_are_distinguished(world: World) -> None:
    client = await world.connect()
    await set_dynamic(world, "brokerPublisherThrottlingMaxMessageRate", "5")
    producer = await client.producer(TOPIC)
    send_many(producer, 20)
    await asyncio.sleep(0.5)
    throttle = server_side(world, client).throttle
    assert throttle.is_by(ParkCause.BROKER_RATE)
    assert not throttle.is_by(ParkCause.TOPIC_RATE)


@played(settings={"maxPendingPublishRequestsPerConnection": "10"})
async def test_too_many_unanswered_sends_count_as_throttled_and_not(world: World) -> None:
    """As Pulsar's ``pulsar_broker_throttled_connections`` and its counterpart."""
    client, counts = await world.connect(), world.broker.counts
    producer = await client.producer(TOPIC)
    await asyncio.gather(*send_many(producer, 10))
    assert (counts.pending_limits_reached, counts.pending_limits_left) == (0, 0)
    world.lanes[0].freeze()
    receipts = send_many(producer, 30)
    await asyncio.sleep(0.1)
    assert (counts.pending_limits_reached, counts.pending_limits_left) == (1, 0)
    world.lanes[0].thaw()
    await asyncio.gather(*receipts)
    assert counts.pending_limits_reached == counts.pending_limits_left >= 1
    assert counts.throttles_begun == counts.throttles_ended >= 1


@pytest.mark.parametrize("how", ["close", "abort"])
def test_a_throttled_connection_that_ends_is_counted_as_resumed(how: str) -> None:
    async def story(world: World) -> None:
        client, counts = await world.connect(), world.broker.counts
        await limit_topic(world, 1)
        producer = await client.producer(TOPIC)
        send_many(producer, 10)
        await asyncio.sleep(0.1)
        assert (counts.throttles_begun, counts.throttles_ended) == (1, 0)
        if how == "close":
            await producer.close()
        else:
            client.abort()
        await asyncio.sleep(0.1)
        assert (counts.throttles_begun, counts.throttles_ended) == (1, 1)

    played()(story)()


@played(settings={"headgateMaxParkedBytesPerConnection": "2000"})
async def test_a_paused_socket_counts_as_throttled_until_it_is_read_and_stored(
    world: World,
) -> None:
    client, counts = await world.connect(), world.broker.counts
    await limit_topic(world, 10)
    producer = await client.producer(TOPIC)
    receipts = [producer.send_nowait(b"x" * 200) for _ in range(30)]
    await asyncio.sleep(0.1)
    throttle = server_side(world, client).throttle
    assert throttle.pauses_reading
    assert throttle.is_by(ParkCause.MEMORY)
    await asyncio.gather(*receipts)
    assert not throttle.is_by(ParkCause.MEMORY)
    assert counts.throttles_begun == counts.throttles_ended
