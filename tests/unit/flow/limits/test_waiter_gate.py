"""One subscription at the gate: what it waits for, what is counted, how it gives up its turn."""

from __future__ import annotations

import pytest

from headgate.base.units import NS_PER_S
from headgate.flow.limits.gate import BrokerGate
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit, Refusal
from tests.unit.flow.driver import START_NS, Driver


def test_the_one_that_releases_last_is_named_and_each_is_counted() -> None:
    topic = BrokerGate().topic()
    gate = topic.waiter()
    topic.set_limit(RateLimit(10, None), 0)
    gate.set_limit(RateLimit(None, 100), 0)
    gate.request(0)
    gate.charge(0, 25, 120)
    refusal = gate.request(0)
    assert refusal == Refusal(Level.TOPIC, Dimension.MESSAGES, 2 * NS_PER_S)
    assert gate.cause(0) == refusal
    gate.count_until(3 * NS_PER_S)
    assert gate.throttled_events == [[0, 1], [2, 0], [0, 0]]


def test_how_late_its_wait_ended_is_reported_once_and_of_its_cause_alone() -> None:
    topic = BrokerGate().topic()
    topic.set_limit(RateLimit(100, None), 0)
    gate = topic.waiter()
    gate.set_limit(RateLimit(None, 1_000_000), 0)
    gate.request(0)
    gate.charge(0, 100, 100)
    assert gate.request(0) is not None
    broker, due_ns = topic.broker, NS_PER_S
    assert gate.late_ns(gate.cause(0)) == 0
    late_ns = due_ns + NS_PER_S // 2
    assert broker.pop_ready(late_ns) is gate
    cause = gate.cause(late_ns)
    assert cause is not None
    assert cause.level is Level.TOPIC
    # A slice of 8 ms was there when it was due, and 20 ms are caught up.
    assert gate.late_ns(cause) == (500 + 8 - 20) * NS_PER_S // 1_000
    assert gate.late_ns(cause) == 0


def test_levels_that_refuse_alike_name_the_inner_one() -> None:
    driver = Driver()
    sender = driver.sender("t/a", wanted=None)
    for node in (sender.gate, driver.topic("t"), driver.broker):
        node.set_limit(RateLimit(500, None), START_NS)
    driver.run(3.3)
    cause = sender.gate.cause(driver.now_ns)
    assert cause is not None
    assert cause.level is Level.SUBSCRIPTION


def test_events_need_delay_and_count_once_a_period() -> None:
    driver = Driver()
    sender = driver.sender("t/a", wanted=500)
    sender.gate.set_limit(RateLimit(500, None), START_NS)
    driver.run(2)
    assert sender.gate.throttled_events == [[0, 0], [0, 0], [0, 0]]
    sender.wanted = None
    driver.run(10)
    sender.gate.count_until(driver.now_ns)
    assert sender.gate.throttled_events == [[10, 0], [0, 0], [0, 0]]
    sender.gate.count_until(driver.now_ns)
    assert sender.gate.throttled_events[0][0] == 10


@pytest.mark.parametrize("level", [Level.TOPIC, Level.BROKER])
def test_a_limit_that_appears_and_delays_nobody_is_no_event(level: Level) -> None:
    """Somebody waits for another limit when it is set: that wait was none of its making."""
    driver = Driver()
    sender = driver.sender("t/a", wanted=None)
    sender.gate.set_limit(RateLimit(200, None), START_NS)
    driver.run(2.5)
    node = driver.topic("t") if level is Level.TOPIC else driver.broker
    node.set_limit(RateLimit(5_000, 5_000_000), driver.now_ns)
    cause = sender.gate.cause(driver.now_ns)
    assert cause is not None
    assert cause.level is Level.SUBSCRIPTION
    driver.run(2)
    sender.gate.count_until(driver.now_ns)
    assert sender.gate.throttled_events[level] == [0, 0]


def test_a_waiter_without_its_entry_blocks_nobody_and_keeps_its_turn() -> None:
    topic = BrokerGate().topic()
    topic.set_limit(RateLimit(10, None), 0)
    slow, other = topic.waiter("slow"), topic.waiter("other")
    gates = topic.broker
    slow.request(0)
    slow.charge(0, 10, 0)
    assert slow.request(1) is not None
    assert other.request(1) is not None
    now_ns = gates.next_wake_ns() or 0
    assert gates.pop_ready(now_ns) is slow
    slow.defer(now_ns)
    assert gates.pop_ready(now_ns) is other
    other.charge(now_ns, 1, 0)
    assert other.request(now_ns) is not None
    later_ns = gates.next_wake_ns() or 0
    assert slow.request(later_ns) is None or gates.pop_ready(later_ns) is slow
    slow.charge(later_ns, 1, 0)
    assert slow.request(later_ns) is not None


def test_a_claim_given_up_hands_the_turn_on() -> None:
    topic = BrokerGate().topic()
    topic.set_limit(RateLimit(1, None), 0)
    first, second = topic.waiter(), topic.waiter()
    first.request(0)
    first.charge(0, 1, 0)
    assert first.request(0) is not None
    assert second.request(0) is not None
    assert topic.broker.pop_ready(NS_PER_S) is first
    first.leave(NS_PER_S)
    assert topic.broker.pop_ready(NS_PER_S) is second
