"""Batch reads through ``format("pulsar")`` against a real broker."""

from __future__ import annotations

import datetime
import time

import pulsar
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.testing import assertSchemaEqual

from pyspark_pulsar.columns import spark_schema
from pyspark_pulsar.offsets import Position
from pyspark_pulsar.options import COLUMNS
from tests.spark.conftest import Cluster, ReadValues


def values(count: int, first: int = 0) -> list[bytes]:
    return [b"m%d" % number for number in range(first, first + count)]


def text(message_id: pulsar.MessageId) -> str:
    return str(
        Position(
            message_id.ledger_id(),
            message_id.entry_id(),
            message_id.partition(),
            message_id.batch_index(),
        )
    )


def test_a_message_in_chunks_is_read_once_wherever_tasks_begin(
    cluster: Cluster, read_values: ReadValues
) -> None:
    """Seven entries, read by one task to one task for each of them."""
    topic, large = cluster.new_topic(), bytes(12 << 20)
    cluster.publish(topic, [b"first"])
    cluster.publish(topic, [large, b"between", large + b"x"], chunking_enabled=True)
    for tasks in range(1, 9):
        found = read_values(topic, minPartitions=str(tasks))
        assert sorted(map(len, found)) == [5, 7, len(large), len(large) + 1]


def test_every_column(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.new_topic()
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    cluster.publish(topic, [b"plain"])
    cluster.publish(
        topic,
        [b"full", b""],
        batch=2,
        partition_key="k",
        event_timestamp=1_700_000_000_123,
        properties={"a": "1", "b": "2"},
    )
    frame = spark.read.format("pulsar").options(**cluster.options(topic)).load()
    assertSchemaEqual(frame.schema, spark_schema(COLUMNS))
    plain, full, empty = frame.collect()
    assert bytes(plain.value) == b"plain"
    assert plain["__key"] is None
    assert plain["__eventTime"] is None
    assert plain["__messageProperties"] == {}
    assert plain["__topic"] == topic
    assert bytes(full["__key"]) == b"k"
    assert full["__messageProperties"] == {"a": "1", "b": "2"}
    assert bytes(empty.value) == b""
    times = frame.selectExpr(
        "unix_millis(__eventTime) AS event_ms", "unix_millis(__publishTime) AS publish_ms"
    ).collect()
    assert [row.event_ms for row in times] == [None, 1_700_000_000_123, 1_700_000_000_123]
    assert all(before.timestamp() * 1_000 <= row.publish_ms <= time.time() * 1_000 for row in times)
    ids = cluster.ids(topic)
    assert bytes(full["__messageId"]) == ids[b"full"].serialize()


def test_columns_can_be_left_out(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(2))
    options = cluster.options(topic, columns="__topic,value")
    frame = spark.read.format("pulsar").options(**options).load()
    assert frame.columns == ["value", "__topic"]
    assert [tuple(row) for row in frame.collect()] == [(b"m0", topic), (b"m1", topic)]
    narrow = spark.read.format("pulsar").options(**cluster.options(topic))
    assert [row[0] for row in narrow.schema("value binary").load().collect()] == values(2)


@pytest.mark.parametrize("batch", [1, 10])
def test_message_ids_are_exact_at_both_ends(
    cluster: Cluster, read_values: ReadValues, batch: int
) -> None:
    topic = cluster.new_topic()
    sent = values(25)
    cluster.publish(topic, sent, batch=batch)
    ids = cluster.ids(topic)
    assert list(ids) == sent
    for first, last in ((0, 24), (4, 17), (9, 9), (10, 19)):
        read = read_values(
            topic,
            startingOffsets=f'{{"{topic}": "{text(ids[sent[first]])}"}}',
            endingOffsets=f'{{"{topic}": "{text(ids[sent[last]])}"}}',
        )
        assert read == sent[first : last + 1]


def test_whole_entries_when_the_id_has_no_batch_index(
    cluster: Cluster, read_values: ReadValues
) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(30), batch=10)
    ledger_id = cluster.ids(topic)[b"m0"].ledger_id()
    entry = f'{{"{topic}": "{ledger_id}:1"}}'
    assert read_values(topic, startingOffsets=entry, endingOffsets=entry) == values(10, first=10)


def test_publish_times_are_exact(cluster: Cluster, read_values: ReadValues) -> None:
    topic = cluster.new_topic()
    cuts: list[int] = []
    for number in range(3):
        time.sleep(0.01)
        cuts.append(int(time.time() * 1_000))
        time.sleep(0.01)
        cluster.publish(topic, [b"t%d-%d" % (number, each) for each in range(4)], batch=2)
    middle = [b"t1-%d" % each for each in range(4)]
    assert read_values(topic, startingTime=str(cuts[1]), endingTime=str(cuts[2])) == middle
    assert len(read_values(topic, startingTime=str(cuts[1]))) == 8
    assert len(read_values(topic, endingTime=str(cuts[1]))) == 4
    assert read_values(topic, startingTime=str(cuts[2] + 60_000)) == []


def test_partitions_and_several_topics(spark: SparkSession, cluster: Cluster) -> None:
    parted, plain = cluster.new_topic(partitions=3), cluster.new_topic()
    for index in range(2):
        cluster.publish(f"{parted}-partition-{index}", values(5, first=5 * index))
    cluster.publish(plain, values(5, first=10))
    options = dict(cluster.options(plain, topics=f"{parted},{plain}"))
    del options["topic"]
    frame = spark.read.format("pulsar").options(**options).load()
    assert sorted(bytes(row.value) for row in frame.collect()) == sorted(values(15))
    assert {row["__topic"] for row in frame.select("__topic").distinct().collect()} == {
        f"{parted}-partition-0",
        f"{parted}-partition-1",
        plain,
    }
    assert frame.rdd.getNumPartitions() == 3


def test_more_tasks_than_partitions_read_the_same(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(105), batch=10)
    options = cluster.options(topic, minPartitions="4")
    frame = spark.read.format("pulsar").options(**options).load()
    assert frame.rdd.getNumPartitions() == 4
    assert [bytes(row.value) for row in frame.select("value").collect()] == values(105)


def test_large_reads_come_in_several_record_batches(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(25_000), batch=1_000)
    options = cluster.options(topic, columns="value")
    frame = spark.read.format("pulsar").options(**options).load()
    assert frame.distinct().count() == 25_000


def test_empty_topics_give_no_rows(cluster: Cluster, read_values: ReadValues) -> None:
    assert read_values(cluster.new_topic(partitions=2)) == []
    used = cluster.new_topic()
    cluster.publish(used, [])
    assert read_values(used) == []


def test_missing_topics_unknown_options_and_foreign_ids_are_named(
    spark: SparkSession, cluster: Cluster, read_values: ReadValues
) -> None:
    missing = cluster.new_topic()
    with pytest.raises(PySparkException, match=f"{missing} does not exist"):
        read_values(missing)
    with pytest.raises(AnalysisException, match=r"unknown option topc; did you mean topic\?"):
        spark.read.format("pulsar").options(**cluster.options(missing, topc="x")).load()
    cluster.publish(missing, values(1))
    with pytest.raises(PySparkException, match="which this query does not read"):
        read_values(missing, startingOffsets='{"other": "earliest"}')


def test_an_unreachable_cluster_is_an_error_in_time(read_values: ReadValues) -> None:
    started = time.monotonic()
    with pytest.raises(PySparkException, match="cannot be reached"):
        read_values("t", **{"admin.url": "http://127.0.0.1:1", "adminTimeoutMs": "300"})
    assert time.monotonic() - started < 30
