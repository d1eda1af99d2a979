"""A slip of the pen is answered with the name that may be meant."""

from __future__ import annotations

import pytest

from headgate.base.nearest import did_you_mean, nearest

NAMES = ("attribution", "attribute", "backtest", "show")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("atribute", "attribute"), ("backtst", "backtest"), ("shwo", "show"), ("x", None), ("", None)],
)
def test_the_most_alike_is_meant(name: str, meant: str | None) -> None:
    assert nearest(name, NAMES) == meant
    assert did_you_mean(name, iter(NAMES)) == (f"; did you mean {meant}?" if meant else "")


def test_a_known_word_that_is_less_alike_than_asked_for_is_not_meant() -> None:
    assert nearest("shwo", NAMES, 0.9) is None
