"""Scores of forecasts, in cases that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.forecast_score import SCORE_COLUMNS, Score, pinball, score_table
from headgate.pipeline.tables.arrow_types import arrow_schema
from tests.unit.pipeline.level_play import MINUTE, Row, rows_of, table_of
from tests.unit.pipeline.play import T0, S

LIMIT = 10_000


def scores_of(rows: list[Row], since_ns: int = 0, until_ns: int = 1 << 62) -> dict[str, Score]:
    """The score of each quota of one topic."""
    found = score_table(table_of(rows), since_ns, until_ns).to_pylist()
    return {row["quota"]: Score(**{name: row[name] for name in Score.__slots__}) for row in found}


def rising(minutes: int, **facts: Any) -> list[Row]:
    """100 bytes a minute, to the limit and no further."""
    levels = [min(100 * (i + 1), LIMIT) for i in range(minutes)]
    return rows_of(levels, **{"quota_size_limit_bytes": LIMIT, **facts})


def test_on_a_line_every_forecast_is_right() -> None:
    score = scores_of(rising(130))["size"]
    # Minutes 9 (the tenth sample), 10, 15, ... 95; the limit is reached in minute 99.
    assert score.forecasts == score.told == score.breached == score.resolved == 19
    assert (score.covered, score.soon) == (19, 12)
    assert score.pinball_50_s == pytest.approx(0.0, abs=1e-6)
    assert score.pinball_10_s > 0
    assert (score.missed, score.false_alarms, score.overtaken) == (0, 0, 0)
    # Likely within an hour: from minute 40 on.
    assert score.alarms == 12
    assert score.levels == score.levels_covered == 2 * 19
    assert score.level_pinball_50 == pytest.approx(0.0, abs=1e-9)
    assert (score.coverage, score.level_coverage) == (1.0, 1.0)


def test_only_minutes_of_the_range_are_scored_and_outcomes_may_lie_beyond() -> None:
    rows = rising(130)
    score = scores_of(rows, T0 + 50 * MINUTE, T0 + 60 * MINUTE)["size"]
    assert (score.forecasts, score.breached) == (2, 2)
    assert scores_of(rows, T0 + 300 * MINUTE) == {}
    schema = score_table(table_of([]), 0, 1).schema
    assert schema == arrow_schema(SCORE_COLUMNS)


def test_an_unpredicted_breach_is_missed() -> None:
    levels = [3_000] * 60 + [LIMIT]
    score = scores_of(rows_of(levels, quota_size_limit_bytes=LIMIT))["size"]
    # Minutes 9, 10, 15, ... 55.
    assert score.forecasts == score.soon == score.missed == 11
    assert (score.told, score.breached, score.resolved, score.coverage) == (0, 0, 0, None)
    # Nobody saw the level of minute 60 come; it is 15 minutes after one, and 30 after another.
    assert (score.levels, score.levels_covered) == (15, 13)


def test_a_predicted_breach_that_does_not_happen_is_a_false_alarm() -> None:
    levels = [7_000 + 100 * i for i in range(20)] + [8_900] * 300
    score = scores_of(rows_of(levels, quota_size_limit_bytes=LIMIT))["size"]
    early = scores_of(rows_of(levels[:100], quota_size_limit_bytes=LIMIT))["size"]
    assert score.false_alarms == score.alarms >= 3
    assert score.resolved > 0
    assert (score.covered, score.breached, score.soon) == (0, 0, 0)
    # Two hours later nothing is known yet.
    assert early.alarms == 0
    assert early.resolved > 0


def test_a_forecast_whose_limit_was_changed_has_no_outcome() -> None:
    limits = {i: LIMIT if i < 50 else 2 * LIMIT for i in range(130)}
    levels = [100 * (i + 1) for i in range(130)]
    score = scores_of(rows_of(levels, quota_size_limit_bytes=limits))["size"]
    assert score.overtaken == 9
    assert score.breached == 0
    lifted = rising(130, quota_size_limit_bytes=dict.fromkeys(range(50), LIMIT))
    assert scores_of(lifted)["size"].overtaken == 9
    assert scores_of(lifted)["size"].levels == 6 + 3


def test_an_eviction_is_a_breach() -> None:
    levels = [8_100 + 100 * i for i in range(19)] + [9_000] * 60
    rows = rows_of(levels, quota_size_limit_bytes=LIMIT, eviction_size_acts={19: 1})
    score = scores_of(rows, until_ns=T0 + 19 * MINUTE)["size"]
    assert (score.forecasts, score.breached, score.covered) == (3, 3, 3)
    # Once the limit was reached, the level counts as the limit.
    assert score.levels == score.levels_covered == 6
    # Of the other quota's eviction the size quota's forecast knows nothing.
    other = rows_of(levels, quota_size_limit_bytes=LIMIT, eviction_time_acts={19: 1})
    assert scores_of(other, until_ns=T0 + 19 * MINUTE)["size"].breached == 0


def test_acts_beyond_what_a_double_has_exactly_end_no_job() -> None:
    rows = rows_of({0: 0}, quota_size_limit_bytes=LIMIT, eviction_size_acts={0: (1 << 57) + 1})
    scores_of(rows)


def test_both_quotas_of_a_topic_are_scored() -> None:
    rows = rising(
        70,
        quota_time_limit_ns=1_800 * S,
        oldest_age_ns={i: (i + 1) * MINUTE for i in range(70)},
    )
    found = scores_of(rows)
    assert set(found) == {"size", "time"}
    assert found["time"].coverage == 1.0
    assert found["time"].breached == found["time"].forecasts == 5


def test_reached_limits_and_few_samples_give_no_forecast() -> None:
    assert scores_of(rows_of([LIMIT] * 40, quota_size_limit_bytes=LIMIT)) == {}
    assert scores_of(rising(9)) == {}
    assert scores_of(rising(40, quota_size_limit_bytes=None)) == {}


def test_scores_add_up() -> None:
    one = Score(forecasts=2, breached=1, pinball_50_s=60.0, levels=4, levels_covered=3)
    both = one + Score(forecasts=1, breached=1, pinball_50_s=30.0, levels=4, levels_covered=4)
    assert both == Score(forecasts=3, breached=2, pinball_50_s=90.0, levels=8, levels_covered=7)
    told = both.document()
    assert (told["pinball_50_s"], told["level_coverage"]) == (45.0, 0.875)
    assert (told["coverage"], told["missed_share"], told["level_pinball_10"]) == (None, None, 0.0)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.sampled_from([0.1, 0.5, 0.9]))
def test_pinball_loss_is_least_at_the_truth(came: float, told: float, share: float) -> None:
    loss = float(pinball(np.array(came), np.array(told), share))
    assert loss >= 0
    assert float(pinball(np.array(came), np.array(came), share)) == 0
    assert loss == pytest.approx(abs(came - told) * (share if came > told else 1 - share))
