"""The tables about quotas by whole jobs, in one run, in many triggers and after kills."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.derived.derived_table import DerivedTable
from headgate.pipeline.derived.intervals import Intervals
from headgate.pipeline.derived.quotas import QuotaUsage
from headgate.pipeline.options import SourceOptions, StreamOptions
from headgate.pipeline.queries.forecast_rows import forecast_rows, forecast_score
from headgate.pipeline.refresh import refresh
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.streaming.query import start_query
from headgate.pipeline.tables.bronze import BRONZE_EVENTS, BRONZE_SAMPLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import EVICTIONS, QUOTA_USAGE
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA
from tests.service.process import BrokerProcess
from tests.spark.bronze_oracle import bronze_oracle, rows_received
from tests.spark.quota_oracle import (
    EVICTION_COLUMNS,
    FORECAST_COLUMNS,
    USAGE_COLUMNS,
    evictions_oracle,
    rows_in_order,
    usage_oracle,
)
from tests.spark.telemetry_topic import Topic, computing, fill, rows_of
from tests.unit.pipeline.play import T0, S, play
from tests.unit.pipeline.quota_play import MESSAGES_OF_ACT, NS, QuotaBroker, acts_until, quota_play

QUOTA_TABLES = ("quota_usage", "evictions")
DERIVED_TABLES = ("intervals", *QUOTA_TABLES)
COMPUTED = (INTERVALS, QUOTA_USAGE, EVICTIONS)
"""What a job computes for these tables."""

FIRST_S, SECOND_S, OTHER_S = 200, 150, 100
"""How long the two boots of :func:`troubled` run, and another cluster with the same topics."""


def troubled() -> list[bytes]:
    """Two hours' edge, a restart, lost and doubled batches, out of order."""
    first = QuotaBroker(start_ns=T0 + 3_480 * S)
    messages = [m for _ in range(0, FIRST_S, 10) for m in first.window(10)]
    second = QuotaBroker(start_ns=first.now_ns + 20 * S, boot="boot-2")
    messages += [m for _ in range(0, SECOND_S, 10) for m in second.window(10)]
    # Lost batches have no act of eviction in them.
    kept = [m for i, m in enumerate(messages) if i not in (1, 2, 22)]
    names = {"cluster": "other", "source": "b9", "boot": "boot-9"}
    other = quota_play(OTHER_S, start_ns=T0 + 3_480 * S, **names)
    return kept[16:] + kept[:20] + other


@dataclass(frozen=True)
class Whole:
    """One run over all of :func:`troubled` that nothing disturbed."""

    topic: Topic
    out: Path
    progress: str


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    topic = Topic(folder / "topic")
    topic.publish(troubled())
    progress = fill(folder / "tables", topic, *COMPUTED)
    return Whole(topic, folder / "tables", progress)


def test_both_tables_equal_an_independent_oracle(whole: Whole) -> None:
    out = whole.out
    assert "Computing quota_usage" in whole.progress
    assert "Computing evictions" in whole.progress
    usage, evictions = (rows_of(out, table) for table in QUOTA_TABLES)
    expected = usage_oracle(rows_of(out, "intervals"))
    assert len(expected) > 4 * 6
    assert rows_in_order(usage, USAGE_COLUMNS) == expected
    expected = evictions_oracle(rows_of(out, "bronze_events"))
    assert rows_in_order(evictions, EVICTION_COLUMNS) == expected

    assert {*USAGE_COLUMNS, *FORECAST_COLUMNS, "sentence"} == set(QUOTA_USAGE.column_names())
    assert set(usage["cluster"].to_pylist()) == {"demo", "other"}

    boots_s = (FIRST_S, SECOND_S, OTHER_S)
    acts = sum(map(acts_until, boots_s))
    assert evictions.num_rows == acts
    assert sum(evictions["messages"].to_pylist()) == MESSAGES_OF_ACT * acts
    assert set(evictions["hour"].to_pylist()) == {10, 11}
    assert {len(json.loads(text)) for text in evictions["subscriptions"].to_pylist()} == {2}
    # Every act is in exactly one minute, restart and lost batches included.
    assert sum(usage["eviction_time_messages"].drop_null().to_pylist()) == MESSAGES_OF_ACT * acts
    held_s = sum(row["held_seconds"] for row in usage.to_pylist() if row["topic"] == f"{NS}held")
    assert held_s == sum(seconds - 60 for seconds in boots_s)
    assert {row["sentence"] for row in usage.to_pylist() if row["topic"] == f"{NS}blocked"} == {
        "the topic is over its 0 B quota (topic policy): producers are refused with an error"
    }

    versions = {table: DeltaTable(out / table).version() for table in QUOTA_TABLES}
    fill(out, whole.topic, *COMPUTED)
    assert versions == {table: DeltaTable(out / table).version() for table in QUOTA_TABLES}


def test_bronze_holds_what_the_codec_reads(whole: Whole) -> None:
    for table in (BRONZE_SAMPLES, BRONZE_EVENTS):
        found = rows_received(rows_of(whole.out, table.name), table)
        assert found == bronze_oracle(troubled(), table)
        assert set(found.values()) == {1, 2}


def test_triggers_and_a_stream_that_goes_on_give_the_rows_of_one(
    tmp_path: Path, whole: Whole
) -> None:
    messages = troubled()
    parts = (messages[:9], messages[9:25], messages[25:])
    out, topic = tmp_path / "tables", Topic(tmp_path / "topic")
    topic.publish(parts[0])
    fill(out, topic, *COMPUTED)
    for part in parts[1:]:
        topic.publish(part)
    with computing(*COMPUTED):
        _stream(out, topic, batches=len(parts))
    for table in DERIVED_TABLES:
        rows = rows_of(whole.out, table)
        assert rows.num_rows > 0
        assert rows == rows_of(out, table), table


def _stream(out: Path, topic: Topic, batches: int) -> None:
    """Run the streaming job over the topic's files, one a batch."""
    progress = io.StringIO()

    def one_by_one(session: SparkSession) -> DataFrame:
        frame = session.readStream.schema(MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1)
        return frame.parquet(str(topic.folder))

    jobs.run_stream(
        StreamOptions(SourceOptions(str(out)), trigger_s=0.1),
        progress,
        messages=one_by_one,
        should_stop=lambda: f"batch {batches - 1}:" in progress.getvalue(),
    )


@pytest.mark.parametrize("before", [(), (Intervals(), QuotaUsage())], ids=len)
def test_a_run_killed_between_tables_neither_loses_nor_duplicates_rows(
    spark: SparkSession, tmp_path: Path, whole: Whole, before: tuple[DerivedTable, ...]
) -> None:
    topic, out = Topic(tmp_path / "topic"), tmp_path / "tables"
    source = SourceOptions(str(out))
    messages = troubled()
    topic.publish(messages[:20])
    fill(out, topic, *COMPUTED)
    topic.publish(messages[20:])
    prepare_session(spark)

    def die(session: SparkSession, _batch_id: int) -> None:
        for table in before:
            refresh(session, str(out), table)
        raise RuntimeError("killed between two tables")

    query = start_query(
        topic.stream(spark), str(out), checkpoint_path(source), trigger_s=None, after=die
    )
    with pytest.raises(PySparkException, match="killed between two tables"):
        query.awaitTermination()
    fill(out, topic, *COMPUTED)
    for table in DERIVED_TABLES:
        assert rows_of(out, table) == rows_of(whole.out, table), table


@pytest.fixture(scope="module")
def without_quotas(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of telemetry without quotas."""
    assert spark.version
    folder = tmp_path_factory.mktemp("without-quotas")
    topic = Topic(folder / "topic")
    topic.publish(play(10))
    fill(folder / "tables", topic, *COMPUTED)
    return folder / "tables"


def test_telemetry_without_quotas_leaves_both_tables_empty(without_quotas: Path) -> None:
    kinds = rows_of(without_quotas, "intervals")["kind"].to_pylist()
    assert "topic" in kinds
    assert [rows_of(without_quotas, table).num_rows for table in QUOTA_TABLES] == [0, 0]


def test_a_folder_without_quotas_has_no_forecasts(
    spark: SparkSession, without_quotas: Path
) -> None:
    out = without_quotas
    assert forecast_rows(spark, str(out), None) == []
    assert forecast_score(spark, str(out), None, None).total.forecasts == 0
    with pytest.raises(InputError, match="has no table quota_usage"):
        forecast_rows(spark, str(out.parent / "topic"), None)


PUBLISHED = 500
"""Messages of 1 kB, five times what the quota of :func:`_evict` allows."""


@pytest.mark.usefixtures("spark")
def test_a_broker_s_own_evictions_arrive_with_every_message(tmp_path: Path) -> None:
    """The whole way with nothing played: a real broker's events and counters, in both tables."""
    name, out = "persistent://public/default/evicted", tmp_path / "tables"
    left = _evict(tmp_path / "broker", name, out)
    assert 0 < left < 100
    lost = PUBLISHED - left
    evictions = rows_of(out, "evictions").to_pylist()
    assert {(row["topic"], row["partition"], row["quota"]) for row in evictions} == {
        (name, None, "size")
    }
    assert sum(row["messages"] for row in evictions) == lost
    # One event for each window, with the sums of its acts.
    assert all(row["acts"] >= 1 for row in evictions)
    # What is submitted and not yet durable counts, and cannot be evicted.
    assert all(row["backlog_bytes_start"] >= row["limit_bytes"] == 100_000 for row in evictions)
    assert all(row["backlog_bytes"] < row["backlog_bytes_start"] for row in evictions)
    losses = [loss for row in evictions for loss in json.loads(row["subscriptions"])]
    assert {loss["subscription"] for loss in losses} == {"audit"}
    assert sum(loss["messages"] for loss in losses) == lost
    usage = [row for row in rows_of(out, "quota_usage").to_pylist() if row["topic"] == name]
    assert sum(row["eviction_size_messages"] for row in usage) == lost
    acts = sum(row["acts"] for row in evictions)
    assert sum(row["eviction_size_acts"] for row in usage) == acts
    assert usage[-1]["size_source"] == "broker setting backlogQuotaDefaultLimitBytes"
    assert 0.0 < usage[-1]["size_use"] <= 1.0


def _evict(folder: Path, name: str, out: Path) -> int:
    """Publish to a subscription that nobody reads until a quota evicts, and read the telemetry of
    it into tables; the messages that are left."""
    folder.mkdir()
    settings = (
        "headgateTelemetryIntervalMs=1000",
        "backlogQuotaDefaultLimitBytes=100000",
        "backlogQuotaDefaultRetentionPolicy=consumer_backlog_eviction",
    )
    process = BrokerProcess(folder, [word for s in settings for word in ("--set", s)]).start()
    try:
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        client = pulsar.Client(process.service_url, logger=logger)
        client.subscribe(name, "audit", pulsar.ConsumerType.Shared, receiver_queue_size=1)
        producer = client.create_producer(name, batching_enabled=False)
        for _ in range(PUBLISHED):
            producer.send_async(b"x" * 1_000, None)
        producer.flush()
        left = int(_stats(process, name)["subscriptions"]["audit"]["msgBacklog"])
        # What comes in two more windows is younger than the last eviction.
        telemetry = "persistent://headgate/telemetry/samples"
        published = _stats(process, telemetry).get("msgInCounter", 0)
        deadline_s = time.monotonic() + 60.0
        while _stats(process, telemetry).get("msgInCounter", 0) < published + 2:
            assert time.monotonic() < deadline_s, "no telemetry"
            time.sleep(0.1)
        source = SourceOptions(str(out), (process.service_url,), (process.admin_url,))
        with computing(*COMPUTED):
            jobs.run_once(source, io.StringIO())
        client.close()
    finally:
        process.close()
    return left


def _stats(process: BrokerProcess, name: str) -> dict[str, Any]:
    """A topic's statistics; empty while there is no such topic."""
    status, body = process.request("GET", f"/admin/v2/{name.replace('://', '/')}/stats")
    found: dict[str, Any] = json.loads(body) if status == 200 else {}
    return found
