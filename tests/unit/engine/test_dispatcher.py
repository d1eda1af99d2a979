"""The shared loop: budgets, what is not in memory, and the one state it rests in."""

from __future__ import annotations

import pytest

from headgate.base.positions import Position
from headgate.base.units import NS_PER_S
from headgate.engine.consumer import Consumer
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.ports import RunningTotals
from headgate.engine.types import SubscriptionType
from headgate.flow.account.account import LABELS, Cell, State
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from tests.unit.engine.harness import FakePort, Rig

SHARED = SubscriptionType.SHARED


class FullAfter(FakePort):
    """A connection whose buffer is full after so many entries."""

    def __init__(self, entries: int) -> None:
        super().__init__()
        self._left = entries

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        count: int,
        body: bytes,
        left: tuple[int, ...],
    ) -> bool:
        super().send_entry(consumer, position, partition, count, body, left)
        self._left -= 1
        self.writable = self._left > 0
        return not self.writable


def per_second(port: FakePort, start_ns: int, seconds: int) -> list[int]:
    """Entries handed over in each second from ``start_ns``."""
    counts = [0] * seconds
    for when in port.times_ns:
        index = (when - start_ns) // NS_PER_S
        if 0 <= index < seconds:
            counts[index] += 1
    return counts


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SHARED, SubscriptionType.FAILOVER])
def test_a_subscription_limit_holds_every_second(kind: SubscriptionType) -> None:
    rig = Rig(subscription_limit=RateLimit(messages=100, bytes=None))
    subscription = rig.subscribe()
    rig.publish(1_000)
    start_ns = rig.engine.now_ns
    _, port = rig.consumer(subscription, kind, permits=5_000)
    rig.advance(6_000)
    counts = per_second(port, start_ns, 6)
    assert counts[0] == 100
    assert all(98 <= count <= 101 for count in counts[1:]), counts
    assert port.ordinals == list(range(len(port.ordinals)))


def test_a_topic_limit_is_shared_equally() -> None:
    rig = Rig(topic_limit=RateLimit(messages=60, bytes=None))
    subscriptions = [rig.subscribe(f"s{index}") for index in range(6)]
    rig.publish(400)
    ports = [rig.consumer(s, SHARED, permits=5_000)[1] for s in subscriptions]
    rig.advance(3_000)
    before = [len(port.entries) for port in ports]
    rig.advance(10_000)
    shares = [len(port.entries) - was for port, was in zip(ports, before, strict=True)]
    assert max(shares) - min(shares) <= 2
    assert 588 <= sum(shares) <= 601


def test_a_broker_limit_holds_all_topics() -> None:
    rig = Rig()
    rig.set_broker_limit(RateLimit(messages=None, bytes=400))
    subscription = rig.subscribe()
    rig.publish(1_000)
    _, port = rig.consumer(subscription, permits=5_000)
    rig.advance(5_000)
    assert 485 <= len(port.entries) <= 501
    labels = LABELS[subscription.account.cell]
    assert labels.state is State.THROTTLED_BROKER
    assert labels.dimension == "bytes"


def test_the_account_names_limiter_and_whether_the_consumer_is_hungry() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=10, bytes=None))
    subscription = rig.subscribe()
    rig.publish(100)
    rig.consumer(subscription, permits=40)
    rig.advance(900)
    assert subscription.account.cell is Cell.SUBSCRIPTION_MESSAGES_HUNGRY
    rig.advance(1_200)
    assert subscription.account.cell is Cell.SUBSCRIPTION_MESSAGES_BUSY
    events = subscription.gate.throttled_events
    subscription.gate.count_until(rig.engine.now_ns)
    assert events[Level.SUBSCRIPTION][Dimension.MESSAGES] >= 2
    assert events[Level.TOPIC] == [0, 0]


def test_batches_count_their_messages_unless_set_otherwise() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=100, bytes=None))
    rig.engine.throttle_counts_entries = True
    subscription = rig.subscribe()
    rig.publish(100, messages=50)
    _, port = rig.consumer(subscription, permits=100_000)
    assert len(port.entries) == 100


def test_raising_the_limit_frees_the_waiter() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=10, bytes=None))
    subscription = rig.subscribe()
    rig.publish(100)
    _, port = rig.consumer(subscription, permits=1_000)
    rig.advance(100)
    assert len(port.entries) == 10
    rig.subscription_limit = None
    rig.engine.reload_limits(rig.topic)
    rig.flush()
    assert len(port.entries) == 100


def test_an_unload_forgives_nothing() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=10, bytes=None))
    subscription = rig.subscribe()
    rig.publish(100)
    rig.consumer(subscription, permits=1_000)
    rig.advance(100)
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.topic = rig.engine.load_topic(rig.topic.name, rig.log)
    again = rig.subscribe()
    for ordinal, body in enumerate(rig.log.bodies):
        rig.topic.cache[ordinal] = body
    _, port = rig.consumer(again, permits=1_000)
    rig.advance(500)
    assert port.entries == []
    rig.advance(500)
    assert 0 < len(port.entries) <= 10


def test_an_entry_on_disk_is_read_and_the_wait_is_storage() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(3)
    rig.topic.cache.clear()
    _, port = rig.consumer(subscription, permits=10)
    assert rig.effects.reads == [(subscription, 0)]
    assert subscription.account.cell is Cell.STORAGE
    subscription.wake()
    rig.flush()
    assert len(rig.effects.reads) == 1
    for ordinal, body in enumerate(rig.log.bodies):
        rig.topic.cache[ordinal] = body
    subscription.read_completed()
    rig.flush()
    assert port.ordinals == [0, 1, 2]


def test_an_entry_whose_index_is_on_disk_waits_for_that_and_starts_no_reading_ahead() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(100)
    known = rig.log.running_totals
    rig.log.running_totals = lambda *_: None  # type: ignore[method-assign,assignment]
    _, port = rig.consumer(subscription, SHARED, permits=50)
    rig.flush()
    assert subscription.account.cell is Cell.STORAGE
    assert rig.effects.reads == [(subscription, 0)]
    assert not subscription.dispatcher.behind  # no later entry is looked for: all are in memory
    rig.log.running_totals = known  # type: ignore[method-assign]
    subscription.read_completed()
    rig.flush()
    assert len(port.ordinals) == 50


def test_entries_are_handed_over_up_to_where_their_index_continues_elsewhere() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(100)
    known = rig.log.running_totals
    asked: list[int] = []

    def up_to_ten(first: int, stop: int) -> RunningTotals:
        asked.append(first)
        return known(first, min(stop, first + 10))

    rig.log.running_totals = up_to_ten  # type: ignore[method-assign]
    _, port = rig.consumer(subscription, SHARED, permits=35)
    rig.flush()
    assert port.ordinals == list(range(35))
    assert asked == [0, 10, 20, 30]


def test_a_limited_subscription_reads_ahead_uncharged() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=1, bytes=None))
    subscription = rig.subscribe()
    rig.publish(3)
    _, port = rig.consumer(subscription, permits=10)
    rig.topic.cache.clear()
    rig.advance(300)
    subscription.wake()
    rig.flush()
    assert rig.effects.reads == [(subscription, 1)]
    assert LABELS[subscription.account.cell].state is State.THROTTLED_SUBSCRIPTION
    rig.advance(1_000)
    assert subscription.account.cell is Cell.STORAGE
    rig.topic.cache[1] = rig.log.bodies[1]
    subscription.read_completed()
    rig.flush()
    assert port.ordinals == [0, 1]


def test_a_long_backlog_is_handed_over_in_bounded_turns() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(500)
    consumer, port = rig.consumer(subscription)
    subscription.flow(consumer, 1_000)
    assert rig.engine.flush() is True
    assert 0 < len(port.entries) <= 128
    assert subscription.account.cell is Cell.DISPATCHING
    rig.flush()
    assert len(port.entries) == 500


def test_a_fenced_subscription_is_in_transition() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(1)
    subscription.fenced = True
    subscription.wake()
    rig.flush()
    assert subscription.account.cell is Cell.TRANSITION


def test_a_run_ends_where_the_socket_is_full() -> None:
    """Several entries are handed over together; each may be the one that fills the socket."""
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(10)
    port = FullAfter(3)
    consumer = Consumer(1, "c", port)
    subscription.add_consumer(consumer, SHARED)
    subscription.flow(consumer, 100)
    rig.flush()
    assert port.ordinals == [0, 1, 2]
    assert (consumer.permits, consumer.unacked_messages) == (97, 3)
    assert subscription.account.cell is Cell.SOCKET_FULL


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SHARED])
def test_only_the_last_entry_of_a_run_may_exceed_the_permits(kind: SubscriptionType) -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(10, messages=4)
    consumer, port = rig.consumer(subscription, kind, permits=9)
    assert port.ordinals == [0, 1, 2]
    assert consumer.permits == -3
    assert consumer.messages_sent == subscription.messages_sent == 12
    assert consumer.bytes_sent == subscription.bytes_sent == 3 * len(b"body")


def test_a_run_ends_before_what_was_acknowledged_or_is_not_in_memory() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(10)
    consumer, port = rig.consumer(subscription, SHARED)
    subscription.ack_entry(consumer, 2)
    del rig.topic.cache[5]
    subscription.flow(consumer, 100)
    rig.flush()
    assert port.ordinals == [0, 1, 3, 4]
    assert rig.effects.reads == [(subscription, 5)]


@pytest.mark.parametrize(
    "limits", [EngineLimits(unacked_per_consumer_max=5), EngineLimits(0, 5)], ids=str
)
def test_a_run_ends_at_the_unacknowledged_limit(limits: EngineLimits) -> None:
    rig = Rig()
    rig.topic.unacked_limits = limits
    subscription = rig.subscribe()
    rig.publish(10)
    consumer, port = rig.consumer(subscription, SHARED, permits=100)
    assert port.ordinals == [0, 1, 2, 3, 4]
    assert consumer.permits == 95
    assert subscription.account.cell is Cell.UNACKED_LIMIT


def test_the_first_fact_that_applies_names_the_state() -> None:
    """The table of docs/telemetry.md 1, from the bottom up: each fact hides all below it."""
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(200)
    consumer, port = rig.consumer(subscription, SHARED)

    def cell() -> Cell:
        subscription.wake()
        rig.engine.flush()
        return subscription.account.cell

    subscription.flow(consumer, 150)
    assert cell() is Cell.DISPATCHING
    rig.topic.cache.clear()
    assert cell() is Cell.STORAGE
    rig.subscription_limit = RateLimit(1, None)
    rig.engine.reload_subscription_limit(subscription)
    subscription.gate.charge(rig.engine.now_ns, 1, 1)
    assert cell() is Cell.SUBSCRIPTION_MESSAGES_HUNGRY
    port.writable = False
    assert cell() is Cell.SOCKET_FULL
    consumer.permits = 0
    assert cell() is Cell.NO_PERMITS
    consumer.blocked_on_unacked = True
    assert cell() is Cell.UNACKED_LIMIT
    for ordinal in range(len(port.entries), 200):
        subscription.ack_entry(consumer, ordinal)
    assert cell() is Cell.AWAITING_ACK
    subscription.remove_consumer(consumer)
    assert cell() is Cell.NO_CONSUMER
    subscription.skip_to(200)
    assert cell() is Cell.CAUGHT_UP
    subscription.fenced = True
    assert cell() is Cell.TRANSITION


def test_the_consumer_that_is_furthest_along_names_the_state() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.publish(1)
    blocked, _ = rig.consumer(subscription, SHARED, consumer_id=1)
    blocked.blocked_on_unacked = True
    blocked.permits = 10
    subscription.wake()
    rig.flush()
    assert subscription.account.cell is Cell.UNACKED_LIMIT
    rig.consumer(subscription, SHARED, consumer_id=2)
    assert subscription.account.cell is Cell.NO_PERMITS
    full, port = rig.consumer(subscription, SHARED, consumer_id=3)
    port.writable = False
    subscription.flow(full, 5)
    rig.flush()
    assert subscription.account.cell is Cell.SOCKET_FULL
