"""Delayed delivery with the Python client, over a kill -9, with its policies."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pulsar
import pytest

from tests.service.clients import SHARED, client_of, data, full, is_silent, receive, wait_until
from tests.service.process import BrokerProcess

DELAY_S = 1.5
LATE_S_MAX = 2.0
"""On a busy machine client and broker may wait for the processor; the simulation has the bound of
50 ms."""


@pytest.fixture
def own_broker(make_broker: Any) -> Any:
    """A broker that may be killed."""
    return make_broker().start()


def stats_of(broker: BrokerProcess, name: str) -> Any:
    return json.loads(broker.get(f"/admin/v2/persistent/public/default/{name}/stats")[1])


def test_they_come_when_they_are_due(broker: BrokerProcess) -> None:
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full("delays"), "s", SHARED)
        at_once = client.subscribe(full("delays"), "x", pulsar.ConsumerType.Exclusive)
        producer = client.create_producer(full("delays"))
        sent_s = time.time()
        producer.send(b"after", deliver_after=timedelta(seconds=DELAY_S))
        producer.send(b"at", deliver_at=int((sent_s + 2 * DELAY_S) * 1000))
        producer.send(b"past", deliver_at=1)
        producer.send(b"plain")
        assert data(receive(at_once, 4)) == ["after", "at", "past", "plain"]
        assert data(receive(consumer, 2)) == ["past", "plain"]
        found = stats_of(broker, "delays")
        assert found["subscriptions"]["s"]["msgDelayed"] == 2
        assert found["subscriptions"]["s"]["msgBacklogNoDelayed"] == 2
        assert found["delayedMessageIndexSizeInBytes"] > 0
        for text, delay_s in (("after", DELAY_S), ("at", 2 * DELAY_S)):
            assert data(receive(consumer, 1)) == [text]
            waited_s = time.time() - sent_s  # clients send whole milliseconds
            assert delay_s - 0.001 <= waited_s < delay_s + LATE_S_MAX
        page = broker.get("/metrics/")[1].decode()
        line = next(row for row in page.splitlines() if row.startswith("pulsar_subscription_delay"))
        assert line.endswith(" 0")


def test_they_outlive_a_kill_nine(own_broker: BrokerProcess) -> None:
    broker, topic = own_broker, full("delays")
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", SHARED)
        producer = client.create_producer(topic)
        due_s = time.time() + 6
        for number in range(100):
            at_s = due_s if number % 2 else due_s + 3_600
            producer.send_async(b"%d" % number, None, deliver_at=int(at_s * 1000))
        producer.flush()
        assert is_silent(consumer)
        broker.kill()
    broker.start()
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", SHARED)
        found = data(receive(consumer, 50))
        assert due_s <= time.time() < due_s + 30
        assert sorted(map(int, found)) == list(range(1, 100, 2))
        assert is_silent(consumer)
        assert stats_of(broker, "delays")["subscriptions"]["s"]["msgDelayed"] == 50


def test_the_policies_of_a_namespace_and_a_topic(broker: BrokerProcess, namespace: str) -> None:
    def policy(path: str, active: bool) -> None:
        body = {"tickTime": 1000, "active": active, "maxDeliveryDelayInMillis": 0}
        assert broker.request("POST", path, json.dumps(body).encode())[0] == 204

    topic = f"persistent://{namespace}/t"
    policy(f"/admin/v2/namespaces/{namespace}/delayedDelivery", False)
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", SHARED)
        producer = client.create_producer(topic)
        producer.send(b"now", deliver_after=timedelta(hours=1))
        (message,) = receive(consumer, 1)
        assert message.data() == b"now"
        consumer.acknowledge(message)
        path = f"/admin/v2/persistent/{namespace}/t/delayedDelivery"
        policy(path, True)
        assert json.loads(broker.get(f"{path}?applied=true")[1])["active"] is True
        producer.send(b"later", deliver_after=timedelta(hours=1))
        assert is_silent(consumer)
    path = f"/admin/v2/headgate/explain/persistent/{namespace}/t"
    report = json.loads(broker.get(path)[1])
    assert report["subscriptions"][0]["delayedMessages"] == 1
    assert report["publishing"]["delaysIgnored"] == 1
    assert "asks for delayed delivery, which is switched off there" in broker.log()


def test_a_delay_beyond_the_limit_waits_for_another_limit(
    broker: BrokerProcess, namespace: str
) -> None:
    """As with Pulsar: this client sends a refused message again and again."""
    body = {"tickTime": 1000, "active": True, "maxDeliveryDelayInMillis": 60_000}
    path = f"/admin/v2/namespaces/{namespace}/delayedDelivery"
    assert broker.request("POST", path, json.dumps(body).encode())[0] == 204
    results: list[pulsar.Result] = []
    with client_of(broker.service_url) as client:
        producer = client.create_producer(f"persistent://{namespace}/t")
        producer.send(b"x", deliver_after=timedelta(seconds=59))
        producer.send_async(
            b"x", lambda result, _: results.append(result), deliver_after=timedelta(hours=1)
        )
        reason = "Exceeds max allowed delivery delay of 60000 milliseconds"
        wait_until(lambda: reason in broker.log())
        assert not results
        assert broker.request("DELETE", path)[0] == 204
        wait_until(lambda: results == [pulsar.Result.Ok])
    assert broker.log().count(reason) == 1
