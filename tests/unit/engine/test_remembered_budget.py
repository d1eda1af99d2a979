"""What Shared subscriptions remember of entries is charged to their consumers, or has a bound."""

from __future__ import annotations

from headgate.base.work_units import FORGOTTEN_BYTES_PER_UNIT
from headgate.engine.dispatch_shared import NOTED_BYTES, QUEUED_BYTES, SharedDispatcher
from headgate.engine.remembered_budget import RememberedBudget
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import START_MS, Rig

SHARED = SubscriptionType.SHARED
ENTRIES = 20


def rig_with(bytes_max: int) -> Rig:
    rig = Rig()
    rig.engine.remembered = RememberedBudget(bytes_max)
    for name in ("first", "second", "third"):
        rig.subscribe(name)
    rig.publish(ENTRIES)
    return rig


def given_back(rig: Rig, name: str) -> Subscription:
    """A consumer gets all entries, gives them back, and leaves."""
    subscription = rig.topic.subscriptions[name]
    consumer, _ = rig.consumer(subscription, SHARED, permits=ENTRIES)
    rig.flush()
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    subscription.remove_consumer(consumer)
    return subscription


def counts(subscription: Subscription) -> int:
    return len(subscription.dispatcher.redelivery_counts)


def test_what_waits_for_redelivery_and_its_counts_are_measured() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.consumer(subscription, SHARED, consumer_id=1)  # it asks for nothing
    leaver, _ = rig.consumer(subscription, SHARED, consumer_id=2, permits=ENTRIES)
    rig.publish(ENTRIES)
    dispatcher = subscription.dispatcher
    assert dispatcher.remembered_bytes == 0
    subscription.redeliver(leaver, None, -1)
    assert dispatcher.forgotten_units() == 0  # there are others
    subscription.remove_consumer(leaver)
    rig.flush()
    assert dispatcher.remembered_bytes == ENTRIES * (QUEUED_BYTES + NOTED_BYTES)
    assert dispatcher.forgotten_units() == dispatcher.remembered_bytes // FORGOTTEN_BYTES_PER_UNIT


def test_since_when_delivered_entries_are_due_is_measured() -> None:
    rig = Rig()
    rig.engine.due_time_of = lambda _: START_MS
    rig.topic.delays_stop = 1 << 40
    subscription = rig.subscribe()
    rig.consumer(subscription, SHARED, permits=ENTRIES)
    rig.publish(ENTRIES)
    assert subscription.dispatcher.remembered_bytes == ENTRIES * NOTED_BYTES


def test_what_nobody_is_charged_with_is_forgotten_beyond_the_bound() -> None:
    one_bytes = ENTRIES * NOTED_BYTES
    rig = rig_with(2 * one_bytes)
    kept = [counts(given_back(rig, name)) for name in ("first", "second", "third")]
    assert kept == [ENTRIES, ENTRIES, 0]
    assert rig.engine.remembered.held_bytes == 2 * one_bytes
    # One that has consumers again is charged to them, and makes room.
    subscription = rig.topic.subscriptions["first"]
    rig.consumer(subscription, SHARED)
    assert rig.engine.remembered.held_bytes == one_bytes
    assert counts(given_back(rig, "third")) == ENTRIES


def test_what_a_cursor_passed_meanwhile_makes_room() -> None:
    rig = rig_with(ENTRIES * NOTED_BYTES)
    first = given_back(rig, "first")
    first.skip_to(ENTRIES)
    rig.flush()
    assert counts(given_back(rig, "second")) == ENTRIES


def test_an_ended_subscription_remembers_nothing() -> None:
    rig = rig_with(1 << 30)
    given_back(rig, "first")
    rig.topic.remove_subscription("first")
    assert rig.engine.remembered.held_bytes == 0


def test_delivered_entries_that_were_delayed_are_forgotten_as_by_a_restart() -> None:
    rig = rig_with(0)
    rig.engine.due_time_of = lambda _: START_MS
    rig.topic.delays_stop = 1 << 40
    subscription = rig.topic.subscriptions["first"]
    consumer, port = rig.consumer(subscription, SHARED, permits=ENTRIES)
    rig.flush()
    dispatcher = subscription.dispatcher
    assert isinstance(dispatcher, SharedDispatcher)
    assert dispatcher.delayed is not None
    assert len(dispatcher.delayed.due_since) == ENTRIES
    subscription.remove_consumer(consumer)
    assert dispatcher.delayed.delivered_count == 0
    _, port = rig.consumer(subscription, SHARED, permits=ENTRIES)
    rig.flush()
    assert port.ordinals == list(range(ENTRIES))
