"""What limits held back of a subscription: the amounts of PIP-406's first form (rule 2.2)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.base.ack_set import FEW_RUNS, AckSet
from headgate.base.units import NS_PER_S
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.engine.harness import Rig

PERMITS = 1_000_000
BODY = b"four"
TYPES = [SubscriptionType.EXCLUSIVE, SubscriptionType.SHARED]


def counts(subscription: Subscription) -> list[list[int]]:
    """Messages and bytes held back by the subscription's, the topic's and the broker's limit."""
    subscription.count_throttling()
    return [list(level) for level in subscription.throttled_dispatch.counts]


def played(
    rig: Rig, kind: SubscriptionType = SubscriptionType.EXCLUSIVE, *, permits: int = PERMITS
) -> Subscription:
    subscription = rig.subscribe()
    rig.consumer(subscription, kind, permits=permits)
    return subscription


@pytest.mark.parametrize("kind", TYPES)
def test_without_delay_nothing_is_held_back(kind: SubscriptionType) -> None:
    rig = Rig(topic_limit=RateLimit(10, 1_000))
    subscription = played(rig, kind)
    rig.publish(10, body=BODY)
    assert counts(subscription) == [[0, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("kind", TYPES)
def test_what_waits_for_the_limit_counts_once(kind: SubscriptionType) -> None:
    """Rule 2.2: 25 may go, 10 go at once, 15 are held back; asking again adds nothing."""
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = played(rig, kind)
    rig.publish(25, body=BODY)
    assert counts(subscription) == [[0, 0], [15, 0], [0, 0]]
    rig.advance(10_000)
    assert subscription.messages_sent == 25
    assert counts(subscription) == [[0, 0], [15, 0], [0, 0]]
    rig.advance(10_000)
    rig.publish(11, body=BODY)
    assert counts(subscription)[1] == [16, 0]


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_are_those_of_the_entries(kind: SubscriptionType) -> None:
    rig = Rig(subscription_limit=RateLimit(None, 40))
    subscription = played(rig, kind)
    for size in (40, 3, 5, 70):
        rig.publish(body=b"x" * size)
    assert counts(subscription) == [[0, 78], [0, 0], [0, 0]]
    rig.advance(20_000)
    assert counts(subscription)[0] == [0, 78]


@pytest.mark.parametrize("kind", TYPES)
def test_only_what_permits_allow_is_held_back(kind: SubscriptionType) -> None:
    """A consumer that asks for little is not kept from the rest by the limit."""
    rig = Rig(topic_limit=RateLimit(10, 40))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, kind, permits=12)
    rig.publish(100, body=BODY)
    assert counts(subscription)[1] == [2, 8]
    subscription.flow(consumer, 5)
    rig.flush()
    assert counts(subscription)[1] == [7, 28]
    rig.advance(60_000)
    assert subscription.messages_sent == 17
    assert counts(subscription)[1] == [7, 28]


def test_each_limit_that_alone_would_hold_it_counts() -> None:
    """Rule 2.3: several that bind at once."""
    rig = Rig(topic_limit=RateLimit(10, None), subscription_limit=RateLimit(10, 40))
    subscription = played(rig)
    rig.set_broker_limit(RateLimit(1_000, None))
    rig.publish(30, body=BODY)
    assert counts(subscription) == [[20, 80], [20, 0], [0, 0]]


def test_what_is_published_while_it_waits_is_held_back() -> None:
    rig = Rig(topic_limit=RateLimit(10, None, 360 * NS_PER_S))
    subscription = played(rig)
    rig.publish(11)
    for _ in range(5):
        rig.advance(10_000)
        rig.publish(3)
    assert counts(subscription)[1] == [16, 0]


@pytest.mark.parametrize("kind", TYPES)
def test_a_repeated_delivery_is_a_separate_attempt(kind: SubscriptionType) -> None:
    """Rule 2.2: once for each delivery attempt."""
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = played(rig, kind)
    rig.publish(10)
    assert counts(subscription)[1] == [0, 0]
    subscription.redeliver(next(iter(subscription.consumers)), None, -1)
    rig.flush()
    assert counts(subscription)[1] == [10, 0]
    rig.advance(5_000)
    assert subscription.messages_sent == 20
    assert counts(subscription)[1] == [10, 0]


@pytest.mark.parametrize("kind", TYPES)
def test_they_outlive_a_reconnect_and_not_an_unload(kind: SubscriptionType) -> None:
    """Rule 2.4: counters belong to the subscription and begin at 0 when its topic is loaded."""
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = played(rig, kind)
    rig.publish(25)
    subscription.remove_consumer(next(iter(subscription.consumers)))
    rig.flush()
    assert counts(subscription)[1] == [15, 0]
    other = SubscriptionType.SHARED if kind is TYPES[0] else TYPES[0]
    rig.consumer(subscription, other, consumer_id=2, permits=PERMITS)
    assert counts(subscription)[1] == [15 + 10, 0]
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.topic = rig.engine.load_topic(rig.topic.name, rig.log)
    again = rig.subscribe()
    assert counts(again) == again.gate.throttled_events == [[0, 0], [0, 0], [0, 0]]
    rig.consumer(again, kind, permits=PERMITS)
    assert counts(again)[1] == [25, 0]


def test_what_is_skipped_makes_room_for_the_next() -> None:
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = played(rig)
    rig.publish(110)
    assert counts(subscription)[1] == [100, 0]
    subscription.skip_to(110)
    rig.flush()
    rig.publish(50)
    assert counts(subscription)[1] == [150, 0]


def test_acknowledged_entries_ahead_are_not_held_back() -> None:
    """After a restart a Shared cursor has holes: what is acknowledged will not be delivered."""
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = rig.subscribe()
    rig.publish(40, body=BODY)
    consumer, _ = rig.consumer(subscription, SubscriptionType.SHARED)
    for ordinal in range(20, 30):
        subscription.ack_entry(consumer, ordinal)
    subscription.flow(consumer, PERMITS)
    rig.flush()
    assert subscription.dispatcher.waiting() == (20, 80)
    assert counts(subscription)[1] == [20, 0]


def test_a_batch_counts_with_all_its_messages() -> None:
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = played(rig)
    rig.publish(3, messages=10)
    assert counts(subscription)[1] == [20, 0]


def test_permits_end_inside_a_batch_that_was_given_back() -> None:
    rig = Rig(topic_limit=RateLimit(None, 12))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SubscriptionType.SHARED, permits=30)
    rig.publish(messages=10, body=b"x" * 12)
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    # Twenty permits: the ten given back (12 bytes) and nothing behind them.
    assert counts(subscription)[1] == [0, 12]
    rig.publish(3, messages=10, body=b"y" * 5)
    assert counts(subscription)[1] == [0, 17]


def test_a_limiter_that_begins_to_hold_during_the_wait_counts() -> None:
    """Rules 2.2 and 2.3: its own limit lets it go, and then the topic's does not."""
    rig = Rig(subscription_limit=RateLimit(10, None), topic_limit=RateLimit(12, None))
    subscription, other = rig.subscribe(), rig.subscribe("other")
    rig.consumer(subscription, permits=PERMITS)
    rig.publish(11)
    assert counts(subscription) == [[1, 0], [0, 0], [0, 0]]
    rig.consumer(other, SubscriptionType.EXCLUSIVE, consumer_id=2, permits=PERMITS)
    rig.advance(1_000)
    events = subscription.gate.throttled_events
    held = counts(subscription)
    for level in range(3):
        assert bool(events[level][0]) == bool(held[level][0])


@pytest.mark.parametrize("level", ["topic", "subscription"])
def test_a_limit_that_is_removed_has_counted_what_it_delayed(level: str) -> None:
    """Rule 2.1: at least one event if anything was delayed, also by the last of its waits."""
    rig = Rig(**{f"{level}_limit": RateLimit(10, None)})  # type: ignore[arg-type]
    subscription = played(rig)
    rig.publish(13)
    rig.advance(900)
    rig.publish(2)
    rig.topic_limit = rig.subscription_limit = None
    rig.engine.reload_limits(rig.topic)
    rig.flush()
    rig.advance(1)
    assert subscription.messages_sent == 15
    index = 0 if level == "subscription" else 1
    assert subscription.gate.throttled_events[index] == [1, 0]
    assert counts(subscription)[index] == [5, 0]


@pytest.mark.parametrize("kind", TYPES)
def test_very_many_acknowledged_runs_are_not_gone_through_for_each_message(
    kind: SubscriptionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand took 75 ms for each FLOW of 12 bytes. The bytes are then an average."""
    rig = Rig(topic_limit=RateLimit(10, None))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, kind, permits=PERMITS)
    count = 2 * FEW_RUNS + 100
    rig.publish(count, body=BODY)
    for ordinal in range(11, count, 2):
        subscription.ack_entry(consumer, ordinal)
    gone_through = 0
    acked_ranges = AckSet.acked_ranges

    def counted(acks: AckSet, stop: int | None = None, start: int = 0) -> Iterator[tuple[int, int]]:
        nonlocal gone_through
        for run in acked_ranges(acks, stop, start):
            gone_through += 1
            yield run

    monkeypatch.setattr(AckSet, "acked_ranges", counted)
    for _ in range(20):
        rig.publish(body=BODY)
        subscription.flow(consumer, 1)
        rig.flush()
    assert gone_through == 0
    messages, size_bytes = subscription.dispatcher.waiting()
    backlog = count + 20 - subscription.done_messages
    assert backlog - 10 <= messages <= backlog, "10 are with the consumer"
    assert size_bytes == len(BODY) * messages
