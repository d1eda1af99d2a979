"""dispatchThrottlingOnNonBacklogConsumerEnabled=false: only who is behind is limited (law 1.9)."""

from __future__ import annotations

from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.engine.harness import Rig

TEN = RateLimit(10, None)
PERMITS = 1_000_000


def rig_that_spares() -> Rig:
    rig = Rig(topic_limit=TEN)
    rig.engine.throttle_spares_caught_up = True
    return rig


def caught_up(rig: Rig) -> Subscription:
    subscription = rig.subscribe()
    rig.consumer(subscription, permits=PERMITS)
    return subscription


def test_who_is_caught_up_is_not_limited() -> None:
    """Rule 1.9."""
    rig = rig_that_spares()
    subscription = caught_up(rig)
    rig.publish(500)
    assert subscription.messages_sent == 500
    assert subscription.gate.throttled_events[1] == [0, 0]


def test_by_default_everybody_is_limited() -> None:
    rig = Rig(topic_limit=TEN)
    subscription = caught_up(rig)
    rig.publish(500)
    assert subscription.messages_sent == 10


def test_a_backlog_is_limited_until_it_is_gone() -> None:
    """Rule 1.9."""
    rig = rig_that_spares()
    subscription = rig.subscribe()
    rig.publish(25)
    rig.consumer(subscription, permits=PERMITS)
    assert subscription.messages_sent == 10
    rig.advance(3_000)
    assert subscription.messages_sent == 25
    rig.publish(500)
    assert subscription.messages_sent == 525


def test_who_falls_behind_is_limited_again() -> None:
    """Rule 1.9: beyond managedLedgerCursorBackloggedThreshold entries."""
    rig = rig_that_spares()
    rig.engine.limits.backlogged_entries_min = 100
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=5)
    rig.publish(5)
    rig.publish(100)
    assert subscription.gate.exempt
    subscription.flow(consumer, 1)
    rig.flush()
    assert subscription.messages_sent == 6
    rig.publish(2)
    subscription.flow(consumer, PERMITS)
    rig.flush()
    assert subscription.messages_sent == 16
    assert not subscription.gate.exempt


def test_who_comes_back_to_a_backlog_is_limited() -> None:
    rig = rig_that_spares()
    subscription = caught_up(rig)
    rig.publish(20)
    subscription.remove_consumer(next(iter(subscription.consumers)))
    rig.flush()
    rig.publish(50)
    sent = subscription.messages_sent
    rig.consumer(subscription, permits=PERMITS, consumer_id=2)
    assert subscription.messages_sent == sent + 10


def test_what_is_given_back_is_delivered_unlimited_to_who_is_caught_up() -> None:
    rig = rig_that_spares()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SubscriptionType.SHARED, permits=PERMITS)
    rig.publish(50)
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    assert subscription.messages_sent == 100


def test_the_flag_acts_at_once_both_ways() -> None:
    """Rule 1.9: dynamic in fact."""
    rig = Rig(topic_limit=TEN)
    subscription = caught_up(rig)
    rig.publish(4)
    rig.engine.throttle_spares_caught_up = True
    rig.engine.reload_limits(rig.topic)
    rig.publish(300)
    assert subscription.messages_sent == 304
    rig.engine.throttle_spares_caught_up = False
    rig.engine.reload_limits(rig.topic)
    rig.publish(300)
    # What went free was charged to nobody: the window has what was charged before.
    assert subscription.messages_sent == 304 + 6


def test_who_is_spared_does_not_need_the_topics_relative_limit() -> None:
    """Rule 1.7: k counts those who are not exempt."""
    rig = Rig(topic_limit=RateLimit(10, None, relative=True))
    rig.engine.throttle_spares_caught_up = True
    for name in ("near", "far"):
        subscription = rig.subscribe(name)
        if name == "far":
            rig.publish(5_000)
            rig.advance(120_000)
        rig.consumer(subscription, permits=PERMITS)
    for _ in range(200):
        rig.publish(1)
        rig.advance(10)
    assert rig.topic.gate.budgets[0].limit == 110


def test_what_is_given_back_may_make_a_backlog() -> None:
    """Rule 1.9: it waits for delivery like anything else."""
    rig = rig_that_spares()
    rig.engine.limits.backlogged_entries_min = 100
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SubscriptionType.SHARED, permits=PERMITS)
    for _ in range(3):
        rig.publish(50)
    assert subscription.messages_sent == 150
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    assert subscription.messages_sent == 160
    assert not subscription.gate.exempt
