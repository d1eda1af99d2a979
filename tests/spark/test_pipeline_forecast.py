"""Quota forecasts and their scores by whole jobs."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.pipeline.options import FolderOptions, ForecastOptions
from headgate.pipeline.queries.forecast import run_forecast
from headgate.pipeline.queries.forecast_rows import clusters_behind, forecast_rows, forecast_score
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from tests.spark.forecast_oracle import KEY, forecast_oracle, forecast_rows_in_order
from tests.spark.telemetry_topic import Topic, fill, rows_of
from tests.unit.pipeline.forecast_play import FORECAST_TOPICS, MINUTES, forecast_play
from tests.unit.pipeline.play import T0, S
from tests.unit.pipeline.quota_play import NS, QuotaBroker

EXACT = len(KEY)
SECONDS = slice(EXACT, EXACT + 3)


@dataclass(frozen=True)
class Whole:
    """One run over all of :func:`forecast_play`."""

    topic: Topic
    out: Path


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    topic = Topic(folder / "topic")
    topic.publish(forecast_play())
    fill(folder / "tables", topic, INTERVALS, QUOTA_USAGE)
    return Whole(topic, folder / "tables")


def test_every_forecast_equals_an_independent_oracle(whole: Whole) -> None:
    found = forecast_rows_in_order(rows_of(whole.out, "quota_usage"))
    expected = forecast_oracle(rows_of(whole.out, "intervals"))
    assert len(found) == len(expected) > 1_300
    for row, right in zip(found, expected, strict=True):
        assert row[:EXACT] + row[SECONDS.stop :] == right[:EXACT] + right[SECONDS.stop :]
        for seconds, expected_s in zip(row[SECONDS], right[SECONDS], strict=True):
            assert (seconds is None) == (expected_s is None), row
            assert (seconds or 0.0) == pytest.approx(expected_s or 0.0, rel=1e-7), row
    methods = [row[-2] for row in found]
    assert {m: methods.count(m) > 50 for m in methods} == {
        "theil_sen": True, "broker": True, "none": True,
    }  # fmt: skip
    assert len({row[2].hour for row in found}) == 4


def test_hours_read_one_by_one_give_the_rows_of_one_run(tmp_path: Path, whole: Whole) -> None:
    """Also where the hour before is completed last."""
    messages = forecast_play()
    topic = Topic(tmp_path / "topic")
    for part in (messages[60:110], messages[:15], messages[110:], messages[15:60]):
        topic.publish(part)
        fill(tmp_path / "tables", topic, INTERVALS, QUOTA_USAGE)
    for table in ("intervals", "quota_usage"):
        assert rows_of(tmp_path / "tables", table) == rows_of(whole.out, table)


def test_topics_are_listed_by_their_likely_breach(spark: SparkSession, whole: Whole) -> None:
    rows = forecast_rows(spark, str(whole.out), None)
    assert [row["topic"].removeprefix(NS) for row in rows[:2]] == ["wandering", "evicted"]
    assert len(rows) == 7
    first = rows[0]
    assert (first["seconds_to_breach"], first["quota"], first["use"] >= 1) == (0.0, "size", True)
    assert first["then"] == "producers are refused with an error"
    assert {row["minute"] for row in rows} == {max(row["minute"] for row in rows)}
    told = [row for row in rows if row["likely_at"] is not None]
    instants = [row["likely_at"] for row in told[1:]]
    assert instants == sorted(instants)
    assert all(row["likely_at"] is None for row in rows[len(told) :])
    by_name = {row["topic"].removeprefix(NS): row for row in rows}
    aging = by_name["aging"]
    assert (aging["quota"], aging["method"]) == ("time", "theil_sen")
    assert aging["then"] == "subscription slow loses its oldest messages"


def test_a_silent_cluster_is_forecast_as_of_its_last_minute(
    spark: SparkSession, tmp_path: Path
) -> None:
    messages = forecast_play()
    topic = Topic(tmp_path / "topic")
    gone = QuotaBroker(FORECAST_TOPICS, start_ns=T0 + 2_100 * S, source="gone", cluster="gone")
    topic.publish([message for _ in range(40) for message in gone.window(60)])
    topic.publish(messages)
    fill(tmp_path / "tables", topic, INTERVALS, QUOTA_USAGE)
    rows = forecast_rows(spark, str(tmp_path / "tables"), None)
    newest = {row["cluster"]: row["minute"] for row in sorted(rows, key=lambda row: row["minute"])}
    assert len(newest) == 2
    assert max(newest.values()) - newest["gone"] > timedelta(hours=1)
    assert list(clusters_behind(rows)) == ["gone"]


def test_a_forecast_of_an_earlier_instant_ignores_later_telemetry(
    spark: SparkSession, whole: Whole
) -> None:
    at_ns = T0 + HOUR_NS + MINUTE_NS // 2
    rows = forecast_rows(spark, str(whole.out), at_ns)
    assert {row["minute"].minute for row in rows} == {59}
    assert f"{NS}changing" not in {row["topic"] for row in rows}
    assert forecast_rows(spark, str(whole.out), T0 - HOUR_NS) == []


def test_forecasts_are_scored_against_outcomes(spark: SparkSession, whole: Whole) -> None:
    scores = forecast_score(spark, str(whole.out), None, None)
    total, *parts = scores.rows()
    topics = {row["topic"]: row for row in parts if row["quota"] == "size"}
    assert total["topic"] is None
    assert total["forecasts"] == sum(row["forecasts"] for row in parts)
    evicted = topics[f"{NS}evicted"]
    assert evicted["coverage"] == 1.0
    assert evicted["breached"] > 10
    assert (evicted["missed"], evicted["false_alarms"]) == (0, 0)
    assert topics[f"{NS}changing"]["overtaken"] > 5
    assert topics[f"{NS}steady"]["level_coverage"] == 1.0
    assert 0 < topics[f"{NS}noisy"]["level_pinball_50"] < 0.05
    # An hour of them has those of that hour.
    hour = forecast_score(spark, str(whole.out), T0 + HOUR_NS, T0 + 2 * HOUR_NS)
    assert 0 < hour.total.forecasts < scores.total.forecasts
    nothing = forecast_score(spark, str(whole.out), T0 - 48 * HOUR_NS, T0 - 47 * HOUR_NS)
    assert nothing.rows()[0]["forecasts"] == 0


def test_the_job_writes_the_rows(spark: SparkSession, whole: Whole) -> None:
    rows = forecast_rows(spark, str(whole.out), None)
    folder = FolderOptions(str(whole.out), format="json")
    out, err = io.StringIO(), io.StringIO()
    reached = [row for row in rows if row["seconds_to_breach"] == 0]
    asked = ForecastOptions(folder, within="0s")
    assert run_forecast(asked, out, err) == len(reached)
    written: list[dict[str, Any]] = json.loads(out.getvalue())
    assert [row["sentence"] for row in written] == [row["sentence"] for row in rows]
    assert datetime.fromisoformat(written[0]["forecast_at"]) == rows[0]["forecast_at"]
    assert "7 topics with a quota" in err.getvalue()

    out = io.StringIO()
    run_forecast(ForecastOptions(folder, is_score=True), out, err)
    assert json.loads(out.getvalue()) == forecast_score(spark, str(whole.out), None, None).rows()


def test_the_play_is_long_enough() -> None:
    assert MINUTES * MINUTE_NS > 3 * HOUR_NS
