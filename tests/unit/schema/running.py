"""Runs work on definitions to its end at once."""

from __future__ import annotations

from typing import TypeVar

from headgate.base.work_units import SCHEMA_BYTES_PER_UNIT
from headgate.schema.definition import DEFINITION_BYTES_MAX, Steps

T = TypeVar("T")

STEP_UNITS_MAX = 1 + DEFINITION_BYTES_MAX // SCHEMA_BYTES_PER_UNIT
"""A definition of the largest size is decoded as JSON in one step, of a millisecond."""


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
