"""How often the forecast's band holds, on every family of backlogs; what decision 0012 promises."""

from __future__ import annotations

import pytest

from bench.forecast import describe, score_of
from bench.level_series import AGE_FAMILIES, FAMILIES
from headgate.pipeline.kernels.forecast_score import Score

SERIES = 20
SEED = 2_025
"""Not one that the band was fitted with."""


@pytest.fixture(scope="module")
def scores() -> dict[str, Score]:
    return {name: score_of(name, SERIES, SEED) for name in FAMILIES}


@pytest.fixture(scope="module")
def age_scores() -> dict[str, Score]:
    return {name: score_of(name, SERIES, SEED) for name in AGE_FAMILIES}


def test_four_of_five_outcomes_lie_in_the_band(scores: dict[str, Score]) -> None:
    total = sum(scores.values(), Score())
    assert total.forecasts > 10_000
    assert total.coverage is not None
    assert 0.75 <= total.coverage <= 0.90
    assert total.level_coverage is not None
    assert 0.75 <= total.level_coverage <= 0.90


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("linear", 0.99),
        ("noisy", 0.90),
        ("bursty", 0.75),
        ("sawtooth", 0.80),
        ("diurnal", 0.55),
        ("ramping", 0.60),
        ("drifting", 0.80),
        ("redeployed", 0.55),
    ],
)
def test_no_family_is_left_to_the_others(scores: dict[str, Score], name: str, least: float) -> None:
    assert (scores[name].coverage or 0.0) >= least
    assert (scores[name].level_coverage or 0.0) >= 0.60


def test_breaches_are_seen_to_come(scores: dict[str, Score]) -> None:
    for name in ("linear", "noisy", "sawtooth", "ramping"):
        assert scores[name].soon > 100
        assert scores[name].missed == 0
        assert scores[name].false_alarms <= 0.02 * scores[name].alarms
    total = sum(scores.values(), Score())
    assert total.missed <= 0.03 * total.soon
    assert total.false_alarms <= 0.10 * total.alarms


def test_of_all_families_together_it_is_as_many(
    scores: dict[str, Score], age_scores: dict[str, Score]
) -> None:
    total = sum((*scores.values(), *age_scores.values()), Score())
    assert 0.78 <= (total.coverage or 0.0) <= 0.90
    assert 0.77 <= (total.level_coverage or 0.0) <= 0.90


def test_ages_are_forecast_as_backlogs_are(age_scores: dict[str, Score]) -> None:
    """But for the moment at which somebody takes a stuck message, which nothing announces."""
    scores = age_scores
    assert (scores["lagging"].coverage or 0.0) >= 0.90
    assert (scores["lagging_by_day"].coverage or 0.0) >= 0.80
    assert (scores["failing"].coverage or 0.0) >= 0.65
    assert (scores["stuck"].coverage or 0.0) >= 0.45
    total = sum(scores.values(), Score())
    assert 0.72 <= (total.coverage or 0.0) <= 0.90
    assert 0.70 <= (total.level_coverage or 0.0) <= 0.90
    assert scores["stuck"].missed == scores["lagging"].missed == 0


def test_a_score_reads_as_one_line() -> None:
    assert describe(Score(forecasts=1_000, levels=4, levels_covered=3, level_pinball_50=0.04)) == (
        "coverage -, level_coverage 0.75, missed_share -, false_alarm_share -, loss 0.0100,"
        " of 1,000"
    )
