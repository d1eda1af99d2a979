"""Verdicts of minutes and ranges over arrays equal the scalar law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.flow.account.verdict import INFERRED, INFERRED_CONFIDENCE
from headgate.pipeline.kernels.attribution import attribution_table, range_table
from headgate.pipeline.kernels.minute_runs import minute_runs
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from tests.unit.pipeline.judged import input_table, judge_each, judge_ranges, with_demonstrated_rate
from tests.unit.pipeline.play import SITUATIONS, T0, Broker, S, minutes, play
from tests.unit.pipeline.random_minutes import minutes_of_one
from tests.unit.pipeline.row_by_row import judge_minutes

DEMONSTRATED = st.sampled_from([None, 5.0, 100.0, 2_000.0])
WAITERS = st.none() | st.integers(2, 5)


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        if isinstance(value, float):
            assert found[name] == pytest.approx(value, rel=1e-12, abs=1e-15), name
        else:
            assert found[name] == value, name


@settings(max_examples=300, deadline=None)
@given(minutes_of_one(), DEMONSTRATED, WAITERS)
def test_minutes_are_judged_as_by_the_scalar_law(
    rows: list[dict[str, Any]], demonstrated: float | None, waiters: int | None
) -> None:
    for found, row in zip(judge_each(rows, demonstrated, waiters), rows, strict=True):
        assert_same(found, judge_minutes([row], demonstrated, waiters or 0))
        assert (found["minute"], found["hour"]) == (row["minute"], row["hour"])
        assert (found["topic"], found["broker"]) == (row["topic"], row["broker"])


@settings(max_examples=300, deadline=None)
@given(minutes_of_one(), DEMONSTRATED, st.integers(1, 8), WAITERS)
def test_a_range_is_judged_as_by_the_scalar_law(
    rows: list[dict[str, Any]], demonstrated: float | None, batch_rows: int, waiters: int | None
) -> None:
    """However its minutes are cut into batches."""
    (found,) = judge_ranges(rows, demonstrated, batch_rows, waiters)
    assert_same(found, judge_minutes(rows, demonstrated, waiters or 0))
    assert found["broker"] == rows[-1]["broker"]


@settings(max_examples=50, deadline=None)
@given(minutes_of_one(), st.randoms(use_true_random=False))
def test_a_range_does_not_depend_on_the_order_of_its_rows(rows: list[Any], random: Any) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert_same(judge_ranges(shuffled, None)[0], judge_minutes(rows, None))


def test_one_row_for_each_minute() -> None:
    player = Broker(start_ns=T0 + 3_500 * S)
    rows = minutes([m for _ in range(200) for m in player.window()])
    found = attribution_table(with_demonstrated_rate(input_table(rows), None))
    assert found.schema == table_arrow_schema(ATTRIBUTION)
    assert found.num_rows == len(rows) == 4 * len(SITUATIONS)
    wanted = {(s.topic, s.subscription): s.verdict for s in SITUATIONS}
    for row in found.to_pylist():
        assert row["verdict"] == wanted[row["topic"], row["subscription"]]
        assert row["minute"].hour == row["hour"]


def test_one_row_for_each_subscription() -> None:
    rows = [row for row in minutes(play(300)) if T0 + 60 * S <= row["from_ns"] < T0 + 180 * S]
    found = judge_ranges(rows, None)
    assert len(found) == len(SITUATIONS)
    slow = next(row for row in found if row["topic"].endswith("/slow"))
    assert slow["growth_messages"] == 400 * 120
    assert (slow["from_ns"], slow["to_ns"]) == (T0 + 60 * S, T0 + 180 * S)


def test_one_inferred_minute_makes_a_range_inferred() -> None:
    rows = [row for row in minutes(play(180)) if row["topic"].endswith("/slow")]
    (measured,) = judge_ranges(rows, None)
    assert measured["evidence"] == "measured"
    (inferred,) = judge_ranges([*rows[:-1], rows[-1] | {"evidence": INFERRED}], None)
    assert inferred["evidence"] == INFERRED
    assert inferred["confidence"] == pytest.approx(INFERRED_CONFIDENCE * measured["confidence"])
    assert inferred["sentence"] == measured["sentence"][:-1] + " (inferred from counters)."
    each = judge_each([rows[0], rows[1] | {"evidence": INFERRED}], None)
    assert [row["evidence"] for row in each] == ["measured", INFERRED]


def test_no_rows_give_no_rows() -> None:
    none = input_table([])
    assert attribution_table(with_demonstrated_rate(none, None)).num_rows == 0
    assert minute_runs(none).num_rows == 0
    assert range_table(with_demonstrated_rate(minute_runs(none), None)).num_rows == 0
