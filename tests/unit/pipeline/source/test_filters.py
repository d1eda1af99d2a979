"""Filters of Spark that the reader applies pass the rows that Spark would pass."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from headgate.pipeline.source.filters import (
    Condition,
    combined,
    is_within,
    range_conditions,
    take_filters,
)
from headgate.pipeline.store.delta_log import TableFile
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.tables.episodes import EPISODES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.time_span import Span

ROWS = conform(
    {
        "topic": pa.array(["a", "b", None, "ab"]),
        "msgs_in": pa.array([1, 2, 3, None]),
        "hour": pa.array([10, 10, 11, 11], pa.int32()),
        "date": pa.array([date(2025, 11, 21)] * 4),
        "minute": pa.array([datetime(2025, 11, 21, 10, m, tzinfo=UTC) for m in range(4)]),
        "clock_steps": pa.array([0, 0, 0, 0]),
        "completeness": pa.array([1.0, float("nan"), 0.5, None]),
    },
    table_arrow_schema(INTERVALS),
    4,
)
TOPIC, COUNT = ("topic",), ("msgs_in",)


def passing(*filters: spark.Filter) -> list[int]:
    conditions, left = take_filters(INTERVALS, filters)
    assert left == []
    minutes = ROWS.filter(combined(conditions, INTERVALS))["minute"].to_pylist()
    return [minute.minute for minute in minutes]


@pytest.mark.parametrize(
    ("given", "minutes"),
    [
        (spark.EqualTo(TOPIC, "a"), [0]),
        (spark.Not(spark.EqualTo(TOPIC, "a")), [1, 3]),
        (spark.In(TOPIC, ("a", "b", None)), [0, 1]),
        (spark.Not(spark.In(TOPIC, ("a", "b"))), [3]),
        (spark.LessThan(COUNT, 2), [0]),
        (spark.LessThanOrEqual(COUNT, 2), [0, 1]),
        (spark.GreaterThan(COUNT, 2), [2]),
        (spark.GreaterThanOrEqual(COUNT, 2), [1, 2]),
        (spark.IsNull(TOPIC), [2]),
        (spark.IsNotNull(TOPIC), [0, 1, 3]),
        (spark.Not(spark.IsNull(TOPIC)), [0, 1, 3]),
        (spark.StringStartsWith(TOPIC, "a"), [0, 3]),
        (spark.StringEndsWith(TOPIC, "b"), [1, 3]),
        (spark.StringContains(TOPIC, "b"), [1, 3]),
        (spark.EqualTo(("date",), date(2025, 11, 21)), [0, 1, 2, 3]),
        (spark.LessThan(("minute",), datetime(2025, 11, 21, 10, 1, tzinfo=UTC)), [0]),
        (spark.LessThan(("minute",), datetime(2025, 11, 21, 10, 1)), [0]),  # noqa: DTZ001
    ],
)
def test_rows_that_pass(given: spark.Filter, minutes: list[int]) -> None:
    assert passing(given) == minutes


def test_several_are_joined_by_and() -> None:
    assert passing(spark.GreaterThan(COUNT, 1), spark.IsNotNull(TOPIC)) == [1]
    assert combined([], INTERVALS) is None


@pytest.mark.parametrize(
    "given",
    [
        spark.GreaterThan(("completeness",), 0.7),
        spark.EqualNullSafe(TOPIC, "a"),
        spark.Not(spark.EqualNullSafe(TOPIC, "a")),
        spark.Not(spark.In(TOPIC, ("a", None))),
        spark.In(TOPIC, (None,)),
        spark.EqualTo(("unknown",), 1),
        spark.EqualTo(("topic", "part"), 1),
    ],
)
def test_what_pyarrow_would_judge_otherwise_stays_with_spark(given: spark.Filter) -> None:
    assert take_filters(INTERVALS, [given]) == ([], [given])


def test_a_range_by_the_time_column_of_a_table() -> None:
    start_ns = 1_763_719_200 * 10**9
    span = Span(start_ns, start_ns + 90 * 10**9)
    since = datetime(2025, 11, 21, 9, 59, 0, 1, tzinfo=UTC)
    until = datetime(2025, 11, 21, 10, 1, 30, tzinfo=UTC)
    assert range_conditions(INTERVALS, span, ["topic"]) == [
        Condition("kind", "in", ["topic"]),
        Condition("minute", ">=", since),
        Condition("minute", "<", until),
    ]
    assert range_conditions(EPISODES, Span(start_ns), []) == [
        Condition("segment_start_ns", ">=", start_ns)
    ]
    assert range_conditions(INTERVALS, Span(), []) == []


@pytest.mark.parametrize(
    ("hour", "within"), [(9, False), (10, True), (11, True), (12, True), (13, False)]
)
def test_files_by_their_hour(hour: int, within: bool) -> None:
    file = TableFile("x", 1, {"date": "2025-11-21", "hour": str(hour)}, 1, None)
    first_ns = file.hour * HOUR_NS + (11 - hour) * HOUR_NS
    # The minute before the range and the minute behind it touch it.
    assert is_within(file, Span(first_ns + MINUTE_NS // 2, first_ns + HOUR_NS - 1)) is within
    assert is_within(file, Span())
    assert is_within(TableFile("x", 1, {"run_id": "r"}, 1, None), Span(first_ns))


@pytest.mark.parametrize(
    ("operator", "value", "is_negated", "may"),
    [
        ("==", 5, False, True), ("==", 11, False, False), ("<", 3, False, False),
        ("<=", 3, False, True), (">", 9, False, False), (">=", 9, False, True),
        ("in", [1, 2], False, False), ("in", [1, 4], False, True), ("==", 5, True, True),
        ("is null", None, False, True), ("starts", "x", False, True),
    ],
)  # fmt: skip
def test_files_by_the_bounds_of_their_values(
    operator: str, value: Any, is_negated: bool, may: bool
) -> None:
    condition = Condition("msgs_in", operator, value, is_negated)
    assert condition.may_pass({"msgs_in": (3, 9)}) is may
    assert condition.may_pass({})


def test_a_partition_that_is_excluded() -> None:
    condition = Condition("kind", "==", "topic", is_negated=True)
    assert not condition.may_pass({"kind": ("topic", "topic")})
    assert condition.may_pass({"kind": ("limiter", "limiter")})
