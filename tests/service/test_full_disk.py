"""A full disk under the official client (rule 3.6): sends wait, consumers of the same client make
progress."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from headgate.cli.explain.text import explain_text
from tests.service.clients import EARLIEST, RECEIVE_MS, client_of, full, wait_until
from tests.service.measuring import topic_path
from tests.service.process import BrokerProcess, StartFailedError
from tests.service.small_disk import small_disk, small_file_system

Make = Callable[..., BrokerProcess]

BODY = b"x" * 1_000_000
SEND_TIMEOUT_S = 5
QUIET = ["--set", "headgateTelemetryEnabled=false"]


def number_of(message: pulsar.Message) -> int:
    return int(message.data().partition(b" ")[0])


def explain(broker: BrokerProcess, path: str = "") -> dict[str, Any]:
    status, body = broker.get(f"/admin/v2/headgate/explain{path}")
    assert status == 200
    found: dict[str, Any] = json.loads(body)
    return found


def metric(broker: BrokerProcess, name: str) -> float:
    """The first sample of a name on /metrics."""
    lines = broker.get("/metrics")[1].decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(f"{name}{{")))


def fill(producer: pulsar.Producer) -> int:
    """Send until the client's send timeout ends one, and return how many were stored."""
    for number in range(1_000):
        began_s = time.monotonic()
        try:
            producer.send(b"%d " % number + BODY)
        except pulsar.Timeout:
            assert SEND_TIMEOUT_S - 1 < time.monotonic() - began_s < SEND_TIMEOUT_S + 4
            return number
    raise AssertionError("the disk is not full")


def test_sends_end_by_their_timeout_and_consumers_of_the_same_client_go_on(
    make_broker: Make,
) -> None:
    broker, topic = make_broker(words=QUIET), full("fills")
    with small_disk(broker) as disk:
        broker.start()
        with client_of(broker.service_url) as client:
            consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
            producer = client.create_producer(topic, send_timeout_millis=SEND_TIMEOUT_S * 1_000)
            client.create_producer(full("doomed")).close()
            producer.send(b"-1 before")
            disk.shrink()
            connections = metric(broker, "pulsar_connection_created_total_count")
            count = fill(producer)

            status, body = broker.get("/admin/v2/brokers/health")
            assert (status, b"he disk is full: producers wait" in body) == (503, True)
            answer = explain(broker)
            assert answer["storage"]["diskFull"]
            text = " ".join(explain_text(answer, 120, color=False).split())
            assert "The disk is full: producers wait for room, for " in text
            assert metric(broker, "headgate_disk_full") == 1
            assert metric(broker, "headgate_disk_full_seconds_total") > SEND_TIMEOUT_S - 1
            assert metric(broker, "headgate_disk_free_bytes") >= 0

            # Everything but publishing works, on the same connection.
            other = client.subscribe(full("new"), "other")
            other.close()
            status, body = broker.request("DELETE", topic_path(full("doomed")))
            assert status == 204, body
            for number in range(-1, count):
                message = consumer.receive(RECEIVE_MS)
                assert number_of(message) == number
                consumer.acknowledge(message)
            wait_until(lambda: backlog(broker, topic) == 0)
            assert metric(broker, "pulsar_connection_created_total_count") == connections

            disk.grow()
            for number in range(2_000, 2_003):
                producer.send(b"%d again" % number)
            found = [number_of(consumer.receive(RECEIVE_MS)) for _ in range(3)]
            # The one whose client gave up may be stored or not, but never behind what came later.
            assert found[-1] == 2_002 or found == [count, 2_000, 2_001]
            assert broker.get("/admin/v2/brokers/health") == (200, b"ok")
        assert broker.kill() == -9
        broker.start()
        assert backlog(broker, topic) >= 3
        assert broker.log().count("the disk is full: ") == 1


def test_what_waits_is_stored_in_order_once_when_there_is_room(make_broker: Make) -> None:
    """What was in the commit that found no room, and what came after it; nobody hears of it."""
    broker, topic = make_broker(words=QUIET), full("waits")
    with small_disk(broker) as disk:
        broker.start()
        with client_of(broker.service_url) as client:
            consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
            producer = client.create_producer(
                topic, send_timeout_millis=120_000, batching_enabled=False,
                block_if_queue_full=True, max_pending_messages=6,
            )  # fmt: skip
            disk.shrink()
            results: list[pulsar.Result] = []
            sent = 0
            while sum(held["messages"] for held in explain(broker)["publishing"]) < 5:
                if sent - len(results) < 5:
                    body = b"%d " % sent + BODY
                    producer.send_async(body, lambda result, _: results.append(result))
                    sent += 1
            (held,) = explain(broker)["publishing"]
            assert (held["causes"], held["messages"]) == (["disk_full"], sent - len(results))
            disk.grow()
            producer.flush()
            assert results == [pulsar.Result.Ok] * sent
            assert [number_of(consumer.receive(RECEIVE_MS)) for _ in range(sent)] == [*range(sent)]
            with pytest.raises(pulsar.Timeout):
                consumer.receive(500)


def test_a_broker_on_a_full_disk_ends_cleanly_and_starts_again(make_broker: Make) -> None:
    broker, topic = make_broker(words=QUIET), full("ends")
    with small_disk(broker) as disk:
        broker.start()
        with client_of(broker.service_url) as client:
            consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
            producer = client.create_producer(topic, send_timeout_millis=SEND_TIMEOUT_S * 1_000)
            disk.shrink()
            count = fill(producer)
            for _ in range(5):
                consumer.acknowledge(consumer.receive(RECEIVE_MS))
        assert broker.terminate() == 0
        broker.start()
        assert backlog(broker, topic) in (count - 5, count - 4)


def test_a_file_system_that_is_too_small_is_refused_with_what_is_needed(
    make_broker: Make,
) -> None:
    broker = make_broker()
    with small_file_system(broker.data_path, 100 * 1024 * 1024) as is_mounted:
        if not is_mounted:
            broker.wrapper = ["sh", "-c", 'ulimit -f 100000; exec "$@"', "sh"]
        with pytest.raises(StartFailedError) as caught:
            broker.start()
    # The root of a new file system is not its owner's alone, which the start mends with a line.
    *before, line = caught.value.stderr.splitlines()
    assert all("headgate.app" in each for each in before)
    assert line.startswith("Error: ")
    assert "150,994,944" in line


def backlog(broker: BrokerProcess, topic: str) -> int:
    stats = json.loads(broker.get(f"{topic_path(topic)}/stats")[1])
    return int(stats["subscriptions"]["s"]["msgBacklog"])
