"""Shared subscriptions: turns, limits of unacknowledged messages, giving back."""

from __future__ import annotations

import random
from functools import partial

from headgate.base.work_units import JOB_STEP_UNITS_MAX, MOVED_PER_UNIT
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import GIVE_BACK_ENTRIES, SharedDispatcher
from headgate.engine.engine import FLUSH_ENTRIES_MAX
from headgate.engine.engine_limits import UnackedLimits
from headgate.engine.subscription import Subscription
from headgate.engine.types import NotReady, SubscriptionType
from headgate.flow.account.account import Cell
from tests.unit.engine.harness import START_MS, FakePort, Rig
from tests.unit.work_meter import bytecodes

SHARED = SubscriptionType.SHARED


def test_consumers_take_turns() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    _, one = rig.consumer(subscription, SHARED, consumer_id=1, permits=100)
    _, two = rig.consumer(subscription, SHARED, consumer_id=2, permits=100)
    for _ in range(10):
        rig.publish()
    assert (len(one.entries), len(two.entries)) == (5, 5)


def test_a_backlog_is_handed_out_in_rounds() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(60)
    _, one = rig.consumer(subscription, SHARED, consumer_id=1)
    _, two = rig.consumer(subscription, SHARED, consumer_id=2)
    for consumer in list(subscription.consumers):
        subscription.flow(consumer, 100)
    rig.flush()
    assert sorted(one.ordinals + two.ordinals) == list(range(60))
    assert min(len(one.entries), len(two.entries)) >= 20


def test_without_consumers_what_a_staged_trim_removes_waits_for_none() -> None:
    """After a seek back into it, its state was that of messages which consumers hold."""
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(3)
    consumer, _ = rig.consumer(subscription, SHARED, permits=100)
    subscription.ack_through(consumer, 2)
    rig.log.trim_end = 3
    subscription.remove_consumer(consumer)
    subscription.reset(1)
    rig.flush()
    assert (subscription.backlog_entries, subscription.account.cell) == (2, Cell.NO_CONSUMER)


def test_thousands_of_consumers_leave_in_any_order() -> None:
    """In a list, each looked at all before it: those that leave in the opposite order to that in
    which they came, 30,000 of one subscription, took twice the processor."""

    class Unlike(Consumer):
        __hash__ = Consumer.__hash__

        def __eq__(self, other: object) -> bool:
            raise AssertionError("it is compared with others")

    rig = Rig()
    subscription = rig.subscribe()
    consumers = [Unlike(number, "c", FakePort()) for number in range(100)]
    for consumer in consumers:
        subscription.add_consumer(consumer, SHARED)
        subscription.flow(consumer, 1)
    for consumer in reversed(consumers):
        subscription.remove_consumer(consumer)
    assert not subscription.consumers


def test_better_priority_first() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    _, second = rig.consumer(subscription, SHARED, consumer_id=1, permits=9, priority_level=1)
    _, first = rig.consumer(subscription, SHARED, consumer_id=2, permits=3)
    rig.publish(5)
    assert first.ordinals == [0, 1, 2]
    assert second.ordinals == [3, 4]


def test_permits_count_messages_and_batches_are_not_split() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=5)
    rig.publish(3, messages=4)
    assert port.ordinals == [0, 1]
    assert consumer.permits == -3
    assert subscription.account.cell is Cell.NO_PERMITS


def test_what_a_leaving_consumer_held_goes_to_the_others() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    leaver, _ = rig.consumer(subscription, SHARED, consumer_id=1, permits=3)
    rig.publish(3)
    _, heir = rig.consumer(subscription, SHARED, consumer_id=2, permits=10)
    subscription.ack_entry(leaver, 1)
    subscription.remove_consumer(leaver)
    rig.flush()
    assert heir.ordinals == [0, 2]
    assert [count for _, count, _ in heir.entries] == [0, 0]


def test_redelivery_counts_grow_with_each_giving_back() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(2)
    subscription.redeliver(consumer, [1], -1)
    rig.flush()
    subscription.redeliver(consumer, [1, 0], -1)
    rig.flush()
    assert port.entries[2:] == [(1, 1, b"body"), (0, 1, b"body"), (1, 2, b"body")]
    assert subscription.redelivered_messages == 3
    subscription.ack_entry(consumer, 1)
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    assert port.entries[5:] == [(0, 2, b"body")]


def test_giving_back_what_one_does_not_hold_is_harmless() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(1)
    subscription.ack_entry(consumer, 0)
    subscription.redeliver(consumer, [0, 5], -1)
    rig.flush()
    assert port.ordinals == [0]


def test_giving_back_what_another_holds_leaves_it_there() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    holder, port = rig.consumer(subscription, SHARED, consumer_id=1, permits=2)
    rig.publish(2)
    stranger, other = rig.consumer(subscription, SHARED, consumer_id=2, permits=9)
    subscription.redeliver(stranger, [0, 1], -1)
    rig.flush()
    assert (port.ordinals, other.ordinals) == ([0, 1], [])
    assert (holder.unacked_messages, stranger.unacked_messages) == (2, 0)
    assert subscription.redelivered_messages == 0


def test_acknowledged_while_waiting_for_redelivery() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=2)
    rig.publish(2)
    subscription.redeliver(consumer, None, -1)
    subscription.ack_entry(consumer, 0)
    subscription.flow(consumer, 5)
    rig.flush()
    assert port.ordinals == [0, 1, 1]
    assert subscription.backlog_entries == 1


def test_all_acknowledged_while_waiting_for_redelivery_is_caught_up() -> None:
    """Nothing is left to wait for, whatever it waited for."""
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=2)
    rig.publish(2)
    subscription.redeliver(consumer, None, -1)
    rig.flush()
    assert subscription.account.cell is Cell.NO_PERMITS
    subscription.ack_entry(consumer, 0)
    subscription.ack_entry(consumer, 1)
    rig.flush()
    assert subscription.account.cell is Cell.CAUGHT_UP


def test_a_consumer_stops_at_its_unacked_limit_and_resumes_at_half() -> None:
    rig = Rig()
    rig.engine.limits.unacked_per_consumer_max = 4
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(10)
    assert port.ordinals == [0, 1, 2, 3]
    assert subscription.account.cell is Cell.UNACKED_LIMIT
    subscription.ack_entry(consumer, 0)
    rig.flush()
    assert len(port.entries) == 4
    subscription.ack_entry(consumer, 1)
    rig.flush()
    assert port.ordinals == [0, 1, 2, 3, 4, 5]


def test_a_subscription_stops_at_its_unacked_limit() -> None:
    rig = Rig()
    rig.engine.limits.unacked_per_subscription_max = 4
    subscription = rig.subscribe()
    consumer, one = rig.consumer(subscription, SHARED, consumer_id=1, permits=100)
    _, two = rig.consumer(subscription, SHARED, consumer_id=2, permits=100)
    rig.publish(10)
    assert len(one.entries) + len(two.entries) == 4
    assert subscription.account.cell is Cell.UNACKED_LIMIT
    for ordinal in (0, 1):
        subscription.ack_entry(consumer, ordinal)
    rig.flush()
    assert len(one.entries) + len(two.entries) == 6


def test_a_late_acknowledgement_of_the_last_consumer_that_left_releases_nothing() -> None:
    """It waited for the index of the entry."""
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=4)
    rig.publish(2, messages=2)
    subscription.remove_consumer(consumer)
    subscription.ack_entry(consumer, 0)
    assert subscription.dispatcher.in_flight_messages() == 0
    assert subscription.backlog_messages == 2


def test_in_flight_and_replay_messages() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=4)
    rig.publish(2, messages=2)
    assert subscription.dispatcher.in_flight_messages() == 4
    subscription.redeliver(consumer, None, -1)
    assert subscription.dispatcher.in_flight_messages() == 0
    assert subscription.dispatcher.to_redeliver().messages == 4


def test_skipping_takes_entries_away_from_their_holders() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=3)
    rig.publish(5)
    subscription.skip_to(4)
    assert consumer.unacked_messages == 0
    subscription.flow(consumer, 5)
    rig.flush()
    assert port.ordinals == [0, 1, 2, 4]


def test_a_full_socket_is_its_own_state() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, SHARED, permits=10)
    port.writable = False
    rig.publish(1)
    assert subscription.account.cell is Cell.SOCKET_FULL
    port.writable = True
    subscription.dispatcher.consumer_ready(consumer)
    subscription.wake()
    rig.flush()
    assert port.ordinals == [0]


def test_nothing_is_kept_of_levels_and_entries_that_are_gone() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(4)
    dispatcher_levels = []
    for level in range(5):
        consumer, _ = rig.consumer(subscription, SHARED, permits=9, priority_level=level)
        subscription.redeliver(consumer, None, -1)
        rig.flush()
        dispatcher = subscription.dispatcher
        assert isinstance(dispatcher, SharedDispatcher)
        dispatcher_levels.append(list(dispatcher._levels))
        subscription.remove_consumer(consumer)
    assert dispatcher_levels == [[level] for level in range(5)]
    assert (dispatcher._levels, dispatcher._ready) == ([], {})
    assert set(dispatcher.redelivery_counts) == {0, 1, 2, 3}
    subscription.skip_to(3)
    assert set(dispatcher.redelivery_counts) == {3}


def test_levels_without_a_ready_consumer_cost_nothing() -> None:
    costs = []
    for levels in (1, 500):
        rig = Rig()
        subscription = rig.subscribe()
        for level in range(levels):
            rig.consumer(subscription, SHARED, consumer_id=level, priority_level=level)
        _, port = rig.consumer(subscription, SHARED, permits=1_000, priority_level=levels)
        rig.publish(50)
        costs.append(bytecodes(partial(rig.publish, 50)))
        assert port.ordinals == list(range(100))
    assert costs[1] < 1.1 * costs[0]


def test_a_crowd_of_which_none_is_ready_is_not_asked_for_each_message() -> None:
    costs = []
    for count in (100, 1_000):
        rig = Rig()
        subscription = rig.subscribe()
        for number in range(count):
            rig.consumer(subscription, SHARED, consumer_id=number)
        rig.publish(1)
        costs.append(bytecodes(partial(rig.publish, 5)))
        assert subscription.account.cell is Cell.NO_PERMITS
    assert costs[1] < 1.1 * costs[0]


def test_a_crowd_of_which_none_is_ready_says_why_as_few_do() -> None:
    """Each dispatch, compared with a look at all consumers."""
    seen = set[NotReady]()
    for seed in range(12):
        chance = random.Random(seed)
        permits, events = ((0, 6), (0, 4), (9, 2))[seed % 3]
        rig = Rig()
        subscription = rig.subscribe()
        rig.topic.unacked_limits = UnackedLimits(3, 0)
        found: list[tuple[Consumer, FakePort]] = []
        for step in range(600):
            if len(found) < 80 or chance.random() < 0.05:
                found.append(rig.consumer(subscription, SHARED, consumer_id=step, permits=permits))
            consumer, port = chance.choice(found)
            match chance.randrange(events):
                case 0:
                    subscription.flow(consumer, chance.choice((1, 5)))
                case 1 if len(found) > 70:
                    found.remove((consumer, port))
                    subscription.remove_consumer(consumer)
                case 2:
                    subscription.redeliver(consumer, None, -1)
                case 3 if consumer.held:
                    subscription.ack_entry(consumer, next(iter(consumer.held)))
                case 4:
                    port.writable = False
                case 5:
                    port.writable = True
                    subscription.consumer_ready(consumer)
            rig.publish(chance.choice((0, 1, 4)))
            picked = subscription.dispatcher.pick()
            if isinstance(picked, NotReady):
                whys = [why_not_ready(one) for one, _ in found]
                assert picked is max(whys, key=lambda why: why.value)
                seen.add(picked)
    assert seen == {NotReady.SOCKET_FULL, NotReady.NO_PERMITS, NotReady.UNACKED_LIMIT}


def why_not_ready(consumer: Consumer) -> NotReady:
    if consumer.blocked_on_unacked:
        return NotReady.UNACKED_LIMIT
    return NotReady.NO_PERMITS if consumer.permits <= 0 else NotReady.SOCKET_FULL


def test_a_level_stays_while_somebody_has_it() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    leaver, _ = rig.consumer(subscription, SHARED, consumer_id=1, permits=1)
    _, stays = rig.consumer(subscription, SHARED, consumer_id=2, permits=5)
    subscription.remove_consumer(leaver)
    rig.publish(3)
    assert stays.ordinals == [0, 1, 2]


def test_everything_that_one_consumer_holds_is_given_back_in_turns() -> None:
    """All of it was queued within the turn of the command, or of the consumer's departure."""
    entries = 50 * GIVE_BACK_ENTRIES
    for leaves in (False, True):
        rig = Rig()
        subscription = rig.subscribe()
        holder, port = rig.consumer(subscription, SHARED, consumer_id=1, permits=entries)
        rig.publish(entries)
        _, other = rig.consumer(subscription, SHARED, consumer_id=2)
        dispatcher = subscription.dispatcher
        if leaves:
            subscription.remove_consumer(holder)
        else:
            subscription.redeliver(holder, None, -1)
            assert subscription.redelivered_messages == entries
        assert dispatcher.to_redeliver().entries == GIVE_BACK_ENTRIES
        assert dispatcher.in_flight_messages() == entries - GIVE_BACK_ENTRIES
        turns = 0
        more = True
        while more:
            before = dispatcher.to_redeliver().entries
            more = rig.engine.flush()
            turns += 1
            assert dispatcher.to_redeliver().entries - before <= FLUSH_ENTRIES_MAX
        assert turns > 10
        assert dispatcher.to_redeliver().entries == entries
        assert (dispatcher.in_flight_messages(), holder.unacked_messages) == (0, 0)
        heir = list(subscription.consumers)[-1]
        subscription.flow(heir, entries)
        rig.flush()
        assert other.ordinals == list(range(entries))
        assert {count for _, count, _ in other.entries} == {0 if leaves else 1}
        assert len(port.entries) == entries


def test_what_is_acknowledged_while_it_is_given_back_is_not_redelivered() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    entries = 3 * GIVE_BACK_ENTRIES
    holder, port = rig.consumer(subscription, SHARED, consumer_id=1, permits=entries)
    rig.publish(entries)
    stranger, _ = rig.consumer(subscription, SHARED, consumer_id=2)
    subscription.redeliver(holder, None, -1)
    for ordinal in (0, GIVE_BACK_ENTRIES, entries - 2):
        subscription.ack_entry(holder, ordinal)
    subscription.ack_entry(stranger, entries - 1)
    subscription.redeliver(holder, None, -1)
    rig.flush()
    assert subscription.redelivered_messages == entries
    assert (holder.unacked_messages, subscription.dispatcher.in_flight_messages()) == (0, 0)
    subscription.flow(holder, 2 * entries)
    rig.flush()
    again = port.ordinals[entries:]
    assert again == [o for o in range(entries - 2) if o not in (0, GIVE_BACK_ENTRIES)]


def test_a_consumer_that_got_entries_since_it_gave_back_gives_back_these_too() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    entries = 10 * GIVE_BACK_ENTRIES
    holder, port = rig.consumer(subscription, SHARED, permits=entries)
    rig.publish(entries, messages=1)
    subscription.redeliver(holder, None, -1)
    subscription.flow(holder, 1)
    rig.engine.flush()
    assert list(holder.held) == [0], "one is delivered again while most are yet to be queued"
    assert subscription.dispatcher.redeliver(holder, None) == 1
    assert holder.held == {}
    rig.flush()
    assert subscription.dispatcher.to_redeliver().entries == entries
    assert (holder.unacked_messages, subscription.dispatcher.in_flight_messages()) == (0, 0)
    assert len(port.entries) == entries + 1


def test_giving_back_all_again_and_again_scans_nothing_that_was_given_back() -> None:
    """It counted the messages of each entry again, and searched all that was given back."""
    rig = Rig()
    subscription = rig.subscribe()
    entries = 60 * GIVE_BACK_ENTRIES
    holder, _ = rig.consumer(subscription, SHARED, permits=entries)
    other, _ = rig.consumer(subscription, SHARED, consumer_id=2)
    rig.publish(entries // 2)
    subscription.redeliver(holder, None, -1)
    rig.publish(entries // 2)  # the holder gets these while most of the others wait

    def work() -> int:
        return bytecodes(lambda: subscription.redeliver(holder, None, -1))

    assert len(holder.held) > 20 * GIVE_BACK_ENTRIES
    assert work() < 400 * GIVE_BACK_ENTRIES
    assert other.held == {}


def test_a_move_of_the_cursor_forgets_what_it_passed_in_bounded_turns() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    entries = 10 * JOB_STEP_UNITS_MAX * MOVED_PER_UNIT
    holder, port = rig.consumer(subscription, SHARED, permits=entries)
    rig.log.bodies = [b"x"] * entries
    rig.log.counts, rig.log.times = [1] * entries, [START_MS] * entries
    rig.log.messages_before = rig.log.bytes_before = lambda ordinal: ordinal  # type: ignore[method-assign,assignment]
    for ordinal in range(entries):
        rig.engine.cache.put(rig.topic.cache, ordinal, b"x")
    rig.log.end = entries
    subscription.wake()
    rig.flush()
    assert len(holder.held) == entries
    subscription.dispatcher.redelivery_counts = dict.fromkeys(range(5), 1)
    subscription.skip_to(entries - 10)
    forgotten = [entries - len(holder.held)]
    while rig.engine.flush():
        forgotten.append(entries - len(holder.held) - sum(forgotten))
    assert len(holder.held) == 10 == holder.unacked_messages
    assert subscription.dispatcher.in_flight_messages() == 10
    assert subscription.dispatcher.redelivery_counts == {}
    assert max(forgotten) <= FLUSH_ENTRIES_MAX * MOVED_PER_UNIT
    assert forgotten[0] <= JOB_STEP_UNITS_MAX * MOVED_PER_UNIT
    subscription.redeliver(holder, None, -1)
    subscription.flow(holder, entries)
    rig.flush()
    assert port.ordinals[entries:] == list(range(entries - 10, entries))


def test_what_the_cursor_passed_is_not_redelivered_although_it_is_not_forgotten_yet() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    entries = 2 * JOB_STEP_UNITS_MAX * MOVED_PER_UNIT
    holder, port = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(10)
    subscription.redeliver(holder, None, -1)
    subscription.dispatcher.redelivery_counts |= dict.fromkeys(range(100, entries), 1)
    subscription.skip_to(8)
    subscription.flow(holder, 100)
    rig.flush()
    assert port.ordinals[10:] == [8, 9]
    assert subscription.dispatcher.to_redeliver().entries == 0


def held_by_one(rig: Rig, subscription: Subscription, entries: int) -> tuple[Consumer, FakePort]:
    """One consumer holds so many entries."""
    holder, port = rig.consumer(subscription, SHARED, permits=entries)
    rig.log.bodies = [b"x"] * entries
    rig.log.counts, rig.log.times = [1] * entries, [START_MS] * entries
    rig.log.messages_before = rig.log.bytes_before = lambda ordinal: ordinal  # type: ignore[method-assign,assignment]
    for ordinal in range(entries):
        rig.engine.cache.put(rig.topic.cache, ordinal, b"x")
    rig.log.end = entries
    subscription.wake()
    rig.flush()
    assert len(holder.held) == entries
    return holder, port


def test_a_consumer_leaves_while_what_the_cursor_passed_is_forgotten() -> None:
    for given_back in (False, True):
        rig = Rig()
        subscription = rig.subscribe()
        entries = 3 * JOB_STEP_UNITS_MAX * MOVED_PER_UNIT
        holder, _ = held_by_one(rig, subscription, entries)
        if given_back:
            subscription.redeliver(holder, None, -1)
        subscription.skip_to(entries - 10)
        subscription.remove_consumer(holder)
        rig.flush()
        assert subscription.dispatcher.in_flight_messages() == 0
        _, other = rig.consumer(subscription, SHARED, permits=entries)
        rig.flush()
        assert other.ordinals == list(range(entries - 10, entries))
        assert subscription.dispatcher.in_flight_messages() == 10


def test_passed_entries_that_a_consumer_gives_back_leave_nothing() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    entries = 3 * JOB_STEP_UNITS_MAX * MOVED_PER_UNIT
    holder, _ = held_by_one(rig, subscription, entries)
    rig.consumer(subscription, SHARED, consumer_id=2)
    dispatcher = subscription.dispatcher
    assert isinstance(dispatcher, SharedDispatcher)
    subscription.skip_to(entries - 10)
    subscription.redeliver(holder, None, -1)
    rig.flush()
    assert dispatcher.in_flight_messages() == 0
    assert set(dispatcher.redelivery_counts) == set(range(entries - 10, entries))
    assert len(dispatcher.replaying) == 10


def test_a_foreign_acknowledgement_ends_what_another_holds() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    holder, _ = rig.consumer(subscription, SHARED, consumer_id=1, permits=2)
    rig.publish(2)
    stranger, _ = rig.consumer(subscription, SHARED, consumer_id=2)
    subscription.ack_entry(stranger, 0)
    assert (holder.unacked_messages, stranger.unacked_messages) == (1, 0)
    subscription.ack_entry(stranger, 0)
    assert subscription.dispatcher.in_flight_messages() == 1
    subscription.skip_lost(1)
    assert subscription.dispatcher.in_flight_messages() == 0


def test_a_consumer_leaves_in_work_that_does_not_grow_with_what_others_hold() -> None:
    def work(entries: int) -> int:
        rig = Rig()
        subscription = rig.subscribe()
        rig.consumer(subscription, SHARED, consumer_id=1, permits=entries)
        rig.publish(entries)
        leaver, _ = rig.consumer(subscription, SHARED, consumer_id=2)
        return bytecodes(lambda: subscription.remove_consumer(leaver))

    assert work(3_000) == work(10)


def test_changed_limits_on_unacknowledged_messages_block_and_unblock() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, SHARED, permits=100)
    rig.publish(4)
    rig.topic.unacked_limits = UnackedLimits(2, 0)
    subscription.dispatcher.unacked_limits_changed()
    rig.publish(4)
    assert len(port.entries) == 4
    assert subscription.account.cell is Cell.UNACKED_LIMIT
    rig.topic.unacked_limits = UnackedLimits(0, 6)
    subscription.dispatcher.unacked_limits_changed()
    rig.flush()
    assert len(port.entries) == 6
    rig.topic.unacked_limits = UnackedLimits(0, 0)
    subscription.dispatcher.unacked_limits_changed()
    rig.flush()
    assert len(port.entries) == 8


def test_a_thousand_reconnects_leave_permits_and_order_as_they_are() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    stayed, port = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(5, messages=3)
    subscription.ack_messages(stayed, 0, 0b001)
    for _ in range(1_000):
        guest, _ = rig.consumer(subscription, SHARED, permits=10)
        rig.flush()
        subscription.remove_consumer(guest)
        rig.flush()
    assert subscription.dispatcher.permits() == max(0, stayed.permits)
    subscription.flow(stayed, 100)
    rig.flush()
    assert set(port.ordinals) == {0, 1, 2, 3, 4}
    assert subscription.dispatcher.in_flight_messages() == stayed.unacked_messages == 14
    assert subscription.dispatcher.to_redeliver().entries == 0
