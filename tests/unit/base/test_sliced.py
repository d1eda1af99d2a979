"""Sliced work without a pause: its result, and its error."""

from __future__ import annotations

import pytest

from headgate.base.sliced import Sliced, at_once


def counting(steps: int) -> Sliced[int]:
    for _ in range(steps):
        yield
    return steps


def failing() -> Sliced[None]:
    yield
    raise KeyError("broken")


@pytest.mark.parametrize("steps", [0, 1, 100])
def test_the_result_is_returned_after_all_steps(steps: int) -> None:
    assert at_once(counting(steps)) == steps


def test_an_error_of_the_work_is_its_callers() -> None:
    with pytest.raises(KeyError, match="broken"):
        at_once(failing())
