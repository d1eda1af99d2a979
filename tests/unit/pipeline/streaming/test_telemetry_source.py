"""One stream over several clusters, against scripted brokers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from headgate.pipeline.streaming.telemetry_source import (
    SILENT_S,
    ClusterPartition,
    ClusterRange,
    TelemetrySource,
    TelemetryStreamReader,
)
from pyspark_pulsar.admin import AdminClient
from pyspark_pulsar.errors import DataLossError, OptionsError, UnreachableError
from pyspark_pulsar.options import SourceOptions, parse_options
from pyspark_pulsar.ranges import TopicSnapshot
from pyspark_pulsar.source import PulsarStreamReader
from tests.unit.pyspark_pulsar.fakes import FakeAdmin, held

T = "persistent://public/default/t"
PATIENCE_S = 100


class Brokers:
    """Brokers by the host of their URL, each with a data directory."""

    def __init__(self, **directories: str) -> None:
        self.directories: dict[str, str] = dict(directories)
        """By host; empty while a broker does not answer."""
        self.topics: dict[str, dict[str, TopicSnapshot | None]] = {}
        """By data directory."""
        self.now_s = 0.0

    def grow(self, directory: str, entries: int, topic: str = T) -> None:
        self.topics.setdefault(directory, {})[topic] = held((3, entries))

    def admin(self, options: SourceOptions) -> AdminClient:
        return cast(AdminClient, Identity(self, host_of(options)))

    def reader(self, options: SourceOptions, schema: StructType) -> PulsarStreamReader:
        made = FakeReader(options, schema)
        fake = FakeAdmin(self.topics.setdefault(self.directories[host_of(options)], {}))
        made._admin_client = fake  # type: ignore[assignment]
        return made

    def stream(
        self, *hosts: str, topic: str = "t", starts: Any = None, absent: Any = ()
    ) -> TelemetryStreamReader:
        brokers = tuple(parse_options(options(host, topic)) for host in hosts)
        return TelemetryStreamReader(
            brokers,
            TelemetrySource({"brokers": json.dumps([options("a")])}).schema(),
            starts or {},
            frozenset(absent),
            admin_client=self.admin,
            reader_of=self.reader,
            monotonic=lambda: self.now_s,
        )


class Identity:
    """The part of an admin client that tells who a broker is; a failure takes ten seconds."""

    def __init__(self, brokers: Brokers, host: str) -> None:
        self._brokers, self._host = brokers, host

    def document(self, path: str) -> dict[str, str]:
        assert path == "headgate/identity"
        directory = self._brokers.directories[self._host]
        if not directory:
            self._brokers.now_s += 10
            raise UnreachableError(f"{self._host} does not answer")
        return {"cluster": "standalone", "dataId": directory}


class FakeReader(PulsarStreamReader):
    """Reads the name of its broker."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = [f"{host_of(self._options)} up to {partition.value.end}"]
        return iter([pa.RecordBatch.from_pydict({"value": rows})])


def host_of(options: SourceOptions) -> str:
    return options.connection.admin_url.removeprefix("http://").partition(":")[0]


def options(host: str, topic: str = "t") -> dict[str, str]:
    return {
        "service.url": f"pulsar://{host}:1",
        "admin.url": f"http://{host}:2",
        "topic": topic,
        "failOnDataLoss": "false",
        "pollTimeoutMs": str(PATIENCE_S * 1_000),
        "columns": "value",
    }


def following(reader: TelemetryStreamReader, start: dict[str, Any]) -> dict[str, Any]:
    """The end of the batch after ``start``."""
    return reader.latestOffset(start, ReadAllAvailable())


def read(reader: TelemetryStreamReader, start: dict[str, Any], end: dict[str, Any]) -> set[str]:
    """What the tasks of a batch read: data directory, and the entries after and up to which."""
    tasks = [each.value for each in reader.partitions(start, end)]
    return {
        f"{task.cluster.removeprefix('headgate:')} {task.work.start.entry_id}"
        f"..{task.work.end.entry_id}"
        for task in tasks
    }


def test_a_broker_that_is_added_is_read_from_its_first_message() -> None:
    brokers = Brokers(a="A", b="B")
    brokers.grow("A", 5)
    brokers.grow("B", 7)
    only = brokers.stream("a")
    first = following(only, only.initialOffset())
    assert read(only, only.initialOffset(), first) == {"A -1..4"}
    both = brokers.stream("b", "a")
    second = following(both, first)
    assert read(both, first, second) == {"B -1..6"}


def test_the_order_and_the_urls_of_brokers_do_not_matter() -> None:
    brokers = Brokers(a="A", b="B", c="")
    brokers.grow("A", 5)
    brokers.grow("B", 7)
    stream = brokers.stream("a", "b")
    first = following(stream, stream.initialOffset())
    again = brokers.stream("b", "a")
    assert following(again, first) == first
    brokers.directories |= {"a": "", "c": "A"}
    brokers.grow("A", 6)
    renamed = brokers.stream("b", "c")
    second = following(renamed, first)
    assert read(renamed, first, second) == {"A 4..5"}


def test_a_broker_that_is_removed_keeps_its_position() -> None:
    brokers = Brokers(a="A", b="B")
    brokers.grow("A", 5)
    brokers.grow("B", 7)
    both = brokers.stream("a", "b")
    first = following(both, both.initialOffset())
    brokers.grow("A", 8)
    brokers.grow("B", 8)
    only = brokers.stream("b")
    second = following(only, first)
    assert read(only, first, second) == {"B 6..7"}
    both = brokers.stream("a", "b")
    third = following(both, second)
    assert read(both, second, third) == {"A 4..7"}


def test_two_urls_of_one_cluster_are_read_once() -> None:
    brokers = Brokers(a="A", b="A")
    brokers.grow("A", 5)
    stream = brokers.stream("a", "b")
    first = following(stream, stream.initialOffset())
    assert read(stream, stream.initialOffset(), first) == {"A -1..4"}
    brokers.directories["a"] = ""
    brokers.grow("A", 6)
    second = following(stream, first)
    (task,) = stream.partitions(first, second)
    assert (task.value.broker, task.value.work.end.entry_id) == (1, 5)


def test_a_new_data_directory_at_the_same_url_is_read_from_its_first_message() -> None:
    """Also while the stream runs, and although its ids are those that were read before."""
    brokers = Brokers(a="A")
    brokers.grow("A", 5)
    stream = brokers.stream("a")
    first = following(stream, stream.initialOffset())
    brokers.directories["a"] = "B"
    brokers.grow("B", 9)
    second = following(stream, first)
    assert read(stream, first, second) == {"B -1..8"}
    assert set(second["clusters"]) == {"headgate:A", "headgate:B"}
    brokers.directories["a"] = "A"
    assert following(stream, second) == second


def test_topics_have_positions_of_their_own() -> None:
    brokers = Brokers(a="A")
    brokers.grow("A", 5)
    brokers.grow("A", 3, T.replace("/t", "/u"))
    stream = brokers.stream("a")
    first = following(stream, stream.initialOffset())
    other = brokers.stream("a", topic="u")
    second = following(other, first)
    assert read(other, first, second) == {"A -1..2"}
    assert following(stream, second) == second


def test_a_cluster_begins_where_an_earlier_release_stopped() -> None:
    brokers = Brokers(a="A", b="B")
    brokers.grow("A", 5)
    brokers.grow("B", 5)
    stream = brokers.stream("a", "b", starts={"headgate:A": {T: "3:2:-1:-1"}})
    first = following(stream, stream.initialOffset())
    assert read(stream, stream.initialOffset(), first) == {"A 2..4", "B -1..4"}
    # Once they are in the checkpoint, its positions count.
    brokers.grow("A", 6)
    second = following(stream, first)
    assert read(stream, first, second) == {"A 4..5"}


def test_a_broker_that_does_not_answer_holds_up_no_other() -> None:
    """It ended the stream after ``pollTimeoutMs``, and with it the telemetry of all others."""
    brokers = Brokers(a="A", b="")
    brokers.grow("A", 5)
    stream = brokers.stream("a", "b")
    first = following(stream, stream.initialOffset())
    assert read(stream, stream.initialOffset(), first) == {"A -1..4"}
    batches = 0
    while brokers.now_s < 4 * PATIENCE_S:
        assert following(stream, first) == first
        brokers.now_s += 10
        batches += 1
    # At first each batch waits ten seconds for its answer, then one in a minute.
    asked = (brokers.now_s - 10 * batches) / 10
    assert asked <= 3 + 4 * PATIENCE_S / SILENT_S
    brokers.grow("A", 6)
    assert read(stream, first, following(stream, first)) == {"A 4..5"}
    brokers.now_s += SILENT_S
    brokers.directories["b"] = "B"
    brokers.grow("B", 2)
    assert set(following(stream, first)["clusters"]) == {"headgate:A", "headgate:B"}


def test_a_stream_of_which_no_broker_answers_ends() -> None:
    brokers = Brokers(a="A", b="")
    brokers.grow("A", 5)
    stream = brokers.stream("a", "b")
    first = following(stream, stream.initialOffset())
    brokers.now_s += 9 * PATIENCE_S
    # A restart of the only one that answers is no end, however long the other is down.
    brokers.directories["a"] = ""
    while brokers.now_s < 10 * PATIENCE_S - 10:
        assert following(stream, first) == first
    with pytest.raises(UnreachableError, match="does not answer"):
        following(stream, first)


def test_a_planned_batch_waits_for_its_own_cluster_alone() -> None:
    brokers = Brokers(a="A", b="")
    brokers.grow("A", 5)
    start = brokers.stream("a").initialOffset()
    end = following(brokers.stream("a"), start)
    assert read(brokers.stream("a", "b"), start, end) == {"A -1..4"}
    assert brokers.now_s < PATIENCE_S
    brokers.directories |= {"a": "", "b": "B"}
    with pytest.raises(UnreachableError, match="a does not answer"):
        brokers.stream("a", "b").partitions(start, end)
    assert brokers.now_s >= PATIENCE_S


def test_a_run_with_an_end_waits_for_every_broker_and_then_asks_none() -> None:
    brokers = Brokers(a="A", b="")
    brokers.grow("A", 5)
    stream = brokers.stream("a", "b")
    with pytest.raises(UnreachableError, match="b does not answer"):
        stream.prepareForTriggerAvailableNow()
    brokers.directories["b"] = "B"
    brokers.grow("B", 2)
    stream.prepareForTriggerAvailableNow()
    brokers.grow("A", 9)
    brokers.directories["a"] = ""
    end = following(stream, stream.initialOffset())
    assert read(stream, stream.initialOffset(), end) == {"A -1..4", "B -1..1"}
    assert stream.reportLatestOffset() is not None


def test_a_planned_batch_of_another_cluster_is_no_batch_of_these() -> None:
    brokers = Brokers(a="A", b="B")
    brokers.grow("A", 5)
    brokers.grow("B", 5)
    both = brokers.stream("a", "b")
    start = both.initialOffset()
    end = following(both, start)
    with pytest.raises(DataLossError, match=r"telemetry of headgate:A, .*: start the job again"):
        brokers.stream("b").partitions(start, end)
    assert read(brokers.stream("b", absent=["headgate:A"]), start, end) == {"B -1..4"}
    assert read(brokers.stream("b", "a"), start, end) == {"A -1..4", "B -1..4"}


def test_a_task_reads_and_then_asks_whose_messages_they_were() -> None:
    brokers = Brokers(a="A")
    brokers.grow("A", 5)
    stream = brokers.stream("a")
    start = stream.initialOffset()
    (task,) = stream.partitions(start, following(stream, start))
    (rows,) = stream.read(task)
    assert rows["value"].to_pylist() == ["a up to 3:4:-1:-1"]
    assert list(stream.read(ClusterPartition(None))) == []
    brokers.directories["a"] = "B"
    with pytest.raises(DataLossError, match=r"headgate:B now, and was headgate:A .* reads both"):
        list(stream.read(task))
    brokers.directories["a"] = ""
    with pytest.raises(UnreachableError):
        list(stream.read(task))


def test_the_reader_is_sent_to_workers_without_connections() -> None:
    source = TelemetrySource({"brokers": json.dumps([options("a")])})
    reader = source.streamReader(source.schema())
    copy = pickle.loads(pickle.dumps(reader))
    assert isinstance(copy, TelemetryStreamReader)
    assert copy.initialOffset() == {"v": 1, "clusters": {}}
    assert isinstance(copy.getDefaultReadLimit(), ReadAllAvailable)
    assert pickle.loads(pickle.dumps(ClusterRange(0, "headgate:A", cast(Any, None)))).broker == 0


def test_options_of_every_broker_are_checked() -> None:
    wrong = options("b") | {"endingOffsets": "latest"}
    source = TelemetrySource({"brokers": json.dumps([options("a"), wrong])})
    with pytest.raises(OptionsError, match="endingOffsets"):
        source.streamReader(source.schema())
