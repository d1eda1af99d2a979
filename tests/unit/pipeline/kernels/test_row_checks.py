"""Rows that break a rule are counted, by rule, with the key of one of them and their times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headgate.pipeline.kernels.file_checks import CheckResult, FileChecks
from headgate.pipeline.kernels.row_checks import RowChecks
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.episodes import EPISODES
from headgate.record.fields import Kind
from tests.unit.pipeline.play import bronze, play

START = datetime(2026, 11, 24, 10, tzinfo=UTC)
GOOD = {
    "topic": "t",
    "subscription": "s",
    "incarnation": 1,
    "from_ns": 0,
    "to_ns": 60,
    "verdict": "CONSUMER",
    "confidence": 0.5,
    "share_none": 0.25,
    "share_consumer": 0.75,
    **{f"share_{name}": 0.0 for name in (
        "no_consumer", "throttled_subscription", "throttled_topic", "throttled_broker", "broker",
    )},
    "acked": 7,
}  # fmt: skip


def rows(*changes: Mapping[str, Any]) -> pa.Table:
    """A row of ``attribution`` for each change, a minute after the other."""
    found = [
        {**GOOD, "minute": START + timedelta(minutes=place), **change}
        for place, change in enumerate(changes)
    ]
    return pa.Table.from_pylist(found, table_arrow_schema(ATTRIBUTION))


def checked(*parts: pa.Table) -> FileChecks:
    checks = RowChecks(ATTRIBUTION, {"date": "2026-11-24", "hour": "10"})
    for part in parts:
        checks.add(part)
    return checks.finish()


def example(minute: int) -> dict[str, Any]:
    return {
        "cluster": None, "topic": "t", "partition": None, "subscription": "s", "incarnation": 1,
        "minute": (START + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z"),
    }  # fmt: skip


def test_rows_as_declared() -> None:
    found = checked(rows({}, {}), rows())
    names = {"required_columns", "values_in_range", "known_values", "unique_key"}
    assert {*found.results} == names | {"shares_add_up", "from_before_to"}
    assert {(r.checked, r.failed) for r in found.results.values()} == {(2, 0)}
    none = dict.fromkeys(("appended", "backlog_messages", "delayed_messages"), 0)
    assert found.totals == {**none, "acked": 14}
    assert (found.rows, len(found.keys)) == (2, 2)


FAILURES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("required_columns", {"verdict": None}, ("verdict",)),
    ("required_columns", {"to_ns": None, "verdict": None}, ("to_ns", "verdict")),
    ("values_in_range", {"confidence": 1.5}, ("confidence",)),
    ("values_in_range", {"confidence": -0.1}, ("confidence",)),
    ("values_in_range", {"confidence": float("nan")}, ("confidence",)),
    ("values_in_range", {"acked": -1, "appended": -5}, ("appended", "acked")),
    ("known_values", {"verdict": "MOON", "dimension": "bytes"}, ("verdict",)),
    ("shares_add_up", {"share_consumer": 0.7}, ATTRIBUTION.sums[0].terms),
    ("from_before_to", {"from_ns": 61}, ("from_ns", "to_ns")),
]


@pytest.mark.parametrize(("name", "change", "columns"), FAILURES)
def test_a_row_that_breaks_a_rule(
    name: str, change: dict[str, Any], columns: tuple[str, ...]
) -> None:
    found = checked(rows({}), rows({}, {}, change, change).slice(2))
    start_us = int(START.timestamp()) * 1_000_000
    assert found.results[name] == CheckResult(
        3, 2, columns, example(2), start_us + 120_000_000, start_us + 180_000_000
    )
    others = [r.failed for other, r in found.results.items() if other != name]
    assert others == [0] * len(others)


def test_the_example_does_not_depend_on_the_order_of_rows() -> None:
    bad = {"confidence": 2.0}
    found = checked(rows({}, bad, bad, bad).take([3, 1, 0, 2]))
    assert found.results["values_in_range"].example == example(1)


def test_a_null_in_a_sum_or_a_range_is_no_failure() -> None:
    found = checked(rows({"share_broker": None, "confidence": None, "dimension": None}))
    assert (found.results["shares_add_up"].checked, found.results["shares_add_up"].failed) == (0, 0)
    assert found.results["values_in_range"].failed == 0
    assert found.results["known_values"].failed == 0


def test_rounding_is_no_failure() -> None:
    found = checked(rows({"confidence": 1 + 1e-12, "share_consumer": 0.75 + 1e-9}))
    assert sum(result.failed for result in found.results.values()) == 0


def test_a_span_of_years_is_compared() -> None:
    """Whose clock was set, or who writes telemetry of its own, ends no job."""
    year_ns = 365 * 86_400 * 10**9
    found = checked(rows({"to_ns": 50 * year_ns}, {"from_ns": 50 * year_ns, "to_ns": 1}))
    assert found.results["from_before_to"].checked == 2
    assert found.results["from_before_to"].failed == 1


def test_a_key_that_comes_again_in_a_later_part() -> None:
    found = checked(rows({}, {}), rows({}, {}).slice(1))
    repeated = found.results["unique_key"]
    assert (repeated.checked, repeated.failed, repeated.example) == (3, 1, example(1))


def test_absent_columns_are_not_checked() -> None:
    """A folder of an earlier release lacks columns when its files are merged."""
    found = checked(rows({}).drop_columns(["confidence", "share_broker", "incarnation", "acked"]))
    assert found.results["shares_add_up"].checked == 0
    assert found.results["unique_key"].checked == 0
    assert "acked" not in found.totals
    assert found.results["values_in_range"] == CheckResult(1)


def test_times_in_nanoseconds() -> None:
    row = {"segment_start_ns": 5_000_000, "segment_end_ns": 4_000_000}
    checks = RowChecks(EPISODES, {})
    checks.add(pa.Table.from_pylist([row], table_arrow_schema(EPISODES)))
    result = checks.finish().results["start_before_end"]
    assert (result.failed, result.first_us, result.last_us) == (1, 5_000, 5_000)


def test_bronze_of_a_play_is_as_declared() -> None:
    table = bronze(play(120, 10))
    for kind in ("batch", *(kind.value for kind in Kind if kind is not Kind.EVENT)):
        part = table.filter(pa.compute.equal(table["kind"], kind))
        checks = RowChecks(BRONZE_SAMPLES, {"kind": kind})
        checks.add(part.drop_columns(["kind", "date", "hour"]))
        results = checks.finish().results
        assert part.num_rows
        assert {r.failed for r in results.values()} == {0}, kind
