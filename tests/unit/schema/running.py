"""Runs work on definitions to its end at once."""

from __future__ import annotations

from typing import TypeVar

from headgate.base.work_units import JOB_STEP_UNITS_MAX
from headgate.schema.definition import Steps

T = TypeVar("T")

STEP_UNITS_MAX = 5 * JOB_STEP_UNITS_MAX
"""A definition of the largest size is decoded as JSON in one step, of half a millisecond."""


def outcome(steps: Steps[T]) -> T:
    """The result of ``steps``, none of which is long."""
    return counted(steps)[0]


def counted(steps: Steps[T]) -> tuple[T, int]:
    """The result of ``steps``, and the units that they used."""
    units = 0
    while True:
        try:
            used = next(steps)
        except StopIteration as end:
            return end.value, units
        assert 0 < used <= STEP_UNITS_MAX
        units += used
