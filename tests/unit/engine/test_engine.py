"""The turn: who is looked at when, and when the loop is asked to come back."""

from __future__ import annotations

from collections.abc import Callable

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.base.units import MIB, NS_PER_MS
from headgate.engine.consumer import Consumer
from headgate.engine.dispatcher import ENTRY_BYTES_PER_UNIT_BITS
from headgate.engine.engine import FLUSH_ENTRIES_MAX, PUMP_ENTRIES_MAX
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.engine.harness import START_MS, START_NS, FakeLog, FakePort, Rig
from tests.unit.work_meter import bytecodes

PERIOD_NS = 100 * NS_PER_MS


class PartlyLimited(Rig):
    """Subscriptions whose name begins with "limited" get ``subscription_limit``, others none."""

    def _limit_of(self, topic: Topic, subscription: str | None) -> RateLimit | None:
        limited = subscription is not None and subscription.startswith("limited")
        return self.subscription_limit if limited else None

    def flush_once(self, after_ms: int) -> None:
        """One flush, so long after the beginning."""
        now_ms = START_MS + after_ms
        self.engine.begin_turn(START_NS + after_ms * NS_PER_MS, now_ms, now_ms)
        self.engine.flush()


LARGE_IN_A_FLUSH = FLUSH_ENTRIES_MAX // (MIB >> ENTRY_BYTES_PER_UNIT_BITS)
"""Entries of :func:`publish_large`, at most."""


def publish_large(rig: Rig, count: int = 1, size_bytes: int = MIB) -> None:
    """Store large entries."""
    first = rig.log.end
    for _ in range(count):
        rig.send(body=bytes(size_bytes))
    rig.log.end = rig.log.staged_end
    rig.topic.publishing.entries_durable(first)


def test_work_is_announced_once_per_turn() -> None:
    rig = Rig()
    one, two = rig.subscribe("one"), rig.subscribe("two")
    rig.flush()
    before = rig.effects.work_count
    one.wake()
    one.wake()
    two.wake()
    assert rig.effects.work_count == before + 1


def test_timers_run_when_due_and_not_before() -> None:
    rig = Rig()
    ran: list[str] = []
    rig.engine.wake_at(rig.engine.now_ns + 20 * NS_PER_MS, lambda: ran.append("late"))
    rig.engine.wake_at(rig.engine.now_ns + 10 * NS_PER_MS, lambda: ran.append("early"))
    assert rig.engine.next_wake_ns() == rig.engine.now_ns + 10 * NS_PER_MS
    rig.advance(15)
    assert ran == ["early"]
    rig.advance(15)
    assert ran == ["early", "late"]
    assert rig.engine.next_wake_ns() is None


def test_a_waiter_asks_to_be_woken() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=1, bytes=None))
    subscription = rig.subscribe()
    rig.publish(2)
    rig.consumer(subscription, permits=10)
    wake_ns = rig.engine.next_wake_ns()
    assert wake_ns is not None
    assert 900 * NS_PER_MS < wake_ns - rig.engine.now_ns <= 1_000 * NS_PER_MS


def test_the_broker_limit_reaches_topics_that_are_there_already() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    consumer, port = rig.consumer(subscription, permits=100)
    rig.set_broker_limit(RateLimit(messages=5, bytes=None))
    rig.publish(20)
    assert len(port.entries) == 5
    rig.set_broker_limit(None)
    rig.flush()
    assert len(port.entries) == 20
    assert consumer.messages_sent == 20


def test_system_topics_know_no_limit() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=1, bytes=None))
    rig.topic.is_system = True
    subscription = rig.subscribe()
    rig.publish(5)
    _, port = rig.consumer(subscription, permits=10)
    assert len(port.entries) == 5


def test_an_unloaded_topic_is_forgotten() -> None:
    rig = Rig()
    rig.subscribe()
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic, deleted=True)
    assert rig.engine.topics == {}
    assert rig.engine.by_number == {}
    assert rig.engine.by_namespace == {}


def test_a_removed_subscription_does_not_touch_its_successors_budgets() -> None:
    rig = Rig(subscription_limit=RateLimit(messages=1, bytes=None))
    old = rig.subscribe()
    rig.publish(5)
    rig.consumer(old, permits=10)
    rig.topic.fence()
    old.wake()
    rig.engine.unload_topic(rig.topic)
    rig.topic = rig.engine.load_topic(rig.topic.name, rig.log)
    new = rig.subscribe()
    rig.topic.cache.update(enumerate(rig.log.bodies))
    _, port = rig.consumer(new, permits=10)
    rig.advance(3_000)
    assert len(port.entries) == 3


def test_the_limited_get_their_rate_beside_others_that_never_rest() -> None:
    """Laws 1.2 and 1.5: the limit, not how busy the others are, says what they get."""
    rig = PartlyLimited(subscription_limit=RateLimit(20, None, PERIOD_NS))
    names = ["one", "two", "three", "four", "five", "limited"]
    subscriptions = [rig.subscribe(name) for name in names]
    rig.publish(4_000)
    ports = [rig.consumer(subscription)[1] for subscription in subscriptions]
    for subscription in subscriptions:
        subscription.flow(next(iter(subscription.consumers)), 1_000_000)
    for turn in range(76):
        rig.flush_once(after_ms=4 * turn)
    *unlimited, limited = (len(port.entries) for port in ports)
    assert 55 <= limited <= 60 + 1
    assert max(unlimited) < 4_000
    assert max(unlimited) - min(unlimited) <= PUMP_ENTRIES_MAX


def test_those_that_waited_do_not_hold_up_the_others() -> None:
    rig = PartlyLimited(subscription_limit=RateLimit(1, None, PERIOD_NS))
    free = rig.subscribe("free")
    limited = [rig.subscribe(f"limited-{number}") for number in range(300)]
    rig.publish(70)
    for subscription in limited:
        rig.consumer(subscription, permits=2)
    _, port = rig.consumer(free)
    free.flow(next(iter(free.consumers)), 1_000)
    rig.flush_once(after_ms=1_000)
    assert len(port.entries) == PUMP_ENTRIES_MAX
    rig.flush()
    assert [subscription.messages_sent for subscription in limited] == [2] * 300


def test_reconnecting_readers_share_one_window() -> None:
    """Law 1.1: who leaves and comes back gains nothing, also under a name made up anew."""
    rig = Rig(subscription_limit=RateLimit(10, None))
    rig.subscribe("holds")
    rig.publish(100)
    seen: list[int] = []
    for number in range(5):
        reader = rig.subscribe(f"reader-{number % 4}", at=sum(seen), durable=False)
        consumer, port = rig.consumer(reader, permits=1000)
        rig.advance(50)
        reader.remove_consumer(consumer)
        seen.append(len(port.entries))
    assert seen == [10, 0, 0, 0, 0]
    rig.advance(1_000)
    _, port = rig.consumer(rig.subscribe("reader-9", at=10, durable=False), permits=1000)
    assert len(port.entries) == 10


def test_a_subscription_made_anew_by_its_name_finds_its_window() -> None:
    rig = Rig(subscription_limit=RateLimit(10, None))
    rig.subscribe("holds")
    rig.publish(100)
    for expected in (10, 0):
        subscription = rig.subscribe("s")
        consumer, port = rig.consumer(subscription, permits=1000)
        assert len(port.entries) == expected
        subscription.remove_consumer(consumer)
        rig.topic.remove_subscription("s")
    _, port = rig.consumer(rig.subscribe("other"), permits=1000)
    assert len(port.entries) == 10


def test_a_reader_finds_its_window_after_an_unload() -> None:
    rig = Rig(subscription_limit=RateLimit(10, None))
    rig.publish(30)
    rig.topic.cache.update(enumerate(rig.log.bodies))
    assert len(rig.consumer(rig.subscribe(durable=False), permits=1000)[1].entries) == 10
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.topic = rig.engine.load_topic(rig.topic.name, rig.log)
    rig.topic.cache.update(enumerate(rig.log.bodies))
    _, port = rig.consumer(rig.subscribe(at=10, durable=False), permits=1000)
    rig.advance(500)
    assert port.entries == []
    rig.advance(1_500)
    assert 9 <= len(port.entries) <= 11


def test_topics_are_grouped_by_namespace_and_by_base_name() -> None:
    rig = Rig()
    engine = rig.engine
    parts = [
        engine.load_topic(parse_topic(f"persistent://acme/ns/p-partition-{n}"), FakeLog(10 + n))
        for n in range(2)
    ]
    other = engine.load_topic(parse_topic("persistent://acme/other/t"), FakeLog(20))
    assert list(engine.by_namespace["acme/ns"]) == [rig.topic, *parts]
    assert list(engine.by_namespace["acme/other"]) == [other]
    assert {key: list(group) for key, group in engine.by_base.items()} == {
        "persistent://acme/ns/p": parts
    }
    for topic in parts:
        topic.fence()
        engine.unload_topic(topic)
    assert list(engine.by_namespace["acme/ns"]) == [rig.topic]
    assert engine.by_base == {}


def test_another_amount_of_a_brokers_publish_limit_visits_no_topic() -> None:
    rig = Rig()

    def change(limit: int) -> int:
        return bytecodes(lambda: rig.engine.admission.set_broker_limit(RateLimit(limit, None)))

    change(1_000)
    few = change(1_001)
    for number in range(500):
        rig.engine.load_topic(parse_topic(f"persistent://acme/ns/n{number}"), FakeLog(10 + number))
    assert change(1_002) == few


KINDS = (RateLimit(1, None), RateLimit(None, 50), RateLimit(2, 60), None)


def test_another_kind_of_a_brokers_dispatch_limit_visits_no_subscription() -> None:
    """Also where all of them wait for it."""
    rig = Rig()

    def change() -> list[int]:
        set_limit = rig.engine.set_broker_limit
        return [bytecodes(lambda limit=limit: set_limit(limit)) for limit in KINDS]  # type: ignore[misc]

    few = change()
    for number in range(300):
        rig.consumer(rig.subscribe(f"s{number}"), permits=100)
    rig.set_broker_limit(RateLimit(1, None))
    rig.publish(10)
    assert sum(s.throttled for s in rig.topic.subscriptions.values()) > 290
    assert max(change() + change()) <= 2 * max(few)


def test_another_kind_of_a_brokers_publish_limit_visits_no_topic() -> None:
    rig = Rig()

    def change() -> list[int]:
        set_limit = rig.engine.admission.set_broker_limit
        return [bytecodes(lambda limit=limit: set_limit(limit)) for limit in KINDS]  # type: ignore[misc]

    change()
    few = change()
    for number in range(300):
        rig.engine.load_topic(parse_topic(f"persistent://acme/ns/n{number}"), FakeLog(10 + number))
    assert change() == few


def test_a_topic_follows_another_kind_of_the_brokers_limit_when_its_turn_comes() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    rig.consumer(subscription, permits=100)
    rig.set_broker_limit(RateLimit(1, None))
    rig.publish(10)
    assert (subscription.messages_sent, subscription.throttled) == (1, True)
    rig.engine.set_broker_limit(RateLimit(None, 8))
    rig.advance(3_000)
    assert subscription.messages_sent > 1, "what waited under the removed limit goes on"
    rig.engine.reload_limits(rig.topic)
    before = subscription.bytes_sent
    rig.publish(100)
    rig.advance(5_000)
    assert 8 * 5 <= subscription.bytes_sent - before <= 8 * 6


def test_entries_of_a_topic_with_very_many_subscriptions_touch_them_in_bounded_flushes() -> None:
    rig = Rig()
    found = [rig.subscribe(f"s{number}") for number in range(3_000)]
    for subscription in found:
        rig.consumer(subscription, permits=10)
    rig.flush()
    pumped: list[int] = [0]
    for subscription in found:
        inner = subscription.dispatcher.pump

        def pump(now_ns: int, most: int, inner: Callable[[int, int], int] = inner) -> int:
            pumped[-1] += 1
            return inner(now_ns, most)

        subscription.dispatcher = _Pumped(subscription.dispatcher, pump)  # type: ignore[assignment]
    rig.send()
    rig.log.end = rig.log.staged_end
    rig.topic.publishing.entries_durable(0)
    assert not rig.engine._dirty, "no subscription is touched in the turn of the commit"
    while rig.engine.flush():
        pumped.append(0)
        if len(pumped) == 3:  # more entries while the round is under way
            rig.send()
            rig.log.end = rig.log.staged_end
            rig.topic.publishing.entries_durable(0)
    assert max(pumped) <= FLUSH_ENTRIES_MAX
    assert {subscription.messages_sent for subscription in found} == {2}


def test_very_many_subscriptions_of_one_tenant_hold_up_none_of_another() -> None:
    """They stood in one line: a message to each of 200 topics with 100 subscriptions, 12 KB, kept
    messages of other tenants waiting for 0.7 s."""
    rig = Rig()
    other = rig.engine.load_topic(parse_topic("persistent://globex/ns/orders"), FakeLog(2))
    many = [rig.subscribe(f"s{number}") for number in range(3 * FLUSH_ENTRIES_MAX)]
    few = [other.add_subscription(f"s{n}", AckSet(), cursor_id=n) for n in range(20)]
    for subscription in (*many, *few):
        rig.consumer(subscription, permits=10)
    seen: list[Subscription] = []
    for subscription in (*many, *few):
        inner = subscription.dispatcher.pump

        def pump(
            now_ns: int,
            most: int,
            inner: Callable[[int, int], int] = inner,
            subscription: Subscription = subscription,
        ) -> int:
            seen.append(subscription)
            return inner(now_ns, most)

        subscription.dispatcher = _Pumped(subscription.dispatcher, pump)  # type: ignore[assignment]
    for subscription in (*many, few[0]):
        subscription.wake()
    rig.engine.flush()
    assert few[0] in seen[:2]
    rig.flush()
    rig.engine.wake_subscriptions(rig.topic)
    rig.engine.wake_subscriptions(other)
    seen.clear()
    rig.engine.flush()
    assert set(few) <= set(seen)
    rig.flush()
    assert set(seen) == {*many, *few}


def test_very_many_limited_subscriptions_of_one_tenant_hold_up_none_of_another() -> None:
    """Those whose limits had room again stood in one line, and a limit makes up for no more than
    20 ms: 20,000 subscriptions with a limit of five messages a second, which take 2 MB/s, left a
    subscription of another tenant 179 of its 1,000 messages a second."""
    rig = PartlyLimited(subscription_limit=RateLimit(1, None, PERIOD_NS))
    log = FakeLog(2)
    other = rig.engine.load_topic(parse_topic("persistent://globex/ns/orders"), log)
    many = [rig.subscribe(f"limited-{number}") for number in range(3 * FLUSH_ENTRIES_MAX)]
    few = other.add_subscription("limited", AckSet(), cursor_id=1)
    rig.publish(3)
    producer = Producer(1, "p", FakePort())
    other.add_producer(producer)
    for sequence in range(3):
        other.publishing.publish(producer, sequence, 0, 1, b"body")
    log.end = log.staged_end
    other.publishing.entries_durable(0)
    for subscription in (*many, few):  # the other tenant's is the last one in any order of time
        rig.consumer(subscription, permits=10)
    assert {subscription.messages_sent for subscription in (*many, few)} == {1}
    rig.flush_once(after_ms=500)
    assert few.messages_sent == 2
    assert sum(subscription.messages_sent for subscription in many) < 2 * len(many)


class _Pumped:
    """A dispatcher whose ``pump`` is another."""

    def __init__(self, dispatcher: object, pump: Callable[[int, int], int]) -> None:
        self._dispatcher = dispatcher
        self.pump = pump

    def __getattr__(self, name: str) -> object:
        return getattr(self._dispatcher, name)


def test_a_look_at_a_subscription_with_very_many_consumers_counts_them() -> None:
    """None of them is ready, and the dispatcher asks all of them why."""
    rig = Rig()
    found = [rig.subscribe(f"s{number}") for number in range(8)]
    for subscription in found:
        for number in range(64 * 64):
            consumer = Consumer(number, f"c{number}", FakePort())
            subscription.add_consumer(consumer, SubscriptionType.SHARED)
    rig.flush()
    rig.send()
    rig.log.end = rig.log.staged_end
    rig.topic.publishing.entries_durable(0)
    assert rig.engine.flush(), "work is left over"
    assert sum(not subscription.dirty for subscription in found) == 4


def test_large_entries_that_waited_do_not_hold_up_the_others() -> None:
    """One used up a whole flush: 200 kept messages of others back for 0.9 s."""
    rig = PartlyLimited(subscription_limit=RateLimit(1, None, PERIOD_NS))
    for number in range(40):
        rig.consumer(rig.subscribe(f"limited-{number}"), permits=9)
    rig.publish(1)
    rig.flush()
    publish_large(rig, size_bytes=5 * MIB)
    rig.flush_once(after_ms=0)
    free = rig.subscribe("free")
    _, port = rig.consumer(free)
    rig.engine.begin_turn(START_NS + 1_000 * NS_PER_MS, START_MS + 1_000, START_MS + 1_000)
    free.flow(next(iter(free.consumers)), 1_000)
    rig.engine.flush()
    assert len(port.entries) >= 1
    rig.flush()


def test_large_entries_count_in_a_flush() -> None:
    """Over TLS each takes 5 ms: one of 5 MB to each of 400 consumers, which had sent a FLOW of 12
    bytes, held the loop for 2.6 s."""
    rig = Rig()
    ports = [rig.consumer(rig.subscribe(f"s{n}"), permits=1)[1] for n in range(20)]
    publish_large(rig)
    assert rig.engine.flush()
    assert 1 <= sum(len(port.entries) for port in ports) <= LARGE_IN_A_FLUSH
    rig.flush()
    assert [len(port.entries) for port in ports] == [1] * 20


def test_large_entries_of_one_subscription_count_in_a_flush() -> None:
    """64 of them went out in one, whatever their bytes."""
    rig = Rig()
    shared = rig.subscribe()
    ports = [rig.consumer(shared, SubscriptionType.SHARED, permits=1)[1] for _ in range(40)]
    publish_large(rig, 40)
    assert rig.engine.flush()
    assert 1 <= sum(len(port.entries) for port in ports) <= LARGE_IN_A_FLUSH
    rig.flush()
    assert [len(port.entries) for port in ports] == [1] * 40


def test_large_entries_that_waited_for_a_limit_count_in_a_flush() -> None:
    """128 subscriptions and more got one each in one flush, when their limits had room again."""
    rig = PartlyLimited(subscription_limit=RateLimit(1, None, PERIOD_NS))
    ports = [rig.consumer(rig.subscribe(f"limited-{n}"), permits=9)[1] for n in range(40)]
    rig.publish(1)
    rig.flush()
    publish_large(rig)
    rig.flush_once(after_ms=0)
    assert [len(port.entries) for port in ports] == [1] * 40
    rig.flush_once(after_ms=1_000)
    assert 41 <= sum(len(port.entries) for port in ports) <= 40 + LARGE_IN_A_FLUSH + 1
    rig.flush()
    assert [len(port.entries) for port in ports] == [2] * 40
