"""The pipeline's jobs, from messages to tables and judgements."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.base.errors import InputError
from headgate.pipeline import jobs
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.options import SourceOptions, StreamOptions
from headgate.pipeline.refresh import refresh_all
from headgate.pipeline.session import create_session, prepare_session
from headgate.pipeline.store.delta_writer import FORMAT
from headgate.pipeline.store.folder import checkpoint_path
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.streaming import refresh_pace
from headgate.pipeline.streaming.query import start_query
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA
from headgate.record.fields import Kind
from tests.spark.interval_oracle import interval_oracle
from tests.spark.interval_oracle import rows_in_order as interval_rows
from tests.spark.telemetry_topic import Topic, attribute, computing, fill, rows_of
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, play

DERIVED_NAMES = tuple(table.name for table in DERIVED)


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return Topic(tmp_path / "topic")


def troubled() -> list[bytes]:
    """Two hours' edge, a restart, lost and doubled batches, out of order."""
    first = Broker(start_ns=T0 + 3_400 * S, situations=SITUATIONS[:7])
    messages = [m for _ in range(25) for m in first.window(10)]
    second = Broker(
        start_ns=first.now_ns + 20 * S,
        boot="boot-2",
        situations=SITUATIONS[:7],
        backlogs=first.backlogs(),
    )
    messages += [m for _ in range(20) for m in second.window(10)]
    kept = [m for i, m in enumerate(messages) if i not in (3, 4, 5, 18, 19, 30)]
    return kept[20:] + kept[:26]


@pytest.mark.usefixtures("spark")
def test_situations_are_judged_as_built(tmp_path: Path, topic: Topic) -> None:
    topic.publish(play(100))
    out = tmp_path / "tables"
    rows, progress = attribute(out, topic)
    wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
    assert {(row["topic"], row["subscription"]): row["verdict"] for row in rows} == wanted
    assert all(row["completeness"] == 1.0 and row["residual"] == 0 for row in rows)
    assert "100 messages" in progress
    assert rows_of(out, "attribution").num_rows == 2 * len(SITUATIONS)

    versions = {t: DeltaTable(out / t).version() for t in ("intervals", "attribution")}
    again, _ = attribute(out, topic)
    assert again == rows
    assert versions == {t: DeltaTable(out / t).version() for t in versions}

    minute = "2025-11-21T10:01:00Z"
    (slow,) = [r for r in attribute(out, topic, since=minute)[0] if r["topic"].endswith("/slow")]
    assert (slow["growth"], slow["seconds"]) == (400 * 40, 40)
    _, progress = attribute(out, topic, since="2025-11-21T09:00:00Z", until=minute)
    assert "only from 2025-11-21 10:00:00 UTC on" in progress
    rows, progress = attribute(out, topic, since="2025-11-22T09:00:00Z")
    assert rows == []
    assert "There is telemetry only from 2025-11-21 10:00:00 UTC to 2025-11-21 10:" in progress


def silent() -> list[bytes]:
    """Telemetry of 10:40 to 12:15 is lost but for one window, and another broker is down from 10:50
    to 11:05. Their topics have the names of others, in clusters of their own."""
    slow = SITUATIONS[:1]
    player = Broker(slow, start_ns=T0 + 2_280 * S, cluster="lost", source="b3", boot="boot-3")
    windows = [m for _ in range(600) for m in player.window(10)]
    first = Broker(slow, start_ns=T0 + 2_940 * S, cluster="down", source="b4", boot="boot-4")
    down = [m for _ in range(6) for m in first.window(10)]
    second = Broker(
        slow,
        start_ns=T0 + 3_900 * S,
        cluster="down",
        source="b4",
        boot="boot-5",
        backlogs=first.backlogs(),
    )
    down += [m for _ in range(6) for m in second.window(10)]
    return [*windows[:12], *down, *windows[582:], windows[311]]


@pytest.mark.usefixtures("spark")
def test_many_triggers_give_the_rows_of_one(tmp_path: Path, topic: Topic) -> None:
    messages, others = troubled(), silent()
    one, many = tmp_path / "one", tmp_path / "many"
    other = Topic(tmp_path / "other")
    parts = (
        [*messages[:9], *others[:18]],
        messages[9:],
        # The other ends of both silences, in other hours alone; and what comes late within one.
        others[18:-1],
        others[-1:],
    )
    for part in parts:
        other.publish(part)
        fill(many, other)
    topic.publish([*messages, *others])
    fill(one, topic)
    for table in DERIVED_NAMES:
        assert rows_of(one, table) == rows_of(many, table)
    # Whom telemetry is lost of has all amounts, as if there were no hours.
    intervals = rows_of(one, "intervals")
    assert interval_rows(intervals, Kind.SUBSCRIPTION) == interval_oracle(
        rows_of(one, "bronze_samples"), Kind.SUBSCRIPTION
    )
    lost = [row for row in intervals.to_pylist() if row["cluster"] == "lost"]
    assert sum(row["appended"] or 0 for row in lost) == 500 * 6_000
    assert {row["hour"] for row in lost} == {10, 11, 12}
    assert {row["gaps"] > 0 for row in lost} == {True, False}
    down = [row for row in intervals.to_pylist() if row["cluster"] == "down"]
    assert sum(row["restarts"] for row in down if row["kind"] == "subscription") == 1


def test_a_run_killed_after_bronze_has_every_row_once(
    spark: SparkSession, tmp_path: Path, topic: Topic
) -> None:
    out = tmp_path / "tables"
    source = SourceOptions(str(out))
    topic.publish(play(30))
    prepare_session(spark)

    def die(_session: SparkSession, _batch_id: int) -> None:
        raise RuntimeError("killed before Spark's commit")

    query = start_query(
        topic.stream(spark), str(out), checkpoint_path(source), trigger_s=None, after=die
    )
    with pytest.raises(PySparkException, match="killed before Spark's commit"):
        query.awaitTermination()
    before = rows_of(out, "bronze_samples")
    assert before.num_rows > 0
    topic.publish(Broker(start_ns=T0 + 30 * S, boot="boot-2").window(10))
    rows, _ = attribute(out, topic)
    after = rows_of(out, "bronze_samples")
    keys = ["kind", "source", "boot_id", "seq", "row"]
    assert after.group_by(keys).aggregate([]).num_rows == after.num_rows > before.num_rows
    (slow,) = [row for row in rows if row["topic"].endswith("/slow")]
    assert slow["seconds"] == 40


@pytest.mark.usefixtures("spark")
def test_a_lost_checkpoint_doubles_bronze_and_nothing_that_follows(
    tmp_path: Path, topic: Topic
) -> None:
    out = tmp_path / "tables"
    topic.publish([b"no telemetry", *play(70)])
    runs: list[dict[str, pa.Table]] = []
    received: list[list[int]] = []
    for work in ("first", "second"):
        source = SourceOptions(str(out), work=str(tmp_path / work))
        jobs.run_once(source, io.StringIO(), messages=topic.stream)
        assert (tmp_path / work / "_checkpoints").is_dir()
        runs.append({name: rows_of(out, name) for name in DERIVED_NAMES})
        received.append(
            [rows_of(out, name).num_rows for name in ("bronze_samples", "bronze_quarantine")]
        )
    assert not (out / "_checkpoints").exists()
    assert received[1] == [2 * rows for rows in received[0]]
    assert min(received[0]) > 0
    assert runs[0]["attribution"].num_rows > 0
    assert runs[1] == runs[0]


@pytest.mark.usefixtures("spark")
def test_a_stream_that_catches_up_ends_with_complete_tables(
    tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Telemetry of a year ago, in three batches: what is put off is done before the end."""
    for start_s in (0, 20, 40):
        topic.publish(Broker(start_ns=T0 + start_s * S, boot=f"boot-{start_s}").window(10))
    times: list[int] = []

    def one_by_one(session: SparkSession) -> DataFrame:
        frame = session.readStream.schema(MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1)
        return frame.parquet(str(topic.folder))

    def counted(session: SparkSession, root: str) -> None:
        times.append(len(progress.getvalue()))
        refresh_all(session, root)

    monkeypatch.setattr(refresh_pace, "refresh_all", counted)
    progress = io.StringIO()
    with computing(INTERVALS, ATTRIBUTION):
        jobs.run_stream(
            StreamOptions(SourceOptions(str(tmp_path / "tables")), trigger_s=0.1),
            progress,
            messages=one_by_one,
            should_stop=lambda: "batch 2:" in progress.getvalue(),
        )
    # At the start, and then only where no batch ran.
    assert 2 <= len(times) <= 4
    ends = rows_of(tmp_path / "tables", "attribution")["to_ns"].to_pylist()
    assert (len(ends), max(ends)) == (len(SITUATIONS), T0 + 50 * S)


@pytest.mark.usefixtures("spark")
def test_a_stream_runs_until_it_is_stopped(tmp_path: Path, topic: Topic) -> None:
    out = tmp_path / "tables"
    topic.publish([b"not a record", *play(20)])
    progress = io.StringIO()

    def done() -> bool:
        return "batch 1:" in progress.getvalue()

    def publish_more(session: SparkSession) -> DataFrame:
        frame = session.readStream.schema(MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1)
        topic.publish(Broker(start_ns=T0 + 20 * S, boot="boot-2").window(10))
        return frame.parquet(str(topic.folder))

    with computing(INTERVALS, ATTRIBUTION):
        jobs.run_stream(
            StreamOptions(SourceOptions(str(out)), trigger_s=0.1),
            progress,
            messages=publish_more,
            should_stop=done,
        )
    assert rows_of(out, "bronze_quarantine")["value"].to_pylist() == [b"not a record"]
    assert rows_of(out, "attribution").num_rows == len(SITUATIONS)
    slow = [r for r in attribute(out, topic)[0] if r["topic"].endswith("/slow")]
    assert [row["seconds"] for row in slow] == [30]


def test_a_job_after_a_stream_takes_the_first_session(spark: SparkSession) -> None:
    """A batch runs in a copy of its session, which Python takes for the active one afterwards."""
    spark.createDataFrame([], "value int")

    def make_rows(batch: DataFrame, _: int) -> None:
        batch.sparkSession.createDataFrame([(1,)], "value int").collect()

    query = spark.readStream.format("rate").load().writeStream.foreachBatch(make_rows).start()
    query.processAllAvailable()
    query.stop()
    active = SparkSession.getActiveSession()
    assert active is not None
    assert active is not spark
    assert create_session("test") is spark


def test_a_second_writer_and_overwriting_are_refused(
    spark: SparkSession, tmp_path: Path, topic: Topic
) -> None:
    with fill_leases(str(tmp_path / "x")), pytest.raises(InputError, match="another job"):
        attribute(tmp_path / "x", topic)
    rows = prepare_session(spark).createDataFrame([(1,)], "a int")
    with pytest.raises(PySparkException, match='takes mode\\("append"\\)'):
        rows.write.format(FORMAT).mode("overwrite").option("root", "r").option("table", "t").save()
