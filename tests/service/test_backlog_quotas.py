"""Backlog quotas that hold or refuse producers, with real clients and real disks."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pulsar
import pytest

from headgate.testing.client import SimClient
from tests.service.clients import EARLIEST, QUIET, SHARED, client_of, full, wait_until
from tests.service.measuring import Noise, Rest
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import (
    HOLD,
    OVERHEAD_BYTES,
    PARK_MS,
    QUIET_S,
    REFUSE,
    RELEASE_PERCENT,
    RETAINED,
    Samples,
    Sending,
    backlog_bytes,
    connected,
    fill,
    quota_events,
    setting,
    stored,
    words,
)

pytestmark = pytest.mark.waits

LIMIT_BYTES = 10_000_000
LARGE_BYTES = 100_000
"""A payload of which a hundred reach the limit."""
FILLING = 105
"""So many messages of that size are more than fits."""
ENTRY_BYTES = LARGE_BYTES + OVERHEAD_BYTES

PARKED_BYTES = 16 << 20
"""What all connections together may park."""
HOLD_S = 20
"""What a hold may last: the default of headgateHoldParkMs."""
REFUSED = pulsar.Result.ProducerBlockedQuotaExceededException
BLOCKED = pulsar.ProducerBlockedQuotaExceededError
PARKED_PER_CONNECTION = "headgateMaxParkedBytesPerConnection"

Make = Callable[..., BrokerProcess]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """It holds producers at ten megabytes."""
    settings = words(
        **RETAINED,
        backlogQuotaDefaultLimitBytes=LIMIT_BYTES,
        backlogQuotaDefaultRetentionPolicy=HOLD,
        headgateTelemetryIntervalMs=1_000,
        maxMessagePublishBufferSizeInMB=PARKED_BYTES >> 20,
    )
    process = BrokerProcess(tmp_path_factory.mktemp("holding"), settings)
    process.start()
    try:
        yield process
    finally:
        process.close()


def distinct(values: list[Any]) -> list[Any]:
    """Each of them once, in the order of their first."""
    return [value for number, value in enumerate(values) if value not in values[:number]]


def take(consumer: pulsar.Consumer, count: int) -> list[str]:
    """Receive and acknowledge so many messages."""
    found = []
    for _ in range(count):
        message = consumer.receive(20_000)
        found.append(message.data().decode().rstrip())
        consumer.acknowledge(message)
    return found


# The limit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True], ids=["single", "batched"])
def test_a_backlog_never_passes_its_limit_by_more_than_an_entry(
    broker: BrokerProcess, rest: Rest, batched: bool
) -> None:
    """Rules 4.1 and 4.2: exact, and one entry more at most, with three producers at once."""
    topic, payload_bytes, in_batch = full(f"exact-{batched}"), 20_000, 5
    entry_bytes = (in_batch if batched else 1) * (payload_bytes + OVERHEAD_BYTES)
    batching = {"batching_enabled": True, "batching_max_messages": in_batch} if batched else {}
    clients = [pulsar.Client(broker.service_url, logger=QUIET) for _ in range(2)]
    clients[0].subscribe(topic, "s", initial_position=EARLIEST).close()
    sendings = [
        Sending(clients[number % 2], topic, f"p{number}", payload_bytes, **batching)
        for number in range(3)
    ]
    with Samples(broker.admin_url, topic, backlog_bytes) as samples:
        for _ in range(30):
            for sending in sendings:
                sending.send(10)
        wait_until(lambda: max(samples.values, default=0) >= LIMIT_BYTES)
        for sending in sendings:
            sending.settle()
    at_end = rest.topic(topic)
    assert LIMIT_BYTES <= max(samples.values) < LIMIT_BYTES + entry_bytes
    assert LIMIT_BYTES <= at_end["backlogSize"] < LIMIT_BYTES + entry_bytes
    accepted = sum(len(sending.with_result()) for sending in sendings)
    assert at_end["headgate"]["backlogMessages"] == accepted
    assert at_end["subscriptions"]["s"]["backlogSize"] == at_end["backlogSize"]
    assert all(result == pulsar.Result.Ok for sending in sendings for _, result, _ in sending.told)
    for client in clients:
        client.shutdown()
    found = stored(broker.service_url, topic)
    for sending in sendings:
        mine = [text for text in found if text.startswith(f"{sending.name} ")]
        assert mine == sending.with_result() == sending.sent[: len(mine)]


def test_the_largest_exact_backlog_counts_and_the_oldest_message_is_named(
    broker: BrokerProcess, rest: Rest
) -> None:
    """Rules 4.1 and 4.4: holes count as done, and acknowledging in the middle makes room."""
    topic = full("holes")
    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        slow = client.subscribe(topic, "slow", SHARED)
        old = client.subscribe(topic, "old", SHARED)
        sending = Sending(other, topic, "p", LARGE_BYTES)
        count = fill(sending, FILLING)
        owed_bytes = rest.topic(topic)["backlogSize"]
        # The oldest message is owed by one subscription, the most bytes by the other.
        slow.acknowledge(slow.receive(10_000))
        messages = [old.receive(10_000) for _ in range(count)]
        for message in messages[1:]:
            old.acknowledge(message)
        wait_until(lambda: rest.topic(topic)["subscriptions"]["old"]["msgBacklog"] == 1)
        wait_until(lambda: rest.topic(topic)["subscriptions"]["slow"]["msgBacklog"] == count - 1)
        stats = rest.topic(topic)
        one_bytes = stats["subscriptions"]["old"]["backlogSize"]
        assert LARGE_BYTES < one_bytes < ENTRY_BYTES
        assert stats["backlogSize"] == owed_bytes - one_bytes
        assert stats["oldestBacklogMessageSubscriptionName"] == "old"
        assert sending.settle() == count
        # Holes: the last ones go first, and still they make room.
        held = [slow.receive(10_000) for _ in range(count - 1)]
        for message in held[-10:]:
            slow.acknowledge(message)
        wait_until(lambda: len(sending.told) > count)
        assert sending.settle() < len(sending.sent) + 1
        assert rest.topic(topic)["backlogSize"] <= LIMIT_BYTES + ENTRY_BYTES


# Holding -----------------------------------------------------------------------------------------


def test_a_short_hold_is_nothing_but_latency(broker: BrokerProcess, rest: Rest) -> None:
    """Rules 4.3 and 4.4: same producer, same connection, same order, everything once."""
    topic = full("short")
    with client_of(broker.service_url) as reading, client_of(broker.service_url) as writing:
        consumer = reading.subscribe(topic, "s", initial_position=EARLIEST)
        sending = Sending(writing, topic, "p", LARGE_BYTES)
        with Samples(broker.admin_url, topic, connected) as samples:
            sending.send(150)
            assert sending.settle() < len(sending.sent)
            with pytest.raises(BLOCKED):
                reading.create_producer(topic)
            received = take(consumer, 150)
            sending.finish()
        assert connected(rest.topic(topic))[0][0] == "p"
        assert [connected(rest.topic(topic))] == distinct(samples.values)
    assert received == sending.sent == sending.with_result()
    assert stored(broker.service_url, topic) == sending.sent


def test_parked_messages_go_on_at_once_when_the_low_mark_is_reached(broker: BrokerProcess) -> None:
    """Rule 4.4: not before 95 % of the limit, and within 100 ms of it."""
    topic, rounds = full("low-mark"), 5

    async def play() -> list[tuple[float, float]]:
        loop = asyncio.get_running_loop()
        address = urlsplit(broker.service_url)
        _, client = await loop.create_connection(
            lambda: SimClient(loop), address.hostname, address.port
        )
        await client.connect()
        consumer = await client.subscribe(topic, "s", queue_size=500)
        producer = await client.producer(topic)
        waiting = [producer.send_nowait(bytes(LARGE_BYTES)) for _ in range(LIMIT_BYTES // 100_000)]
        await asyncio.gather(*waiting)
        owed = [(await consumer.receive()).position for _ in waiting]
        took = []
        for _ in range(rounds):
            held = [producer.send_nowait(bytes(LARGE_BYTES)) for _ in range(6)]
            # Five leave a little more than 95 %: an entry is a little larger than its payload.
            await consumer.ack(*owed[:5])
            await asyncio.sleep(QUIET_S / 2)
            assert not any(each.done() for each in held)
            acked = time.monotonic()
            consumer.ack_nowait(owed[5])
            await held[0]
            took.append((acked, time.monotonic()))
            # Back to the limit: the six that went make room for none.
            await asyncio.gather(*held)
            owed = [*owed[6:], *[(await consumer.receive()).position for _ in held]]
        client.close()
        return took

    with Noise([broker.pid]) as noise:
        took = asyncio.run(asyncio.wait_for(play(), 60))
    late = [end - begin - noise.lost_s(broker.pid, begin, end) for begin, end in took]
    assert statistics.median(late) <= 0.1, late
    assert max(late) <= 1, late


def test_a_long_hold_closes_the_producer_and_forgets_what_waited(
    broker: BrokerProcess, rest: Rest
) -> None:
    """Rule 4.3: what was dropped is stored only by a client that sends it again, in order."""
    topic = full("long")
    with (
        setting(rest, PARK_MS, 600),
        client_of(broker.service_url) as reading,
        client_of(broker.service_url) as writing,
    ):
        consumer = reading.subscribe(topic, "s", initial_position=EARLIEST)
        patient = Sending(writing, topic, "patient", LARGE_BYTES)
        # Its client gives up after the broker has: what it sent is gone for good.
        impatient = Sending(writing, topic, "impatient", LARGE_BYTES, send_timeout_millis=1_200)
        count = fill(patient, FILLING)
        impatient.send(5)
        impatient.finish()
        assert impatient.with_result(pulsar.Result.Timeout) == impatient.sent
        assert connected(rest.topic(topic)) == []
        with pytest.raises(BLOCKED):
            reading.create_producer(topic)
        assert patient.settle() == count
        assert backlog_bytes(rest.topic(topic)) < LIMIT_BYTES + ENTRY_BYTES
        received = take(consumer, count)
        patient.finish()
        impatient.send(1)
        impatient.finish()
        received += take(consumer, len(patient.sent) - count + 1)
    assert patient.with_result() == patient.sent
    # Nothing of what timed out: both began anew where the broker knew nothing of them.
    assert received == stored(broker.service_url, topic)
    assert sorted(received) == sorted([*patient.sent, impatient.sent[-1]])
    assert [text for text in received if text in patient.sent] == patient.sent


@pytest.mark.parametrize("bound", ["connection", "broker"])
def test_a_connection_that_parks_too_much_still_drains_itself(
    broker: BrokerProcess, rest: Rest, bound: str
) -> None:
    """Rule 4.3: ten times over the bound in bytes, on one socket with the consumer whose
    acknowledgements end the hold: it is never paused, and everything arrives, once."""
    topic = full(f"over-{bound}")
    if bound == "connection":
        count, payload_bytes, bound_bytes, of_one_bytes = 150, LARGE_BYTES, 500_000, 500_000
    else:
        count, payload_bytes, bound_bytes, of_one_bytes = 190, 1_000_000, PARKED_BYTES, 1 << 30
    assert count * payload_bytes - LIMIT_BYTES >= 10 * bound_bytes

    def looks(stats: Any) -> Any:
        (consumer,) = stats["subscriptions"]["s"]["consumers"]
        return connected(stats), consumer["address"]

    with (
        setting(rest, PARKED_PER_CONNECTION, of_one_bytes),
        client_of(broker.service_url) as client,
    ):
        consumer = client.subscribe(topic, "s", receiver_queue_size=20)
        sending = Sending(client, topic, "p", payload_bytes)
        with Samples(broker.admin_url, topic, looks) as samples:
            sending.send(count)
            wait_until(lambda: any(not producers for producers, _ in samples.values))
            received = take(consumer, count)
            sending.finish()
    assert sending.with_result() == received == sending.sent
    assert stored(broker.service_url, topic) == sending.sent
    # The producer was closed and came back, over the connection that everybody kept.
    addresses = {address for _, address in samples.values}
    addresses |= {address for producers, _ in samples.values for _, address, _ in producers}
    assert len(addresses) == 1


def test_others_on_the_connection_go_on_during_a_hold(broker: BrokerProcess, rest: Rest) -> None:
    """Rule 4.3: a hold pauses no socket: other topics' producers and acks on it are served."""
    topic, free = full("held"), full("free")
    with client_of(broker.service_url) as client:
        client.subscribe(topic, "s", initial_position=EARLIEST).close()
        consumer = client.subscribe(free, "s")
        neighbour = client.create_producer(free)
        sending = Sending(client, topic, "p", LARGE_BYTES)
        count = fill(sending, FILLING)
        before = connected(rest.topic(topic)) + connected(rest.topic(free))
        begin = time.monotonic()
        for number in range(30):
            neighbour.send(str(number).encode())
            assert take(consumer, 1) == [str(number)]
        assert time.monotonic() - begin < HOLD_S / 2
        wait_until(lambda: rest.topic(free)["backlogSize"] == 0)
        assert len(sending.told) == count
        assert connected(rest.topic(topic)) + connected(rest.topic(free)) == before
        assert len({address for _, address, _ in before}) == 1


def test_a_producer_at_the_limit_is_not_let_in_and_cut_off_by_turns(
    broker: BrokerProcess, rest: Rest
) -> None:
    """Rules 4.4 and 4.6: with a consumer slower than the producer nothing is ever closed, a hold
    ends at most once for each 5 % of the limit that was acknowledged, and the records tell at most
    one turn each way for each window."""
    topic, taken = full("slow-consumer"), 60
    mark_bytes = LIMIT_BYTES * RELEASE_PERCENT // 100
    with client_of(broker.service_url) as reading, client_of(broker.service_url) as writing:
        consumer = reading.subscribe(topic, "s", initial_position=EARLIEST)
        sending = Sending(writing, topic, "p", LARGE_BYTES)
        fill(sending, FILLING)
        with (
            Samples(broker.admin_url, topic, backlog_bytes) as backlogs,
            Samples(broker.admin_url, topic, connected) as producers,
        ):
            for _ in range(taken):
                sending.send(1)
                take(consumer, 1)
                time.sleep(0.02)
        told = quota_events(broker.service_url, topic)
    assert len(distinct(producers.values)) == 1
    assert max(backlogs.values) < LIMIT_BYTES + ENTRY_BYTES
    events = [each["event"] for each in told]
    assert events[0] == "quota_exceeded"
    assert all(one != other for one, other in pairwise(events))
    assert len(events) <= 2 * taken * ENTRY_BYTES / (LIMIT_BYTES - mark_bytes) + 1
    assert {(each["quota"], each["policy"], each["limit_bytes"]) for each in told} == {
        ("size", HOLD, LIMIT_BYTES)
    }
    for each in told:
        if each["event"] == "quota_released":
            assert each["backlog_bytes"] <= mark_bytes
        else:
            assert each["backlog_bytes"] >= LIMIT_BYTES


# Refusing ----------------------------------------------------------------------------------------


def test_producers_are_refused_until_there_is_room(make_broker: Make) -> None:
    """Rules 4.2 and 4.3: what has a receipt is stored once, what failed is not; then it works."""
    limit_bytes, payload_bytes = 1_000_000, 10_000
    settings = words(
        backlogQuotaDefaultLimitBytes=limit_bytes, backlogQuotaDefaultRetentionPolicy=REFUSE
    )
    broker = make_broker(words=settings).start()
    topic, rest = full("refused"), Rest(broker.admin_url)
    with client_of(broker.service_url) as reading, client_of(broker.service_url) as writing:
        consumer = reading.subscribe(topic, "s", initial_position=EARLIEST)
        sending = Sending(writing, topic, "p", payload_bytes)
        sending.send(300)
        sending.finish()
        accepted, failed = sending.with_result(), sending.with_result(REFUSED)
        assert accepted + failed == sending.sent
        assert accepted
        assert failed
        stats = rest.topic(topic)
        assert stats["publishers"] == []
        entry_bytes = payload_bytes + OVERHEAD_BYTES
        assert limit_bytes <= stats["backlogSize"] < limit_bytes + entry_bytes
        for client in (reading, writing):
            with pytest.raises(pulsar.ProducerBlockedQuotaExceededException):
                client.create_producer(topic)
        assert take(consumer, len(accepted)) == accepted
        wait_until(lambda: rest.topic(topic)["backlogSize"] == 0)
        reading.create_producer(topic).send(b"room")
        wait_until(sending.producer.is_connected)  # it comes back by itself
        sending.send(1)
        sending.finish()
        assert sending.told[-1][1] == pulsar.Result.Ok
    rest.close()
    assert stored(broker.service_url, topic) == [*accepted, "room", sending.sent[-1]]
