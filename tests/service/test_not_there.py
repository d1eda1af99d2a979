"""What Headgate does not have, as the C++ client and those made of it see it."""

from __future__ import annotations

import pulsar
import pytest

from tests.service.clients import EARLIEST, SHARED, client_of, data, full, receive, texts
from tests.service.process import BrokerProcess


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
