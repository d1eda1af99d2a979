"""Loads and outcomes as rows of numbers."""

from __future__ import annotations

from math import inf

from headgate.flow.quota.backlog_quota import QuotaPolicy
from headgate.pipeline.backtest.load import (
    OUTCOME_COLUMNS,
    POLICY_CODES,
    STEP_COLUMNS,
    Load,
    Outcome,
    Step,
    outcome_row,
    steps_of,
)
from headgate.pipeline.tables.policy_backtest import REPLAY_COLUMNS


def test_steps_come_back_as_they_went_in() -> None:
    steps = [Step(1.0, 2.0, 3.0), Step(4.0, 5.0, 6.0, 7.0, 1, 8.0, 2, 9.0, 10.0)]
    load = Load(1, steps_of(steps))
    assert [load.step(number) for number in range(2)] == steps
    assert load.steps.shape == (2, len(STEP_COLUMNS))
    assert load.steps[0, -2:].tolist() == [inf, inf]
    assert steps_of([]).shape == (0, len(STEP_COLUMNS))


def test_no_policy_has_the_code_of_none() -> None:
    assert sorted(POLICY_CODES.values()) == [1, 2, 3]
    assert set(POLICY_CODES) == set(QuotaPolicy)


def test_an_outcome_has_the_columns_of_the_table() -> None:
    names = [column.name for column in REPLAY_COLUMNS]
    assert set(OUTCOME_COLUMNS) <= set(names)
    outcome = Outcome(*map(float, range(len(OUTCOME_COLUMNS))))
    assert outcome_row(outcome) == list(map(float, range(len(OUTCOME_COLUMNS))))
