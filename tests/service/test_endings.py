"""What ends by itself and what use may create, with the C++ client and a real clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pulsar
import pytest

from tests.service.clients import SHARED, client_of, data, receive, send_all, texts, wait_until
from tests.service.measuring import Rest
from tests.service.process import BrokerProcess


@contextmanager
def refused(reason: str) -> Iterator[None]:
    with pytest.raises(pulsar.PulsarException) as caught:
        yield
    assert reason in str(caught.value)


def test_messages_expire_and_later_ones_arrive(
    broker: BrokerProcess, rest: Rest, namespace: str
) -> None:
    topic, path = f"persistent://{namespace}/orders", f"/admin/v2/namespaces/{namespace}"
    of_topic = f"/admin/v2/persistent/{namespace}/orders"
    with client_of(broker.service_url) as client:
        client.subscribe(topic, "s", SHARED).close()
        send_all(client.create_producer(topic), 20)
        rest.ask("POST", f"{path}/messageTTL", 2)
        assert rest.ask("GET", f"{of_topic}/messageTTL?applied=true") == 2

        def lost() -> bool:
            stats = rest.ask("GET", f"{of_topic}/stats")["subscriptions"]["s"]
            return bool(stats["totalMsgExpired"] == 20 and stats["msgBacklog"] == 0)

        wait_until(lost)
        rest.ask("DELETE", f"{path}/messageTTL")
        consumer = client.subscribe(topic, "s", SHARED)
        send_all(client.create_producer(topic), 3, "later{}")
        assert data(receive(consumer, 3)) == texts(3, text="later{}")


def test_what_use_may_not_create(broker: BrokerProcess, rest: Rest, namespace: str) -> None:
    topic, path = f"persistent://{namespace}/orders", f"/admin/v2/namespaces/{namespace}"
    with client_of(broker.service_url, operation_timeout_seconds=2) as client:
        client.create_producer(topic)
        rest.ask("POST", f"{path}/autoSubscriptionCreation",
                 {"allowAutoSubscriptionCreation": False})  # fmt: skip
        with refused("TimeOut"):  # this client repeats after SubscriptionNotFound
            client.subscribe(topic, "s", SHARED)
        assert rest.ask("GET", f"/admin/v2/persistent/{namespace}/orders/subscriptions") == []
        rest.ask("PUT", f"/admin/v2/persistent/{namespace}/orders/subscription/s")
        client.subscribe(topic, "s", SHARED).close()
        rest.ask("POST", f"{path}/subscriptionTypesEnabled", ["Failover"])
        with refused("NotAllowed"):
            client.subscribe(topic, "s", SHARED)
        client.subscribe(topic, "s", pulsar.ConsumerType.Failover).close()
        rest.ask("POST", f"{path}/autoTopicCreation", {"allowAutoTopicCreation": False})
        with refused("NotFound"):
            client.create_producer(f"{topic}-2")
