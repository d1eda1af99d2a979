"""Verdicts of minutes and ranges over arrays equal the scalar law."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.flow.account.verdict import INFERRED, INFERRED_CONFIDENCE
from headgate.pipeline.kernels.attribution import attribution_table, range_table
from headgate.pipeline.kernels.minute_runs import minute_runs
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.record.fields import STATE_FIELD_NAMES
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


def test_delayed_messages_are_no_backlog_until_they_are_due() -> None:
    alone = next(row for row in minutes(play(60)) if row["topic"].endswith("/alone"))
    cells = dict.fromkeys(STATE_FIELD_NAMES, 0)
    waiting = alone | cells | {"state_not_due_ns": 60 * S, "delayed": 12_000}
    waiting |= {"oldest_age_max_ns": None}
    (found,) = judge_each([waiting], None)
    assert (found["verdict"], found["growth_messages"], found["backlog_messages"]) == ("NONE", 0, 0)
    assert (found["delayed_messages"], found["residual_messages"]) == (12_000, 0)
    assert found["sentence"] == "NONE: nothing is waiting; 12,000 messages are not due yet."
    # They arrive when they are due, although nothing was published then.
    due = waiting | {"state_not_due_ns": 30 * S, "state_no_consumer_ns": 30 * S, "appended": 0}
    due |= {"backlog_messages_start": 12_000, "delayed_start": 12_000, "delayed": 0}
    due |= {"oldest_age_max_ns": 30 * S}
    (found,) = judge_each([due], None)
    assert (found["verdict"], found["growth_messages"]) == ("NO_CONSUMER", 12_000)
    assert (found["backlog_messages"], found["residual_messages"]) == (12_000, 0)
    (over,) = judge_ranges([waiting, due | {"minute": due["minute"] + timedelta(minutes=1)}], None)
    assert (over["growth_messages"], over["delayed_messages"]) == (12_000, 0)


def test_counters_that_name_more_delayed_messages_than_the_backlog_has() -> None:
    healthy = next(row for row in minutes(play(60)) if row["topic"].endswith("/keeps-up"))
    (found,) = judge_each([healthy | {"backlog_messages": 3, "delayed": 5}], None)
    assert (found["backlog_messages"], found["delayed_messages"]) == (0, 3)


def test_the_last_ttl_that_expired_messages_is_named() -> None:
    slow = next(row for row in minutes(play(60)) if row["topic"].endswith("/slow"))
    ttl = {"expired": 5, "expired_by_ttl_ns": 60 * S, "expired_by_source": "topic policy"}
    later = slow | {"minute": slow["minute"] + timedelta(minutes=1)}
    (found,) = judge_ranges([slow | ttl, later | {"expired_by_ttl_ns": 30 * S}], None)
    lost = "the message TTL of 60 s (topic policy) expired 5 messages"
    assert f"; {lost} before they were acknowledged" in found["sentence"]
    (by_request,) = judge_each([slow | {"expired": 1}], None)
    assert "; 1 message expired before it was acknowledged" in by_request["sentence"]
