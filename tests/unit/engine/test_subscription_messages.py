"""Messages of a batch that are acknowledged singly: the entry is owed until the last one is."""

from __future__ import annotations

import pytest

from headgate.base.errors import InputError
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
    subscription.ack_messages(consumer, 1, 0b0101, 4)
    assert owed(subscription) == (3, 10, 15)
    subscription.ack_messages(consumer, 1, 0b0100, 4)
    assert owed(subscription) == (3, 10, 15)
    assert (subscription.acked_messages, consumer.messages_acked) == (2, 2)
    subscription.ack_messages(consumer, 1, 0b1010, 4)
    assert owed(subscription) == (2, 8, 10)
    assert subscription.acks.is_acked(1)
    subscription.ack_messages(consumer, 1, 0b1111, 4)
    subscription.ack_entry(consumer, 1)
    assert owed(subscription) == (2, 8, 10)
    assert (subscription.acked_messages, consumer.messages_acked) == (4, 4)


def test_the_entry_itself_counts_only_what_was_left_of_it() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(4, messages=3)
    for ordinal in (0, 1, 2, 3):
        subscription.ack_messages(consumer, ordinal, 0b001, 3)
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
        subscription.ack_messages(consumer, ordinal, 0b011, 3)
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
    subscription.ack_messages(consumer, 0, 0b0011, 4)
    subscription.ack_messages(consumer, 1, 0b1111, 4)
    assert consumer.unacked_messages == 4
    assert subscription.dispatcher.waiting() == (0, 0)
    subscription.redeliver(consumer, [0, 1], -1)
    assert subscription.dispatcher.to_redeliver() == (1, 2, 4)
    assert subscription.dispatcher.waiting() == (2, 4)
    rig.flush()
    assert subscription.dispatcher.to_redeliver() == (0, 0, 0)
    subscription.ack_messages(consumer, 0, 0b1100, 4)
    assert consumer.unacked_messages == 0
    rig.advance(1)
    assert subscription.account.cell is Cell.CAUGHT_UP
    assert len(port.entries) == 3


def test_what_waits_to_be_delivered_is_without_acknowledged_messages() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(3, messages=4, body=b"12345")
    consumer, _ = rig.consumer(subscription, SHARED)
    subscription.ack_messages(consumer, 2, 0b0111, 4)
    assert subscription.dispatcher.waiting() == (9, 15)
    assert subscription.backlog_messages == 9


def test_changes_are_handed_over_for_storing_once_and_only_when_there_are_any() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(2, messages=2)
    subscription.ack_messages(consumer, 0, 0, 2)
    subscription.ack_messages(consumer, 5, 1, 2)
    subscription.ack_messages(consumer, -1, 1, 2)
    assert rig.effects.moved == []
    subscription.ack_messages(consumer, 0, 1, 2)
    subscription.ack_messages(consumer, 1, 1, 2)
    assert rig.effects.moved == [subscription]
    subscription.acks_dirty = False
    subscription.ack_messages(consumer, 1, 1, 2)
    assert rig.effects.moved == [subscription]


@pytest.mark.parametrize(
    ("mask", "size", "text"),
    [(1, 3, "batch of 4 messages; acknowledged as one of 3"), (16, 4, "beyond its batch of 4")],
)
def test_what_is_no_message_of_the_batch_is_refused(mask: int, size: int, text: str) -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(1, messages=4)
    with pytest.raises(InputError, match=text):
        subscription.ack_messages(consumer, 0, mask, size)
    assert owed(subscription) == (1, 4, 4)
    assert consumer.unacked_messages == 4
    assert rig.effects.moved == []
