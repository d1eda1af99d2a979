"""A client that numbers its messages and sends them again gets each stored once, over kill -9."""

from __future__ import annotations

import json
from collections.abc import Callable

import pulsar

from tests.service.clients import EARLIEST, RECEIVE_MS, SILENCE_MS, client_of, full
from tests.service.process import BrokerProcess

NAMESPACE = "/admin/v2/namespaces/public/default"
KILLS = 3
MESSAGES = 200


def received(client: pulsar.Client, topic: str) -> list[bytes]:
    """Everything that the topic holds, once it is quiet."""
    consumer = client.subscribe(topic, "all", initial_position=EARLIEST)
    found: list[bytes] = []
    wait_ms = RECEIVE_MS
    while True:
        try:
            message = consumer.receive(wait_ms)
        except pulsar.Timeout:
            return found
        found.append(message.data())
        wait_ms = SILENCE_MS * 3


def test_numbered_messages_are_stored_once(make_broker: Callable[..., BrokerProcess]) -> None:
    broker, topic = make_broker().start(), full("once")
    assert broker.request("POST", f"{NAMESPACE}/deduplication", b"true")[0] == 204
    with client_of(broker.service_url) as client:
        client.subscribe(topic, "all").close()
    for kill in range(KILLS + 1):
        with client_of(broker.service_url) as client:
            producer = client.create_producer(topic, producer_name="till")
            known = producer.last_sequence_id()
            # All that had a receipt is known, over the kill.
            assert known == (-1 if kill == 0 else kill * MESSAGES - 1)
            for number in range(max(known - 50, 0), (kill + 1) * MESSAGES):
                producer.send_async(b"%d" % number, None, sequence_id=number)
            producer.flush()
            assert producer.last_sequence_id() == (kill + 1) * MESSAGES - 1
        if kill < KILLS:
            broker.kill()
            broker.start()
    with client_of(broker.service_url) as client:
        assert received(client, topic) == [b"%d" % at for at in range((KILLS + 1) * MESSAGES)]
    stats = json.loads(broker.get("/admin/v2/persistent/public/default/once/stats")[1])
    assert stats["deduplicationStatus"] == "Enabled"
    assert stats["headgate"]["duplicatesDropped"] == 51
    metrics = broker.get("/metrics")[1].decode()
    assert 'headgate_duplicates_dropped_messages_total{cluster="standalone"} 51' in metrics
    assert 'topic="persistent://public/default/once"} 51' in metrics


def test_a_client_that_is_cut_off_by_a_kill_stores_nothing_twice(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    broker, topic = make_broker().start(), full("resent")
    assert broker.request("POST", f"{NAMESPACE}/deduplication", b"true")[0] == 204
    with client_of(broker.service_url) as client:
        client.subscribe(topic, "all").close()
    sent = 0  # ids begin at 1: the client takes 0 for none
    for _ in range(KILLS):
        # The client is not told what happened to the messages that are on their way at the kill.
        with client_of(broker.service_url) as client:
            producer = client.create_producer(
                topic, producer_name="till", batching_enabled=False, max_pending_messages=2_000
            )
            for number in range(sent + 1, sent + 1_001):
                producer.send_async(b"%d" % number, None, sequence_id=number)
            broker.kill()
        broker.start()
        with client_of(broker.service_url) as client:
            # The application sends all of it again.
            producer = client.create_producer(topic, producer_name="till")
            for number in range(sent + 1, sent + 1_001):
                producer.send_async(b"%d" % number, None, sequence_id=number)
            producer.flush()
        sent += 1_000
    with client_of(broker.service_url) as client:
        assert received(client, topic) == [b"%d" % at for at in range(1, sent + 1)]
