"""What a subscription has done is counted exactly, and for no more than what changed."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.ack_set import AckSet
from headgate.engine.consumer import Consumer
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from tests.unit.engine.harness import FakeLog, FakePort, Rig

ENTRIES = 60
QUOTA = Quota(QuotaType.SIZE, 1, QuotaPolicy.EVICTION, "topic policy")
ordinals = st.one_of(st.integers(20, 25), st.integers(0, ENTRIES + 2))
SINGLE, MANY = ["ack", "messages", "messages"], ["through", "skip", "evict", "trim", "reset"]
kinds = st.sampled_from(SINGLE * 5 + MANY)
moves = st.lists(st.tuples(kinds, ordinals, st.integers(0, 7)), max_size=30)


class CountingLog(FakeLog):
    """Counts how often it is asked."""

    asked = 0

    def messages_before(self, ordinal: int) -> int:
        self.asked += 1
        return super().messages_before(ordinal)


class CountingAcks(AckSet):
    """Counts how often it is asked for the next entry."""

    asked = 0

    def next_unacked(self, from_ordinal: int, end: int) -> int:
        self.asked += 1
        return super().next_unacked(from_ordinal, end)


def move(
    subscription: Subscription, consumer: Consumer, kind: str, ordinal: int, mask: int
) -> None:
    if kind == "ack":
        subscription.ack_entry(consumer, ordinal)
    elif kind == "messages":
        size = 1 + ordinal % 3
        subscription.ack_messages(consumer, ordinal, mask % (1 << size))
    elif kind == "through":
        subscription.ack_through(consumer, ordinal)
    elif kind == "skip":
        subscription.skip_messages(ordinal)
    elif kind == "evict":
        before = subscription.done_messages, subscription.done_bytes
        messages, size = subscription.evict_to(ordinal, QUOTA)
        assert before[0] + messages == subscription.done_messages
        assert before[1] + size == subscription.done_bytes
    elif kind == "trim":
        log = subscription.topic.log
        log.first = max(log.first, min(ordinal, log.end))
        subscription.trimmed()
    else:
        subscription.remove_consumer(consumer)
        subscription.reset(ordinal, mask % ((2 << ordinal % 3) - 1))
        subscription.add_consumer(consumer, SubscriptionType.EXCLUSIVE)


@settings(max_examples=200, deadline=None)
@given(moves)
def test_what_is_done_is_what_the_acknowledgements_say(
    work: list[tuple[str, int, int]],
) -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    for number in range(ENTRIES):
        rig.publish(messages=1 + number % 3, body=b"x" * (number % 7))
    log = rig.log
    for kind, ordinal, mask in work:
        acked_before, done_before = subscription.acked_messages, subscription.done_messages
        move(subscription, consumer, kind, ordinal, mask)
        acks = subscription.acks
        done = [o for o in range(ENTRIES) if o < log.first or acks.is_acked(o)]
        partly = sum(acks.partly_acked(o) for o in range(log.first, ENTRIES))
        assert subscription.done_entries == len(done)
        assert subscription.done_messages == sum(log.counts[o] for o in done) + partly
        assert subscription.done_bytes == sum(len(log.bodies[o]) for o in done)
        if kind in ("ack", "messages", "through"):
            acked = subscription.acked_messages - acked_before
            assert acked == subscription.done_messages - done_before
    recovered = AckSet.from_bytes(subscription.acks.to_bytes())
    again = rig.topic.add_subscription("again", recovered, cursor_id=2)
    assert again.backlog_messages == subscription.backlog_messages
    assert again.backlog_bytes == subscription.backlog_bytes
    assert again.backlog_entries == subscription.backlog_entries
    assert again.oldest_unacked_ms() == subscription.oldest_unacked_ms()


@given(st.sets(st.integers(0, 39)), st.integers(0, 45))
def test_skipping_counts_only_what_is_unacknowledged(acked: set[int], count: int) -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    rig.publish(40)
    for ordinal in acked:
        subscription.ack_entry(consumer, ordinal)
    owed = [ordinal for ordinal in range(40) if ordinal not in acked]
    assert subscription.skip_messages(count) == min(count, len(owed))
    assert [o for o in range(40) if not subscription.acks.is_acked(o)] == owed[count:]


def with_holes(acks: AckSet) -> tuple[Rig, CountingLog, Subscription, Consumer]:
    """A subscription that acknowledged every other of 400 entries, the first not."""
    rig = Rig()
    log = CountingLog(2)
    rig.topic = rig.engine.load_topic(rig.topic.name, log)
    rig.log = log
    rig.producer = Producer(1, "p", FakePort())
    rig.topic.add_producer(rig.producer)
    rig.publish(400)
    subscription = rig.topic.add_subscription("s", acks, cursor_id=1)
    consumer, _ = rig.consumer(subscription)
    for ordinal in range(1, 400, 2):
        subscription.ack_entry(consumer, ordinal)
    log.asked = 0
    return rig, log, subscription, consumer


def test_holes_above_a_cumulative_acknowledgement_cost_nothing() -> None:
    _, log, subscription, consumer = with_holes(AckSet())
    for ordinal in (2, 4, 6):
        subscription.ack_through(consumer, ordinal)
    assert log.asked <= 3 * 5
    assert subscription.done_entries == 8 + 196


def test_holes_below_a_cumulative_acknowledgement_of_nearly_all_cost_nothing() -> None:
    _, log, subscription, consumer = with_holes(AckSet())
    subscription.ack_through(consumer, 397)
    assert log.asked <= 5
    assert subscription.done_entries == 399


def test_skipping_takes_no_step_for_each_entry() -> None:
    acks = CountingAcks()
    _, _, subscription, _ = with_holes(acks)
    acks.asked = 0
    assert subscription.skip_messages(100) == 100
    assert acks.asked == 0
    assert acks.mark_delete == 199
