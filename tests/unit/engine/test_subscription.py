"""The cursor arithmetic of a subscription, and what moves it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet
from headgate.base.errors import InvariantError
from headgate.engine.errors import ConsumerBusyError, SubscriptionBusyError, TopicFencedError
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import Cell
from headgate.flow.limits.gate_node import NO_STATISTICS
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from tests.unit.engine.harness import Rig

SHARED = SubscriptionType.SHARED


def test_backlog_counts_entries_messages_and_bytes() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(2, messages=10, body=b"12345")
    assert (subscription.backlog_entries, subscription.backlog_messages) == (2, 20)
    assert subscription.backlog_bytes == 10
    assert rig.topic.backlog_bytes() == 10


def test_a_subscription_at_the_end_owes_nothing_older() -> None:
    rig = Rig()
    rig.publish(3)
    subscription = rig.subscribe(at=3)
    assert subscription.backlog_messages == 0
    assert subscription.account.cell is Cell.CAUGHT_UP


def test_single_acks_leave_holes_that_backlog_knows() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(4, messages=3)
    subscription.ack_entry(consumer, 2)
    assert subscription.acks.mark_delete == -1
    assert subscription.backlog_messages == 9
    subscription.ack_entry(consumer, 2)
    assert subscription.backlog_messages == 9
    assert subscription.acked_messages == 3
    subscription.ack_entry(consumer, 0)
    subscription.ack_entry(consumer, 1)
    assert subscription.acks.mark_delete == 2
    assert subscription.backlog_messages == 3


def test_acks_of_what_is_not_stored_are_ignored() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(1)
    subscription.ack_entry(consumer, 1)
    subscription.ack_entry(consumer, -5)
    assert subscription.backlog_entries == 1
    assert rig.effects.moved == []


def test_cumulative_ack_swallows_holes() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=10)
    rig.publish(5, messages=2)
    subscription.ack_entry(consumer, 3)
    subscription.ack_through(consumer, 2)
    assert subscription.acks.mark_delete == 3
    assert subscription.backlog_messages == 2
    assert subscription.acked_messages == 8
    subscription.ack_through(consumer, 99)
    assert subscription.backlog_messages == 0


def test_moved_acks_are_handed_over_for_storing_once() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=10)
    rig.publish(3)
    subscription.ack_entry(consumer, 0)
    subscription.ack_entry(consumer, 1)
    assert rig.effects.moved == [subscription]
    subscription.acks_dirty = False
    subscription.ack_entry(consumer, 2)
    assert rig.effects.moved == [subscription, subscription]


def test_a_readers_acks_are_not_stored() -> None:
    rig = Rig()
    reader = rig.subscribe(durable=False)
    consumer, _ = rig.consumer(reader, permits=10)
    rig.publish(2)
    reader.ack_through(consumer, 1)
    assert rig.effects.moved == []


def test_a_reader_goes_with_its_consumer() -> None:
    rig = Rig()
    reader = rig.subscribe(durable=False)
    consumer, _ = rig.consumer(reader)
    reader.remove_consumer(consumer)
    assert "s" not in rig.topic.subscriptions


def test_skip_and_expiry_are_counted_apart() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(6, messages=2)
    assert subscription.skip_messages(2) == 4
    assert subscription.expire_to(5, None) == 6
    assert subscription.skip_to(3) == 0
    assert (subscription.skipped_messages, subscription.expired_messages) == (4, 6)
    assert subscription.backlog_messages == 2


def test_skipping_passes_over_what_is_acknowledged() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(5)
    subscription.ack_entry(consumer, 1)
    assert subscription.skip_messages(2) == 2
    assert subscription.acks.mark_delete == 2


def test_a_skip_by_number_goes_through_the_runs_of_few_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request of some hundred bytes went through each of a million runs, twice."""
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=10)
    count = 6 * BLOCK_ORDINALS
    rig.publish(count)
    for ordinal in range(1, count, 2):
        subscription.ack_entry(consumer, ordinal)
    runs, looked_at = AckSet.acked_ranges, 0

    def counting(
        acks: AckSet, stop: int | None = None, start: int = 0
    ) -> Iterator[tuple[int, int]]:
        nonlocal looked_at
        for run in runs(acks, stop, start):
            looked_at += 1
            yield run

    monkeypatch.setattr(AckSet, "acked_ranges", counting)
    assert subscription.after_messages(count // 2 - 10) == count - 21
    assert looked_at <= BLOCK_ORDINALS


def test_reset_back_and_forth_counts_rewound_and_skipped() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(6)
    subscription.reset(4)
    assert (subscription.skipped_messages, subscription.backlog_messages) == (4, 2)
    subscription.reset(1)
    assert (subscription.rewound_messages, subscription.backlog_messages) == (3, 5)
    subscription.reset(99)
    assert subscription.backlog_messages == 0


def test_reset_needs_an_empty_subscription() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.consumer(subscription)
    with pytest.raises(InvariantError):
        subscription.reset(0)


def test_types_do_not_mix_and_exclusive_is_alone() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    with pytest.raises(ConsumerBusyError, match="different type"):
        rig.consumer(subscription, SHARED, consumer_id=2)
    with pytest.raises(ConsumerBusyError, match="already connected"):
        rig.consumer(subscription, consumer_id=2)
    subscription.remove_consumer(consumer)
    rig.consumer(subscription, SHARED, consumer_id=2)
    assert subscription.type is SHARED


def test_a_fenced_subscription_takes_nobody() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    subscription.fenced = True
    with pytest.raises(TopicFencedError):
        rig.consumer(subscription)


def test_a_subscription_with_consumers_is_not_removed() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.consumer(subscription)
    with pytest.raises(SubscriptionBusyError):
        rig.topic.remove_subscription("s")


def test_oldest_unacknowledged_message() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=10)
    assert subscription.oldest_unacked_ms() is None
    rig.publish(1)
    first_ms = rig.log.times[0]
    rig.advance(500)
    rig.publish(1)
    assert subscription.oldest_unacked_ms() == first_ms
    subscription.ack_entry(consumer, 0)
    assert subscription.oldest_unacked_ms() == first_ms + 500


def test_reports_read_the_age_of_the_oldest_message_and_rates() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=10)
    assert subscription.oldest_age_ms() is None
    subscription.rates.sample(subscription.counters(), rig.engine.now_ns)
    rig.publish(2, messages=3, body=b"1234")
    rig.advance(2_000)
    assert subscription.oldest_age_ms() == 2_000
    assert subscription.current_rates() == (3.0, 4.0, 0.0, 0.0, 0.0)
    subscription.ack_through(consumer, 1)
    assert subscription.oldest_age_ms() is None


def test_reports_read_its_limits_and_who_waits_at_them() -> None:
    limit = RateLimit(1, None)
    rig = Rig(topic_limit=limit)
    one, two = rig.subscribe("one"), rig.subscribe("two")
    for subscription in (one, two):
        rig.consumer(subscription, permits=10)
    rig.set_broker_limit(RateLimit(100, None))
    rig.publish(3)
    assert one.limits_set() == (None, limit, RateLimit(100, None))
    assert [one.waiting_subscriptions(level) for level in Level] == [0, 2, 2]
    assert rig.topic.limit_statistics().waiters == 2
    assert one.limit_statistics() == NO_STATISTICS
    assert [budget.dimension for budget in rig.engine.gate.budgets] == [Dimension.MESSAGES]
    assert rig.engine.limit_statistics() == rig.engine.gate.statistics(rig.engine.now_ns)


def test_every_instant_is_booked_in_one_state() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.advance(1_000)
    rig.publish(3)
    rig.advance(2_000)
    consumer, _ = rig.consumer(subscription, permits=2)
    rig.advance(3_000)
    subscription.flow(consumer, 10)
    rig.flush()
    rig.advance(4_000)
    subscription.ack_through(consumer, 2)
    rig.flush()
    rig.advance(5_000)
    seconds = [ns // 1_000_000_000 for ns in subscription.account.snapshot(rig.engine.now_ns)]
    assert seconds[Cell.CAUGHT_UP] == 6
    assert seconds[Cell.NO_CONSUMER] == 2
    assert seconds[Cell.NO_PERMITS] == 3
    assert seconds[Cell.AWAITING_ACK] == 4
    assert sum(seconds) == 15


def test_a_readers_acknowledgements_are_not_gathered_for_a_log_that_keeps_none() -> None:
    rig = Rig()
    reader = rig.subscribe("reader", durable=False)
    consumer, _ = rig.consumer(reader, SubscriptionType.SHARED, permits=100)
    rig.publish(10)
    for ordinal in (3, 5, 7):
        reader.ack_entry(consumer, ordinal)
        assert not reader.acks.has_changes()
    assert reader.backlog_entries == 7
