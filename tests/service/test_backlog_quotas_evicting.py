"""Backlog quotas that evict, and quotas in time, with real clients and real disks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pulsar
import pytest

from headgate.testing.client import SimClient
from tests.service.clients import (
    EARLIEST,
    SHARED,
    client_of,
    full,
    is_silent,
    receive,
    wait_until,
)
from tests.service.measuring import Noise, Rest
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import (
    EVICT,
    EVICTION_PERCENT,
    HOLD,
    OVERHEAD_BYTES,
    QUIET_S,
    RETAINED,
    Samples,
    Sending,
    quota_events,
    stored,
    words,
)

pytestmark = pytest.mark.waits

LIMIT_BYTES = 1_000_000
KEPT_BYTES = LIMIT_BYTES * EVICTION_PERCENT // 100
PAYLOAD_BYTES = 9_000
ENTRY_BYTES = PAYLOAD_BYTES + OVERHEAD_BYTES

LIMIT_S = 2
ACTS_S = 1.0
"""A quota in time acts this long after its time at the latest."""
RELEASE_S, EVICTION_S = 0.95 * LIMIT_S, 0.9 * LIMIT_S
DAY_MS = 24 * 3_600 * 1_000

Make = Callable[..., BrokerProcess]

BROKERS = {
    "evicting": {
        "backlogQuotaDefaultLimitBytes": LIMIT_BYTES,
        "backlogQuotaDefaultRetentionPolicy": EVICT,
        "headgateTelemetryIntervalMs": 1_000,
    },
    "ageing": {
        "backlogQuotaDefaultLimitSecond": LIMIT_S,
        "backlogQuotaDefaultRetentionPolicy": EVICT,
        "headgateTelemetryIntervalMs": 1_000,
    },
    "waiting": {
        "backlogQuotaDefaultLimitSecond": LIMIT_S,
        "backlogQuotaDefaultRetentionPolicy": HOLD,
    },
}


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, BrokerProcess]]:
    """One that evicts by size, one that evicts by age, one that holds by age."""
    made = {
        name: BrokerProcess(tmp_path_factory.mktemp(name), words(**RETAINED, **settings))
        for name, settings in BROKERS.items()
    }
    try:
        with ThreadPoolExecutor(len(made)) as pool:
            list(pool.map(BrokerProcess.start, made.values()))
        yield made
    finally:
        for process in made.values():
            process.close()


@pytest.fixture
def rests(brokers: dict[str, BrokerProcess]) -> Iterator[dict[str, Rest]]:
    """A connection to the web port of each."""
    made = {name: Rest(broker.admin_url) for name, broker in brokers.items()}
    yield made
    for rest in made.values():
        rest.close()


def on_the_wire(
    broker: BrokerProcess,
    play: Callable[[SimClient], Coroutine[Any, Any, Any]],
    wall_ms: Callable[[], int],
) -> Any:
    """What ``play`` returns that a client with such a clock was handed to."""

    async def run() -> Any:
        loop = asyncio.get_running_loop()
        url = urlsplit(broker.service_url)
        _, client = await loop.create_connection(
            lambda: SimClient(loop, wall_ms=wall_ms), url.hostname, url.port
        )
        await client.connect()
        found = await play(client)
        client.close()
        return found

    return asyncio.run(asyncio.wait_for(run(), 60))


def texts_of(messages: list[pulsar.Message]) -> list[str]:
    """Their payloads as they were sent."""
    return [message.data().decode().rstrip() for message in messages]


# By size -----------------------------------------------------------------------------------------


def test_eviction_goes_to_90_percent_and_not_one_entry_further(
    brokers: dict[str, BrokerProcess], rests: dict[str, Rest]
) -> None:
    """Rules 4.2, 4.3 and 4.6: every subscription that is over it, the oldest messages, one act;
    producers notice nothing, and a subscription that keeps up loses nothing."""
    broker, rest, topic = brokers["evicting"], rests["evicting"], full("evicted")
    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        for name in ("slow", "slower"):
            client.subscribe(topic, name, initial_position=EARLIEST).close()
        prompt = client.subscribe(topic, "prompt")
        sending = Sending(other, topic, "p", PAYLOAD_BYTES)
        backlogs: list[int] = []
        for _ in range(300):
            sending.send(1)
            sending.finish()
            prompt.acknowledge(prompt.receive(10_000))
            backlogs.append(rest.topic(topic)["backlogSize"])
        entry_bytes = backlogs[0]
        falls = [
            (before, after) for before, after in pairwise(backlogs)
            if after < before
        ]  # fmt: skip
        assert max(backlogs) < LIMIT_BYTES
        assert len(falls) == sum(
            KEPT_BYTES - entry_bytes < after <= KEPT_BYTES for _, after in falls
        )
        assert 2 <= len(falls) <= 30
        stats = rest.topic(topic)["subscriptions"]
        assert stats["slow"]["backlogSize"] == stats["slower"]["backlogSize"] == backlogs[-1]
        assert len(sending.with_result()) == 300
        left = backlogs[-1] // entry_bytes
        consumer = client.subscribe(topic, "slow")
        assert texts_of(receive(consumer, left)) == sending.sent[-left:]
        assert is_silent(consumer)
    told = quota_events(broker.service_url, topic)
    # The acts of one window are one event.
    assert {each["event"] for each in told} == {"eviction"}
    assert sum(each["outcome"]["acts"] for each in told) == len(falls)
    lost = 300 * 2 - 2 * left
    assert sum(each["outcome"]["messages"] for each in told) == lost
    assert {s["subscription"] for each in told for s in each["outcome"]["subscriptions"]} == {
        "slow",
        "slower",
    }


def test_consumers_with_evicted_messages_see_no_error_and_no_second_delivery(
    brokers: dict[str, BrokerProcess], rests: dict[str, Rest]
) -> None:
    """Rule 4.3: acks and negative acks of what was evicted do nothing, and the messages that are
    with consumers and not acknowledged are counted right."""
    broker, rest, topic = brokers["evicting"], rests["evicting"], full("unacked")

    def unacked() -> int:
        count: int = rest.topic(topic)["subscriptions"]["s"]["unackedMessages"]
        return count

    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        consumer = client.subscribe(topic, "s", SHARED, negative_ack_redelivery_delay_ms=100)
        sending = Sending(other, topic, "p", PAYLOAD_BYTES)
        sending.send(100)
        sending.finish()
        held = receive(consumer, 100)
        assert unacked() == 100
        # Ten acknowledged in the middle, and past the limit: the oldest go.
        for message in held[40:50]:
            consumer.acknowledge(message)
        wait_until(lambda: unacked() == 90)
        sending.send(30)
        sending.finish()
        held += receive(consumer, 30)
        stats = rest.topic(topic)
        left = stats["headgate"]["backlogMessages"]
        lost = 120 - left
        assert 0 < lost < 40
        assert stats["subscriptions"]["s"]["unackedMessages"] == left
        for message in held[: lost // 2]:
            consumer.acknowledge(message)
        for message in held[lost // 2 : lost]:
            consumer.negative_acknowledge(message)
        assert is_silent(consumer)
        time.sleep(QUIET_S)
        assert is_silent(consumer)
        assert unacked() == left
        # One of those that are left does come again, and so do all after a reconnect.
        consumer.negative_acknowledge(held[lost])
        assert texts_of(receive(consumer, 1)) == [sending.sent[lost]]
        consumer.close()
        consumer = client.subscribe(topic, "s", SHARED)
        remaining = [text for text in sending.sent[lost:] if text not in sending.sent[40:50]]
        assert sorted(texts_of(receive(consumer, left))) == remaining
        assert is_silent(consumer)


def test_readers_are_neither_counted_nor_evicted(
    brokers: dict[str, BrokerProcess], rests: dict[str, Rest]
) -> None:
    """Rules 4.1 and 4.4: only subscriptions that users own have a backlog to be bounded."""
    broker, rest = brokers["evicting"], rests["evicting"]
    alone, beside = full("read-only"), full("read-beside")
    with client_of(broker.service_url) as client:
        readers = [
            client.create_reader(topic, pulsar.MessageId.earliest, receiver_queue_size=1)
            for topic in (alone, beside)
        ]
        client.subscribe(beside, "s", initial_position=EARLIEST).close()
        sendings = [Sending(client, topic, "p", PAYLOAD_BYTES) for topic in (alone, beside)]
        for sending in sendings:
            sending.send(200)
            sending.finish()
            assert len(sending.with_result()) == 200
        assert rest.topic(alone)["backlogSize"] == 0
        assert rest.topic(alone)["oldestBacklogMessageAgeSeconds"] == -1
        assert 0 < rest.topic(beside)["backlogSize"] < LIMIT_BYTES
        for reader, sending in zip(readers, sendings, strict=True):
            assert texts_of([reader.read_next(10_000) for _ in range(200)]) == sending.sent
    told = quota_events(broker.service_url, beside)
    assert {s["subscription"] for each in told for s in each["outcome"]["subscriptions"]} == {"s"}
    assert quota_events(broker.service_url, alone) == []


# By age ------------------------------------------------------------------------------------------


def test_what_is_too_old_goes_within_a_second_and_what_is_younger_stays(
    brokers: dict[str, BrokerProcess], rests: dict[str, Rest]
) -> None:
    """Rules 4.2, 4.3 and 4.6: by age, from every subscription; nothing younger than 90 %."""
    broker, topic = brokers["ageing"], full("aged")

    def looks(stats: Any) -> Any:
        return tuple(stats["subscriptions"][name]["msgBacklog"] for name in ("a", "b"))

    with client_of(broker.service_url) as client:
        consumers = [client.subscribe(topic, name, SHARED) for name in ("a", "b")]
        sending = Sending(client, topic, "p", 100)
        sent_at = []
        with Noise([broker.pid]) as noise, Samples(broker.admin_url, topic, looks) as samples:
            for _ in range(2):
                before = time.monotonic()
                sending.send(10)
                sending.finish()
                sent_at.append((before, time.monotonic()))
                for message in receive(consumers[0], 10)[:3]:
                    consumers[0].acknowledge(message)
                time.sleep(1.2)
            wait_until(lambda: samples.values[-1] == (0, 0))
    # The first burst goes as a whole, then the second; before that it was all there.
    for (before, after), full_count in zip(sent_at, (20, 10), strict=True):
        begin = next(i for i, value in enumerate(samples.values) if value[1] == full_count)
        gone = begin + next(i for i, v in enumerate(samples.values[begin:]) if v[1] < full_count)
        assert samples.values[gone][1] == full_count - 10
        asked, answered, _ = samples.all[gone]
        last_seen, _, _ = samples.all[gone - 1]
        assert answered >= before + EVICTION_S
        late_s = noise.lost_s(broker.pid, before, answered)
        assert last_seen <= after + LIMIT_S + ACTS_S + late_s, (asked, after)
    told = quota_events(broker.service_url, topic)
    assert {each["event"] for each in told} == {"eviction"}
    assert sum(each["outcome"]["acts"] for each in told) == 2
    assert all(each["quota"] == "time" for each in told)
    assert sum(each["outcome"]["messages"] for each in told) == 4 * 10 - 2 * 3
    assert stored(broker.service_url, topic) == sending.sent


def test_age_holds_a_producer_within_a_second_and_lets_it_go(
    brokers: dict[str, BrokerProcess], rests: dict[str, Rest]
) -> None:
    """Rules 4.2, 4.3 and 4.4: on time, and released when the oldest is acknowledged."""
    broker, topic = brokers["waiting"], full("old")
    with client_of(broker.service_url) as client, Noise([broker.pid]) as noise:
        consumer = client.subscribe(topic, "s", SHARED)
        sending = Sending(client, topic, "p", 100)
        sent_at: list[float] = []
        begin = time.monotonic()
        while time.monotonic() < begin + LIMIT_S + ACTS_S + 0.5:
            sent_at.append(time.monotonic())
            sending.send(1)
            time.sleep(0.02)
        count = sending.settle()
        first_stored = sending.told[0][2]
        last_told = sending.told[-1][2]
        assert last_told >= begin + LIMIT_S
        late_s = noise.lost_s(broker.pid, begin, last_told)
        assert sent_at[count - 1] <= first_stored + LIMIT_S + ACTS_S + late_s
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededError):
            client.create_producer(topic)
        # Those that are too old by now go, not in order; the hold ends, and begins again later.
        for message in reversed(receive(consumer, count)):
            consumer.acknowledge(message)
        for message in receive(consumer, len(sending.sent) - count):
            consumer.acknowledge(message)
        sending.finish()
    assert sending.with_result() == sending.sent == stored(broker.service_url, topic)


def test_a_clock_that_lies_changes_no_age(
    brokers: dict[str, BrokerProcess], rests: dict[str, Rest]
) -> None:
    """Rule 4.5: ages are the broker's, whatever the publish times say; -1 without a backlog."""
    broker, rest, topic = brokers["ageing"], rests["ageing"], full("lying")

    def looks(stats: Any) -> Any:
        return stats["backlogSize"], stats["headgate"]["oldestAgeSeconds"]

    for name, lie_ms in (("past", -10 * DAY_MS), ("future", 10 * DAY_MS)):

        async def play(client: SimClient, where: str = f"{topic}-{name}") -> float:
            await (await client.subscribe(where, "s")).close()
            assert rest.topic(where)["oldestBacklogMessageAgeSeconds"] == -1
            assert "oldestBacklogMessageSubscriptionName" not in rest.topic(where)
            producer = await client.producer(where)
            before = time.monotonic()
            await producer.send(b"when?")
            return before

        def lying(lie_ms: int = lie_ms) -> int:
            return int(time.time() * 1_000) + lie_ms

        before = on_the_wire(broker, play, lying)
        where = f"{topic}-{name}"
        with Noise([broker.pid]) as noise, Samples(broker.admin_url, where, looks) as samples:
            wait_until(lambda: samples.values[-1:] == [(0, None)])
        kept = [each for each in samples.all if each[2][0]]
        for asked, answered, (_, age_s) in kept:
            assert age_s <= answered - before + 0.01
            assert age_s >= asked - before - 0.5
        assert samples.all[len(kept)][1] >= before + EVICTION_S
        late_s = noise.lost_s(broker.pid, before, kept[-1][0])
        assert kept[-1][0] <= before + LIMIT_S + ACTS_S + late_s + 0.5
        assert rest.topic(where)["oldestBacklogMessageAgeSeconds"] == -1
