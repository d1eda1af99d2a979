"""Partitioned topics that grow while real clients use them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pulsar

from tests.service.clients import EARLIEST, SHARED, client_of, data, full, receive, texts
from tests.service.process import BrokerProcess

PATH = "/admin/v2/persistent/public/default/grows"


def test_what_is_sent_to_new_partitions_reaches_the_topics_subscriptions(
    make_broker: Callable[..., BrokerProcess],
) -> None:
    """Forty messages round-robin to four partitions instead of two; the consumer comes back after
    that, also after a kill."""
    broker = make_broker().start()
    assert broker.request("PUT", f"{PATH}/partitions", b"2")[0] == 204
    with client_of(broker.service_url) as client:
        client.subscribe(full("grows"), "s", SHARED, initial_position=EARLIEST).close()
    assert broker.request("POST", f"{PATH}/partitions", b"4")[0] == 204
    with client_of(broker.service_url) as client:
        producer = client.create_producer(
            full("grows"),
            message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
            batching_enabled=False,
        )
        for number in range(40):
            producer.send(f"m{number}".encode())
    broker.kill()
    broker.start()
    stats = json.loads(broker.get(f"{PATH}/partitioned-stats?perPartition=true")[1])
    backlogs = [part["subscriptions"]["s"]["msgBacklog"] for part in stats["partitions"].values()]
    assert backlogs == [10, 10, 10, 10]
    with client_of(broker.service_url) as client:
        consumer = client.subscribe(full("grows"), "s", SHARED)
        assert sorted(data(receive(consumer, 40))) == sorted(texts(40))
