"""Backlog quotas when topics, producers, connections and cursors go away or move."""

from __future__ import annotations

import re
import time
from typing import Any

import pulsar
import pytest

from tests.service.clients import (
    EARLIEST,
    FAILOVER,
    QUIET,
    SHARED,
    client_of,
    is_silent,
    receive,
    wait_until,
)
from tests.service.measuring import Rest, topic_path
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import (
    EVICT,
    EVICTION_PERCENT,
    HOLD,
    OVERHEAD_BYTES,
    PARK_MS,
    QUIET_S,
    REFUSE,
    Sending,
    connected,
    fill,
    setting,
    stored,
)

LIMIT_BYTES = 1_000_000
PAYLOAD_BYTES = 9_000
ENTRY_BYTES = PAYLOAD_BYTES + OVERHEAD_BYTES
FILLING = 130


def topic_with(rest: Rest, namespace: str, policy: str) -> str:
    """A topic with a quota of its namespace."""
    body = {"limitSize": LIMIT_BYTES, "policy": policy}
    rest.ask("POST", f"/admin/v2/namespaces/{namespace}/backlogQuota", body)
    return f"persistent://{namespace}/t"


def parked_bytes(broker: BrokerProcess, topic: str) -> float:
    """What waits, as /metrics has it."""
    page = broker.get("/metrics")[1].decode()
    pattern = rf'headgate_publish_parked_bytes\{{[^}}]*topic="{topic}"[^}}]*\}} (\S+)'
    found = re.search(pattern, page)
    return float(found[1]) if found else 0.0


def make_room(rest: Rest, topic: str, subscription: str = "s") -> None:
    rest.ask("POST", f"{topic_path(topic)}/subscription/{subscription}/skip_all")


def idle(client: pulsar.Client, topic: str) -> None:
    """A subscription that nobody consumes."""
    client.subscribe(topic, "s", initial_position=EARLIEST).close()


# Producers that go -------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["closed", "gone"])
def test_what_a_producer_parked_goes_with_it(
    broker: BrokerProcess, rest: Rest, namespace: str, how: str
) -> None:
    """Rule 4.3: a producer that is closed, or whose client ends, leaves nothing that waits, and
    nothing of it is stored later."""
    topic = topic_with(rest, namespace, HOLD)
    with client_of(broker.service_url) as client:
        idle(client, topic)
        other = pulsar.Client(broker.service_url, logger=QUIET)
        sending = Sending(other, topic, "p", PAYLOAD_BYTES)
        count = fill(sending, FILLING)
        assert parked_bytes(broker, topic) >= (FILLING - count) * PAYLOAD_BYTES
        if how == "closed":
            sending.producer.close()
            assert connected(rest.topic(topic)) == []
            sending.finish()
            assert len(sending.with_result()) == count
        else:
            other.shutdown()
        wait_until(lambda: parked_bytes(broker, topic) == 0)
        make_room(rest, topic)
        time.sleep(QUIET_S)
        client.create_producer(topic).send(b"last")
        other.close()
    assert stored(broker.service_url, topic) == [*sending.sent[:count], "last"]


def test_with_no_time_to_wait_a_hold_closes_at_once(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 4.3: headgateHoldParkMs=0 is Pulsar's way; each message is still stored once."""
    topic = topic_with(rest, namespace, HOLD)
    with setting(rest, PARK_MS, 0), client_of(broker.service_url) as client:
        idle(client, topic)
        sending = Sending(client, topic, "p", PAYLOAD_BYTES)
        sending.send(FILLING)
        wait_until(lambda: connected(rest.topic(topic)) == [])
        assert parked_bytes(broker, topic) == 0
        make_room(rest, topic)
        sending.finish()
    assert sending.with_result() == sending.sent == stored(broker.service_url, topic)


def test_an_unload_during_a_hold_loses_and_doubles_nothing(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.1 and 4.3: the topic comes back with the same backlog, over the same limit."""
    topic = topic_with(rest, namespace, HOLD)
    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        idle(client, topic)
        sending = Sending(other, topic, "p", PAYLOAD_BYTES)
        count = fill(sending, FILLING)
        before = rest.topic(topic)["backlogSize"]
        rest.ask("PUT", f"{topic_path(topic)}/unload")
        with pytest.raises(pulsar.ProducerBlockedQuotaExceededError):
            client.create_producer(topic)
        assert rest.topic(topic)["backlogSize"] == before
        assert sending.settle() == count
        make_room(rest, topic)
        sending.finish()
    assert sending.with_result() == sending.sent == stored(broker.service_url, topic)


def test_a_topic_that_is_deleted_under_a_hold_takes_what_waits_along(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rule 4.3: the producer comes back to a new topic, and sends what had no receipt."""
    topic = topic_with(rest, namespace, HOLD)
    with client_of(broker.service_url) as client:
        idle(client, topic)
        sending = Sending(client, topic, "p", PAYLOAD_BYTES)
        count = fill(sending, FILLING)
        rest.ask("DELETE", f"{topic_path(topic)}?force=true")
        sending.finish()
        assert parked_bytes(broker, topic) == 0
    assert stored(broker.service_url, topic) == sending.sent[count:]


def test_each_partition_has_the_quota_for_itself(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.1, 4.2 and 4.3: one that is full holds its own messages only."""
    topic = topic_with(rest, namespace, HOLD)
    rest.ask("PUT", f"{topic_path(topic)}/partitions", 2)
    with client_of(broker.service_url) as client:
        client.subscribe(topic, "s", SHARED, initial_position=EARLIEST).close()
        full_one = Sending(client, f"{topic}-partition-0", "p", PAYLOAD_BYTES)
        free_one = Sending(client, f"{topic}-partition-1", "q", PAYLOAD_BYTES)
        fill(full_one, FILLING)
        free_one.send(50)
        free_one.finish(10)
        sizes = [rest.topic(f"{topic}-partition-{i}")["backlogSize"] for i in range(2)]
        assert LIMIT_BYTES <= sizes[0] < LIMIT_BYTES + ENTRY_BYTES
        assert sizes[1] < LIMIT_BYTES
        make_room(rest, f"{topic}-partition-0")
        full_one.finish()
    assert full_one.with_result() == full_one.sent


# Subscriptions that change -----------------------------------------------------------------------


def test_a_subscription_that_goes_or_moves_back_counts_at_once(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    """Rules 4.1 and 4.4: deleting the slowest ends a hold, and a cursor that is set back, or a
    new one at the begin, brings it about."""
    topic = topic_with(rest, namespace, HOLD)
    path = topic_path(topic)
    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        # Somebody keeps the messages, so that they are not given up.
        rest.ask(
            "POST",
            f"/admin/v2/namespaces/{namespace}/retention",
            {"retentionTimeInMinutes": 60, "retentionSizeInMB": 100},
        )
        idle(client, topic)
        sending = Sending(other, topic, "p", PAYLOAD_BYTES)
        fill(sending, FILLING)
        rest.ask("DELETE", f"{path}/subscription/s?force=true")
        sending.finish()
        assert rest.topic(topic)["backlogSize"] == 0
        idle(client, topic)
        assert rest.topic(topic)["backlogSize"] >= LIMIT_BYTES
        sending.send(1)
        assert sending.settle() == len(sending.sent) - 1
        make_room(rest, topic)
        sending.finish()
        consumer = client.subscribe(topic, "s")
        consumer.seek(pulsar.MessageId.earliest)
        wait_until(lambda: rest.topic(topic)["backlogSize"] >= LIMIT_BYTES)
        sending.send(1)
        assert sending.settle() == len(sending.sent) - 1
        for message in receive(consumer, FILLING + 1):
            consumer.acknowledge(message)
        sending.finish()
    assert sending.with_result() == sending.sent == stored(broker.service_url, topic)


@pytest.mark.parametrize(
    "kind", [pulsar.ConsumerType.Exclusive, FAILOVER], ids=["excl", "failover"]
)
def test_one_active_consumer_goes_on_behind_what_was_evicted(
    broker: BrokerProcess, rest: Rest, namespace: str, kind: pulsar.ConsumerType
) -> None:
    """Rule 4.3: batches are evicted as a whole, and a cumulative ack of one that is gone neither
    fails nor goes back."""
    topic, in_batch = topic_with(rest, namespace, EVICT), 5
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", kind, receiver_queue_size=300)
        batching = {"batching_enabled": True, "batching_max_messages": in_batch}
        sending = Sending(client, topic, "p", PAYLOAD_BYTES, **batching)
        sending.send(50)
        sending.finish()
        early = receive(consumer, 50)
        sending.send(100)
        sending.finish()
        stats: Any = rest.topic(topic)["subscriptions"]["s"]
        left = stats["headgate"]["backlogMessages"]
        entry_bytes = in_batch * ENTRY_BYTES
        low = LIMIT_BYTES * EVICTION_PERCENT // 100 - entry_bytes
        assert low < stats["backlogSize"] < LIMIT_BYTES
        assert left % in_batch == 0
        consumer.acknowledge_cumulative(early[9])
        time.sleep(QUIET_S)
        assert rest.topic(topic)["subscriptions"]["s"]["headgate"]["backlogMessages"] == left
        consumer.close()
        consumer = client.subscribe(topic, "s", kind)
        found = [message.data().decode().rstrip() for message in receive(consumer, left)]
        assert found == sending.sent[-left:]
        assert is_silent(consumer)


@pytest.mark.parametrize("policy", [HOLD, REFUSE])
def test_a_message_larger_than_the_limit_goes_when_nothing_else_is_owed(
    broker: BrokerProcess, rest: Rest, namespace: str, policy: str
) -> None:
    """Rules 4.2 and 4.4: one entry in all, under each policy that stops producers."""
    topic = topic_with(rest, namespace, policy)
    with client_of(broker.service_url) as client:
        idle(client, topic)
        sending = Sending(client, topic, "p", 2 * LIMIT_BYTES)
        sending.send(1)
        sending.finish()
        assert rest.topic(topic)["backlogSize"] > 2 * LIMIT_BYTES
        if policy == HOLD:
            sending.send(1)
            assert sending.settle() == 1
            make_room(rest, topic)
        else:
            wait_until(lambda: not sending.producer.is_connected())
            make_room(rest, topic)
            wait_until(sending.producer.is_connected)
            sending.send(1)
        sending.finish()
    assert sending.with_result() == sending.sent
