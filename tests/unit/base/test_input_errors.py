"""All that is wrong is reported in one error, with the names that were probably meant."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors, closest_match, did_you_mean

NAMES = ("attribution", "attribute", "backtest", "show")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("atribute", "attribute"), ("backtst", "backtest"), ("shwo", "show"), ("x", None), ("", None)],
)
def test_the_most_alike_is_meant(name: str, meant: str | None) -> None:
    assert closest_match(name, NAMES) == meant
    assert did_you_mean(name, iter(NAMES)) == (f"; did you mean {meant}?" if meant else "")


def test_a_known_word_that_is_less_alike_than_asked_for_is_not_meant() -> None:
    assert closest_match("shwo", NAMES, 0.9) is None


def test_all_refusals_are_reported_at_once_and_each_once() -> None:
    errors = InputErrors()
    errors.add("a is 0")
    with errors.collecting():
        raise InputError("b is 1")
    errors.add("a is 0")
    with pytest.raises(InputError) as caught:
        errors.raise_any()
    assert str(caught.value) == "a is 0\nb is 1"


def test_without_refusals_nothing_is_raised() -> None:
    errors = InputErrors()
    with errors.collecting():
        pass
    errors.raise_any()


def test_other_errors_are_not_collected() -> None:
    with pytest.raises(KeyError), InputErrors().collecting():
        raise KeyError("a bug")
