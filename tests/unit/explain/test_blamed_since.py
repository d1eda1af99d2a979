"""Since when the account has blamed what it blames now."""

from __future__ import annotations

import pytest

from headgate.flow.account.verdict import Verdict
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import FAST, S, judge, restarted


def test_a_limit_holds_since_it_is_what_it_is() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    subscription = broker.subscription(topic)
    broker.limit_topic(topic, 20)
    broker.client(subscription, FAST)
    broker.run(25)
    assert "of 20 msg/s (topic policy) held this subscription for the last 24 s" in (
        judge(broker, subscription).sentence
    )
    broker.limit_topic(topic, 101)
    broker.run(7)
    assert "of 101 msg/s (topic policy) held this subscription for the last 6 s" in (
        judge(broker, subscription).sentence
    )
    # Another level's limit, which holds nobody, changes nothing of that.
    broker.limit_broker(1_000_000)
    broker.run(7)
    found = judge(broker, subscription)
    assert found.diagnosis.window.length_ns < 8 * S
    assert "of 101 msg/s (topic policy) held this subscription for the last 13 s" in found.sentence
    # The backlog is older.
    assert broker.engine.now_ns - (found.diagnosis.backlog_since_ns or 0) > 36 * S


def test_since_when_may_be_longer_than_an_hour() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    broker.publish(topic, 10)
    for _ in range(70):  # something happens each minute, so the hour is full of points
        broker.run(60)
        broker.publish(topic, 1)
    broker.run(5)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.NO_CONSUMER
    assert found.diagnosis.backlog_since_ns is not None
    assert found.diagnosis.verdict_since_ns is not None
    assert broker.engine.now_ns - found.diagnosis.backlog_since_ns >= 70 * 60 * S
    known_s = (broker.engine.now_ns - found.diagnosis.verdict_since_ns) / S
    assert 55 * 60 <= known_s <= 65 * 60
    assert "connected for at least " in found.sentence


def test_a_backlog_that_stood_before_the_broker_looked_counts_by_its_age() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    broker.publish(topic, 10)
    broker.run(30)
    subscription = broker.subscription(topic)
    subscription.reset(0)
    broker.run(1)
    found = judge(broker, subscription)
    assert found.diagnosis.has_backlog is True
    assert found.diagnosis.backlog_since_ns == pytest.approx(broker.engine.now_ns - 31 * S, abs=S)


def test_a_backlog_that_drains_began_when_it_began() -> None:
    """The oldest message of now came later than the oldest at first."""
    broker = VirtualBroker()
    topic = broker.topic("t", 10)
    broker.run(60)
    began_ns = broker.engine.now_ns - 60 * S
    subscription = broker.subscription(topic)
    subscription.reset(0)
    broker.client(subscription, 20)
    seen = set()
    for _ in range(3):
        broker.run(10)
        found = judge(broker, subscription)
        assert found.diagnosis.has_backlog is True
        seen.add(found.diagnosis.backlog_since_ns)
    # The history notes the subscription a few seconds late, when it has drained a little.
    assert [*seen] == [pytest.approx(began_ns, abs=3 * S)]


@pytest.mark.parametrize("seconds", [12, 63, 150])
def test_after_a_restart_it_is_at_least_as_long_as_the_broker_looks(
    seconds: int,
) -> None:
    """What went on while clients came back is no beginning: the backlog is older."""
    broker, subscription = restarted(limit=20)
    broker.run(seconds)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_SUBSCRIPTION
    held = found.sentence.partition(" held this subscription for ")[2]
    assert held.startswith("at least "), found.sentence
    since_s = (broker.engine.now_ns - (found.diagnosis.verdict_since_ns or 0)) / S
    known_s = (broker.engine.now_ns - found.diagnosis.known_since_ns) / S
    assert seconds - 3 <= since_s <= known_s == pytest.approx(seconds + 3, abs=1.5)
    assert found.diagnosis.backlog_since_ns is not None
    assert broker.engine.now_ns - found.diagnosis.backlog_since_ns > 240 * S


def test_what_began_after_the_restart_began_then() -> None:
    broker, subscription = restarted(back_s=0.0)
    client = broker.client(subscription, 100)
    broker.run(60)
    broker.limit_topic(subscription.topic, 5)
    broker.run(120)
    found = judge(broker, subscription)
    assert client is not None
    assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_TOPIC
    assert "at least" not in found.sentence


@pytest.mark.parametrize("held_s", [45, 83, 200])
def test_since_when_is_true_where_the_history_is_coarse(held_s: int) -> None:
    """What held before, in the same coarse step, is not counted to it."""
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 50), limit=20)
    broker.run(37)
    broker.client(subscription, FAST)
    broker.run(held_s)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_SUBSCRIPTION
    assert found.diagnosis.verdict_since_ns is not None
    since_s = (broker.engine.now_ns - found.diagnosis.verdict_since_ns) / S
    assert since_s == pytest.approx(held_s, abs=1.5)
