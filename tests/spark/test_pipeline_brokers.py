"""Brokers are added, removed, renamed and reordered between runs; no message is read twice.

Both brokers are called ``standalone``, as brokers are by default. The tests found doubled
rows while a checkpoint belonged to a list of URLs.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from headgate.pipeline import jobs
from headgate.pipeline.cluster_identity import cluster_identities
from headgate.pipeline.options import SourceOptions
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.streaming import query
from headgate.pipeline.streaming.earlier_checkpoints import earlier_name
from headgate.pipeline.streaming.offset_log import newest_batch
from headgate.pipeline.tables.bronze import BATCH_KIND, BRONZE_SAMPLES
from tests.service.clients import QUIET
from tests.service.process import BrokerProcess
from tests.spark.telemetry_topic import computing
from tests.unit.pipeline.play import SITUATIONS, Broker

TOPIC = "persistent://public/default/telemetry"


class Telemetry:
    """A broker with telemetry of its own in a topic."""

    def __init__(self, folder: Path, name: str) -> None:
        (folder / name).mkdir()
        self._player = Broker(SITUATIONS[:1], source=name, boot=f"boot-{name}")
        self.process = BrokerProcess(folder / name).start()
        self.name, self.sent = name, 0

    def publish(self, count: int) -> None:
        """Publish so many messages more."""
        client = pulsar.Client(self.process.service_url, logger=QUIET)
        producer = client.create_producer(TOPIC)
        for message in (each for _ in range(count) for each in self._player.window()):
            producer.send(message)
            self.sent += 1
        client.close()

    def move(self) -> None:
        """Start again on the same data directory at other ports."""
        before = self.process.service_url
        self.process.terminate()
        self.process.start()
        assert self.process.service_url != before


class Tables:
    """A folder that runs fill from brokers."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def source(self, *brokers: Telemetry) -> SourceOptions:
        urls = tuple(each.process.service_url for each in brokers)
        web_urls = tuple(each.process.admin_url for each in brokers)
        return SourceOptions(str(self.out), urls, web_urls, TOPIC)

    def run(self, *brokers: Telemetry) -> str:
        err = io.StringIO()
        with computing(BRONZE_SAMPLES):
            jobs.run_once(self.source(*brokers), err)
        return err.getvalue()

    def counts(self) -> dict[str, int]:
        """Messages in bronze by broker, each of which is there once."""
        columns = ["kind", "source", "seq"]
        rows = DeltaTable(self.out / BRONZE_SAMPLES.name).to_pyarrow_table(columns=columns)
        batches = rows.filter(pc.equal(rows["kind"], BATCH_KIND)).to_pylist()
        pairs = [(row["source"], row["seq"]) for row in batches]
        assert len(pairs) == len(set(pairs)), "a message was read twice"
        return dict(Counter(source for source, _ in pairs))


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[Telemetry, Telemetry]]:
    """Two brokers, each with some messages."""
    started: list[Telemetry] = []
    try:
        for name in ("b1", "b2"):
            started.append(Telemetry(tmp_path, name))
            started[-1].publish(5)
        yield started[0], started[1]
    finally:
        for each in started:
            each.process.close()


@pytest.mark.usefixtures("spark")
def test_added_reordered_renamed_and_removed_brokers_are_read_once(
    tmp_path: Path, brokers: tuple[Telemetry, Telemetry]
) -> None:
    tables, (one, two) = Tables(tmp_path / "tables"), brokers
    tables.run(one)
    assert tables.counts() == {"b1": 5}
    # Added, in front of the other.
    tables.run(two, one)
    assert tables.counts() == {"b1": 5, "b2": 5}
    # Reordered and renamed: the same data directory at other ports.
    one.move()
    one.publish(1)
    tables.run(one, two)
    assert tables.counts() == {"b1": 6, "b2": 5}
    # Removed.
    one.publish(1)
    two.publish(1)
    tables.run(two)
    assert tables.counts() == {"b1": 6, "b2": 6}
    # Back again, at two URLs.
    said = tables.run(two, one, one)
    assert tables.counts() == {"b1": 7, "b2": 6}
    assert "have the same topics (headgate:" in said


def test_a_broker_that_goes_amid_a_batch_is_read_when_it_returns(
    spark: SparkSession, tmp_path: Path, brokers: tuple[Telemetry, Telemetry]
) -> None:
    """The batch was planned, and fails before any of it is in the tables."""
    tables, (one, two) = Tables(tmp_path / "tables"), brokers
    tables.run(one, two)
    one.publish(2)
    two.publish(2)
    source = tables.source(one, two)
    checkpoint = checkpoint_path(source)
    with fill_leases(str(tables.out)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "ingest_batch", fail)
        planned = query.start_query(
            query.telemetry_messages(spark, source), str(tables.out), checkpoint, trigger_s=None
        )
        with pytest.raises(StreamingQueryException):
            planned.awaitTermination()
    batch = newest_batch(checkpoint)
    assert batch is not None
    assert not batch.is_committed
    tables.run(two)
    assert tables.counts() == {"b1": 5, "b2": 7}
    tables.run(one, two)
    assert tables.counts() == {"b1": 7, "b2": 7}


@pytest.mark.usefixtures("spark")
def test_an_upgrade_reads_no_message_twice_and_none_too_few(
    tmp_path: Path, brokers: tuple[Telemetry, Telemetry]
) -> None:
    tables, (one, two) = Tables(tmp_path / "tables"), brokers
    tables.run(one, two)
    as_of_an_earlier_release(tables.source(one, two))
    one.publish(1)
    two.publish(2)
    tables.run(two, one)
    assert tables.counts() == {"b1": 6, "b2": 7}
    tables.run(one)
    assert tables.counts() == {"b1": 6, "b2": 7}


def fail(*_: object) -> None:
    """Stands for the end of the process before a batch is written."""
    raise RuntimeError("killed")


def as_of_an_earlier_release(source: SourceOptions) -> None:
    """Make the checkpoint what an earlier release left: an offset for each broker of the list."""
    path = Path(checkpoint_path(source))
    path.with_suffix(".starts.json").unlink()
    clusters = cluster_identities(source)
    for file in (path / "offsets").glob("[0-9]*"):
        *own, offset = file.read_text().split("\n")
        held = json.loads(offset)["clusters"]
        lines = [json.dumps({"v": 1, "t": held[cluster]}) for cluster in clusters]
        file.write_text("\n".join([*own, *lines]))
    path.rename(path.with_name(earlier_name(source.broker_urls, source.topic, None)))
