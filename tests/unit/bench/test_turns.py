"""Tests of the bench of units."""

from __future__ import annotations

from bench.turns import MEASURES, NOT_ALONE
from headgate.base.work_units import STEPS


def test_every_step_of_the_table_is_measured_or_says_why_not() -> None:
    assert MEASURES.keys() | NOT_ALONE.keys() == STEPS.keys()
    assert not MEASURES.keys() & NOT_ALONE.keys()
