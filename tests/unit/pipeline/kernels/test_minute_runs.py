"""Consecutive minutes under the same limits become one run."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from headgate.pipeline.kernels.minute_runs import (
    FIRST_LIMIT_COLUMNS,
    RUN_COLUMNS,
    VOTE_COLUMNS,
    minute_runs,
)
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.judged import input_table
from tests.unit.pipeline.play import SITUATIONS, T0, S, minutes, play


@cache
def held_minutes() -> list[dict[str, Any]]:
    """Five minutes of the subscription that its limit holds."""
    return [row for row in minutes(play(300)) if row["topic"] == SITUATIONS[1].topic]


ABOVE = "topic policy, above the publish rate"


def runs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = minute_runs(input_table(rows)).to_pylist()
    return found


def changed(place: int, **values: Any) -> list[dict[str, Any]]:
    """Five minutes, of which one and those after it have other values."""
    return [row | (values if i >= place else {}) for i, row in enumerate(held_minutes())]


def test_a_run_has_the_sums_and_the_ends_of_its_minutes() -> None:
    (run,) = runs(held_minutes())
    assert run["minutes"] == 5
    assert (run["from_ns"], run["to_ns"]) == (T0, T0 + 300 * S)
    assert (run["appended"], run["acked"]) == (150_000, 60_000)
    assert (run["backlog_messages_start"], run["backlog_messages"]) == (0, 90_000)
    assert run["oldest_age_max_ns"] == 300 * S
    assert sum(run[name] for name in STATE_FIELD_NAMES) == 300 * S
    assert run["held_first_subscription_ns"] == 57 * S
    assert run["voted_throttled_subscription_ns"] == 300 * S
    assert sum(run[name] for name in VOTE_COLUMNS) == 300 * S
    assert run["last_most_from_ns"] == T0
    assert minute_runs(input_table(held_minutes())).schema == arrow_schema(RUN_COLUMNS)


@pytest.mark.parametrize(
    "values",
    [
        {"limit_subscription_messages": 900},
        {"limit_subscription_source": "namespace policy a/b"},
        {"limit_broker_bytes": 5_000},
        {"limit_subscription_period_ns": 7 * S},
        {"subscription": "other"},
        {"incarnation": 2},
        {"partition": 3},
    ],
    ids=lambda values: next(iter(values)),
)
def test_another_limit_or_subscription_begins_a_run(values: dict[str, Any]) -> None:
    assert [run["minutes"] for run in runs(changed(2, **values))] == [2, 3]


def test_a_gap_begins_a_run() -> None:
    assert [run["minutes"] for run in runs(held_minutes()[:2] + held_minutes()[3:])] == [2, 2]


def test_without_a_limit_there_is_no_period() -> None:
    assert len(runs(changed(2, limit_topic_period_ns=5, limit_topic_messages=0))) == 1


def test_a_limit_that_moves_with_the_publish_rate_is_one_run() -> None:
    moving = [
        row | {"limit_topic_messages": 100 + i, "limit_topic_source": ABOVE}
        for i, row in enumerate(held_minutes())
    ]
    (run,) = runs(moving)
    assert (run["first_limit_topic_messages"], run["limit_topic_messages"]) == (100, 104)
    assert {name for name in FIRST_LIMIT_COLUMNS if name not in run} == set()
    # What it allowed, minute by minute.
    assert run["allowed_messages"] == 60 * sum(range(100, 105))
    assert run["got_messages"] == 5 * 60 * 200


def test_a_streak_starts_after_the_last_other_cause() -> None:
    idle = dict.fromkeys(STATE_FIELD_NAMES, 0) | {"state_no_consumer_ns": 60 * S}
    (run,) = runs(changed(3, **idle))
    assert run["last_most_from_ns"] == T0 + 180 * S
    assert run["voted_throttled_subscription_ns"] == 180 * S
    assert run["voted_no_consumer_ns"] == 120 * S
