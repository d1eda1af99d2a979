"""Timers of which tenants take turns."""

from __future__ import annotations

from headgate.flow.limits.fair_timers import TIMERS_MIN, FairTimers


class Node:
    def __init__(self, tenant: str) -> None:
        self.alarm = 0
        self.tenant = tenant


def test_the_many_timers_of_one_tenant_hold_up_none_of_another() -> None:
    timers: FairTimers[Node] = FairTimers()
    many = [Node("acme") for _ in range(1_000)]
    few = [Node("globex"), Node("globex")]
    for at_ns, node in enumerate(many):
        timers.arm(node, at_ns)
    for node in few:
        timers.arm(node, 2_000)
    assert timers.pop_due(1_999) is many[0]
    assert [timers.pop_due(2_000) for _ in range(4)] == [many[1], few[0], many[2], few[1]]
    assert [timers.pop_due(2_000) for _ in range(997)] == many[3:]
    assert timers.pop_due(2_000) is None
    assert len(timers) == 0


def test_of_one_tenant_the_earliest_is_first() -> None:
    timers: FairTimers[Node] = FairTimers()
    late, early, same = (Node("acme") for _ in range(3))
    timers.arm(late, 9)
    assert timers.first_ns() == 9
    timers.arm(early, 5)
    timers.arm(same, 5)
    assert timers.first_ns() == 5
    assert timers.pop_due(4) is None
    assert [timers.pop_due(9) for _ in range(4)] == [early, same, late, None]
    assert timers.first_ns() is None


def test_what_is_left_of_those_that_are_due_is_due_at_once() -> None:
    timers: FairTimers[Node] = FairTimers()
    nodes = [Node("acme"), Node("acme"), Node("globex")]
    for at_ns, node in enumerate(nodes, 1):
        timers.arm(node, at_ns)
    assert timers.pop_due(3) is nodes[0]
    assert timers.first_ns() in {2, 3}
    assert {timers.pop_due(3), timers.pop_due(3)} == set(nodes[1:])
    timers.arm(nodes[0], 7)
    timers.arm(nodes[2], 6)
    assert timers.first_ns() == 6


def test_a_timer_that_was_set_anew_or_ended_counts_no_more() -> None:
    timers: FairTimers[Node] = FairTimers()
    one, two = Node("acme"), Node("globex")
    timers.arm(one, 1)
    timers.arm(one, 8)
    timers.arm(two, 2)
    two.alarm = 0
    assert timers.first_ns() == 8
    assert timers.pop_due(7) is None
    assert timers.pop_due(8) is one
    assert one.alarm == 0


def test_timers_that_nobody_needs_are_few() -> None:
    timers: FairTimers[Node] = FairTimers()
    nodes = [Node(f"tenant-{number}") for number in range(20)]
    for at_ns in range(10_000, 0, -1):
        timers.arm(nodes[at_ns % 20], at_ns)
    assert len(timers) <= TIMERS_MIN
    assert len(timers._heads) <= TIMERS_MIN
    assert [timers.pop_due(20) for _ in range(21)] == [*nodes[1:], nodes[0], None]
