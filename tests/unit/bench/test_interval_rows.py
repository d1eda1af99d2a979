"""What the bench of attribution draws is what it says."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from bench.interval_rows import FIRST_HOUR, hour_rows
from headgate.pipeline.kernels.attribution import INPUT_COLUMNS, attribution_table
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.judged import with_demonstrated_rate

SUBSCRIPTIONS, MINUTES = 1_000, 10


@cache
def drawn_rows() -> pa.Table:
    """An hour of rows as the bench draws them."""
    return hour_rows(FIRST_HOUR, range(SUBSCRIPTIONS), MINUTES, seed=1)


def test_rows_are_those_of_the_table_in_order() -> None:
    assert drawn_rows().schema == table_arrow_schema(INTERVALS)
    keys = ["topic", "subscription", "minute"]
    assert drawn_rows().group_by(keys).aggregate([]).num_rows == SUBSCRIPTIONS * MINUTES
    starts = drawn_rows()["minute"].to_pylist()
    assert all(starts[i : i + MINUTES] == sorted(starts[i : i + MINUTES]) for i in range(0, 50, 10))


def test_each_account_adds_up_to_the_time_covered() -> None:
    total = sum(drawn_rows()[name].to_numpy() for name in STATE_FIELD_NAMES)
    assert (total == drawn_rows()["covered_ns"].to_numpy()).all()


def test_most_minutes_are_healthy_and_every_verdict_is_there() -> None:
    judged = attribution_table(with_demonstrated_rate(drawn_rows().select(INPUT_COLUMNS), None))
    verdicts = Counter(judged["verdict"].to_pylist())
    assert set(verdicts) == set(BLAMES)
    assert 0.8 < verdicts["NONE"] / judged.num_rows < 0.9
    assert set(judged["dimension"].to_pylist()) == {None, "messages", "bytes"}
    assert pc.any(judged["bystander"]).as_py()
    assert judged["second"].null_count < judged.num_rows
