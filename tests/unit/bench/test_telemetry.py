"""Generated telemetry: the same for a seed, whole in parts, and sensible to the kernels."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.telemetry import FIRST_HOUR, Telemetry, minute_rows
from headgate.pipeline.kernels.coverage_gaps import Coverage
from headgate.pipeline.kernels.intervals import SORT_COLUMNS, interval_table
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.record.fields import STATE_FIELD_NAMES, Kind

FEW = Telemetry(subscriptions=60, minutes=90)


def rows(telemetry: Telemetry, minutes: range, broker: int = 0) -> pa.Table:
    """All rows of one broker."""
    return pa.concat_tables(
        table for minute in minutes for table in minute_rows(telemetry, broker, minute)
    )


def of_kind(table: pa.Table, kind: str) -> pa.Table:
    """The rows of a kind."""
    return table.filter(pc.equal(table.column("kind"), kind))


def test_rows_are_those_of_bronze_and_follow_from_the_seed() -> None:
    found = rows(FEW, range(2))
    assert found.schema == table_arrow_schema(BRONZE_SAMPLES)
    assert found.equals(rows(FEW, range(2)))
    assert not found.equals(rows(Telemetry(60, 90, seed=2), range(2)))
    counts = {kind: of_kind(found, kind).num_rows for kind in ("subscription", "topic", "batch")}
    assert counts == {"subscription": 12 * 60, "topic": 12 * 30, "batch": 12}


def test_minutes_together_have_the_rows_that_they_have_alone() -> None:
    order = [("kind", "ascending"), ("topic", "ascending"), ("subject", "ascending")]
    order += [(name, "ascending") for name in ("subscription", "seq")]
    together = pa.concat_tables(minute_rows(FEW, 0, 57, 3)).sort_by(order)
    assert together.equals(rows(FEW, range(57, 60)).sort_by(order))


def test_parts_cover_each_minute_of_each_broker_once() -> None:
    many = Telemetry(subscriptions=10_000, minutes=130)
    assert (many.topics, many.brokers) == (5_000, 3)
    assert [len(many.topics_of(broker)) for broker in range(3)] == [2_000, 2_000, 1_000]
    for first, expected in ((0, range(130)), (58, range(58, 130)), (60, range(60, 130))):
        parts = many.parts(first)
        assert all(begin // 60 == (end - 1) // 60 for _, begin, end in parts)
        minutes = [m for broker, begin, end in parts if broker == 2 for m in range(begin, end)]
        assert minutes == list(expected)
    assert many.parts(130) == []


def test_messages_of_a_broker_are_numbered_without_holes() -> None:
    many = Telemetry(subscriptions=5_000, minutes=2)
    batches = of_kind(rows(many, range(2), broker=0), "batch").column("seq").to_pylist()
    assert sorted(batches) == list(range(12))
    assert set(of_kind(rows(many, range(1), broker=1), "batch").column("seq").to_pylist()) == set(
        range(6)
    )
    found = of_kind(rows(many, range(1)), "subscription").select(["seq", "row"])
    assert found.group_by(["seq", "row"]).aggregate([]).num_rows == found.num_rows


@pytest.mark.parametrize("kind", [Kind.SUBSCRIPTION, Kind.TOPIC, Kind.LIMITER])
def test_minutes_follow_without_gaps_resets_or_residuals(kind: Kind) -> None:
    samples = of_kind(rows(FEW, range(62)), kind.value)
    table = samples.sort_by([(name, "ascending") for name in SORT_COLUMNS])
    windows = sorted(set(samples.column("window_end_ns").to_pylist()))
    assert len(windows) == 62 * 6
    found = interval_table(table, kind, {FIRST_HOUR, FIRST_HOUR + 1}, Coverage())
    assert not any(pc.sum(found.column(name)).as_py() for name in ("gaps", "resets", "clock_steps"))
    if kind is Kind.SUBSCRIPTION:
        whole = found.filter(pc.equal(found.column("samples"), 6))
        accounted = sum(whole.column(name).to_numpy() for name in STATE_FIELD_NAMES)
        assert set(accounted.tolist()) == {60_000_000_000}
        grown = pc.subtract(whole.column("appended"), whole.column("acked"))
        level = pc.subtract(
            whole.column("backlog_messages"), whole.column("backlog_messages_start")
        )
        assert grown.equals(level)
        assert pc.max(found.column("backlog_messages")).as_py() > 100
