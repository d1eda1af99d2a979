"""What Headgate does not have, as the C++ client and those made of it see it."""

from __future__ import annotations

import json
from datetime import timedelta

import pulsar
import pytest

from tests.service.clients import EARLIEST, SHARED, client_of, data, full, receive, texts
from tests.service.process import BrokerProcess


def test_a_delay_is_ignored_and_said(broker: BrokerProcess) -> None:
    """No answer would end that one send: the client would reconnect and send it again for ever."""
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full("delays"), "s", SHARED)
        producer = client.create_producer(full("delays"))
        producer.send(b"m0", deliver_after=timedelta(hours=1))
        producer.send(b"m1", deliver_at=2**62)
        producer.send(b"m2", deliver_at=1)
        assert data(receive(consumer, 3)) == texts(3)
    page = broker.get("/metrics/")[1].decode()
    assert 'headgate_delays_ignored_messages_total{cluster="standalone"} 2\n' in page
    path = "/admin/v2/headgate/explain/persistent/public/default/delays"
    assert json.loads(broker.get(path)[1])["publishing"]["delaysIgnored"] == 2
    assert "asks for delayed delivery, which is not supported" in broker.log()


def test_what_was_never_compacted_is_read_whole(broker: BrokerProcess) -> None:
    topic = full("compacted")
    with client_of(broker.service_url) as client:
        producer = client.create_producer(topic)
        for number in range(3):
            producer.send(f"m{number}".encode(), partition_key="one")
        for kind in (pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Failover):
            consumer = client.subscribe(
                topic, f"s{kind}", kind, initial_position=EARLIEST, is_read_compacted=True
            )
            assert data(receive(consumer, 3)) == texts(3)
        reader = client.create_reader(topic, pulsar.MessageId.earliest, is_read_compacted=True)
        assert [reader.read_next(15_000).data().decode() for _ in range(3)] == texts(3)
        for kind in (SHARED, pulsar.ConsumerType.KeyShared):
            with pytest.raises(Exception, match=r"NotAllowed|InvalidConfiguration"):
                client.subscribe(topic, f"t{kind}", kind, is_read_compacted=True)
