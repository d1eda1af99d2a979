"""Subscriptions by a pattern, Failover, and properties of subscriptions, with the real client."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pulsar
import pytest

from headgate.wire import client as frames
from headgate.wire.frame import FrameDecoder
from headgate.wire.messages import BaseCommand
from tests.service.clients import (
    EARLIEST,
    FAILOVER,
    SHARED,
    client_of,
    data,
    full,
    is_silent,
    receive,
    send_all,
    texts,
    wait_until,
)
from tests.service.measuring import Rest, topic_path
from tests.service.process import BrokerProcess


@pytest.fixture(scope="module")
def client(broker: BrokerProcess) -> Iterator[pulsar.Client]:
    with client_of(broker.service_url) as made:
        yield made


def test_a_pattern_finds_what_there_is_when_it_subscribes(
    client: pulsar.Client, rest: Rest, namespace: str
) -> None:
    """This client looks again each minute at the soonest: ``./dev test-peer`` plays topics that
    come and go meanwhile with the Java client, which the broker tells at once."""
    base = f"persistent://{namespace}"
    first = client.create_producer(f"{base}/orders-1")
    client.create_producer(f"{base}/other").send(b"no")
    first.send(b"one")
    consumer = by_pattern(client, f"{base}/orders-.*")
    message = receive(consumer, 1)[0]
    assert message.data() == b"one"
    consumer.acknowledge(message)
    consumer.close()
    first.close()
    rest.ask("DELETE", f"{topic_path(f'{base}/orders-1')}?force=true")
    rest.ask("PUT", f"{topic_path(f'{base}/orders-3')}/partitions", 2)
    client.create_producer(f"{base}/orders-2").send(b"two")
    send_all(client.create_producer(f"{base}/orders-3"), 4)
    consumer = by_pattern(client, f"{base}/orders-.*")
    assert sorted(data(receive(consumer, 5))) == [*texts(4), "two"]
    assert is_silent(consumer)
    consumer.close()


def by_pattern(client: pulsar.Client, pattern: str) -> pulsar.Consumer:
    return client.subscribe(re.compile(pattern), "s", SHARED, initial_position=EARLIEST)


class Watching:
    """A connection that watches topics, as the Java client does."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 0), 15)
        self._frames = FrameDecoder()
        self.socket.sendall(frames.connect())
        self.connected = self.next()

    def next(self) -> BaseCommand:
        """The next command that comes."""
        while (found := self._frames.next_frame()) is None:
            data = self.socket.recv(65_536)
            assert data
            self._frames.feed(data)
        return found[0]

    def close(self) -> None:
        self.socket.close()


def test_a_watcher_learns_at_once_what_other_clients_do(
    broker: BrokerProcess, client: pulsar.Client, rest: Rest, namespace: str
) -> None:
    base = f"persistent://{namespace}"
    client.create_producer(f"{base}/a1").close()
    with closing(Watching(broker.service_url)) as watching:
        assert watching.connected.connected.feature_flags.supports_topic_watchers
        watching.socket.sendall(frames.watch_topic_list(1, 5, namespace, ".*/a.*"))
        assert list(watching.next().watchTopicListSuccess.topic) == [f"{base}/a1"]
        client.create_producer(f"{base}/b").close()
        client.create_producer(f"{base}/a2").close()
        assert list(watching.next().watchTopicUpdate.new_topics) == [f"{base}/a2"]
        rest.ask("DELETE", f"{topic_path(f'{base}/a1')}")
        update = watching.next().watchTopicUpdate
        assert list(update.deleted_topics) == [f"{base}/a1"]
        asked = frames.get_topics_of_namespace(2, namespace, pattern=".*/a.*")
        watching.socket.sendall(asked)
        found = watching.next().getTopicsOfNamespaceResponse
        assert (list(found.topics), found.topics_hash) == ([f"{base}/a2"], update.topics_hash)


def test_failover_goes_to_the_next_name(client: pulsar.Client, rest: Rest) -> None:
    topic = full("failover-partition-0")
    rest.ask("PUT", f"{topic_path(full('failover'))}/partitions", 1)
    consumers = {
        name: client.subscribe(topic, "s", FAILOVER, consumer_name=name) for name in ("c", "a", "b")
    }
    producer = client.create_producer(topic)
    for name in ("a", "b", "c"):
        wait_until(lambda n=name: active(rest, topic) == n)
        send_all(producer, 3)
        consumer = consumers.pop(name)
        messages = receive(consumer, 3)
        assert data(messages) == texts(3)
        consumer.acknowledge_cumulative(messages[-1])
        wait_until(lambda: rest.topic(topic)["subscriptions"]["s"]["msgBacklog"] == 0)
        consumer.close()


def test_topics_spread_over_the_consumers_of_a_failover_subscription(
    client: pulsar.Client, rest: Rest, namespace: str
) -> None:
    """Of topics without partitions a hash ring decides; who leaves moves only what it had."""
    topics = [f"persistent://{namespace}/t{number}" for number in range(12)]
    made = {
        name: [client.subscribe(topic, "s", FAILOVER, consumer_name=name) for topic in topics]
        for name in ("a", "b", "c")
    }
    before = {topic: active(rest, topic) for topic in topics}
    assert set(before.values()) == {"a", "b", "c"}
    for consumer in made["a"]:
        consumer.close()
    for topic, name in before.items():
        assert active(rest, topic) == name or name == "a"


def active(rest: Rest, topic: str) -> str:
    """The active consumer of the subscription ``s``."""
    name: str = rest.topic(topic)["subscriptions"]["s"].get("activeConsumerName", "")
    return name


def test_properties_of_a_subscription_survive_kill_nine(broker: BrokerProcess) -> None:
    path = f"{topic_path(full('props'))}/subscription/s"
    with client_of(broker.service_url) as client:
        client.subscribe(full("props"), "s").close()
    assert broker.request("PUT", f"{path}/properties", b'{"owner":"team","a":""}')[0] == 204
    broker.kill()
    broker.start()
    status, found = broker.get(f"{path}/properties")
    assert (status, json.loads(found)) == (200, {"owner": "team", "a": ""})
    assert broker.request("PUT", f"{path}/properties", b"{}")[0] == 204
    assert json.loads(broker.get(f"{path}/properties")[1]) == {}
