"""Jobs wait for a broker that hangs, restarts or is gone, and continue exactly."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pulsar
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from pyspark_pulsar.errors import DataLossError, ReadTimeoutError, UnreachableError
from pyspark_pulsar.source import DefaultSource, PulsarStreamReader
from tests.service.clients import QUIET, free_ports, wait_until
from tests.service.process import BrokerProcess
from tests.spark.conftest import Broker, Cluster
from tests.spark.front import front_of

WAITS = {"adminTimeoutMs": "2000", "operationTimeoutMs": "2000", "pollTimeoutMs": "3000"}


def values(count: int, first: int = 0) -> list[bytes]:
    return [b"m%d" % number for number in range(first, first + count)]


def read(options: dict[str, str]) -> Iterator[bytes]:
    """The values, by the classes that Spark calls, in this process."""
    source = DefaultSource(options)
    reader = source.reader(source.schema())
    for task in reader.partitions():
        for batch in reader.read(task):
            yield from batch["value"].to_pylist()


@contextmanager
def deaf() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield listener.getsockname()[1]


def test_an_admin_service_that_hangs_ends_in_time(broker: Broker) -> None:
    with deaf() as port:
        url = f"http://127.0.0.1:{port}"
        with pytest.raises(UnreachableError, match=r"took too long to answer \(tried for 2 s\)"):
            list(read({"service.url": broker.service_url, "admin.url": url, "topic": "t", **WAITS}))


def test_a_broker_that_hangs_while_readers_are_opened_ends_in_time(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(3))
    with deaf() as port:
        options = dict(cluster.options(topic, **WAITS))
        options["service.url"] = f"pulsar://127.0.0.1:{port}"
        with pytest.raises(ReadTimeoutError, match="opened no reader within 3000 ms"):
            list(read(options))


def test_a_broker_that_hangs_in_the_middle(cluster: Cluster, broker: Broker) -> None:
    """Waited for while it may come back, and no longer."""
    topic = cluster.new_topic()
    cluster.publish(topic, [bytes(100_000) + b"%d" % number for number in range(200)])
    with front_of(broker.service_url, broker.admin_url) as front:
        urls = {"service.url": front.service_url, "admin.url": front.admin_url, "topic": topic}
        options = urls | WAITS | {"receiverQueueSize": "5"}
        rows = read(options)
        first = next(rows)
        front.hang()
        threading.Timer(1.5, front.go_on).start()
        assert len({first, *rows}) == 200
        rows = read(options)
        next(rows)
        front.hang()
        with pytest.raises(ReadTimeoutError, match="nothing arrived for 3000 ms"):
            list(rows)


def publish(url: str, topic: str, sent: list[bytes]) -> None:
    client = pulsar.Client(url, logger=QUIET)
    producer = client.create_producer(
        topic, batching_enabled=True, batching_max_messages=10, block_if_queue_full=True
    )
    for value in sent:
        producer.send_async(value, None)
    producer.flush()
    client.close()


def passed(options: dict[str, str], start: dict[str, Any]) -> tuple[list[bytes], dict[str, Any]]:
    """What one pass of a stream from ``start`` on gives, and where it ends."""
    source = DefaultSource(options)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, PulsarStreamReader)
    reader.prepareForTriggerAvailableNow()
    found: list[bytes] = []
    while (end := reader.latestOffset(start, ReadMaxRows(10))) != start:
        for task in reader.partitions(start, end):
            for batch in reader.read(task):
                found += batch["value"].to_pylist()
        start = end
    return found, start


def test_a_broker_whose_data_was_lost_is_read_from_its_first_message(tmp_path: Path) -> None:
    """At the same address, with ids that begin anew: behind the checkpoint for a long time."""
    ports = free_ports(2)
    words = ["--broker-port", str(ports[0]), "--web-port", str(ports[1])]
    topic = "persistent://public/default/anew"
    options = {
        "service.url": f"pulsar://127.0.0.1:{ports[0]}",
        "admin.url": f"http://127.0.0.1:{ports[1]}",
        "topic": topic,
        "maxRowsPerTrigger": "10",
    }
    start: dict[str, Any] = {"v": 1, "t": {topic: "-1:-1:-1:-1"}}
    for name, first, count in (("old", 0, 40), ("new", 40, 25)):
        (tmp_path / name).mkdir()
        broker = BrokerProcess(tmp_path / name, words).start()
        try:
            publish(broker.service_url, topic, values(count, first))
            if name == "new":
                with pytest.raises(DataLossError, match="it is not the same topic"):
                    passed(options, start)
            found, start = passed(options | {"failOnDataLoss": "false"}, start)
        finally:
            broker.close()
        assert found == values(count, first)


def test_a_stream_continues_after_restarts_and_outages(spark: SparkSession, tmp_path: Path) -> None:
    """Killed in the middle of reading, gone for seconds between triggers: each row once."""
    ports = free_ports(2)
    words = ["--broker-port", str(ports[0]), "--web-port", str(ports[1])]
    broker = BrokerProcess(tmp_path, words).start()
    topic = "persistent://public/default/restarts"
    seen: list[bytes] = []
    in_batch = threading.Event()

    def take(frame: DataFrame, _batch_id: int) -> None:
        in_batch.set()
        seen.extend(bytes(row.value) for row in frame.select("value").collect())

    try:
        publish(broker.service_url, topic, values(20_000))
        stream = spark.readStream.format("pulsar").options(
            **{"service.url": broker.service_url, "admin.url": broker.admin_url},
            topic=topic,
            startingOffsets="earliest",
            maxRowsPerTrigger="5000",
            adminTimeoutMs="1000",
            pollTimeoutMs="60000",
        )
        query = (
            stream.load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        try:
            assert in_batch.wait(60)
            broker.kill()
            time.sleep(3)
            broker.start()
            wait_until(lambda: len(seen) >= 20_000 or not query.isActive, 90)
            broker.kill()
            time.sleep(3)
            broker.start()
            publish(broker.service_url, topic, values(100, first=20_000))
            wait_until(lambda: len(seen) >= 20_100 or not query.isActive, 90)
            assert query.isActive, query.exception()
        finally:
            query.stop()
    finally:
        broker.close()
    assert seen == values(20_100)
