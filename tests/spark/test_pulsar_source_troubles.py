"""Clocks that are off, invalid times, and deleted topics."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.testing.client import SimClient
from tests.spark.conftest import Cluster

DAY_MS = 86_400_000
PUBLIC_KEY = """\
-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDLVRX90PIEYB9b64/lwwK7LfvC
LcPNjH1hLz6IZgtlplhJibtKTP3+JifXRTplXidrsdhcwScTGoAeVQvw3xwBx5Lo
WibhwxRCusKP19Ju9SUzxLMnYHxeldxu3tpXeqH3KEp8gVrOCCS6g9kemBQWUD1Q
tn+JjbCPy39Udi66OwIDAQAB
-----END PUBLIC KEY-----
"""


def published(cluster: Cluster, topic: str, *clocks_ms: list[int]) -> None:
    """Publish the times, as messages of one producer for each of the lists, by turns."""
    now_ms = 0

    async def run() -> None:
        loop = asyncio.get_running_loop()
        address = urlsplit(cluster.broker.service_url)
        _, client = await loop.create_connection(
            lambda: SimClient(loop, wall_ms=lambda: now_ms), address.hostname, address.port
        )
        await client.connect()
        await client.lookup(topic)
        producers = [await client.producer(topic) for _ in clocks_ms]
        nonlocal now_ms
        for times_ms in zip(*clocks_ms, strict=True):
            for producer, now_ms in zip(producers, times_ms, strict=True):
                await producer.send(b"%d" % now_ms)
        client.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_clocks_that_are_two_minutes_apart_lose_nothing(
    spark: SparkSession, cluster: Cluster
) -> None:
    """Of yesterday: what was published lately is read to the end whatever the clocks say."""
    topic = cluster.new_topic()
    begin_ms = time.time_ns() // 1_000_000 - DAY_MS
    right = [begin_ms + 10_000 * number for number in range(200)]
    published(cluster, topic, right, [each + 120_000 for each in right])
    frame = (
        spark.read.format("pulsar")
        .options(**cluster.options(topic))
        .option("startingTime", begin_ms + 1_000_000)
        .option("endingTime", begin_ms + 1_100_000)
        .load()
    )
    found = sorted(int(row.value) for row in frame.select("value").collect())
    assert found == sorted(2 * [begin_ms + 10_000 * number for number in range(100, 110)])


def test_invalid_event_times_are_null(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.new_topic()
    given = [5, 1_763_719_200_000_000_000, (1 << 63) + 5]
    for event_ms in given:
        cluster.publish(topic, [b"%d" % event_ms], event_timestamp=event_ms)
    frame = spark.read.format("pulsar").options(**cluster.options(topic)).load()
    rows = frame.selectExpr("value", "unix_millis(__eventTime) AS event_ms").collect()
    assert {int(row.value): row.event_ms for row in rows} == {5: 5, given[1]: None, given[2]: None}


def test_a_query_continues_without_a_deleted_topic(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    kept, deleted = cluster.new_topic(), cluster.new_topic()
    options = dict(cluster.options("", topics=f"{kept},{deleted}", startingOffsets="earliest"))
    del options["topic"]

    def new_values() -> list[str]:
        query = (
            spark.readStream.format("pulsar")
            .options(**options, failOnDataLoss="false", maxRowsPerTrigger="2")
            .load()
            .selectExpr("CAST(value AS STRING)")
            .writeStream.format("parquet")
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"), checkpointLocation=str(tmp_path / "checkpoint"))
        )
        assert query.awaitTermination(120)
        before = set(seen)
        seen[:] = sorted(row.value for row in spark.read.parquet(str(tmp_path / "out")).collect())
        return [value for value in seen if value not in before]

    seen: list[str] = []
    for topic, name in ((kept, "k"), (deleted, "d")):
        cluster.publish(topic, [b"%s%d" % (name.encode(), number) for number in range(3)])
    assert new_values() == ["d0", "d1", "d2", "k0", "k1", "k2"]
    cluster.admin("DELETE", deleted, "?force=true")
    cluster.publish(kept, [b"k3"])
    assert new_values() == ["k3"]
    cluster.publish(kept, [b"k4"])
    assert new_values() == ["k4"]
    cluster.publish(deleted, [b"e0"])
    assert new_values() == ["e0"], "it is another topic, read from its first message"


def test_encrypted_messages_are_named_at_once(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    key = tmp_path / "public.pem"
    key.write_text(PUBLIC_KEY)
    topic = cluster.new_topic()
    cluster.publish(topic, [b"before"])
    cluster.publish(topic, [b"sealed"], public_key=key)

    def values(**options: str) -> list[bytes]:
        given = cluster.options(topic) | {"pollTimeoutMs": "600000"} | options
        frame = spark.read.format("pulsar").options(**given).load()
        return [bytes(row.value) for row in frame.select("value").collect()]

    with pytest.raises(PySparkException, match="is encrypted, and this source has no keys"):
        values()
    assert values(failOnDataLoss="false") == [b"before"]
    cluster.publish(topic, [b"behind"])
    with pytest.raises(PySparkException, match="is encrypted, and this source has no keys"):
        values()
    assert sorted(values(failOnDataLoss="false")) == [b"before", b"behind"]
