"""Both ends of a read are exact: in batched entries, at publish times, within limits.

By the classes that Spark calls, in this process: what Spark adds is the same for all ends.
"""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pulsar
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from pyspark_pulsar.errors import DataLossError, OptionsError, TopicNotFoundError
from pyspark_pulsar.source import DefaultSource
from tests.spark.conftest import Cluster


def values(count: int, first: int = 0) -> list[bytes]:
    return [b"m%d" % number for number in range(first, first + count)]


def place(message_id: pulsar.MessageId) -> str:
    parts = message_id.ledger_id(), message_id.entry_id(), -1, message_id.batch_index()
    return ":".join(map(str, parts))


def rows_of(reader: Any, tasks: list[Any]) -> list[tuple[bytes, int]]:
    """Each value and its publish time in epoch milliseconds."""
    rows: list[tuple[bytes, int]] = []
    for task in tasks:
        for batch in reader.read(task):
            times = batch["__publishTime"].cast("int64").to_pylist()
            rows.extend(
                (value, micros // 1_000)
                for value, micros in zip(batch["value"].to_pylist(), times, strict=True)
            )
    return rows


def batch_read(cluster: Cluster, topic: str, **more: str) -> list[tuple[bytes, int]]:
    source = DefaultSource(dict(cluster.options(topic, **more)))
    reader = source.reader(source.schema())
    return rows_of(reader, reader.partitions())


def read(cluster: Cluster, topic: str, **more: str) -> list[bytes]:
    return [value for value, _ in batch_read(cluster, topic, **more)]


def at(topic: str, where: str) -> str:
    return json.dumps({topic: where})


@pytest.mark.parametrize("tasks", ["1", "3"])
def test_every_pair_of_ends_in_batched_entries(cluster: Cluster, tasks: str) -> None:
    """Three entries of four: all starts and ends, within one entry and over several."""
    topic, sent = cluster.new_topic(), values(12)
    cluster.publish(topic, sent, batch=4)
    places = [place(message_id) for message_id in cluster.ids(topic).values()]
    for first, last in itertools.combinations_with_replacement(range(12), 2):
        found = read(
            cluster,
            topic,
            startingOffsets=at(topic, places[first]),
            endingOffsets=at(topic, places[last]),
            minPartitions=tasks,
        )
        assert found == sent[first : last + 1], (first, last)


def test_earliest_and_latest_with_an_id_at_the_other_end(cluster: Cluster) -> None:
    topic, sent = cluster.new_topic(), values(12)
    cluster.publish(topic, sent, batch=4)
    middle = at(topic, place(cluster.ids(topic)[b"m5"]))
    assert read(cluster, topic, startingOffsets="earliest", endingOffsets=middle) == sent[:6]
    assert read(cluster, topic, startingOffsets=middle, endingOffsets="latest") == sent[5:]
    assert read(cluster, topic) == sent


def test_every_publish_time_as_either_end(cluster: Cluster) -> None:
    """A start is included and an end is not, to the millisecond, also within a batched entry.

    One clock sets them, in order: so the search needs no margin, and must find the very entries.
    """
    search = {"publishTimeSkewMs": "0"}
    topic = cluster.new_topic()
    for number in range(4):
        cluster.publish(topic, values(5, first=5 * number), batch=5)
        time.sleep(0.003)
    rows = batch_read(cluster, topic)
    assert [value for value, _ in rows] == values(20)
    instants = sorted({publish_ms for _, publish_ms in rows})
    assert len(instants) >= 4
    for since_ms, until_ms in itertools.product(instants, [each + 1 for each in instants]):
        if since_ms > until_ms:
            continue
        both = {"startingTime": str(since_ms), "endingTime": str(until_ms)}
        found = batch_read(cluster, topic, **both, **search)
        assert found == [row for row in rows if since_ms <= row[1] < until_ms]
    for each in instants:
        assert batch_read(cluster, topic, startingTime=str(each), **search) == [
            row for row in rows if row[1] >= each
        ]
        assert batch_read(cluster, topic, endingTime=str(each), **search) == [
            row for row in rows if row[1] < each
        ]


def passes(cluster: Cluster, topic: str, **more: str) -> list[list[bytes]]:
    """The batches of one pass with an end, as Spark asks for them."""
    source = DefaultSource(dict(cluster.options(topic, **more)))
    reader = source.streamReader(source.schema())
    reader.prepareForTriggerAvailableNow()
    limit: ReadLimit = reader.getDefaultReadLimit()
    start, batches = reader.initialOffset(), []
    while (end := reader.latestOffset(start, limit)) != start:
        batches.append([value for value, _ in rows_of(reader, reader.partitions(start, end))])
        start = end
    return batches


def test_a_stream_from_the_middle_of_an_entry_in_limits(cluster: Cluster) -> None:
    topic, sent = cluster.new_topic(), values(40)
    cluster.publish(topic, sent, batch=4)
    start = at(topic, place(cluster.ids(topic)[b"m6"]))
    assert passes(cluster, topic, startingOffsets=start) == [sent[6:]]
    by_rows = passes(cluster, topic, startingOffsets=start, maxRowsPerTrigger="8")
    assert [value for batch in by_rows for value in batch] == sent[6:]
    assert [len(batch) for batch in by_rows] == [6, 8, 8, 8, 4]


def test_a_stream_from_a_publish_time(cluster: Cluster) -> None:
    """To the millisecond, also within a batched entry; what comes later is read as ever."""
    topic = cluster.new_topic()
    for number in range(3):
        cluster.publish(topic, values(5, first=5 * number), batch=5)
        time.sleep(0.003)
    rows = batch_read(cluster, topic)
    for since_ms in sorted({publish_ms for _, publish_ms in rows}):
        due = [value for value, publish_ms in rows if publish_ms >= since_ms]
        batches = passes(cluster, topic, startingTime=str(since_ms), maxRowsPerTrigger="5")
        assert [value for batch in batches for value in batch] == due
    source = DefaultSource(dict(cluster.options(topic, startingTime=str(rows[-1][1] + 1))))
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    cluster.publish(topic, values(4, first=15), batch=2)
    end = reader.latestOffset(start, ReadAllAvailable())
    found = [value for value, _ in rows_of(reader, reader.partitions(start, end))]
    assert found == values(4, first=15)


def test_limits_by_rows_and_by_bytes(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    sent = [b"%04d" % number + bytes(996) for number in range(60)]
    cluster.publish(topic, sent)
    everything = {"startingOffsets": "earliest"}
    for more, sizes in (
        ({"maxRowsPerTrigger": "25"}, [25, 25, 10]),
        ({"maxBytesPerTrigger": "21500"}, [20, 20, 20]),
        ({"maxRowsPerTrigger": "15", "maxBytesPerTrigger": "1000000"}, [15] * 4),
        ({"maxRowsPerTrigger": "1000", "maxBytesPerTrigger": "1"}, [1] * 60),
    ):
        batches = passes(cluster, topic, **everything, **more)
        assert [len(batch) for batch in batches] == sizes, more
        assert [value for batch in batches for value in batch] == sent


def test_tasks_of_a_stream_are_cut_exactly(cluster: Cluster) -> None:
    topic, sent = cluster.new_topic(), values(105)
    cluster.publish(topic, sent, batch=10)
    source = DefaultSource(
        dict(cluster.options(topic, startingOffsets="earliest", minPartitions="4"))
    )
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    assert len(tasks) == 4
    assert [value for value, _ in rows_of(reader, tasks)] == sent


def test_a_pass_ignores_messages_published_after_its_start(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(6), batch=3)
    source = DefaultSource(dict(cluster.options(topic, startingOffsets="earliest")))
    reader = source.streamReader(source.schema())
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    cluster.publish(topic, values(6, first=6), batch=3)
    end = reader.latestOffset(start, ReadAllAvailable())
    found = [value for value, _ in rows_of(reader, reader.partitions(start, end))]
    assert found == values(6)
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_trimmed_start_is_a_loss_or_is_skipped(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    cluster.publish(topic, values(5))
    start = at(topic, place(cluster.ids(topic)[b"m2"]))
    cluster.admin("DELETE", topic, "?force=true")
    cluster.publish(topic, values(3, first=5))
    with pytest.raises(DataLossError, match=r"may have been trimmed\. Set failOnDataLoss=false"):
        read(cluster, topic, startingOffsets=start)
    found = read(cluster, topic, startingOffsets=start, failOnDataLoss="false")
    assert found == values(3, first=5)


def test_one_error_lists_all_faults_of_the_caller(cluster: Cluster) -> None:
    with pytest.raises(OptionsError) as caught:
        read(
            cluster,
            "t",
            startingOffset="earliest",
            startingOffsets='{"t": "8"}',
            endingTime="today",
            authParams="token:s3cret",
        )
    assert caught.value.problems == (
        "unknown option startingOffset; did you mean startingOffsets?",
        "options authPluginClassName and authParams belong together; set both",
        "option startingOffsets='{\"t\": \"8\"}': '8' of persistent://public/default/t is not a "
        "message id of the form L:E:P:B",
        "option endingTime='today': give a whole number from 0 to 9223372036854775",
    )
    missing = cluster.new_topic()
    with pytest.raises(TopicNotFoundError, match=f"{missing} does not exist"):
        read(cluster, missing)
