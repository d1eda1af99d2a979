"""The figures about limits are related to what they are compared with."""

from __future__ import annotations

import pytest

from bench.limits import Paces, Spent, tabulate_held, tabulate_paces


def test_the_worst_topic_counts_whether_it_got_too_little_or_too_much() -> None:
    spent = Spent(entries=300, seconds=10.0, cpu_s=1.0)
    assert Paces([10_000, 9_900], spent).error_percent() == pytest.approx(1.0)
    assert Paces([10_000, 10_300], spent).error_percent() == pytest.approx(3.0)
    row = tabulate_paces(Paces([10_000, 10_300], spent)).rows[-2]
    assert (row.figure, row.verdict) == ("3.00 %", "not met")


def test_limits_cost_what_is_above_the_same_deliveries_without_them() -> None:
    alone = Spent(entries=100_000, seconds=10.0, cpu_s=2.0)
    # Fewer deliveries for the same CPU are dearer ones.
    held = Spent(entries=50_000, seconds=10.0, cpu_s=1.2)
    assert held.core_percent == pytest.approx(12.0)
    row = tabulate_held(held, alone).rows[-1]
    assert (row.figure, row.verdict) == ("4.00 % of a core", "met")
