"""The tables of held producers, limiters and backlogs, and the views, by whole jobs.

One run, many triggers and interrupted runs give the same rows, each once.
"""

from __future__ import annotations

import io
import json
import math
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from headgate.pipeline import jobs
from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.derived.derived_table import DerivedTable
from headgate.pipeline.options import AttributeOptions, SourceOptions, StreamOptions
from headgate.pipeline.output.views import NamespacesScan
from headgate.pipeline.session import batches_by_count, prepare_session
from headgate.pipeline.sql.dialect import DUCKDB
from headgate.pipeline.sql.script import folder_columns, view_script
from headgate.pipeline.steps import attribution, publishing, views
from headgate.pipeline.store import spark_reader
from headgate.pipeline.store.delta_log import ensure_table, table_files
from headgate.pipeline.store.log_changes import followed
from headgate.pipeline.store.spark_reader import read_files
from headgate.pipeline.streaming import refresh_pace
from headgate.pipeline.tables.attribution import ATTRIBUTION, ATTRIBUTION_KEY
from headgate.pipeline.tables.columns import HOUR_NS, Table
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.publishing import PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE
from headgate.pipeline.tables.schemas import MESSAGE_SCHEMA
from headgate.pipeline.tables.touched_minutes import TouchedMinutes
from tests.spark.conftest import many_tasks
from tests.spark.episode_oracle import (
    BLAMED_SQL,
    EPISODE_COLUMNS,
    ROLLUP_COLUMNS,
    SEGMENT_COLUMNS,
    episode_oracle,
    rollup_oracle,
    segment_oracle,
)
from tests.spark.limit_oracle import (
    PUBLISH_COLUMNS,
    TIMELINE_COLUMNS,
    publish_oracle,
    timeline_oracle,
)
from tests.spark.quota_oracle import rows_in_order, run_sql
from tests.spark.telemetry_topic import Topic, computing, fill, rows_of
from tests.unit.pipeline.play import S
from tests.unit.pipeline.story_play import BEGIN, NS, Backlog, StoryBroker

TABLES = (EPISODES, PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE)
EPISODES_COMPUTED = (INTERVALS, ATTRIBUTION, EPISODES)
COMPUTED = (*EPISODES_COMPUTED, PUBLISH_ATTRIBUTION, THROTTLE_TIMELINE)
"""What a job computes for these tables."""
HOUR = BEGIN // HOUR_NS

BACKLOGS = (
    Backlog(f"{NS}edge", "...CC.CC" + "." * 70),
    Backlog(f"{NS}long", "..C"),
    Backlog(f"{NS}skipped", "..CCSCC.TT...."),
    Backlog(f"{NS}gone", "...CCC "),
    Backlog(f"{NS}mixed", ("CC...T.TT..C....S.." * 5)[:66] + "CCTTT.."),
    Backlog(f"{NS}quiet", "."),
)
FIRST_S, SECOND_S, WINDOW_S = 1_020, 3_370, 10
"""Until 11:12 and, 20 s later, until 12:08:30: three hours, the last minute half."""


def troubled() -> list[bytes]:
    """Two hours' edges, a restart, lost and doubled batches, out of order."""
    first = StoryBroker(backlogs=BACKLOGS)
    messages = [m for _ in range(0, FIRST_S, WINDOW_S) for m in first.window(WINDOW_S)]
    second = StoryBroker(backlogs=BACKLOGS, start_ns=first.now_ns + 20 * S, boot="boot-2")
    messages += [m for _ in range(0, SECOND_S, WINDOW_S) for m in second.window(WINDOW_S)]
    kept = [m for i, m in enumerate(messages) if i not in (4, 5, 31, 32, 33, 150)]
    return kept[40:] + kept[:60] + other_cluster()


def other_cluster() -> list[bytes]:
    """Topics, limiters and a backlog by the same names, of another cluster."""
    names = {"cluster": "other", "source": "b9", "boot": "boot-9"}
    player = StoryBroker(backlogs=BACKLOGS[-1:], start_ns=BEGIN + 60 * S, **names)
    return [m for i in range(40) for m in player.window(WINDOW_S) if i not in (4, 5)]


@dataclass(frozen=True)
class Whole:
    """One run over all of :func:`troubled` that nothing disturbed."""

    out: Path

    def rows(self, table: Table) -> pa.Table:
        """A table's rows."""
        return rows_of(self.out, table.name)

    def frame(self, spark: SparkSession, table: Table) -> DataFrame:
        """A table as steps and views get it."""
        files = table_files(ensure_table(str(self.out), table))
        return read_files(prepare_session(spark), str(self.out), table, files)


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    assert spark.version
    folder = tmp_path_factory.mktemp("whole")
    topic = Topic(folder / "topic")
    topic.publish(troubled())
    with many_tasks():
        fill(folder / "tables", topic)
    return Whole(folder / "tables")


def test_held_producers_and_limiters_equal_an_independent_oracle(whole: Whole) -> None:
    intervals = whole.rows(INTERVALS)
    found = whole.rows(PUBLISH_ATTRIBUTION)
    expected = publish_oracle(intervals)
    assert len(expected) > 7 * 60
    assert rows_in_order(found, PUBLISH_COLUMNS) == expected
    timeline = whole.rows(THROTTLE_TIMELINE)
    expected = timeline_oracle(intervals, rows_of(whole.out, "bronze_samples"))
    assert len(expected) > 2 * 70
    assert rows_in_order(timeline, TIMELINE_COLUMNS) == expected
    for rows in (found, timeline):
        assert set(rows["cluster"].to_pylist()) == {"demo", "other"}
        assert set(rows["hour"].to_pylist()) == {10, 11, 12}
        assert rows["sentence"].null_count == 0
    named = [r["sentence"] for r in found.to_pylist() if r["topic"] == f"{NS}under_broker"]
    limit = "limit of 100 msg/s (broker setting brokerPublisherThrottlingMaxMessageRate) held"
    assert all(limit in sentence for sentence in named)


def test_episodes_and_both_views_equal_an_independent_oracle(
    spark: SparkSession, whole: Whole
) -> None:
    intervals, judged = whole.rows(INTERVALS), whole.rows(ATTRIBUTION)
    segments = whole.rows(EPISODES)
    expected = segment_oracle(intervals, judged)
    assert len(expected) > 12
    assert rows_in_order(segments, SEGMENT_COLUMNS) == expected
    endings = {(r["topic"].removeprefix(NS), r["ending"]) for r in segments.to_pylist()}
    assert endings >= {
        ("edge", "continues"),
        ("edge", "over"),
        ("long", "open"),
        ("skipped", "skipped"),
        ("gone", "unseen"),
    }

    episodes = views.backlog_episodes(whole.frame(spark, EPISODES)).toArrow()
    expected = episode_oracle(intervals, judged)
    assert rows_in_order(episodes, EPISODE_COLUMNS) == expected
    by_topic = {row["topic"]: row for row in episodes.to_pylist()}
    long = by_topic[f"{NS}long"]
    assert (long["episode_end_ns"], long["continues_before"]) == (None, False)
    assert long["sentence"].startswith("a backlog since 2025-11-21 10:57 UTC, still going on at")
    assert len(episodes) < segments.num_rows

    minutes, verdicts = whole.frame(spark, INTERVALS), whole.frame(spark, ATTRIBUTION)
    rollup = views.namespace_rollup(minutes, verdicts).toArrow()
    assert rows_in_order(rollup, ROLLUP_COLUMNS) == rollup_oracle(intervals)
    shown = NamespacesScan(str(whole.out)).batches(rollup.column_names)
    for row, wanted in zip(
        in_order(pa.Table.from_batches(list(shown))), in_order(rollup), strict=True
    ):
        assert row == {name: near(value) for name, value in wanted.items()}
    ((consumer_s, throttled_s),) = run_sql(BLAMED_SQL, attribution=judged)
    assert sum(rollup["blame_consumer_s"].to_pylist()) == pytest.approx(consumer_s)
    assert sum(rollup["throttled_s"].to_pylist()) == pytest.approx(throttled_s)
    assert throttled_s > 0


def in_order(rollup: pa.Table) -> list[dict[str, Any]]:
    """The rows of a namespace's minutes."""
    found: list[dict[str, Any]] = rollup.sort_by(
        [(name, "ascending") for name in ("minute", "cluster", "namespace")]
    ).to_pylist()
    return found


def near(value: Any) -> Any:
    """Parts of a sum in another order may give another last digit."""
    return pytest.approx(value) if isinstance(value, float) else value


def test_triggers_and_a_stream_that_goes_on_give_the_rows_of_one(
    tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if all this were of now: the stream computes after each batch.
    monkeypatch.setattr(refresh_pace, "BEHIND_S", math.inf)
    messages = troubled()
    parts = (messages[300:], messages[:150], messages[150:320])
    out, topic, progress = tmp_path / "tables", Topic(tmp_path / "topic"), io.StringIO()
    topic.publish(parts[0])
    fill(out, topic, *COMPUTED)
    for part in parts[1:]:
        topic.publish(part)

    def one_by_one(session: SparkSession) -> DataFrame:
        frame = session.readStream.schema(MESSAGE_SCHEMA).option("maxFilesPerTrigger", 1)
        return frame.parquet(str(topic.folder))

    with computing(*COMPUTED):
        jobs.run_stream(
            StreamOptions(SourceOptions(str(out)), trigger_s=0.1),
            progress,
            messages=one_by_one,
            should_stop=lambda: f"batch {len(parts) - 1}:" in progress.getvalue(),
        )
    for table in TABLES:
        rows = whole.rows(table)
        assert rows.num_rows > 0
        assert rows == rows_of(out, table.name), table.name


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_hour_alone_gives_the_rows_that_it_has(
    spark: SparkSession, whole: Whole, table: Table
) -> None:
    root = str(whole.out)
    (derived,) = (each for each in DERIVED if each.table is table)
    live = followed(root, derived.source.name)
    stored = whole.rows(table)
    for hour in (HOUR, HOUR + 1, HOUR + 2):
        asked = TouchedMinutes.whole({hour})
        again = derived.rows(prepare_session(spark), root, derived.inputs(live, asked), asked)
        assert again is not None
        expected = [row for row in stored.to_pylist() if row["hour"] == hour % 24]
        found = again.toArrow().to_pylist()
        assert expected
        assert sorted(map(str, found)) == sorted(map(str, expected))


BY_MINUTE = [derived for derived in DERIVED if derived.is_by_minute and not derived.has_hour_rows]


@pytest.mark.parametrize("derived", BY_MINUTE, ids=lambda derived: derived.name)
def test_minutes_alone_follow_from_rows_that_tasks_read(
    spark: SparkSession, whole: Whole, derived: DerivedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where tables are in S3: a step has the columns that it names, and no others."""
    monkeypatch.setattr(spark_reader, "is_object_store", lambda _: True)
    root, asked = str(whole.out), TouchedMinutes({HOUR + 1: range(20, 30)})
    inputs = derived.inputs(followed(root, derived.source.name), asked)
    rows = derived.rows(prepare_session(spark), root, inputs, asked)
    assert rows is not None
    found = rows.toArrow().to_pylist()
    expected = [
        row
        for row in whole.rows(derived.table).to_pylist()
        if row["hour"] == (HOUR + 1) % 24 and row["minute"].minute in range(20, 30)
    ]
    assert expected
    assert sorted(map(str, found)) == sorted(map(str, expected))


def test_a_late_batch_joins_two_episodes(spark: SparkSession, tmp_path: Path) -> None:
    """A topic is moved to another broker and back over an hour's edge; its telemetry comes last."""
    stories = [Backlog(f"{NS}late", "C")]

    def played(start_s: int, seconds: int, **broker: str) -> list[bytes]:
        player = StoryBroker({}, (), backlogs=stories, start_ns=BEGIN + start_s * S, **broker)
        return [m for _ in range(0, seconds, 20) for m in player.window(20)]

    on_time = played(0, 180) + played(420, 180, boot="boot-2")
    late = played(180, 240, source="b2", boot="other")
    topic, at_once = Topic(tmp_path / "topic"), Topic(tmp_path / "at-once")
    out, fresh = tmp_path / "tables", tmp_path / "fresh"

    def spans() -> list[tuple[float, float | None]]:
        files = table_files(ensure_table(str(out), EPISODES))
        frame = read_files(prepare_session(spark), str(out), EPISODES, files)
        rows = views.backlog_episodes(frame).toArrow().to_pylist()
        found = [(row["episode_start_ns"], row["episode_end_ns"]) for row in rows]
        return sorted(((a - BEGIN) / S, None if z is None else (z - BEGIN) / S) for a, z in found)

    topic.publish(on_time)
    fill(out, topic, *EPISODES_COMPUTED)
    assert spans() == [(0, 180), (420, None)]
    topic.publish(late)
    fill(out, topic, *EPISODES_COMPUTED)
    assert spans() == [(0, None)]
    at_once.publish(on_time + late)
    fill(fresh, at_once, *EPISODES_COMPUTED)
    assert rows_of(out, EPISODES.name) == rows_of(fresh, EPISODES.name)


def test_park_causes_of_a_topic_over_a_range(spark: SparkSession, whole: Whole) -> None:
    minutes = whole.frame(spark, INTERVALS)
    since_ns, until_ns = BEGIN + 60 * S, BEGIN + 480 * S
    rows = publishing.publish_judgements(minutes, since_ns, until_ns).toArrow().to_pylist()
    by_topic = {row["topic"].removeprefix(NS): row for row in rows if row["cluster"] == "demo"}
    assert len(rows) == 2 * len(by_topic) == 16
    raised = by_topic["raised"]
    assert (raised["from_ns"], raised["to_ns"]) == (since_ns, until_ns)
    assert raised["sentence"].startswith(
        "the topic's publish limit of 10 msg/s (topic policy) held producers for 4 min of these"
        " 7 min"
    )
    assert by_topic["idle"]["sentence"] == "nothing held publishing"
    summed = [
        row["parked_broker_rate_ns"]
        for row in whole.rows(PUBLISH_ATTRIBUTION).to_pylist()
        if (row["cluster"], row["topic"]) == ("demo", f"{NS}under_broker")
        and since_ns <= row["from_ns"] < until_ns
    ]
    assert by_topic["under_broker"]["parked_broker_rate_ns"] == sum(summed)


def test_the_command_says_why_a_producer_was_slow(spark: SparkSession, whole: Whole) -> None:
    assert spark.version
    source = SourceOptions(str(whole.out))
    since, until = "2025-11-21T10:56:00Z", "2025-11-21T11:03:00Z"
    asked = AttributeOptions(source, since, until, "json", reads=False, is_about_producers=True)
    out, err = io.StringIO(), io.StringIO()
    rows = jobs.run_attribute(asked, out, err)
    told = {
        row["topic"].removeprefix(NS): row
        for row in json.loads(out.getvalue())
        if row["cluster"] == "demo"
    }
    assert "16 topics" in err.getvalue()
    assert 2 * len(told) == len(rows) == 16
    assert told["raised"]["cause"] == "topic_rate"
    assert told["idle"]["cause"] is None
    assert told["idle"]["sentence"] == "nothing held publishing"


def test_batches_by_count_give_the_same_rows(spark: SparkSession, whole: Whole) -> None:
    session = prepare_session(spark)
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    before = session.conf.get(name)
    minutes = whole.frame(session, INTERVALS)
    hours = TouchedMinutes.whole([HOUR, HOUR + 1, HOUR + 2])
    hourly = whole.frame(session, DEMONSTRATED_RATES)

    def found() -> tuple[int, list[Any], list[Any]]:
        """In how many batches the minutes travel, and what is judged of them."""

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield pa.record_batch([pa.array([sum(1 for _ in batches)])], ["n"])

        counted = minutes.coalesce(1).mapInArrow(count, "n long").toArrow()
        rates = attribution.rates_up_to(hourly, hours)
        judged = attribution.attribution(minutes, rates, hours).toArrow().to_pylist()
        over = attribution.range_judgements(minutes, 0, 1 << 62).toArrow().to_pylist()
        key = operator.itemgetter(*ATTRIBUTION_KEY[1:2], "subscription", "from_ns")
        return counted["n"][0].as_py(), sorted(judged, key=key), sorted(over, key=key)

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise ArithmeticError(next(batches).num_rows)

    session.conf.set(name, "4096")
    try:
        small, *by_bytes = found()
        with batches_by_count(session):
            large, *by_count = found()
        assert session.conf.get(name) == "4096"
        with pytest.raises(PythonException, match="ArithmeticError"), batches_by_count(session):
            minutes.mapInArrow(fail, "n long").collect()
        assert session.conf.get(name) == "4096"
        assert found()[0] == small
    finally:
        session.conf.set(name, before)
    assert by_count == by_bytes
    assert min(map(len, by_count)) > 0
    assert (large, small > 10) == (1, True)


GUIDE = Path(__file__).parents[2] / "docs/guide/pipeline.md"


def test_every_query_of_the_guide_runs(spark: SparkSession, whole: Whole) -> None:
    """On the same tables, and with the episodes of the script's view as those of Spark."""
    queries = re.findall(r"(?:^    .*\n(?:^\n(?=    ))?)+", GUIDE.read_text(), re.MULTILINE)
    statements = [
        statement
        for query in queries
        if "delta_scan" in query
        for statement in query.split(";")
        if statement.strip()
    ]
    assert len(statements) >= 5
    script = view_script(str(whole.out), DUCKDB).replace("INSTALL delta;\nLOAD delta;\n", "")
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        for name in folder_columns(str(whole.out)):
            connection.register("rows_of_table", rows_of(whole.out, name))
            connection.execute(f"create table live_{name} as from rows_of_table")
        # It stands for DuckDB's extension delta, which is a download.
        connection.execute(
            "create macro delta_scan(url) as table"
            " from query_table('live_' || regexp_extract(url, '[^/]+$'))"
        )
        connection.execute(script)
        for statement in statements:
            connection.execute(statement)
        found = connection.execute(
            "select topic, epoch_us(episode_start_time), epoch_us(episode_end_time),"
            " peak_backlog_messages, blame_consumer_s, ending from backlog_episodes order by all"
        ).fetchall()
    episodes = views.backlog_episodes(whole.frame(spark, EPISODES)).toArrow()
    assert found == run_sql(
        "select topic, episode_start_ns // 1000, episode_end_ns // 1000, peak_backlog_messages,"
        " blame_consumer_ns / 1e9, ending from episodes order by all",
        episodes=episodes,
    )
