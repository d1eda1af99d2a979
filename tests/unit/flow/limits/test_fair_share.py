"""Whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.units import NS_PER_S
from headgate.flow.limits.budget import Budget
from headgate.flow.limits.fair_share import SHARE_UNIT_BITS, FairQueue, share_of
from headgate.flow.limits.rate_limit import Dimension, Level


@dataclass
class _Waiter:
    name: str
    ticket: int = 0


def _queue(*shares: int) -> tuple[FairQueue[_Waiter], list[_Waiter]]:
    queue: FairQueue[_Waiter] = FairQueue()
    waiters = [_Waiter(f"w{index}", index + 1) for index in range(len(shares))]
    for share, waiter in zip(shares, waiters, strict=True):
        queue.push(share, waiter.ticket, waiter)
    return queue, waiters


def test_a_share_is_the_larger_part_of_the_limits() -> None:
    budgets = [
        Budget(10, NS_PER_S, Level.TOPIC, Dimension.MESSAGES, 0),
        Budget(1000, NS_PER_S, Level.TOPIC, Dimension.BYTES, 0),
    ]
    assert share_of(budgets, 5, 100) == (1 << SHARE_UNIT_BITS) // 2
    assert share_of(budgets, 1, 2000) == 2 << SHARE_UNIT_BITS
    assert share_of([], 1, 1) == 0


def test_the_smallest_goes_next_and_ties_in_order() -> None:
    queue, (first, second, third) = _queue(5, 3, 3)
    assert queue.minimum() == 3
    assert [queue.pop() for _ in range(4)] == [second, third, first, None]


def test_a_newcomer_starts_where_the_last_was_served() -> None:
    queue, _ = _queue(5)
    queue.pop()
    assert queue.minimum() == 5
    queue.served(9)
    assert queue.minimum() == 9
    queue.served(4)
    assert queue.minimum() == 9
    queue.reset()
    assert queue.minimum() == 0


def test_who_goes_before_whom() -> None:
    queue, _ = _queue(5)
    assert [queue.precedes(share) for share in (4, 5, 6)] == [False, True, True]
    queue.pop()
    assert not queue.precedes(100)


def test_who_leaves_is_passed_over() -> None:
    queue, waiters = _queue(*range(100))
    for waiter in waiters[:99]:
        waiter.ticket = 0
        queue.forget()
    assert queue.waiting == 1
    assert list(queue.waiters()) == [waiters[99]]
    assert queue.minimum() == 99
    assert queue.pop() is waiters[99]
    assert queue.pop() is None


def test_a_restart_makes_all_equal_and_keeps_the_order_without_visiting_anybody() -> None:
    queue, (first, second, third) = _queue(5, 3, 9)
    queue.restart()
    assert queue.base == queue.minimum() == 9
    newcomer = _Waiter("n", 4)
    queue.push(queue.minimum(), newcomer.ticket, newcomer)
    assert queue.precedes(queue.base)
    assert [queue.pop() for _ in range(4)] == [second, first, third, newcomer]
    assert queue.minimum() == 9
    queue.reset()
    assert queue.minimum() == queue.base == 0
