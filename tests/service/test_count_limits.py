"""Limits on numbers of connections, topics, subscriptions, producers and consumers, with the C++
client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pulsar
import pytest

from tests.service.clients import SHARED, client_of, data, receive, texts
from tests.service.measuring import Rest
from tests.service.process import BrokerProcess
from tests.service.quota_scenes import setting


@contextmanager
def refused(reason: str) -> Iterator[None]:
    with pytest.raises(pulsar.PulsarException) as caught:
        yield
    assert reason in str(caught.value)


def test_policies_of_a_namespace_and_a_topic(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    topic, path = f"persistent://{namespace}/orders", f"/admin/v2/namespaces/{namespace}"
    of_topic = f"/admin/v2/persistent/{namespace}/orders"
    rest.ask("POST", f"{path}/maxProducersPerTopic", 1)
    rest.ask("POST", f"{path}/maxConsumersPerSubscription", 1)
    rest.ask("POST", f"{path}/maxSubscriptionsPerTopic", 2)
    rest.ask("POST", f"{path}/maxTopicsPerNamespace", 1)
    with client_of(broker.service_url) as client, client_of(broker.service_url) as other:
        producer = client.create_producer(topic, producer_name="p")
        with refused("ProducerBusy"):
            other.create_producer(topic)
        consumer = client.subscribe(topic, "s", SHARED)
        with refused("ConsumerBusy"):
            other.subscribe(topic, "s", SHARED)
        second = other.subscribe(topic, "t", SHARED)
        with refused("NotAllowed"):
            other.subscribe(topic, "u", SHARED)
        with refused("NotAllowed"):
            other.create_producer(f"{topic}-2")
        rest.ask("POST", f"{of_topic}/maxConsumers", 1)
        assert rest.ask("GET", f"{of_topic}/maxConsumers?applied=true") == 1
        with refused("ConsumerBusy"):
            other.subscribe(topic, "t", SHARED)
        producer.send(b"m0")
        assert data(receive(consumer, 1)) == data(receive(second, 1)) == texts(1)
        rest.ask("POST", f"{of_topic}/maxProducers", 2)
        other.create_producer(topic).send(b"m1")
    with client_of(broker.service_url) as client:
        client.create_producer(topic, producer_name="p")


def test_connections(broker: BrokerProcess, rest: Rest) -> None:
    topic = "persistent://public/default/connections"
    with client_of(broker.service_url) as client:
        producer = client.create_producer(topic)
        for key in ("brokerMaxConnections", "brokerMaxConnectionsPerIp"):
            with (
                setting(rest, key, 1),
                client_of(broker.service_url, operation_timeout_seconds=2) as other,
                pytest.raises(pulsar.PulsarException),
            ):
                other.create_producer(topic)
            producer.send(b"m0")
            with client_of(broker.service_url) as other:
                other.create_producer(topic).send(b"m1")
