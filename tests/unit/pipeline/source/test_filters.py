"""Filters of Spark that the reader applies pass the rows that Spark would pass."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark

from headgate.pipeline.source.filters import Condition, combined, take_filters
from headgate.pipeline.tables.arrow_types import conform, table_arrow_schema
from headgate.pipeline.tables.intervals import INTERVALS

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
