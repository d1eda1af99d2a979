"""Windows that outlive their subscription."""

from __future__ import annotations

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.limits.retired_gates import EndedGates
from headgate.flow.limits.waiter_gate import WaiterGate

LIMIT = RateLimit(10, None)


def opened(topic: TopicGate, name: str, now_ns: int, *, is_reader: bool) -> WaiterGate:
    """The gate of a subscription that comes (back), as the engine makes it."""
    gate = topic.retired.take(name, now_ns, is_reader=is_reader) or topic.waiter()
    gate.set_limit(LIMIT, now_ns)
    return gate


def room(gate: WaiterGate, now_ns: int) -> int:
    """How many messages go through at once."""
    count = 0
    while gate.request(now_ns) is None:
        gate.charge(now_ns, 1, 1)
        count += 1
    gate.leave(now_ns)
    return count


def test_who_comes_back_by_its_name_finds_its_window() -> None:
    topic = BrokerGate().topic()
    for is_reader in (False, True):
        gate = opened(topic, "s", 0, is_reader=is_reader)
        gate.charge(0, 7, 7)
        topic.retired.keep("s", gate, 0, is_reader=is_reader, is_gone=True)
        again = opened(topic, "s", NS_PER_S // 2, is_reader=False)
        assert room(again, NS_PER_S // 2) == 3
        again.close(NS_PER_S // 2)
    assert len(topic.retired) == 0


def test_another_subscription_begins_with_an_empty_window() -> None:
    topic = BrokerGate().topic()
    gate = opened(topic, "s", 0, is_reader=False)
    assert room(gate, 0) == 10
    topic.retired.keep("s", gate, 0, is_reader=False, is_gone=True)
    assert room(opened(topic, "other", 1, is_reader=False), 1) == 10
    assert room(opened(topic, "reader-1", 1, is_reader=True), 1) == 10


def test_a_new_reader_takes_over_the_window_of_one_that_closed() -> None:
    topic = BrokerGate().topic()
    one, two = (opened(topic, name, 0, is_reader=True) for name in ("reader-1", "reader-2"))
    one.charge(0, 4, 4)
    two.charge(0, 9, 9)
    topic.retired.keep("reader-1", one, 1, is_reader=True, is_gone=True)
    topic.retired.keep("reader-2", two, 2, is_reader=True, is_gone=True)
    newcomers = [opened(topic, f"new-{number}", 3, is_reader=True) for number in range(3)]
    assert [room(gate, 3) for gate in newcomers] == [1, 6, 10]


def test_it_begins_with_its_own_figures() -> None:
    topic = BrokerGate().topic()
    gate = opened(topic, "s", 0, is_reader=False)
    room(gate, 0)
    assert gate.request(NS_PER_MS) is not None
    gate.count_until(100 * NS_PER_MS)
    assert gate.throttled_events[0][0] == 1
    topic.retired.keep("s", gate, 200 * NS_PER_MS, is_reader=False, is_gone=True)
    again = opened(topic, "s", 300 * NS_PER_MS, is_reader=False)
    assert again.throttled_events == [[0, 0], [0, 0], [0, 0]]
    statistics = again.statistics(300 * NS_PER_MS)
    (budget,) = statistics.budgets
    assert (budget.granted, budget.offered, budget.waiting_ns) == (0, 0, 0)
    assert budget.delivered_in_window == 10
    assert statistics.waiters_max == 0


def test_what_counts_no_more_is_not_kept() -> None:
    topic = BrokerGate().topic()
    unused = opened(topic, "unused", 0, is_reader=False)
    topic.retired.keep("unused", unused, 0, is_reader=False, is_gone=True)
    free = topic.waiter()
    free.charge(0, 5, 5)
    topic.retired.keep("free", free, 0, is_reader=False, is_gone=True)
    assert len(topic.retired) == 0
    used = opened(topic, "used", 0, is_reader=False)
    used.charge(0, 1, 1)
    topic.retired.keep("used", used, 0, is_reader=False, is_gone=True)
    assert len(topic.retired) == 1
    assert topic.retired.take("another", NS_PER_S // 2, is_reader=False) is None
    assert len(topic.retired) == 1
    assert topic.retired.take("used", 2 * NS_PER_S, is_reader=False) is None
    assert len(topic.retired) == 0
    assert not topic.waiters


def test_a_debt_is_kept_until_it_is_paid() -> None:
    topic = BrokerGate().topic()
    gate = opened(topic, "s", 0, is_reader=False)
    gate.charge(0, 35, 35)
    topic.retired.keep("s", gate, 0, is_reader=False, is_gone=True)
    again = opened(topic, "s", 2 * NS_PER_S + 1, is_reader=False)
    assert room(again, 2 * NS_PER_S + 1) == 0


def test_gates_of_subscriptions_that_are_gone_are_bounded_over_all_topics() -> None:
    broker = BrokerGate()
    broker.ended = EndedGates(3)
    topics = [broker.topic() for _ in range(2)]
    for number in range(8):
        topic, is_reader = topics[number % 2], number % 3 == 0
        gate = opened(topic, f"s{number}", 0, is_reader=is_reader)
        gate.charge(0, 7, 7)
        topic.retired.keep(f"s{number}", gate, 0, is_reader=is_reader, is_gone=True)
    # Without a bound each would be kept for a period, which may be 68 years.
    assert len(broker.ended) == sum(len(topic.retired) for topic in topics) == 3
    assert sum(len(topic.waiters) for topic in topics) == 3
    assert room(opened(topics[1], "s7", 1, is_reader=False), 1) == 3  # the last ones are known
    assert room(opened(topics[0], "s0", 1, is_reader=False), 1) == 10  # the first is forgotten
    topics[0].close(1)  # its topic is deleted
    assert len(broker.ended) == len(topics[1].retired) == 1


def test_those_of_unloaded_topics_are_all_kept() -> None:
    broker = BrokerGate()
    broker.ended = EndedGates(1)
    topic = broker.topic()
    for number in range(4):
        gate = opened(topic, f"s{number}", 0, is_reader=False)
        gate.charge(0, 7, 7)
        topic.retired.keep(f"s{number}", gate, 0, is_reader=False, is_gone=False)
    for number in range(4):
        assert room(opened(topic, f"s{number}", 1, is_reader=False), 1) == 3
