"""The table of work units."""

from __future__ import annotations

from headgate.base import work_units
from headgate.base.units import NS_PER_MS
from headgate.base.work_units import STEPS


def test_every_step_has_units_and_says_what_it_bounds() -> None:
    for name, step in STEPS.items():
        assert step.name == name
        assert step.units > 0
        assert step.per
        assert step.bounds


def test_the_broker_counts_with_the_table_and_not_with_a_copy() -> None:
    """Each constant of a step stands in the table once."""
    constants = [
        value
        for name, value in vars(work_units).items()
        if name.isupper() and isinstance(value, int) and not name.endswith(("_MAX", "_MIN"))
    ]
    assert len(STEPS) <= len(constants)
    assert max(step.units for step in STEPS.values()) <= work_units.JOB_STEP_UNITS_MAX


def test_an_iteration_is_a_few_milliseconds() -> None:
    assert work_units.TURN_UNITS_MAX * work_units.UNIT_NS <= 23 * NS_PER_MS
