"""Columns become accounts and back: nulls, rates, unexplained growth."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from headgate.pipeline.kernels.account_windows import (
    SUMMED,
    LimitArrays,
    inferred_rows,
    judgement_columns,
    minute_windows,
)
from headgate.pipeline.kernels.verdict_arrays import judge_arrays
from headgate.pipeline.tables.attribution import BLAMES, JUDGEMENT_COLUMNS
from headgate.record.fields import STATE_FIELD_NAMES
from tests.unit.pipeline.judged import input_table, with_demonstrated_rate
from tests.unit.pipeline.play import SITUATIONS, S, minutes, play

ROWS = [row for row in minutes(play(60)) if row["topic"] == SITUATIONS[0].topic]


def test_limits_as_rates() -> None:
    amounts = np.array([[600], [0], [10]])
    rates = LimitArrays(amounts, np.zeros((3, 1), np.int64), np.array([[60 * S], [S], [S]])).per_s()
    assert rates[:, 0, 0].tolist()[::2] == [10.0, 10.0]
    assert math.isnan(rates[1, 0, 0])
    assert np.isnan(rates[:, 1]).all()


def test_unexplained_growth_reduces_completeness() -> None:
    rows = [ROWS[0], ROWS[0] | {"backlog_messages": ROWS[0]["backlog_messages"] + 30_000}]
    windows = minute_windows(with_demonstrated_rate(input_table(rows), None))
    assert windows.residual().tolist() == [0, 30_000]
    complete, less = windows.evidence().completeness.tolist()
    assert complete == 1.0
    assert less == 1.0 - 30_000 / 54_000
    assert windows.completeness().tolist() == [1.0, 1.0]


def test_missing_values_count_as_zero() -> None:
    empty = dict.fromkeys((*SUMMED, *STATE_FIELD_NAMES, "unacked", "oldest_age_max_ns"))
    windows = minute_windows(with_demonstrated_rate(input_table([ROWS[0] | empty]), None))
    assert all(windows.sums[name].tolist() == [0] for name in SUMMED)
    assert windows.evidence().window_ns.tolist() == [1]
    assert np.isnan(windows.demonstrated_per_s).all()


def test_a_row_without_evidence_was_measured() -> None:
    table = pa.table({"evidence": pa.array([None, "measured", "inferred"])})
    assert inferred_rows(table).tolist() == [False, False, True]


def test_columns_are_those_of_the_table() -> None:
    windows = minute_windows(with_demonstrated_rate(input_table(ROWS), 100.0))
    columns = judgement_columns(windows, judge_arrays(windows.evidence()))
    assert {*columns, "sentence"} == {column.name for column in JUDGEMENT_COLUMNS}
    assert columns["verdict"].to_pylist() == ["CONSUMER"]
    assert columns["second"].to_pylist() == [None]
    assert columns["proven_rate_per_s"].to_pylist() == [100.0]
    assert sum(columns[f"share_{blame.lower()}"][0].as_py() for blame in BLAMES) == 1.0


def test_rates_include_the_time_of_lost_rows() -> None:
    """The rows of 30 s are lost: the next one had all that was counted meanwhile."""
    holed = ROWS[0] | {"covered_ns": 30 * S}
    unknown = holed | dict.fromkeys(STATE_FIELD_NAMES)
    windows = minute_windows(with_demonstrated_rate(input_table([*ROWS, holed, unknown]), None))
    assert windows.accounted_ns().tolist() == [60 * S, 60 * S, 30 * S]
    assert windows.completeness().tolist() == [1.0, 0.5, 0.5]
