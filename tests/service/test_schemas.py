"""The first schema of a topic stays, and a client with another one is told."""

from __future__ import annotations

from collections.abc import Callable

import pulsar
import pytest
from pulsar.schema import Double, JsonSchema, Long, Record, String

from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full
from tests.service.process import BrokerProcess


class Order(Record):  # type: ignore[misc]
    id = Long(required=True)
    note = String()


class Invoice(Record):  # type: ignore[misc]
    sum = Double()


def test_the_first_definition_of_a_topic_stays(make_broker: Callable[..., BrokerProcess]) -> None:
    broker, topic = make_broker().start(), full("orders")
    with client_of(broker.service_url) as client:
        client.create_producer(topic, schema=JsonSchema(Order)).send(Order(id=7, note="x"))
    broker.kill()
    broker.start()
    other = JsonSchema(Invoice)
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(topic, "s", schema=JsonSchema(Order), initial_position=EARLIEST)
        assert consumer.receive(RECEIVE_MS).value().id == 7
        with pytest.raises(pulsar.IncompatibleSchema):
            client.create_producer(topic, schema=other)
        with pytest.raises(pulsar.IncompatibleSchema):
            client.subscribe(topic, "t", schema=other)
        client.create_producer(topic).send(b"bytes pass")
        client.subscribe(topic, "bytes").close()
    assert "has another JSON schema" in broker.log()
