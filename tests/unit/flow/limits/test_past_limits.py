"""What a window counts after its limit changed (rules 1.5 and 3.3)."""

from __future__ import annotations

import sys
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.units import INT64_MAX, NS_PER_MS, NS_PER_S
from headgate.flow.limits.budget import SLOTS_PER_PERIOD_MAX, Budget
from headgate.flow.limits.past_limits import LIMITS_MAX, PastLimits
from headgate.flow.limits.rate_limit import Dimension, Level
from tests.unit.flow.driver import START_NS

SLOT_NS = -(-NS_PER_S // SLOTS_PER_PERIOD_MAX)

LIMITS = st.integers(1, 300)

Sent = list[tuple[int, int, int]]
"""When, how much, and under which limit."""


def _budget(limit: int, period_ns: int = NS_PER_S) -> Budget:
    return Budget(limit, period_ns, Level.TOPIC, Dimension.MESSAGES, START_NS)


def _counts(sent: Sent, now_ns: int, limit: int, window_ns: int = NS_PER_S) -> Fraction:
    """The law itself, exactly."""
    return sum(
        (
            amount * min(Fraction(1), Fraction(limit, then))
            for at_ns, amount, then in sent
            if at_ns > now_ns - window_ns
        ),
        Fraction(0),
    )


def _paced(budget: Budget, seconds: float, now_ns: int, entry: int = 1) -> tuple[int, int]:
    """Send as much as the budget allows for so long; when that ends, and how much it was."""
    end_ns, sent = now_ns + round(seconds * NS_PER_S), 0
    while True:
        at_ns = budget.release_ns(now_ns)
        if at_ns > now_ns:
            budget.begin_waiting(now_ns, at_ns)
            if at_ns >= end_ns:
                return end_ns, sent
            now_ns = at_ns
            continue
        budget.charge(now_ns, entry)
        sent += entry


def test_a_limit_that_is_lowered_leaves_no_hole() -> None:
    """An adaptive step of 25 %: 300, 300, 108, 130, 146 when what was accepted before counted in
    full."""
    budget, now_ns, seconds = _budget(300), START_NS, []
    for limit in (300, 300, 225, 225, 150, 75, 30, 30):
        budget.change(limit, NS_PER_S, now_ns)
        now_ns, sent = _paced(budget, 1, now_ns)
        seconds.append((limit, sent))
    for limit, sent in seconds:
        assert limit * 0.97 - 1 <= sent <= limit * 1.03 + 1, seconds


def test_a_limit_that_falls_ten_times_a_second_is_used() -> None:
    """As a relative limit does when less is published (rule 1.7)."""
    budget, now_ns, sent, allowed = _budget(5_200), START_NS, 0, 0.0
    now_ns, _ = _paced(budget, 2, now_ns)
    limit = 5_200.0
    while limit > 1_200:
        limit *= 0.5 ** (1 / 20)
        budget.change(round(limit), NS_PER_S, now_ns)
        now_ns, more = _paced(budget, 0.1, now_ns)
        sent, allowed = sent + more, allowed + limit / 10
    assert 0.97 * allowed <= sent <= 1.01 * allowed


_STEPS = st.lists(
    st.tuples(st.integers(0, 300 * NS_PER_MS), st.integers(0, 30), st.one_of(st.none(), LIMITS)),
    min_size=1,
    max_size=60,
)


@given(limit=LIMITS, steps=_STEPS)
@settings(max_examples=200)
def test_nothing_is_forgiven_and_nothing_punished_twice(
    limit: int, steps: list[tuple[int, int, int | None]]
) -> None:
    """Messages of one go whenever what counts is below the limit, and only then: rises, falls and
    many changes, up to the width of a slot."""
    budget, now_ns, sent = _budget(limit), START_NS, Sent()
    for gap_ns, wanted, other in steps:
        now_ns += gap_ns
        if other is not None:
            budget.change(other, NS_PER_S, now_ns)
            limit = other
        for _ in range(wanted):
            counts = _counts(sent, now_ns, limit)
            if budget.release_ns(now_ns) > now_ns:
                assert _counts(sent, now_ns, limit, NS_PER_S + SLOT_NS) > limit - 1
                break
            assert counts < limit
            budget.charge(now_ns, 1)
            sent.append((now_ns, 1, limit))
            assert _counts(sent, now_ns, limit) <= limit + 1


@given(
    limit=LIMITS,
    steps=st.lists(
        st.tuples(st.integers(0, 700 * NS_PER_MS), st.integers(1, 900), st.booleans()),
        min_size=1,
        max_size=50,
    ),
)
@settings(max_examples=200)
def test_what_counts_is_the_limit_now_and_one_entry_at_most(
    limit: int, steps: list[tuple[int, int, bool]]
) -> None:
    """Entries of any size, and what they owe, under limits that come and go."""
    budget, now_ns, sent = _budget(limit), START_NS, Sent()
    for gap_ns, amount, changes in steps:
        now_ns += gap_ns
        if changes:
            limit = amount
            budget.change(limit, NS_PER_S, now_ns)
        elif budget.release_ns(now_ns) <= now_ns:
            assert budget.debt == 0
            sent.append((now_ns, amount, limit))
            budget.charge(now_ns, amount)
            assert _counts(sent, now_ns, limit) <= limit + 899
        assert budget.in_window >= min(limit, ceil(_counts(sent, now_ns, limit)))


@given(
    limits=st.lists(LIMITS, min_size=1, max_size=60),
    amounts=st.lists(st.integers(1, 200), min_size=1, max_size=12),
)
def test_changing_back_is_as_if_nothing_happened(limits: list[int], amounts: list[int]) -> None:
    budget = _budget(100)
    for index, amount in enumerate(amounts):
        budget.charge(START_NS + index, amount)
    now_ns = START_NS + len(amounts)
    before = (budget.in_window, budget.debt, budget.release_ns(now_ns))
    for limit in [*limits, 100]:
        budget.change(limit, NS_PER_S, now_ns)
    assert budget.in_window + budget.debt == sum(before[:2])
    if max(limits) <= 100:
        assert (budget.in_window, budget.debt, budget.release_ns(now_ns)) == before


def test_a_large_entry_takes_as_long_under_half_the_limit() -> None:
    """What it owes counts by the same rule: it was accepted under the higher limit."""
    for limit, period in ((500, 5), (1_000, 5), (2_000, 3)):
        budget = _budget(1_000)
        budget.charge(START_NS, 5_000)
        budget.change(limit, NS_PER_S, START_NS + 1)
        assert budget.release_ns(START_NS + 1) <= START_NS + 1 + period * NS_PER_S
        at_ns = budget.release_ns(START_NS + 1)
        assert budget.release_ns(at_ns) == at_ns
        assert at_ns >= START_NS + (period - 1) * NS_PER_S


def test_a_debt_of_a_million_periods_is_skipped_after_a_change_too() -> None:
    budget = _budget(30)
    budget.charge(START_NS, 30_000_001)
    budget.change(3, NS_PER_S, START_NS + 1)
    release_ns = budget.release_ns(START_NS + 1)
    assert release_ns == pytest.approx(START_NS + 1_000_000 * NS_PER_S, rel=1e-6)
    later_ns = budget.release_ns(release_ns)
    assert later_ns - release_ns <= NS_PER_S
    assert budget.release_ns(later_ns) == later_ns


@given(limit=LIMITS, steps=_STEPS, entry=st.integers(1, 500))
@settings(max_examples=100)
def test_the_announced_release_comes(
    limit: int, steps: list[tuple[int, int, int | None]], entry: int
) -> None:
    """Whoever waits until the announced instant goes then, or hears of a later one by no more than
    the rounding of slots."""
    budget, now_ns = _budget(limit), START_NS
    for gap_ns, _, other in steps:
        now_ns += gap_ns
        if other is not None:
            budget.change(other, NS_PER_S, now_ns)
        at_ns = budget.release_ns(now_ns)
        asked = 0
        while at_ns > now_ns:
            now_ns, asked = at_ns, asked + 1
            at_ns = budget.release_ns(now_ns)
        assert asked <= 4
        budget.charge(now_ns, entry)


def test_what_is_given_back_and_forgiven_after_a_change() -> None:
    budget = _budget(10)
    budget.charge(START_NS, 4)
    budget.charge(START_NS + 1, 10)
    budget.change(5, NS_PER_S, START_NS + 2)
    assert (budget.in_window, budget.debt) == (5, 2)
    budget.give_back(START_NS + 3, 10)
    assert (budget.in_window, budget.debt) == (2, 0)
    budget.charge(START_NS + 4, 9)
    budget.forgive_debt(START_NS + 5, START_NS + 4)
    assert (budget.in_window, budget.debt) == (11, 0)
    assert budget.release_ns(START_NS + 5) == START_NS + 4 + NS_PER_S
    assert budget.is_clear(START_NS + 4 + NS_PER_S)
    assert budget._past is None


def test_a_shorter_period_forgives_nothing() -> None:
    budget = _budget(1_000, 10 * NS_PER_S)
    budget.charge(START_NS, 1_000)
    budget.change(100, NS_PER_S, START_NS + 1)
    assert budget.in_window == 1_000
    assert budget.release_ns(START_NS + 1) == START_NS + NS_PER_S


@pytest.mark.parametrize("period_s", [1, 60, 3_600])
def test_memory_is_bounded_where_the_limit_moves_ten_times_a_second(period_s: int) -> None:
    """Where limits had to be joined, what counts is more than it should be, never less."""
    budget, sent, now_ns = _budget(5_000, period_s * NS_PER_S), Sent(), START_NS
    for tick in range(3_000):
        now_ns += NS_PER_S // 10
        limit = 5_000 + (tick * 7_919) % 1_000
        budget.change(limit, period_s * NS_PER_S, now_ns)
        if budget.release_ns(now_ns) <= now_ns:
            budget.charge(now_ns, 3)
            sent.append((now_ns, 3, limit))
        past = budget._past
        assert past is None or len(past._limits) <= LIMITS_MAX
        assert len(budget._amounts) <= SLOTS_PER_PERIOD_MAX + 40
    assert past is not None
    exact = ceil(_counts(sent, now_ns, limit, period_s * NS_PER_S))
    assert exact <= budget.in_window <= exact * 1.2 + 1
    size = sum(map(sys.getsizeof, (past, past._limits, past._amounts)))
    assert size < 1_000


def test_once_the_last_period_knew_one_limit_it_is_a_plain_budget_again() -> None:
    budget = _budget(300)
    now_ns, _ = _paced(budget, 1.5, START_NS)
    budget.change(200, NS_PER_S, now_ns)
    assert budget._past is not None
    now_ns, _ = _paced(budget, 1.1, now_ns)
    assert budget._past is None
    assert budget.in_window == sum(budget._amounts[budget._first :])


def test_the_largest_amounts_are_exact() -> None:
    past = PastLimits(INT64_MAX, INT64_MAX, INT64_MAX)
    past.change(INT64_MAX // 3, NS_PER_S, NS_PER_S)
    assert past.in_window == past.debt == INT64_MAX // 3
    past.change(INT64_MAX, NS_PER_S, NS_PER_S)
    assert past.all_under_present_limit
    assert past.until_room() == (1, 1)
