"""Delayed entries of Shared subscriptions: put aside, due, delivered, acknowledged, skipped."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.units import NS_PER_MS
from headgate.base.work_units import JOB_STEP_UNITS_MAX
from headgate.engine.consumer import Consumer
from headgate.engine.delayed_delivery import DelayedDelivery
from headgate.engine.delayed_entries import AGE_STEPS_MAX, DelayedEntries, never_delayed
from headgate.engine.delayed_index import CHUNK_ENTRIES, INDEXED_BYTES
from headgate.engine.dispatch_chunks import ROUND_ENTRIES
from headgate.engine.dispatch_delayed import DELAYS_FULL, PUT_ASIDE_MAX
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import Cell
from tests.unit.engine.harness import START_MS, FakePort, Rig

SHARED, EXCLUSIVE = SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE


def due_time_of(body: bytes) -> int:
    return int(body[4:]) if body.startswith(b"due ") else 0


def delay_rig() -> Rig:
    rig = Rig()
    rig.engine.due_time_of = due_time_of
    return rig


def publish(rig: Rig, delay_ms: int = 0, *, count: int = 1, messages: int = 1) -> None:
    """Publish messages that are due after ``delay_ms``."""
    body = b"body"
    if delay_ms:
        rig.topic.may_be_delayed()
        body = b"due %d" % (rig.engine.now_ms + delay_ms)
    rig.publish(count, messages=messages, body=body)


def answer_reads(rig: Rig) -> int:
    """Answer the reads that wait, with what each may bring; returns how many there were."""
    reads, rig.effects.reads = rig.effects.reads, []
    for subscription, ordinal in reads:
        stop = min(rig.log.end, ordinal + min(8, subscription.entries_to_read(ordinal)))
        for each in range(max(ordinal, rig.log.first), stop):
            rig.topic.cache[each] = rig.log.bodies[each]
        subscription.read_completed()
    rig.flush()
    return len(reads)


def forget_bodies(rig: Rig) -> None:
    """The cache evicted everything."""
    rig.topic.cache.clear()


def not_due(subscription: Subscription) -> list[int]:
    delayed = subscription.dispatcher.delayed
    return [] if delayed is None else delayed.not_due.within(0, 1 << 40)


def test_it_is_delivered_when_it_is_due() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, SHARED, permits=10)
    publish(rig, 5_000)
    publish(rig)
    publish(rig, 3_000, messages=4)
    assert port.ordinals == [1]
    assert (subscription.delayed_messages, not_due(subscription)) == (5, [0, 2])
    assert subscription.delayed_index_bytes > 0
    rig.advance(2_999)
    assert port.ordinals == [1]
    rig.advance(1)
    assert port.ordinals == [1, 2]
    rig.advance(60_000)
    assert port.ordinals == [1, 2, 0]
    assert port.times_ns[-1] - port.times_ns[0] == 5_000 * NS_PER_MS
    assert (subscription.delayed_messages, rig.engine.delays.entries) == (0, 0)


@pytest.mark.parametrize("kind", [EXCLUSIVE, SubscriptionType.FAILOVER])
def test_one_active_consumer_gets_it_at_once(kind: SubscriptionType) -> None:
    rig = delay_rig()
    _, port = rig.consumer(rig.subscribe(), kind, permits=10)
    publish(rig, 5_000)
    assert port.ordinals == [0]


def test_without_the_policy_it_is_delivered_at_once() -> None:
    rig = delay_rig()
    _, port = rig.consumer(rig.subscribe(), SHARED, permits=10)
    publish(rig, 5_000)
    rig.topic.delayed_delivery = DelayedDelivery(active=False)
    publish(rig, 5_000)
    assert port.ordinals == [1]  # what is delayed already stays so, as in Pulsar
    rig.advance(5_000)
    assert port.ordinals == [1, 0]


def test_only_what_may_be_delayed_is_looked_at() -> None:
    rig = Rig()
    looked_at: list[bytes] = []
    rig.engine.due_time_of = lambda body: looked_at.append(body) or 0
    _, port = rig.consumer(rig.subscribe(), SHARED, permits=1_000)
    rig.publish(50)
    assert (len(port.entries), looked_at) == (50, [])
    rig.topic.may_be_delayed()
    rig.publish(50)
    assert (len(port.entries), len(looked_at)) == (100, 50)
    assert never_delayed(b"due 5") == 0


def test_what_is_stored_when_the_topic_is_loaded_may_be_delayed() -> None:
    rig = delay_rig()
    rig.publish(3, body=b"due %d" % (START_MS + 1_000))
    rig.topic.delays_stop = rig.log.end  # as after a restart
    subscription = rig.subscribe()
    forget_bodies(rig)
    _, port = rig.consumer(subscription, SHARED, permits=10)
    rig.publish(2)
    while answer_reads(rig):
        pass
    assert port.ordinals == [3, 4]
    forget_bodies(rig)
    rig.advance(1_000)
    while answer_reads(rig):
        pass
    assert port.ordinals == [3, 4, 0, 1, 2]


def test_it_waits_for_one_wake_and_reads_nothing_until_then() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    rig.consumer(subscription, SHARED, permits=10)
    for delay_ms in (9_000, 5_000, 7_000, 3_000):
        publish(rig, delay_ms)
    assert rig.engine.next_wake_ns() == rig.engine.now_ns + 3_000 * NS_PER_MS
    assert rig.engine._timers == []
    assert subscription.account.cell is Cell.NOT_DUE
    forget_bodies(rig)
    rig.advance(2_999)
    assert rig.effects.reads == []
    rig.advance(1)
    assert [ordinal for _, ordinal in rig.effects.reads] == [3]
    assert subscription.entries_to_read(3) == 1


def test_a_step_of_the_clock() -> None:
    """Due times are wall clock: a step forward makes messages due, a step back does not make one
    early."""
    rig = delay_rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, SHARED, permits=10)
    publish(rig, 5_000)
    publish(rig, 60_000)
    engine = rig.engine
    engine.begin_turn(engine.now_ns, engine.now_ms - 3_600_000, engine.log_ms)
    rig.flush()
    assert engine.next_wake_ns() == engine.now_ns + 3_605_000 * NS_PER_MS
    engine.begin_turn(engine.now_ns, START_MS + 5_000, engine.log_ms)
    rig.flush()
    assert port.ordinals == [0]
    assert engine.next_wake_ns() == engine.now_ns + 55_000 * NS_PER_MS


def test_many_that_follow_one_another_take_several_turns() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, SHARED, permits=10)
    rig.topic.may_be_delayed()
    count = 5 * PUT_ASIDE_MAX
    rig.send(count, body=b"due %d" % (START_MS + 1_000))
    rig.send(body=b"now")
    rig.log.end = rig.log.staged_end
    rig.topic.publishing.entries_durable(0)
    turns = 1
    while rig.engine.flush():
        assert subscription.account.cell is Cell.DISPATCHING
        turns += 1
    assert turns >= 5
    assert port.ordinals == [count]
    assert subscription.account.cell is Cell.AWAITING_ACK
    assert subscription.delayed_messages == count
    rig.advance(1_000)
    assert port.ordinals == [count, *range(9)]
    assert subscription.dispatcher.to_redeliver().entries == count - 9
    assert subscription.delayed_messages == 0


def many_aside(count: int, delay_ms: int) -> tuple[Rig, Subscription, DelayedEntries]:
    """A subscription without permits that has so many entries aside."""
    rig = delay_rig()
    subscription = rig.subscribe()
    rig.consumer(subscription, SHARED)
    rig.topic.may_be_delayed()
    due_ms, log = rig.engine.now_ms + delay_ms, rig.log
    log.bodies, log.counts, log.times = [b"due %d" % due_ms] * count, [1] * count, [0] * count
    rig.topic.publishing.visible = log.end = count
    dispatcher = subscription.dispatcher
    dispatcher.read_ordinal = count
    delayed = dispatcher.delayed = DelayedEntries(rig.engine.delays, subscription, "acme")
    for ordinal in range(count):
        assert delayed.put_aside(ordinal, due_ms, 1, 10)
    return rig, subscription, delayed


def test_what_is_aside_is_passed_in_turns_after_a_reconnect() -> None:
    count = 3 * PUT_ASIDE_MAX * ROUND_ENTRIES
    rig, subscription, delayed = many_aside(count, 60_000)
    subscription.disconnect_consumers()
    dispatcher, passed = subscription.dispatcher, 0
    turns = 0
    while dispatcher.read_ordinal < count:
        dispatcher.pump(rig.engine.now_ns, 1)
        assert passed < dispatcher.read_ordinal <= passed + (PUT_ASIDE_MAX + 1) * ROUND_ENTRIES
        passed = dispatcher.read_ordinal
        turns += 1
        assert subscription.dirty
    assert turns == 3
    assert delayed.not_due.entries == count


def test_one_report_of_the_age_looks_at_a_bounded_number_of_delayed_entries() -> None:
    count = AGE_STEPS_MAX * CHUNK_ENTRIES + 1
    rig, subscription, delayed = many_aside(count, 60_000)
    assert subscription.deliverable_age_ms() is None
    assert delayed._age_ordinal < count
    rig.publish(1)
    rig.advance(1)
    assert subscription.deliverable_age_ms() == 1


def test_what_a_move_of_the_cursor_passed_of_due_entries_is_forgotten_in_turns() -> None:
    count = 20_000
    rig, subscription, delayed = many_aside(count, 10)
    while delayed.take_due(rig.engine.now_ms + 10):
        pass
    assert delayed.due.entries == count
    subscription.acks.ack_through(count - 1)
    dispatcher, entries = subscription.dispatcher, count
    dispatcher.cursor_moved()
    while entries:
        assert dispatcher.pump(rig.engine.now_ns, 10) <= 10
        assert entries - delayed.due.entries <= (JOB_STEP_UNITS_MAX + 10) * CHUNK_ENTRIES
        entries = delayed.due.entries
    rig.flush()
    assert (rig.engine.delays.entries, dispatcher.needs_passed) == (0, False)


def test_a_full_memory_stops_the_reading_until_some_are_due() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, SHARED, permits=10)
    rig.engine.delays.memory_bytes_max = 3 * INDEXED_BYTES
    for delay_ms in (4_000, 5_000, 6_000, 7_000, 0):
        publish(rig, delay_ms)
    assert (port.ordinals, subscription.delayed_messages) == ([], 3)
    assert subscription.account.cell is Cell.STORAGE
    assert subscription.read_failed == DELAYS_FULL
    rig.advance(4_000)
    assert port.ordinals == [0, 4]
    assert not_due(subscription) == [1, 2, 3]
    assert subscription.read_failed == ""


def test_what_found_the_memory_full_is_delivered_when_it_is_due() -> None:
    rig = delay_rig()
    rig.engine.delays.memory_bytes_max = INDEXED_BYTES
    rig.consumer(rig.subscribe("first"), SHARED)
    publish(rig, 1_000_000)
    rig.engine.delays.count(1, "acme")  # of another topic: twice the bound
    second = rig.subscribe("second", at=1)
    _, port = rig.consumer(second, SHARED, permits=10, consumer_id=2)
    publish(rig, 300)
    publish(rig, 200)
    publish(rig)
    rig.advance(299)
    assert (port.ordinals, second.account.cell) == ([], Cell.STORAGE)
    rig.advance(1)
    assert port.ordinals == [1, 2, 3]
    assert (second.read_failed, rig.engine.delays.entries) == ("", 2)


def test_the_states() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    assert subscription.account.cell is Cell.CAUGHT_UP
    consumer, _ = rig.consumer(subscription, SHARED, permits=1)
    publish(rig, 1_000)
    assert subscription.account.cell is Cell.NOT_DUE
    publish(rig)
    assert subscription.account.cell is Cell.AWAITING_ACK
    subscription.ack_entry(consumer, 1)
    rig.flush()
    rig.engine.dirty_subscription(subscription)
    rig.flush()
    assert subscription.account.cell is Cell.NOT_DUE
    rig.advance(1_000)
    assert subscription.account.cell is Cell.NO_PERMITS
    subscription.flow(consumer, 1)
    rig.flush()
    subscription.ack_entry(consumer, 0)
    rig.flush()
    assert subscription.account.cell is Cell.CAUGHT_UP


def test_an_acknowledgement_of_the_last_message_in_flight_leaves_not_due() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=9)
    publish(rig, 1_000)
    publish(rig, count=2)
    subscription.ack_entry(consumer, 1)
    rig.flush()
    assert subscription.account.cell is Cell.AWAITING_ACK
    subscription.ack_entry(consumer, 2)
    rig.flush()
    assert subscription.account.cell is Cell.NOT_DUE


def test_the_age_counts_from_the_due_time() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=1)
    publish(rig, 10_000)
    publish(rig, 12_000)
    rig.advance(9_000)
    assert subscription.deliverable_age_ms() is None
    assert subscription.oldest_age_ms() == 9_000
    rig.advance(4_000)
    assert subscription.deliverable_age_ms() == 3_000  # the first is with the consumer
    subscription.ack_entry(consumer, 0)
    assert subscription.deliverable_age_ms() == 1_000
    publish(rig)
    rig.advance(5_000)
    assert subscription.deliverable_age_ms() == 6_000
    subscription.flow(consumer, 1)
    rig.flush()
    subscription.ack_entry(consumer, 1)
    assert subscription.deliverable_age_ms() == 5_000


def test_an_unloaded_topic_leaves_nothing_behind() -> None:
    rig = delay_rig()
    rig.consumer(rig.subscribe("a"), SHARED, permits=1)
    rig.consumer(rig.subscribe("b"), SHARED, permits=1)
    publish(rig, 10_000, count=3)
    assert rig.engine.delays.entries == 6
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    assert (rig.engine.delays.entries, rig.engine.next_wake_ns()) == (0, None)


def test_another_type_of_subscription_forgets_the_delays() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SHARED, permits=1)
    publish(rig, 10_000)
    subscription.remove_consumer(consumer)
    _, port = rig.consumer(subscription, EXCLUSIVE, permits=1)
    assert (rig.engine.delays.entries, port.ordinals) == (0, [0])


def test_due_entries_that_are_near_are_read_together() -> None:
    rig = delay_rig()
    subscription = rig.subscribe()
    rig.consumer(subscription, SHARED, permits=1_000)
    publish(rig, 1_000, count=30)
    publish(rig, 2_000, count=300)
    publish(rig, 1_000, count=1)
    forget_bodies(rig)
    rig.advance(1_000)
    assert [ordinal for _, ordinal in rig.effects.reads] == [0]
    assert subscription.entries_to_read(0) == 30


# -- any order of events ----------------------------------------------------------------------


@dataclass
class Play:
    """A subscription, and what must be true of it."""

    rig: Rig = field(default_factory=delay_rig)
    due_ms: list[int] = field(default_factory=list)
    """Of each entry; 0 if it is not delayed."""
    delivered: set[int] = field(default_factory=set)
    """With a consumer, or given back and to be delivered again."""
    seen: int = 0

    def __post_init__(self) -> None:
        self.subscription = self.rig.subscribe()
        self.port = FakePort()
        self.consumer: Consumer | None = None

    def join(self) -> None:
        if self.consumer is None:
            self.consumer, self.port = self.rig.consumer(
                self.subscription, SHARED, permits=1_000_000
            )
            self.seen = 0

    def leave(self) -> None:
        if self.consumer is not None:
            self.check()
            self.subscription.remove_consumer(self.consumer)
            self.consumer = None
            self.rig.flush()

    def send(self, delay_ms: int, count: int) -> None:
        due = self.rig.engine.now_ms + delay_ms if delay_ms else 0
        self.due_ms += [due] * count
        publish(self.rig, delay_ms, count=count)

    def ack(self, place: int) -> None:
        if self.consumer is not None and self.due_ms:
            self.subscription.ack_entry(self.consumer, place % len(self.due_ms))
            self.rig.flush()

    def give_back(self, place: int) -> None:
        held = [] if self.consumer is None else list(self.consumer.held)
        if self.consumer is not None and held:
            self.subscription.redeliver(self.consumer, held[: place % len(held) + 1], -1)
            self.rig.flush()

    def skip(self, place: int) -> None:
        if self.due_ms:
            self.subscription.skip_to(place % (len(self.due_ms) + 1))
            self.rig.flush()

    def seek(self, place: int) -> None:
        self.leave()
        if self.due_ms:
            self.subscription.reset(place % (len(self.due_ms) + 1))
            self.rig.flush()

    def check(self) -> None:
        """With a consumer that is always ready."""
        rig, now_ms = self.rig, self.rig.engine.now_ms
        while answer_reads(rig):
            pass
        for (ordinal, _, _), at_ns in zip(
            self.port.entries[self.seen :], self.port.times_ns[self.seen :], strict=True
        ):
            at_ms = now_ms - (rig.engine.now_ns - at_ns) // NS_PER_MS
            assert at_ms >= self.due_ms[ordinal], "early"
        self.seen = len(self.port.entries)
        delayed = self.subscription.dispatcher.delayed
        entries = 0 if delayed is None else delayed.entries
        assert rig.engine.delays.entries == entries
        if self.consumer is None:
            return
        acks, ends = self.subscription.acks, range(len(self.due_ms))
        unacked = [ordinal for ordinal in ends if not acks.is_acked(ordinal)]
        waiting = [ordinal for ordinal in unacked if self.due_ms[ordinal] > now_ms]
        assert sorted(self.consumer.held) == sorted(set(unacked) - set(waiting))
        assert not_due(self.subscription) == waiting
        assert self.subscription.dispatcher.waiting() == (0, 0)
        assert self.consumer.unacked_messages == len(self.consumer.held)
        wake_ns = rig.engine.next_wake_ns()
        if waiting:
            left_ms = min(self.due_ms[ordinal] for ordinal in waiting) - now_ms
            assert wake_ns is not None
            # An earlier wake may be left of an entry that was acknowledged meanwhile.
            assert wake_ns <= rig.engine.now_ns + left_ms * NS_PER_MS
        assert self.subscription.deliverable_age_ms() is None or set(unacked) - set(waiting)


KINDS = ("send", "advance", "ack", "give_back", "skip", "seek", "join", "leave", "evict")


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.integers(0, 3_000), st.integers(1, 40)), max_size=40
    )
)
def test_none_is_early_none_is_late_none_is_lost(steps: list[tuple[str, int, int]]) -> None:
    play = Play()
    play.join()
    for kind, number, count in steps:
        if kind == "send":
            play.send(number if count % 3 else 0, count)
        elif kind == "advance":
            play.rig.advance(number)
        elif kind == "join":
            play.join()
        elif kind == "leave":
            play.leave()
        elif kind == "evict":
            forget_bodies(play.rig)
        else:
            getattr(play, kind)(number)
        play.check()
    play.join()
    play.rig.advance(10_000)
    play.check()
    assert play.subscription.delayed_messages == 0
