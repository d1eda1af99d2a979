"""Messages of a batch that are acknowledged singly: the entry is owed until the last one is."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
from headgate.engine.dispatch_shared import GIVE_BACK_ENTRIES
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import Cell
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from tests.unit.engine.harness import Rig

SHARED = SubscriptionType.SHARED
QUOTA = Quota(QuotaType.SIZE, 1, QuotaPolicy.EVICTION, "topic policy")


def owed(subscription: Subscription) -> tuple[int, int, int]:
    return (
        subscription.backlog_entries,
        subscription.backlog_messages,
        subscription.backlog_bytes,
    )


def test_a_batch_counts_with_all_its_bytes_and_the_messages_that_are_left() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(3, messages=4, body=b"12345")
    subscription.ack_messages(consumer, 1, 0b0101)
    assert owed(subscription) == (3, 10, 15)
    subscription.ack_messages(consumer, 1, 0b0100)
    assert owed(subscription) == (3, 10, 15)
    assert (subscription.acked_messages, consumer.messages_acked) == (2, 2)
    subscription.ack_messages(consumer, 1, 0b1010)
    assert owed(subscription) == (2, 8, 10)
    assert subscription.acks.is_acked(1)
    subscription.ack_messages(consumer, 1, 0b1111)
    subscription.ack_entry(consumer, 1)
    assert owed(subscription) == (2, 8, 10)
    assert (subscription.acked_messages, consumer.messages_acked) == (4, 4)


def test_the_entry_itself_counts_only_what_was_left_of_it() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(4, messages=3)
    for ordinal in (0, 1, 2, 3):
        subscription.ack_messages(consumer, ordinal, 0b001)
    subscription.ack_entry(consumer, 1)
    assert (subscription.backlog_messages, subscription.acked_messages) == (6, 6)
    subscription.ack_through(consumer, 2)
    assert (subscription.backlog_messages, subscription.acked_messages) == (2, 10)
    assert subscription.last_mark_delete_ms > 0


def test_what_is_given_up_counts_only_what_was_left_of_it() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(6, messages=3, body=b"12345")
    for ordinal in range(6):
        subscription.ack_messages(consumer, ordinal, 0b011)
    assert subscription.evict_to(2, QUOTA) == (2, 10)
    assert subscription.evicted_messages == 2
    assert subscription.evicted_by is QUOTA
    assert subscription.expire_to(4, None) == 2
    assert subscription.skip_messages(1) == 1
    assert owed(subscription) == (1, 1, 5)
    subscription.remove_consumer(consumer)
    subscription.reset(4)
    assert owed(subscription) == (2, 6, 10)
    assert subscription.rewound_messages == 5


def test_it_stays_with_its_consumer_until_it_is_done() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(2, messages=4)
    assert consumer.unacked_messages == 8
    subscription.ack_messages(consumer, 0, 0b0011)
    subscription.ack_messages(consumer, 1, 0b1111)
    assert consumer.unacked_messages == 2
    assert subscription.dispatcher.waiting() == (0, 0)
    subscription.redeliver(consumer, [0, 1], -1)
    assert subscription.dispatcher.to_redeliver() == (1, 2, 4)
    assert subscription.dispatcher.waiting() == (2, 4)
    rig.flush()
    assert subscription.dispatcher.to_redeliver() == (0, 0, 0)
    subscription.ack_messages(consumer, 0, 0b1100)
    assert consumer.unacked_messages == 0
    rig.advance(1)
    assert subscription.account.cell is Cell.CAUGHT_UP
    assert len(port.entries) == 3


def test_what_waits_to_be_delivered_is_without_acknowledged_messages() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(3, messages=4, body=b"12345")
    consumer, _ = rig.consumer(subscription, SHARED)
    subscription.ack_messages(consumer, 2, 0b0111)
    assert subscription.dispatcher.waiting() == (9, 15)
    assert subscription.backlog_messages == 9


def test_changes_are_handed_over_for_storing_once_and_only_when_there_are_any() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(2, messages=2)
    subscription.ack_messages(consumer, 0, 0)
    subscription.ack_messages(consumer, 5, 1)
    subscription.ack_messages(consumer, -1, 1)
    assert rig.effects.moved == []
    subscription.ack_messages(consumer, 0, 1)
    subscription.ack_messages(consumer, 1, 1)
    assert rig.effects.moved == [subscription]
    subscription.acks_dirty = False
    subscription.ack_messages(consumer, 1, 1)
    assert rig.effects.moved == [subscription]


def test_what_is_no_message_of_the_batch_is_refused() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(1, messages=4)
    with pytest.raises(InputError, match="beyond its batch of 4"):
        subscription.ack_messages(consumer, 0, 16)
    assert owed(subscription) == (1, 4, 4)
    assert consumer.unacked_messages == 4
    assert rig.effects.moved == []


def test_what_is_acknowledged_does_not_come_again_and_costs_no_permits() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(3, messages=4)
    assert consumer.permits == 88
    subscription.ack_messages(consumer, 1, 0b0101)
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    assert port.ordinals == [0, 1, 2, 0, 1, 2]
    assert port.left == {1: (0b1010,)}
    assert consumer.permits == 88 - 10
    assert consumer.uncharged_messages == 2
    assert (consumer.messages_sent, subscription.messages_sent) == (22, 22)
    assert consumer.unacked_messages == subscription.dispatcher.in_flight_messages() == 10
    subscription.ack_entry(consumer, 1)
    assert consumer.unacked_messages == 8
    assert subscription.acked_messages == 4


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
def test_a_rewind_sends_what_is_left(kind: SubscriptionType) -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, kind, permits=100)
    rig.publish(3, messages=70)
    subscription.ack_messages(consumer, 1, 1 << 69 | 1)
    assert subscription.dispatcher.in_flight_messages() == 2 * 70 - 2
    subscription.flow(consumer, 1_000)
    rig.flush()
    assert subscription.dispatcher.in_flight_messages() == 3 * 70 - 2
    subscription.redeliver(consumer, None, -1)
    assert subscription.dispatcher.in_flight_messages() == 0
    rig.flush()
    assert port.left == {1: (-2, 0b011111)}
    assert consumer.permits == 1_100 - 6 * 70 + 2


@pytest.mark.parametrize("is_returned", [False, True])
def test_messages_acknowledged_through_another_consumer_leave_their_holder(
    is_returned: bool,
) -> None:
    entries = 2 * GIVE_BACK_ENTRIES
    rig = Rig()
    subscription = rig.subscribe()
    holder, _ = rig.consumer(subscription, SHARED, permits=3 * entries)
    other, port = rig.consumer(subscription, SHARED)
    rig.publish(entries, messages=3)
    assert holder.unacked_messages == 3 * entries
    last = entries - 1
    if is_returned:
        subscription.redeliver(holder, None, -1)
        assert holder.unacked_messages == 3 * (entries - GIVE_BACK_ENTRIES)
    before = holder.unacked_messages
    subscription.ack_messages(other, last, 0b001)
    subscription.ack_messages(other, last - 1, 0b111)
    assert holder.unacked_messages == before - 4
    assert subscription.dispatcher.in_flight_messages() == before - 4
    subscription.remove_consumer(holder)
    rig.flush()
    rig.flush()
    assert subscription.dispatcher.in_flight_messages() == 0
    assert subscription.dispatcher.to_redeliver()[:2] == (entries - 1, 3 * entries - 4)
    subscription.ack_messages(other, last, 0b010)
    assert subscription.dispatcher.to_redeliver().messages == 3 * entries - 5
    subscription.flow(other, 4 * entries)
    rig.flush()
    rig.flush()
    assert other.unacked_messages == 3 * entries - 5
    assert port.left == {last: (0b100,)}


def test_a_cursor_that_passes_partly_acknowledged_entries_leaves_nothing_with_consumers() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(4, messages=4)
    for ordinal in range(4):
        subscription.ack_messages(consumer, ordinal, 0b0111)
    subscription.redeliver(consumer, [3], -1)
    assert consumer.unacked_messages == 3
    subscription.skip_to(2)
    rig.flush()
    assert consumer.unacked_messages == subscription.dispatcher.in_flight_messages() == 2
    subscription.skip_to(4)
    rig.flush()
    assert consumer.unacked_messages == subscription.dispatcher.in_flight_messages() == 0
    assert consumer.held == {}
    assert subscription.acks.partials is None


def test_acknowledged_messages_unblock_a_consumer_at_its_limit() -> None:
    rig = Rig()
    rig.engine.limits.unacked_per_consumer_max = 8
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(4, messages=4)
    assert port.ordinals == [0, 1]
    assert consumer.blocked_on_unacked
    subscription.ack_messages(consumer, 0, 0b0011)
    assert consumer.blocked_on_unacked
    subscription.ack_messages(consumer, 1, 0b0011)
    rig.flush()
    assert port.ordinals == [0, 1, 2]


def test_a_seek_into_a_batch_leaves_the_messages_before_acknowledged() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(4, messages=4)
    subscription.reset(2, 0b0011)
    assert owed(subscription) == (2, 6, 8)
    consumer, port = rig.consumer(subscription, SHARED, permits=100)
    rig.flush()
    assert (port.ordinals, port.left) == ([2, 3], {2: (0b1100,)})
    assert consumer.permits == 94
    subscription.remove_consumer(consumer)
    subscription.reset(9, 0b0011)
    assert owed(subscription) == (0, 0, 0)


def test_what_one_subscription_keeps_of_batches_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(3, messages=80)
    monkeypatch.setattr("headgate.engine.partial_budget.PARTIAL_BYTES_MAX", 214)
    subscription.ack_messages(consumer, 0, 1)
    with pytest.raises(InputError, match=r"of 214 bytes; up to 214 are kept"):
        subscription.ack_messages(consumer, 1, 1)
    subscription.ack_messages(consumer, 0, 2)
    subscription.ack_messages(consumer, 1, (1 << 80) - 1)
    subscription.ack_entry(consumer, 0)
    subscription.ack_messages(consumer, 2, 1)
    assert owed(subscription) == (1, 79, 4)
