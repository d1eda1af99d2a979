"""Marks of a ranking, and shares as text."""

from __future__ import annotations

import pytest

from headgate.pipeline.backtest.ranking_text import (
    IS_CENSORED_TEXT,
    rank_text,
    settings_count,
    share_text,
)


def test_a_shared_rank_is_marked() -> None:
    assert (rank_text(1, True), rank_text(12, False)) == ("=1", "12")
    assert (settings_count(1), settings_count(4_096)) == ("1 setting", "4,096 settings")


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "0 %"), (4.4e-6, "< 0.1 %"), (0.001, "0.1 %"), (0.0823, "8.2 %"), (0.5, "50 %"),
        (0.9951, "99.5 %"), (1.0, "100 %"),
    ],
)  # fmt: skip
def test_shares(share: float, said: str) -> None:
    assert share_text(share) == said


def test_the_text_about_censoring_names_its_bound() -> None:
    assert IS_CENSORED_TEXT.startswith("censored: more than 10 % of the replayed time was time in")
