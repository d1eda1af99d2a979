"""Which settings do not go together, and what is said of them."""

from __future__ import annotations

import pytest

from headgate.policy.settings import (
    SETTINGS,
    WATERMARKS,
    Settings,
    crossed_watermarks,
    inconsistencies,
    watermark_problem,
)


def test_the_defaults_go_together() -> None:
    assert crossed_watermarks(Settings()) == []
    assert inconsistencies(Settings()) == []
    assert all(name in SETTINGS for pair in WATERMARKS for name in pair)


@pytest.mark.parametrize("pair", WATERMARKS)
@pytest.mark.parametrize(("low", "high"), [("0.5", "0.5"), ("0.9", "0.5")])
def test_a_low_watermark_is_below_its_high_one(pair: tuple[str, str], low: str, high: str) -> None:
    settings = Settings()
    settings.set(pair[0], low)
    settings.set(pair[1], high)
    assert crossed_watermarks(settings) == [pair]
    (said,) = inconsistencies(settings)
    assert said == (
        f"{pair[0]}={low!r} is not allowed; use a number above 0 and below {pair[1]} ({high})"
    )


def test_every_pair_is_reported() -> None:
    settings = Settings()
    for _, high in WATERMARKS:
        settings.set(high, "0.1")
    assert crossed_watermarks(settings) == list(WATERMARKS)
    assert len(inconsistencies(settings)) == len(WATERMARKS)


def test_the_other_one_of_a_pair_is_given_its_own_range() -> None:
    settings, pair = Settings(), WATERMARKS[0]
    settings.set(pair.high, "0.6")
    assert watermark_problem(settings, pair, pair.high) == (
        f"{pair.high}='0.6' is not allowed; use a number above {pair.low} (0.7) and up to 1"
    )
