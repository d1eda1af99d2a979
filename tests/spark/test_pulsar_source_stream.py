"""Streams through ``format("pulsar")`` against a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.conftest import Cluster


def values(count: int, first: int = 0) -> list[bytes]:
    return [b"m%d" % number for number in range(first, first + count)]


class Pipeline:
    """Runs a query to its end as often as wanted, on one checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self.fail_after_write = False

    def run(self, options: dict[str, str]) -> list[list[bytes]]:
        """The values of each micro-batch of one AvailableNow pass."""
        batches: list[list[bytes]] = []

        def take(frame: DataFrame, _batch_id: int) -> None:
            batches.append([bytes(row.value) for row in frame.select("value").collect()])
            if self.fail_after_write:
                raise RuntimeError("the sink failed")

        frame = self._spark.readStream.format("pulsar").options(**options).load()
        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(60)
        finally:
            query.stop()
        return batches

    def offsets(self) -> list[dict[str, str]]:
        """The offsets in the checkpoint, oldest first."""
        files = sorted(
            (each for each in (self._checkpoint / "offsets").iterdir() if each.name.isdigit()),
            key=lambda each: int(each.name),
        )
        return [json.loads(each.read_text().splitlines()[-1])["t"] for each in files]


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path / "checkpoint")


def test_passes_continue_where_the_last_one_stopped(cluster: Cluster, pipeline: Pipeline) -> None:
    topic = cluster.new_topic()
    options = dict(cluster.options(topic, startingOffsets="earliest"))
    cluster.publish(topic, values(25), batch=10)
    assert pipeline.run(options) == [values(25)]
    cluster.publish(topic, values(5, first=25))
    assert pipeline.run(options) == [values(5, first=25)]
    assert pipeline.run(options) == []
    assert len(pipeline.offsets()) == 2


def test_a_trigger_has_at_most_its_rows(cluster: Cluster, pipeline: Pipeline) -> None:
    topic = cluster.new_topic(partitions=2)
    cluster.publish(f"{topic}-partition-0", values(30))
    cluster.publish(f"{topic}-partition-1", values(10, first=30))
    options = dict(cluster.options(topic, startingOffsets="earliest", maxRowsPerTrigger="20"))
    batches = pipeline.run(options)
    assert [len(batch) for batch in batches] == [20, 20]
    assert sorted(value for batch in batches for value in batch) == sorted(values(40))


def test_a_trigger_has_at_most_its_bytes_of_batched_entries(
    cluster: Cluster, pipeline: Pipeline
) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, [b"%05d" % each + bytes(995) for each in range(40)], batch=10)
    options = dict(
        cluster.options(
            topic,
            startingOffsets="earliest",
            maxBytesPerTrigger="21000",
            maxRowsPerTrigger="1000",
        )
    )
    assert [len(batch) for batch in pipeline.run(options)] == [20, 20]


def test_a_failed_batch_is_read_again_exactly(cluster: Cluster, pipeline: Pipeline) -> None:
    topic = cluster.new_topic()
    options = dict(cluster.options(topic, startingOffsets="earliest"))
    cluster.publish(topic, values(10), batch=4)
    pipeline.fail_after_write = True
    with pytest.raises(StreamingQueryException, match="the sink failed"):
        pipeline.run(options)
    cluster.publish(topic, values(5, first=10))
    pipeline.fail_after_write = False
    assert pipeline.run(options) == [values(10), values(5, first=10)]


def test_a_stream_starts_at_the_end_by_default(cluster: Cluster, pipeline: Pipeline) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(5))
    options = dict(cluster.options(topic))
    # Spark runs a query's first batch even if it is empty: it fixes the start in the checkpoint.
    assert pipeline.run(options) == [[]]
    cluster.publish(topic, values(5, first=5))
    assert pipeline.run(options) == [values(5, first=5)]


def test_new_partitions_are_read_from_their_first_message(
    cluster: Cluster, pipeline: Pipeline
) -> None:
    topic = cluster.new_topic(partitions=1)
    options = dict(cluster.options(topic, startingOffsets="earliest"))
    cluster.publish(f"{topic}-partition-0", values(3))
    assert pipeline.run(options) == [values(3)]
    cluster.admin("POST", topic, "/partitions", 2)
    cluster.publish(f"{topic}-partition-1", values(3, first=3))
    assert pipeline.run(options) == [values(3, first=3)]
    assert set(pipeline.offsets()[-1]) == {f"{topic}-partition-0", f"{topic}-partition-1"}


def test_a_stream_of_several_topics_gives_the_messages_of_each(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """Also of one that is partitioned; what comes later is read once, and nothing else again."""
    single, split = cluster.new_topic(), cluster.new_topic(partitions=2)
    options = dict(cluster.options(f"{single},{split}", startingOffsets="earliest"))
    options["topics"] = options.pop("topic")
    found: list[tuple[str, bytes]] = []

    def take(frame: DataFrame, _batch_id: int) -> None:
        rows = frame.select("__topic", "value").collect()
        found.extend((row["__topic"], bytes(row["value"])) for row in rows)

    def passed() -> list[tuple[str, bytes]]:
        """The rows of one more pass, by topic and in the order of each."""
        found.clear()
        frame = spark.readStream.format("pulsar").options(**options).load()
        query = (
            frame.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(tmp_path / "topics"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        return sorted(found, key=lambda row: row[0])

    parts = [f"{split}-partition-{index}" for index in range(2)]
    sent = [(name, value) for name in (single, *parts) for value in values(5)]
    for name in (single, *parts):
        cluster.publish(name, values(5), batch=2)
    assert passed() == sorted(sent, key=lambda row: row[0])
    cluster.publish(parts[1], values(3, first=5))
    assert passed() == [(parts[1], value) for value in values(3, first=5)]


def test_a_recreated_topic_is_lost_data(cluster: Cluster, pipeline: Pipeline) -> None:
    topic = cluster.new_topic()
    options = dict(cluster.options(topic, startingOffsets="earliest"))
    cluster.publish(topic, values(3))
    assert pipeline.run(options) == [values(3)]
    cluster.admin("DELETE", topic, "?force=true")
    cluster.publish(topic, values(2, first=3))
    with pytest.raises(StreamingQueryException, match="failOnDataLoss=false"):
        pipeline.run(options)
    assert pipeline.run(options | {"failOnDataLoss": "false"}) == [values(2, first=3)]
