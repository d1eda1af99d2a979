"""A bound on what acknowledgements take: what counts, and who is refused first."""

from __future__ import annotations

from headgate.base.ack_set import AckSet
from headgate.base.names import TopicName, parse_topic
from headgate.engine.ack_budget import MEASURED_MAX, AckBudget


class _Topic:
    def __init__(self, tenant: str) -> None:
        self.name: TopicName = parse_topic(f"persistent://{tenant}/namespace/topic")


class _Holder:
    """A subscription of a tenant that has acknowledged some entries out of order."""

    def __init__(self, tenant: str, entries: int = 0) -> None:
        self.name, self.removed, self.topic = "s", False, _Topic(tenant)
        self.acks = AckSet()
        for ordinal in range(1, entries + 1):
            self.acks.ack(2 * ordinal)


def _budget(holders: list[_Holder], bytes_max: int) -> AckBudget:
    budget = AckBudget(lambda acks: acks.holes_count, bytes_max)
    for holder in holders:
        budget.measure(holder)
    return budget


def test_the_size_is_that_of_its_kind() -> None:
    budget = _budget([_Holder("a", 3), _Holder("b", 4)], 100)
    assert budget.held_bytes == 7


def test_at_the_bound_those_that_have_most_are_refused() -> None:
    large, small = _Holder("a", 10), _Holder("b", 2)
    budget = _budget([large, small], 11)
    assert not budget.has_room(large)
    assert budget.has_room(small)
    assert not _budget([large, small], 6).has_room(small)  # at twice the bound


def test_all_are_measured_again_in_the_end() -> None:
    holders = [_Holder("a", 1) for _ in range(3 * MEASURED_MAX)]
    budget = _budget(holders, 2 * MEASURED_MAX)
    for holder in holders:
        holder.acks.ack_through(2)
    assert [budget.has_room(holders[-1]) for _ in range(2)] == [False, True]
    assert budget.held_bytes == MEASURED_MAX


def test_a_removed_one_counts_nothing() -> None:
    holder = _Holder("a", 5)
    budget = _budget([holder], 1)
    holder.removed = True
    budget.measure(holder)
    assert budget.held_bytes == 0
