"""The backtest in Spark, from bronze to ``policy_backtest``."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.base.errors import InputError
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE, TOPIC_POLICY
from headgate.pipeline.backtest import task_progress
from headgate.pipeline.backtest.grid import Grid, parse_grid
from headgate.pipeline.backtest.job import (
    LEVEL_COLUMNS,
    replayed_topics,
    run_backtest,
    topic_sources,
)
from headgate.pipeline.backtest.replay_table import replay_table
from headgate.pipeline.progress import Progress
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.delta_log import commit_append
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.schemas import part_schema
from tests.unit.pipeline.backtest.rows import T0, S, sample, table_of

GRID = parse_grid(
    """
    [[points]]
    name = "as recorded"
    [[points]]
    name = "limit"
    publish = { bytes_per_s = [500, 4_000] }
    [[points]]
    name = "drain"
    adaptive = { law = "drain" }
    [[points]]
    name = "evict"
    size_quota = { limit_bytes = 40_000, policy = "consumer_backlog_eviction" }
    """
)
TOPICS = 6
MINUTES = 70


def samples() -> list[dict[str, Any]]:
    """Topics that publish more than is drained for a while; over an hour's edge."""
    rows = []
    for topic in range(TOPICS):
        published = done = 0
        for n in range(1, 6 * MINUTES + 1):
            published += 10 * (1_500 if n % 100 < 30 + topic else 500)
            done = min(published, done + 10_000)
            rows.append(
                sample(
                    10 * n,
                    topic=f"persistent://public/default/t{topic}",
                    partition=None if topic % 2 else topic,
                    msgs_in=published // 100,
                    bytes_in=published,
                    backlog_bytes=published - done,
                    oldest_age_ns=5 * S if published > done else None,
                    quota_size_limit_bytes=60_000,
                    quota_size_policy="producer_request_hold",
                    parked_ns=0,
                )
            )
    return rows


def bronze(root: Path) -> None:
    """The rows as ``bronze_samples`` has them."""
    schema = table_arrow_schema(BRONZE_SAMPLES)
    names = {"parked_ns": "parked_topic_rate_ns", "parked_bytes": "parked_adaptive_bytes"}
    rows = [
        {names.get(name, name): value for name, value in row.items() if name != "evicted_bytes"}
        | {"kind": "topic", "hour": int((row["window_end_ns"] - 1) // HOUR_NS % 24)}
        for row in samples()
    ]
    table = pa.Table.from_pylist(rows, schema=schema)
    day = np.array([row["window_end_ns"] - 1 for row in rows]) // (24 * HOUR_NS)
    dates = pa.array(day.astype(np.int32)).cast(pa.date32())
    table = table.set_column(schema.get_field_index("date"), "date", dates)
    files = write_tables(str(root), "0", [(BRONZE_SAMPLES.name, table)])
    commit_append(str(root), BRONZE_SAMPLES, files, None)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with bronze in it."""
    folder = tmp_path_factory.mktemp("backtest")
    bronze(folder)
    return folder


def run(
    spark: SparkSession, root: Path, run_id: str, grid: Grid = GRID, **span: int | None
) -> list[dict[str, Any]]:
    prepare_session(spark)
    span = {"since_ns": None, "until_ns": None} | span
    return run_backtest(
        spark, str(root), grid, span["since_ns"], span["until_ns"], run_id, Progress(io.StringIO())
    )


def rows_of(root: Path) -> list[dict[str, Any]]:
    table = DeltaTable(root / "policy_backtest").to_pyarrow_table()
    return table.sort_by(
        [(n, "ascending") for n in ("run_id", "grid_point", "topic", "partition")]
    ).to_pylist()


def test_the_table_holds_what_the_kernel_says_and_ranks_it(spark: SparkSession, root: Path) -> None:
    points = run(spark, root, "first")
    rows = [row for row in rows_of(root) if row["run_id"] == "first"]
    kernel = replay_table(table_of(samples()), GRID, 0, 1 << 62)
    wanted = kernel.sort_by([(n, "ascending") for n in ("grid_point", "topic", "partition")])
    assert len(rows) == TOPICS * len(GRID.points)
    for own, other in zip(rows, wanted.to_pylist(), strict=True):
        assert {name: own[name] for name in other} == other
    assert [point["rank"] for point in points] == sorted(point["rank"] for point in points)
    by_number = {point["grid_point"]: point for point in points}
    for row in rows:
        place = by_number[row["grid_point"]]
        for name in ("score", "rank", "is_pareto", "settings"):
            assert row[name] == place[name]
    assert {place["name"] for place in points} == {point.name for point in GRID.points}


def test_the_totals_are_the_sums_of_the_rows(spark: SparkSession, root: Path) -> None:
    """DuckDB adds the table up by itself."""
    points = {point["grid_point"]: point for point in run(spark, root, "sums")}
    table = DeltaTable(root / "policy_backtest").to_pyarrow_table()
    with duckdb.connect() as connection:
        connection.register("backtest", table)
        found = connection.execute(
            """
            select grid_point, count(*), sum(seconds_over_quota) / sum(quota_seconds),
                (sum(evicted_bytes) + greatest(0, sum(wanted_bytes) - sum(published_bytes)))
                    / (sum(wanted_bytes) + sum(backlog_bytes_start)),
                sum(parked_seconds) / sum(samples * step_ns / 1e9), max(backlog_bytes_max)
            from backtest where run_id = 'sums' group by grid_point
            """
        ).fetchall()
    assert len(found) == len(GRID.points)
    for number, topics, over, lost, parked, backlog in found:
        place = points[number]
        assert (place["topics"], place["backlog_bytes_max"]) == (topics, backlog)
        shares = (place["over_share"], place["lost_share"], place["parked_share"])
        assert shares == pytest.approx((over, lost, parked))
    assert points[0]["over_share"] > 0
    assert points[4]["evicted_bytes"] > 0


def test_a_run_replaces_its_own_rows_and_no_others(spark: SparkSession, root: Path) -> None:
    run(spark, root, "kept")
    run(spark, root, "again")
    version = DeltaTable(root / "policy_backtest").version()
    smaller = parse_grid("[[points]]\npublish = 'none'\n")
    run(spark, root, "again", smaller)
    assert DeltaTable(root / "policy_backtest").version() == version + 1
    counts: dict[str, int] = {}
    for row in rows_of(root):
        counts[row["run_id"]] = counts.get(row["run_id"], 0) + 1
    assert counts["kept"] == TOPICS * len(GRID.points)
    assert counts["again"] == TOPICS
    cluster = samples()[0]["cluster"]
    names = {(cluster, f"persistent://public/default/t{topic}") for topic in range(TOPICS)}
    assert replayed_topics(str(root), "again") == names
    assert replayed_topics(str(root), "never") == set()


def test_a_range_replays_its_own_hours_only(spark: SparkSession, root: Path) -> None:
    since_ns = T0 + HOUR_NS - 60 * S
    run(spark, root, "range", since_ns=since_ns, until_ns=since_ns + 120 * S)
    rows = [row for row in rows_of(root) if row["run_id"] == "range"]
    assert {(row["from_ns"], row["to_ns"]) for row in rows} == {(since_ns, since_ns + 120 * S)}
    assert {row["samples"] for row in rows} == {12}


class Terminal(io.StringIO):
    """What looks like a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_bar_moves_by_the_tasks_that_are_done(
    spark: SparkSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(task_progress, "_LOOK_PERIOD_S", 0.05)
    err = Terminal()
    run_backtest(spark, str(root), GRID, None, None, "seen", Progress(err))
    seen = re.findall(r"(\d+)/(\d+)", err.getvalue())
    assert any(0 < int(done) <= int(total) for done, total in seen)
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_a_range_without_samples_says_so(spark: SparkSession, root: Path) -> None:
    assert run(spark, root, "none", since_ns=T0 + 100 * HOUR_NS) == []
    assert "none" not in {row["run_id"] for row in rows_of(root)}


@pytest.mark.parametrize("run_id", ["", "a/b", "../x", "a b", "x" * 101])
def test_a_run_needs_a_name_that_a_folder_can_have(
    spark: SparkSession, root: Path, run_id: str
) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        run(spark, root, run_id)


def test_a_range_that_ends_before_it_begins_is_refused(spark: SparkSession, root: Path) -> None:
    with pytest.raises(InputError, match="is empty"):
        run(spark, root, "empty", since_ns=5, until_ns=5)


def test_the_source_of_a_setting_comes_from_the_last_row_that_has_it(spark: SparkSession) -> None:
    """The controller's limit hides that of a topic, and counters do not name one."""
    limits = dict.fromkeys(LEVEL_COLUMNS) | {"cluster": "c"}
    publish = {"publish_limit_bytes_per_s": 5.0}
    rows = [
        limits | publish | {"topic": topic, "window_end_ns": place, "publish_limit_source": source}
        for topic, sources in {
            "hidden-later": (TOPIC_POLICY, ADAPTIVE_SOURCE),
            "hidden": (ADAPTIVE_SOURCE, ADAPTIVE_SOURCE),
            "moved": (TOPIC_POLICY, "namespace policy a/b"),
            "counted": (None, None),
        }.items()
        for place, source in enumerate(sources)
    ]
    rows.append(limits | {"topic": "none", "window_end_ns": 0})
    samples = spark.createDataFrame(rows, part_schema(BRONZE_SAMPLES, LEVEL_COLUMNS))
    found = {row["topic"]: row for row in topic_sources(samples).collect()}
    told = {topic: row["publish_limit_source"] for topic, row in found.items()}
    is_known = {topic: row["publish_limit_source_known"] for topic, row in found.items()}
    assert told == {
        "hidden-later": TOPIC_POLICY, "hidden": None, "moved": "namespace policy a/b",
        "counted": None, "none": None,
    }  # fmt: skip
    assert is_known == {
        "hidden-later": True, "hidden": False, "moved": True, "counted": False, "none": True,
    }  # fmt: skip
    assert {row["quota_size_source_known"] for row in found.values()} == {True}


def test_commands_are_for_the_level_in_force(spark: SparkSession, root: Path) -> None:
    """The topics' quota has no source here; publish limits are set nowhere."""
    limit = next(p for p in run(spark, root, "pasted") if p["name"] == "limit 1")
    evict = next(p for p in run(spark, root, "pasted") if p["name"] == "evict")
    assert limit["commands"] == ["headgate admin namespaces set-publish-rate public/default -b 500"]
    command, said = evict["commands"]
    assert command.startswith("headgate admin namespaces set-backlog-quota public/default ")
    assert said.startswith(f"# It is unknown where the size quota of {TOPICS} topics is set")
