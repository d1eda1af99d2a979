"""The report on all limits."""

from __future__ import annotations

import asyncio

from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import FAST, name


def test_the_limits_that_hold_come_first() -> None:
    broker = VirtualBroker()
    for local, limit in (("idle", 1_000), ("tight", 10), ("tighter", 5)):
        topic = broker.topic(name(local), 100)
        broker.limit_topic(topic, limit)
        broker.client(broker.subscription(topic), FAST)
    broker.client(broker.subscription(broker.topic(name("free"), 100), limit=20), FAST)
    broker.limit_broker(1_000_000)
    broker.run(20)
    report = asyncio.run(broker.observer.explain_limits(10))
    assert report["limitsTotal"] == 5
    found = [(limit["level"], limit["subject"].partition("shop/")[2]) for limit in report["limits"]]
    assert set(found[:3]) == {
        ("topic", "tight"),
        ("topic", "tighter"),
        ("subscription", "free / s"),
    }
    assert set(found[3:]) == {("topic", "idle"), ("broker", "")}
    assert [limit["waiters"] for limit in report["limits"]] == [1, 1, 1, 0, 0]
    assert report["limits"][0]["budgets"][0]["source"]


def test_as_many_as_asked_for() -> None:
    broker = VirtualBroker()
    for at in range(5):
        broker.limit_topic(broker.topic(name(f"t{at}")), 10)
    report = asyncio.run(broker.observer.explain_limits(2))
    assert (report["limitsTotal"], len(report["limits"])) == (5, 2)


def test_without_limits_there_are_none() -> None:
    report = asyncio.run(VirtualBroker().observer.explain_limits(10))
    assert (report["limitsTotal"], report["limits"]) == (0, [])
