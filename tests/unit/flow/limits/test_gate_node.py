"""What every level of the gate does with its limit."""

from __future__ import annotations

from headgate.base.units import NS_PER_S
from headgate.flow.limits.gate import BrokerGate
from headgate.flow.limits.rate_limit import Dimension, RateLimit


def test_a_removed_limit_set_again_finds_its_window() -> None:
    gate = BrokerGate()
    gate.set_limit(RateLimit(10, 100), 0)
    first = gate.budgets
    first[0].charge(0, 7)
    gate.set_limit(None, 1)
    assert gate.budgets == ()
    gate.set_limit(RateLimit(None, 100), 2)
    assert [budget.dimension for budget in gate.budgets] == [Dimension.BYTES]
    first[0].charge(2, 100)  # of somebody who has not noticed yet that the limit was removed
    gate.set_limit(RateLimit(8, None), 3)
    assert gate.statistics(3).budgets[0].delivered_in_window == 6  # 7 * 8 / 10
    gate.set_limit(RateLimit(10, None), 3)
    assert gate.statistics(3).budgets[0].delivered_in_window == 7
    assert gate.statistics(NS_PER_S).budgets[0].delivered_in_window == 0


def test_without_limits_there_is_nothing_to_report() -> None:
    figures = BrokerGate().statistics(5)
    assert (figures.budgets, figures.waiters, figures.waiting_ns) == ((), 0, 0)


def test_a_raise_or_a_removal_forgives_its_dimension_and_a_cut_none() -> None:
    """Rule 3.3."""
    for limit, debts in (
        (RateLimit(10, 100), [90, 900]),
        (RateLimit(9, 99), [90, 900]),
        (RateLimit(11, 100), [0, 900]),
        (RateLimit(None, 50), [0, 900]),
        (RateLimit(5, 101), [90, 0]),
        (None, [0, 0]),
    ):
        gate = BrokerGate()
        gate.set_limit(RateLimit(10, 100), 0)
        for budget, amount in zip(gate.budgets, (100, 1_000), strict=True):
            budget.charge(0, amount)
        gate.forgive_raised(limit, 1)
        assert [budget.debt for budget in gate.budgets] == debts
