"""The start of a stream on a topic that is being published to.

Spark requests the first offset of a source more than once. While messages arrive, each request
would get another offset, unless the source keeps its first.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.conftest import Broker, Cluster

BEFORE = 3_000
"""Messages that are there when a stream is started."""

PACE_S = 0.002
LIMIT_S = 60


class Traffic:
    """A producer that goes on: message ``n`` says ``n``."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._client = pulsar.Client(
            broker.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
        )
        self._producer = self._client.create_producer(
            topic, batching_max_publish_delay_ms=1, block_if_queue_full=True
        )
        self._ended = threading.Event()
        self.sent = 0
        for _ in range(BEFORE):
            self._send()
        self._producer.flush()
        self._thread = threading.Thread(target=self._go_on)
        self._thread.start()

    def _send(self) -> None:
        self._producer.send_async(b"%d" % self.sent, None)
        self.sent += 1

    def _go_on(self) -> None:
        while not self._ended.wait(PACE_S):
            self._send()

    def end(self) -> None:
        """Send no more; all that was sent is stored."""
        self._ended.set()
        self._thread.join()
        self._producer.flush()

    def close(self) -> None:
        self.end()
        self._client.close()


@pytest.fixture
def topic(cluster: Cluster) -> str:
    return cluster.new_topic()


@pytest.fixture
def traffic(broker: Broker, topic: str) -> Iterator[Traffic]:
    made = Traffic(broker, topic)
    yield made
    made.close()


class Sink:
    """What a query gave, over its restarts from one checkpoint.

    A batch that was stopped before it was committed comes again, the same, under its number.
    """

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self._batches: dict[int, list[int]] = {}
        self.fails_on_rows = False

    @property
    def numbers(self) -> list[int]:
        """All rows, by batch."""
        return [number for key in sorted(self._batches) for number in self._batches[key]]

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        found = [int(row.value) for row in frame.select("value").collect()]
        if found and self.fails_on_rows:
            raise RuntimeError("the sink failed")
        # Kept before: then it was not committed, and has to be the same.
        assert self._batches.setdefault(batch_id, found) == found

    def run(self, options: dict[str, str], until: int) -> None:
        """Run the query with Spark's default trigger until it gave so many rows in all."""
        frame = self._spark.readStream.format("pulsar").options(**options).load()
        query = (
            frame.writeStream.foreachBatch(self._take)
            .option("checkpointLocation", str(self._checkpoint))
            .start()
        )
        deadline_s = time.monotonic() + LIMIT_S
        try:
            while len(self.numbers) < until and time.monotonic() < deadline_s:
                if query.awaitTermination(0.1):
                    break
            if query.exception() is not None:
                raise query.exception()
        finally:
            query.stop()


def test_every_start_gives_each_message_from_there_on_once(
    spark: SparkSession, cluster: Cluster, topic: str, traffic: Traffic, tmp_path: Path
) -> None:
    ids = cluster.ids(topic)
    at = ids[b"1000"]
    text = f"{at.ledger_id()}:{at.entry_id()}:-1:{at.batch_index()}"
    starts = {
        "default": {},
        "latest": {"startingOffsets": json.dumps({topic: "latest"})},
        "earliest": {"startingOffsets": "earliest"},
        "an id": {"startingOffsets": json.dumps({topic: text})},
        "a time": {"startingTime": str(int(time.time() * 1_000)), "publishTimeSkewMs": "0"},
    }
    exact = {"earliest": 0, "an id": 1_000}
    for name, option in starts.items():
        sink = Sink(spark, tmp_path / name)
        options = dict(cluster.options(topic, **option))
        began = traffic.sent
        sink.run(options, 100)
        sink.fails_on_rows = True
        with pytest.raises(StreamingQueryException, match="the sink failed"):
            sink.run(options, len(sink.numbers) + 100)
        sink.fails_on_rows = False
        sink.run(options, len(sink.numbers) + 100)
        if name in exact:
            assert sink.numbers[0] == exact[name], name
        elif name != "a time":
            assert began - 1_000 <= sink.numbers[0], (name, began, sink.numbers[0])
        first = sink.numbers[0]
        assert sink.numbers == [*range(first, first + len(sink.numbers))], name


def test_rows_of_a_killed_first_batch_come_with_the_next_run(
    spark: SparkSession, cluster: Cluster, topic: str, traffic: Traffic, tmp_path: Path
) -> None:
    sink = Sink(spark, tmp_path / "killed")
    options = dict(cluster.options(topic))
    sink.fails_on_rows = True
    began = traffic.sent
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        sink.run(options, 1)
    ended = traffic.sent
    sink.fails_on_rows = False
    sink.run(options, ended - began + 200)
    assert began - 1_000 <= sink.numbers[0] < ended
    assert sink.numbers == [*range(sink.numbers[0], sink.numbers[0] + len(sink.numbers))]
