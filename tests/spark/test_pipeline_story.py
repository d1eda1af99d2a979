"""One story by a whole job: ``intervals`` and ``attribution`` equal an independent oracle's.

All columns are compared except the sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.pipeline.derived.attribution import Attribution, DemonstratedRates
from headgate.pipeline.kernels.topic_waiters import TOPIC_KEY, WAITERS, waiters
from headgate.pipeline.queries.attribution import judge_range
from headgate.pipeline.refresh import refresh
from headgate.pipeline.session import prepare_session
from headgate.pipeline.store.delta_log import commit_append, ensure_table
from headgate.pipeline.store.parquet_files import write_tables
from headgate.pipeline.tables.attribution import (
    ATTRIBUTION,
    ATTRIBUTION_KEY,
    BLAMES,
    JUDGEMENT_COLUMNS,
)
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.demonstrated_rates import DEMONSTRATED_RATES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quality import QUALITY
from headgate.record.fields import Kind
from tests.spark.attribution_oracle import (
    ATTRIBUTION_COLUMNS,
    attribution_oracle,
    rates_in_order,
    rates_oracle,
    rows_in_order,
)
from tests.spark.bronze_oracle import bronze_oracle, rows_received
from tests.spark.interval_oracle import interval_columns, interval_oracle
from tests.spark.interval_oracle import rows_in_order as interval_rows
from tests.spark.quality_oracle import quality_oracle
from tests.spark.telemetry_topic import Topic, fill, rows_of
from tests.unit.pipeline.play import STORY, T0, Broker, S, play
from tests.unit.pipeline.row_by_row import judge_minutes, proven_rate_per_s

UNHELD = {"no_permits": 0.97, "storage": 0.03}
ACKED_UNHELD = {"sub-limit": 200, "by-bytes": 450}
"""What two of them take while no limit holds them; published are 500 and 400."""


def story() -> list[bytes]:
    """Over an hour's edge: a broker restarts with other limits, another takes over within a minute,
    batches are lost, doubled and out of order, the clock steps and counters fall."""
    unheld = tuple(
        replace(situation, cells=UNHELD, acked=acked, delivered=acked)
        if (acked := ACKED_UNHELD.get(situation.topic.rsplit("/", 1)[1]))
        else situation
        for situation in STORY
    )
    backlogs = {(situation.topic, situation.subscription): 200_000 for situation in STORY}
    first = Broker(unheld, start_ns=T0 + 3_240 * S, backlogs=backlogs)
    messages = [m for _ in range(24) for m in first.window(10)]
    second = Broker(STORY, start_ns=first.now_ns + 20 * S, boot="boot-2", backlogs=first.backlogs())
    messages += [m for _ in range(9) for m in second.window(10)]
    other = Broker(
        STORY, start_ns=second.now_ns, boot="boot-9", source="b2", backlogs=second.backlogs()
    )
    messages += [m for _ in range(8) for m in other.window(10)]
    messages += other.window(10, step_s=30)
    other.reset()
    messages += [m for _ in range(8) for m in other.window(10)]
    kept = [m for i, m in enumerate(messages) if i not in (3, 4, 5, 26)]
    # Another cluster has the same names for a minute.
    names = {"cluster": "other", "source": "b3", "boot": "boot-3"}
    other = play(60, 10, situations=STORY, start_ns=T0 + 3_300 * S, **names)
    return kept[20:] + kept[:26] + other


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of one run over :func:`story`."""
    path = tmp_path_factory.mktemp("story")
    topic = Topic(path / "topic")
    topic.publish(story())
    fill(path / "tables", topic, INTERVALS, ATTRIBUTION)
    return path / "tables"


def assert_close(found: Any, expected: Any, where: tuple[Any, ...]) -> None:
    if isinstance(found, float) and isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-15), where
    else:
        assert found == expected, where


def assert_same(found: Sequence[tuple[Any, ...]], expected: Sequence[tuple[Any, ...]]) -> None:
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        for name, value, other in zip(ATTRIBUTION_COLUMNS, row, wanted, strict=True):
            assert_close(value, other, (name, wanted))


def test_bronze_holds_what_the_codec_reads(folder: Path) -> None:
    found = rows_received(rows_of(folder, BRONZE_SAMPLES.name), BRONZE_SAMPLES)
    assert found == bronze_oracle(story(), BRONZE_SAMPLES)
    # Batches that came twice are there twice.
    assert set(found.values()) == {1, 2}


def test_quality_equals_an_independent_oracle(folder: Path) -> None:
    """Of everything that happens in the story, only a backlog below 0 is not as declared: a topic
    of the other cluster drains what it never had."""
    tables = (BRONZE_SAMPLES, INTERVALS, ATTRIBUTION)
    names = {table.name for table in tables}
    found = [r for r in rows_of(folder, QUALITY.name).to_pylist() if r["table_name"] in names]
    assert {
        tuple(r[n] for n in ("table_name", "hour", "expectation", "rows_checked", "rows_failed"))
        for r in found
    } == quality_oracle(folder, *tables)
    failed = {(r["table_name"], r["expectation"]) for r in found if not r["is_met"]}
    assert failed == {(name, "values_in_range") for name in names}
    for row in found:
        assert row["is_met"] == (row["example"] is None)
        assert row["is_met"] or "drains" in row["example"] or row["table_name"] == "bronze_samples"


@pytest.mark.parametrize("kind", [Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER])
def test_intervals_equal_an_independent_oracle(folder: Path, kind: Kind) -> None:
    bronze, intervals = rows_of(folder, "bronze_samples"), rows_of(folder, "intervals")
    found = interval_rows(intervals, kind)
    assert found == interval_oracle(bronze, kind)
    subjects = {Kind.SUBSCRIPTION: len(STORY), Kind.TOPIC: len(STORY) - 1, Kind.LIMITER: 1}
    assert len(found) == (10 + 1) * subjects[kind]
    # All that may happen to an account happened to each of them.
    names = interval_columns(kind)
    for name in ("gaps", "restarts", "resets", "clock_steps"):
        assert sum(row[names.index(name)] for row in found) >= subjects[kind], name
    assert {row[names.index("broker")] for row in found} == {"b1:6650", "b2:6650", "b3:6650"}
    assert {row[names.index("cluster")] for row in found} == {"demo", "other"}


def test_a_minute_of_two_brokers_is_summed(folder: Path) -> None:
    """One held the topics for 50 s of it, the other for 10 s, and nothing is missing."""
    rows = [
        row
        for row in rows_of(folder, "attribution").to_pylist()
        if row["minute"].strftime("%H:%M") == "10:59" and row["topic"].endswith("/slow")
    ]
    assert [(row["broker"], row["appended"], row["completeness"]) for row in rows] == [
        ("b2:6650", 60 * 500, 1.0)
    ]


def test_attribution_equals_an_independent_oracle(folder: Path) -> None:
    intervals, attribution = rows_of(folder, "intervals"), rows_of(folder, "attribution")
    assert_same(rows_in_order(attribution), attribution_oracle(intervals))
    rows = attribution.to_pylist()
    # What the story was told for is in it.
    assert {row["verdict"] for row in rows} == set(BLAMES)
    assert {row["dimension"] for row in rows} == {None, "messages", "bytes"}
    assert {row["bystander"] for row in rows} == {True, False}
    assert {row["grows_without_limit"] for row in rows} == {None, True, False}
    tied = [row for row in rows if row["topic"].endswith("/tied")]
    assert {(row["verdict"], row["second"]) for row in tied} == {("CONSUMER", "THROTTLED_TOPIC")}
    assert set(attribution["hour"].to_pylist()) == {10, 11}


def test_demonstrated_rates_equal_an_independent_oracle(folder: Path) -> None:
    table = rows_of(folder, DEMONSTRATED_RATES.name)
    found, expected = rates_in_order(table), rates_oracle(rows_of(folder, "intervals"))
    assert [row[:-1] for row in found] == [row[:-1] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert_close(row[-1], wanted[-1], wanted)
    # A row has sixty minutes, and a rate in one of them; the story has rates in both hours.
    rates = table["rates_per_s"].to_pylist()
    assert {len(each) for each in rates} == {60}
    assert all(any(rate is not None for rate in each) for each in rates)
    assert {row[1] for row in found} == {10, 11}


def test_completeness_of_the_minutes_reaches_every_verdict(folder: Path) -> None:
    key = [*ATTRIBUTION_KEY, "minute"]
    of_minutes = {
        tuple(row[name] for name in key): row["completeness"]
        for row in rows_of(folder, "intervals").to_pylist()
        if row["kind"] == "subscription"
    }
    rows = rows_of(folder, "attribution").to_pylist()
    assert {tuple(row[name] for name in key): row["completeness"] for row in rows} == of_minutes
    assert all(row["confidence"] <= row["completeness"] for row in rows)
    assert min(of_minutes.values()) < 0.7


def test_a_range_is_judged_as_by_the_scalar_law(spark: SparkSession, folder: Path) -> None:
    since_ns, until_ns = T0 + 3_360 * S, T0 + 3_720 * S
    found = judge_range(prepare_session(spark), str(folder), since_ns, until_ns)
    assert len(found) == len(STORY)
    by_subject: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows_of(folder, "intervals").sort_by("from_ns").to_pylist():
        if row["kind"] == "subscription" and row["from_ns"] < until_ns:
            by_subject.setdefault(tuple(row[name] for name in ATTRIBUTION_KEY), []).append(row)
    sharing = rows_of(folder, "intervals").filter(
        (pc.field("kind") == "subscription")
        & (pc.field("from_ns") < until_ns)
        & (pc.field("to_ns") > since_ns)
    )
    shared = {
        tuple(row[name] for name in TOPIC_KEY): row[WAITERS.name]
        for row in waiters(sharing).to_pylist()
    }
    assert set(shared.values()) == {2}
    for row in found:
        minutes = by_subject[tuple(row[name] for name in ATTRIBUTION_KEY)]
        inside = [minute for minute in minutes if minute["to_ns"] > since_ns]
        count = shared.get(tuple(row[name] for name in TOPIC_KEY), 0)
        expected = judge_minutes(inside, proven_rate_per_s(minutes), count)
        assert set(expected) == {column.name for column in JUDGEMENT_COLUMNS}
        for name, value in expected.items():
            assert_close(row[name], value, (name, expected))


def test_inferred_minutes_and_minutes_without_evidence(
    spark: SparkSession, tmp_path: Path, folder: Path
) -> None:
    """Written by another version, or from another cluster's counters."""
    intervals = rows_of(folder, "intervals")
    evidence = [(MEASURED, INFERRED, None)[i % 3] for i in range(intervals.num_rows)]
    place = intervals.schema.get_field_index("evidence")
    intervals = intervals.set_column(place, "evidence", pa.array(evidence, pa.string()))
    ensure_table(str(tmp_path), INTERVALS)
    files = write_tables(str(tmp_path), "0", [(INTERVALS.name, intervals)])
    commit_append(str(tmp_path), INTERVALS, files, None)
    refresh(prepare_session(spark), str(tmp_path), DemonstratedRates())
    hours = refresh(prepare_session(spark), str(tmp_path), Attribution())
    assert hours == {T0 // HOUR_NS, T0 // HOUR_NS + 1}
    attribution = rows_of(tmp_path, "attribution")
    assert_same(rows_in_order(attribution), attribution_oracle(intervals))
    rows = attribution.to_pylist()
    assert {row["evidence"] for row in rows} == {MEASURED, INFERRED}
    for row in rows:
        assert row["sentence"].endswith("(inferred from counters).") == (
            row["evidence"] == INFERRED
        )
