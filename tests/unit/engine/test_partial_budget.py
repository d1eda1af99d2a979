"""Partly acknowledged batches of all subscriptions have one bound, whoever leaves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import InputError
from headgate.base.names import parse_topic
from headgate.engine.partial_budget import PartialBudget
from headgate.engine.types import SubscriptionType
from tests.unit.engine.harness import Rig

SHARED = SubscriptionType.SHARED
ENTRIES = 30


def filled(rig: Rig, name: str, entries: int) -> int:
    """One message of each of ``entries`` batches is acknowledged by a consumer that then leaves;
    returns how many acknowledgements were refused."""
    subscription = rig.topic.subscriptions.get(name) or rig.subscribe(name)
    consumer, _ = rig.consumer(subscription, SHARED, permits=1_000)
    refused = 0
    for ordinal in range(entries):
        try:
            subscription.ack_messages(consumer, ordinal, 0b1)
        except InputError:
            refused += 1
    subscription.remove_consumer(consumer)
    return refused


def rig_with(bytes_max: int) -> Rig:
    rig = Rig()
    rig.engine.partials = PartialBudget(bytes_max)
    for name in ("first", "second", "third", "small"):
        rig.subscribe(name)
    rig.publish(ENTRIES, messages=4)
    return rig


def bytes_of_one() -> int:
    rig = rig_with(1 << 30)
    filled(rig, "first", ENTRIES)
    return rig.engine.partials.held_bytes


def test_those_that_hold_most_take_no_more_though_nobody_is_connected() -> None:
    one = bytes_of_one()
    rig = rig_with(one * 2)
    assert filled(rig, "first", ENTRIES) == filled(rig, "second", ENTRIES) == 0
    assert filled(rig, "small", 3) == 0  # it holds less than the others on average
    assert filled(rig, "third", ENTRIES) > 0
    assert rig.engine.partials.held_bytes < 4 * one


def test_at_twice_the_bound_none_takes_more() -> None:
    rig = rig_with(bytes_of_one() // 4)
    filled(rig, "first", ENTRIES)
    filled(rig, "second", ENTRIES)
    rig.engine.partials._bytes_max = rig.engine.partials.held_bytes // 2
    with pytest.raises(InputError, match="all subscriptions together"):
        rig.engine.partials.check_room(rig.topic.subscriptions["small"])


def test_what_a_cursor_passes_makes_room_at_the_bound() -> None:
    one = bytes_of_one()
    rig = rig_with(one)
    filled(rig, "first", ENTRIES)
    subscription = rig.topic.subscriptions["first"]
    consumer, _ = rig.consumer(subscription, SHARED)
    for ordinal in range(ENTRIES):
        subscription.ack_entry(consumer, ordinal)
    assert rig.engine.partials.held_bytes == one  # it is not measured yet
    assert filled(rig, "second", ENTRIES - 1) == 0
    assert rig.engine.partials.held_bytes < one


def test_a_removed_subscription_holds_nothing() -> None:
    rig = rig_with(1 << 30)
    filled(rig, "first", ENTRIES)
    rig.topic.remove_subscription("first")
    assert rig.engine.partials.held_bytes == 0


def test_a_batch_that_a_seek_begins_within_counts_if_there_is_room() -> None:
    rig = rig_with(1 << 30)
    subscriptions = [rig.topic.subscriptions[name] for name in ("first", "second", "third")]
    for subscription in subscriptions:
        subscription.reset(3, 0b0111)
    budget = rig.engine.partials
    assert budget.held_bytes == sum(each.acks.partial_bytes for each in subscriptions) > 0
    subscriptions[0].reset(4)
    assert budget.held_bytes == sum(each.acks.partial_bytes for each in subscriptions)
    budget._bytes_max = 1
    subscriptions[0].reset(3, 0b0111)  # without room the whole batch is delivered
    assert subscriptions[0].acks.partials is None
    for subscription in subscriptions:
        subscription.reset(0)
    assert budget.held_bytes == 0


def test_those_of_a_topic_that_is_unloaded_count_until_it_is_loaded_or_deleted() -> None:
    rig = rig_with(1 << 30)
    filled(rig, "first", ENTRIES)
    budget, topic = rig.engine.partials, rig.topic
    held_bytes = budget.held_bytes
    topic.fence()
    rig.engine.unload_topic(topic)
    assert budget.held_bytes == held_bytes > 0  # the log has them
    again = rig.engine.load_topic(topic.name, topic.log)
    assert budget.held_bytes == 0
    acks = AckSet()
    acks.ack_messages(0, 0b1, 4)
    again.add_subscription("first", acks, cursor_id=1)
    assert budget.held_bytes == acks.partial_bytes
    again.fence()
    rig.engine.unload_topic(again, deleted=True)
    assert budget.held_bytes == 0
    assert not budget._by_unloaded


class Holder:
    """A subscription of a tenant."""

    def __init__(self, tenant: str) -> None:
        self.name, self.removed = "s", False
        self.acks: Any = SimpleNamespace(partial_bytes=0)
        self.topic = SimpleNamespace(name=parse_topic(f"persistent://{tenant}/namespace/topic"))

    def fill(self, budget: PartialBudget, bytes_max: int) -> int:
        """Take more until there is no room; returns how much it has."""
        while self.acks.partial_bytes < bytes_max and budget.has_room(self):
            self.acks.partial_bytes += 1
            budget.measure(self)
        return int(self.acks.partial_bytes)


def test_one_tenant_with_very_many_subscriptions_leaves_room_to_others() -> None:
    budget = PartialBudget(1_280)
    taken = sum(Holder("greedy").fill(budget, 80) for _ in range(100))
    assert 1_280 < taken <= 1_920
    assert Holder("other").fill(budget, 80) > 50
    assert Holder("greedy").fill(budget, 80) == 0
    assert [Holder(f"tenant{number}").fill(budget, 50) for number in range(9)] == [50] * 9
    assert budget.held_bytes < 2 * 1_280


def test_what_a_tenant_takes_is_given_back_by_each_end() -> None:
    budget = PartialBudget(100)
    one, two, three = (Holder("greedy") for _ in range(3))
    for holder in (one, two, three):
        holder.acks.partial_bytes = 50
        budget.measure(holder)
    assert not budget.has_room(Holder("greedy"))
    budget.unloaded(one, 7)
    budget.unloaded(two, 7)
    assert not budget.has_room(Holder("greedy"))
    budget.loaded_or_deleted(one.topic.name, 7)
    budget.forget(three)
    assert budget.held_bytes == 0
    assert not budget._shares._by_owner
