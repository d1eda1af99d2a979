"""Bounds on what waits: whose socket is paused, who is closed instead, when reading goes on."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from weakref import ref

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.parked_bounds import ENDED_IN_LOOK, NEXT_LOOK_NS, held_since_ns
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.producer import Producer
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from tests.unit.engine.harness import FakeLog, FakePort, Rig
from tests.unit.engine.quota_rig import EVICT, QuotaRig, size_quota

TEN = b"0123456789"


class AckingPort(FakePort):
    """A connection over which consumers acknowledge, too."""

    brings_acks = True


def limited(rig: Rig, per_s: int | None) -> None:
    """Limit the topic's messages a second."""
    rig.publish_limit = None if per_s is None else RateLimit(messages=per_s, bytes=None)
    rig.engine.reload_publish_limit(rig.topic)


def held_rig(*, connection: int = 1_000, total: int = 10_000) -> QuotaRig:
    """A topic whose limit of one message a second is used up."""
    rig = QuotaRig()
    rig.engine.limits.parked_bytes_per_connection_max = connection
    rig.engine.limits.parked_bytes_max = total
    limited(rig, 1)
    rig.send(1)
    return rig


def producer_on(rig: Rig, port: FakePort, number: int = 2) -> Producer:
    producer = Producer(number, f"p{number}", port)
    rig.topic.add_producer(producer)
    return producer


def send(rig: Rig, producer: Producer, count: int) -> None:
    for _ in range(count):
        rig.topic.publishing.publish(producer, 0, 0, 1, TEN)


def let_go(rig: Rig, count: int) -> None:
    """So many seconds, in each of which one message goes."""
    rig.advance(1_000 * count)


# -- who is paused -------------------------------------------------------------------------------


def test_a_connection_is_paused_beyond_its_bound_and_read_on_at_half_of_it() -> None:
    """Rule 3.1."""
    rig = held_rig(connection=50)
    rig.send(5, body=TEN)
    assert not rig.port.is_paused
    rig.send(1, body=TEN)
    assert rig.port.is_paused
    let_go(rig, 3)
    assert (rig.port.parked_bytes, rig.port.is_paused) == (30, True)
    let_go(rig, 1)
    assert (rig.port.parked_bytes, rig.port.is_paused) == (20, False)


def test_a_bound_counts_what_small_sends_take_in_memory() -> None:
    """Rule 3.1: eight times as much as their bodies, or more, where these are tiny."""
    rig = held_rig(connection=50 * 200)
    rig.engine.limits.parked_send_bytes = EngineLimits().parked_send_bytes
    rig.topic.publishing.publish(rig.producer, 999, 0, 1, b"")  # what the first one creates
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(100):
            body = bytes(bytearray(number % 30))
            rig.topic.publishing.publish(rig.producer, 1_000 + number, 0, 1, body)
            if rig.port.is_paused:
                break
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rig.port.is_paused
    assert 0.7 * (after - before) < rig.port.parked_bytes < 1.3 * (after - before)
    rig.topic.publishing.discard_parked(rig.producer)
    assert rig.port.parked_bytes == rig.engine.parked.bytes == 0


def test_a_connection_with_its_own_bound_goes_on_however_much_others_park() -> None:
    """Rule 3.1: while all together are within theirs. It would wait until it parks nothing."""
    rig = held_rig(total=450)
    mine, others = FakePort(), [FakePort() for _ in range(3)]
    for number, port in enumerate(others, 3):
        send(rig, producer_on(rig, port, number), 12)
    rig.engine.limits.parked_bytes_per_connection_max = 50
    send(rig, producer_on(rig, mine, 9), 6)
    assert mine.is_paused
    while mine.parked_bytes > 20:
        let_go(rig, 1)
    assert rig.engine.parked.bytes > 450 // 2
    assert not mine.is_paused


def test_beyond_the_bound_of_all_who_parks_most_is_paused_and_nobody_else() -> None:
    """Rule 3.1: neither who passed the bound, nor who parks nothing, nor all at once."""
    rig = held_rig(total=100)
    most, some, nothing = FakePort(), FakePort(), FakePort()
    large, small = producer_on(rig, most, 2), producer_on(rig, some, 3)
    producer_on(rig, nothing, 4)
    send(rig, large, 7)
    send(rig, small, 3)
    assert not most.is_paused
    send(rig, small, 1)
    assert (most.is_paused, some.is_paused, nothing.is_paused) == (True, False, False)
    send(rig, small, 1)
    assert (most.is_paused, some.is_paused, nothing.is_paused) == (True, True, False)
    let_go(rig, 6)
    assert (rig.engine.parked.bytes, most.is_paused, some.is_paused) == (60, True, True)
    let_go(rig, 1)
    assert rig.engine.parked.bytes == 50
    assert not most.is_paused
    assert not some.is_paused


def parked_by(rig: Rig, tenant: str, count: int) -> FakePort:
    """The connection of a producer of another tenant with so many SENDs, which are parked: on its
    topic the limit of one message a second is used up."""
    log = FakeLog(len(rig.engine.topics) + 1)
    topic = rig.engine.load_topic(parse_topic(f"persistent://{tenant}/ns/t"), log)
    topic.publishing.limit = RateLimit(messages=1, bytes=None)
    rig.engine.admission.put_in_force(topic)
    mine = FakePort()
    first, second = Producer(1, "first", FakePort()), Producer(2, "second", mine)
    for producer, sends_count in ((first, 1), (second, count)):
        topic.add_producer(producer)
        for _ in range(sends_count):
            topic.publishing.publish(producer, 0, 0, 1, TEN)
    return mine


def test_a_tenant_that_takes_the_room_of_all_pauses_nobody_else() -> None:
    """Rule 3.1: many connections of it that park less each, too."""
    rig = held_rig(total=100)
    others = [FakePort() for _ in range(20)]
    for number, port in enumerate(others, 3):
        send(rig, producer_on(rig, port, number), 1)
    assert rig.engine.parked.bytes == 200
    mine = parked_by(rig, "globex", 3)
    assert not mine.is_paused
    assert mine.closed == []
    assert mine.parked_bytes == 30
    assert rig.engine.parked.bytes <= 125, "producers of the former are closed for it"
    send(rig, producer_on(rig, others[0], 99), 1)
    assert not mine.is_paused


def test_nor_one_that_parks_more_than_very_many_that_park_next_to_nothing() -> None:
    """Rule 3.1: above the average stood each tenant with a few SENDs, beside thirty with one."""
    rig = held_rig(total=1_000)
    for number in range(30):
        parked_by(rig, f"tiny{number}", 1)
    for number in range(3, 103):
        send(rig, producer_on(rig, FakePort(), number), 1)
    mine = parked_by(rig, "globex", 8)
    assert rig.engine.parked.bytes > 1_000
    assert (mine.is_paused, mine.parked_bytes) == (False, 80)


def test_one_of_a_tenant_that_parks_little_is_paused_by_its_own_bound_alone() -> None:
    """Rule 3.1: and read on at half of that, whatever others park."""
    rig = held_rig(total=1_000, connection=20)
    for number in range(3, 113):
        send(rig, producer_on(rig, FakePort(), number), 1)
    mine = parked_by(rig, "globex", 3)
    assert mine.is_paused
    let_go(rig, 2)
    assert rig.engine.parked.bytes > 1_000
    assert (mine.parked_bytes, mine.is_paused) == (10, False)


def test_who_parks_nothing_any_more_is_read_whatever_others_park() -> None:
    """Rule 3.1."""
    rig = held_rig(total=100)
    one, two = FakePort(), FakePort()
    first, second = producer_on(rig, one, 2), producer_on(rig, two, 3)
    send(rig, second, 6)
    send(rig, first, 8)
    assert one.is_paused
    rig.topic.remove_producer(first)
    assert (one.parked_bytes, one.is_paused) == (0, False)
    assert rig.engine.parked.bytes == 60


class CountingPort(FakePort):
    """Counts how often it is asked what it parks."""

    def __init__(self) -> None:
        self.asked_count = 0
        self._bytes = 0
        super().__init__()

    @property
    def parked_bytes(self) -> int:  # type: ignore[override]
        self.asked_count += 1
        return self._bytes

    @parked_bytes.setter
    def parked_bytes(self, value: int) -> None:
        self._bytes = value


def test_what_goes_looks_at_all_paused_connections_only_where_a_bound_is_passed() -> None:
    """Thousands may be paused, and each entry that goes would ask them all."""
    rig = held_rig(total=1_000)
    ports = [CountingPort() for _ in range(100)]
    for number, port in enumerate(ports, 3):
        send(rig, producer_on(rig, port, number), 2)
    paused = [port for port in ports if port.is_paused]
    assert len(paused) > 40
    before = sum(port.asked_count for port in ports)
    let_go(rig, 30)
    assert sum(port.asked_count for port in ports) - before <= 30 * 3
    let_go(rig, 120)
    assert rig.engine.parked.bytes <= 500
    assert not any(port.is_paused for port in ports)


def test_bounds_that_are_raised_let_paused_connections_go_on_at_once() -> None:
    """Rule 3.1: the setting is dynamic."""
    rig = held_rig(connection=50)
    rig.send(6, body=TEN)
    assert rig.port.is_paused
    rig.engine.limits.parked_bytes_per_connection_max = 120
    rig.engine.parked.bounds_changed()
    assert not rig.port.is_paused


# -- what no socket is paused for -----------------------------------------------------------------


def quota_over(rig: QuotaRig) -> None:
    """The topic's quota has no room."""
    if "s" not in rig.topic.subscriptions:
        rig.subscribe()
    rig.commit()
    rig.set_quotas(size_quota(1))


def test_a_quota_that_is_exceeded_since_closes_who_waits_for_a_rate_beyond_a_bound() -> None:
    """Rules 3.1 and 4.3: what it waits for now counts, not what it waited for first. The
    acknowledgements that make room may come over this very connection."""
    rig = held_rig(connection=50)
    rig.send(3, body=TEN)
    quota_over(rig)
    rig.send(3, body=TEN)
    assert not rig.port.is_paused
    assert rig.port.closed == [1]


def test_a_connection_that_is_paused_is_read_again_when_a_quota_holds_what_it_parks() -> None:
    """Rules 3.1 and 4.3."""
    rig = held_rig(connection=50)
    rig.send(6, body=TEN)
    assert rig.port.is_paused
    quota_over(rig)
    assert not rig.port.is_paused
    assert rig.port.closed == [1]
    assert rig.engine.parked.bytes == 0


def test_what_an_eviction_stops_for_a_moment_closes_nobody() -> None:
    """Rule 4.3: only a hold ends producers, what evicts makes room by itself."""
    rig = held_rig(connection=50)
    rig.send(6, body=TEN)
    rig.subscribe()
    rig.commit()
    rig.set_quotas(size_quota(1, EVICT))
    rig.advance(100)
    assert rig.port.is_paused
    assert rig.port.closed == []


@pytest.mark.parametrize("port", [FakePort(), AckingPort()])
def test_the_adaptive_limit_pauses_only_who_acknowledges_nothing(port: FakePort) -> None:
    """Rule 3.1: where consumers are on the connection their acknowledgements may be what ends the
    pressure, so that the producer that parks most is closed instead."""
    rig = held_rig(connection=50)
    limited(rig, None)
    rig.topic.publishing.adaptive_limit = RateLimit(messages=1, bytes=None)
    rig.engine.admission.put_in_force(rig.topic)
    producer = producer_on(rig, port)
    send(rig, producer, 5)
    assert rig.topic.publishing.parking is not None
    assert rig.topic.publishing.parking.cause_of(producer) is ParkCause.ADAPTIVE
    send(rig, producer, 1)
    assert (port.is_paused, port.closed) == ((False, [2]) if port.brings_acks else (True, []))


def test_a_paused_connection_whose_acknowledgements_the_adaptive_limit_needs_is_read_again() -> (
    None
):
    """Rule 3.1: a limit that was set paused it, and the adaptive one is what holds it since. Law
    drain may allow a byte a second until something is acknowledged, over this very connection."""
    rig, port = held_rig(connection=50), AckingPort()
    send(rig, producer_on(rig, port), 6)
    assert port.is_paused
    rig.topic.publishing.adaptive_limit = RateLimit(messages=None, bytes=1)
    rig.engine.admission.put_in_force(rig.topic)
    let_go(rig, 3)
    rig.commit()
    assert (port.is_paused, port.closed) == (False, [2])
    assert rig.engine.parked.bytes == 0


# -- time ----------------------------------------------------------------------------------------


def test_since_when_a_send_is_held() -> None:
    """Rule 4.3: from its arrival, or from when its producer came to the quota; by a rate never."""
    producer = Producer(1, "p", FakePort())
    assert held_since_ns(producer) is None
    producer.parked = [ParkedSend(0, 0, 1, TEN, 5)]  # type: ignore[assignment]
    producer.parked_at, producer.parked_at_since_ns = ParkedAt.GATE, 7
    assert held_since_ns(producer) is None
    producer.parked_at = ParkedAt.QUOTA
    assert held_since_ns(producer) == 7
    producer.parked_at_since_ns = 3
    assert held_since_ns(producer) == 5


def test_a_rate_may_hold_as_long_as_it_takes() -> None:
    """Rule 3.2: every send completes; only a quota's hold has an end."""
    rig = held_rig()
    rig.send(40, body=TEN)
    rig.advance(60_000)
    assert rig.engine.now_ns > rig.engine.limits.hold_park_ns + 1_000 * NS_PER_S
    assert rig.port.closed == []
    assert rig.log.staged_end == 41


def test_what_moved_on_from_the_gate_to_the_quota_has_its_whole_time_there() -> None:
    """Rule 4.3."""
    rig = held_rig()
    rig.send(2, body=TEN)
    rig.commit()
    rig.subscribe()
    rig.publish_limit = RateLimit(messages=1, bytes=None)
    rig.set_quotas(size_quota(1))
    rig.advance(1_100)
    assert rig.topic.publishing.parking is not None
    assert rig.topic.publishing.parking.quota_queue
    rig.advance(19_000)
    assert rig.port.closed == []
    rig.advance(1_000)
    assert rig.port.closed == [1]
    rig.set_quotas(NO_QUOTAS)
    assert rig.engine.parked.bytes == 0


def test_who_is_closed_for_an_adaptive_limit_is_not_counted_as_closed_by_a_quota() -> None:
    rig = held_rig(connection=50)
    rig.set_quotas(size_quota(1_000_000))
    limited(rig, None)
    rig.topic.publishing.adaptive_limit = RateLimit(messages=1, bytes=None)
    rig.engine.admission.put_in_force(rig.topic)
    port = AckingPort()
    send(rig, producer_on(rig, port), 6)
    assert port.closed == [2]
    quota = rig.topic.quota
    assert quota is not None
    assert quota.stops is None or quota.stops.closed_count == 0


def test_many_connections_that_park_one_send_each_are_bounded_too() -> None:
    """Rule 3.1: each may park one before it is not read, until producers are closed."""
    rig = held_rig(total=100)
    rig.engine.limits.parked_bytes_over_max = 200
    ports = [FakePort() for _ in range(100)]
    for number, port in enumerate(ports, 2):
        send(rig, producer_on(rig, port, number), 1)
        assert rig.engine.parked.bytes <= 300
    assert sum(bool(port.closed) for port in ports) > 50
    assert sum(port.is_paused for port in ports) > 0


class Unlisted(dict[object, object]):
    """A table that nobody may go through."""

    def __iter__(self) -> Iterator[object]:
        raise AssertionError("somebody goes through all of them")


def test_a_newcomer_does_not_go_through_all_that_others_parked() -> None:
    """A PRODUCER of 60 bytes took 12 ms while 60,000 producers waited on connections that are not
    read, also on a topic of another tenant."""
    rig = held_rig(connection=50)
    rig.send(6, body=TEN)
    assert rig.port.is_paused
    other = rig.engine.load_topic(parse_topic("persistent://others/ns/t"), FakeLog(2))
    rig.quotas = size_quota(1_000_000)
    for topic in (rig.topic, other):
        rig.engine.reload_quotas(topic)
        topic.publishing.ensure_parking()
    parked = rig.engine.parked
    parked._producers = {port: Unlisted(held) for port, held in parked._producers.items()}  # type: ignore[misc]
    parked._on_paused = {topic: Unlisted(held) for topic, held in parked._on_paused.items()}  # type: ignore[misc]
    for topic in (rig.topic, other):
        topic.publishing.check_newcomer(FakePort())


def test_who_waits_on_connections_that_are_not_read_is_known_by_topic() -> None:
    rig = held_rig(connection=50)
    rig.send(6, body=TEN)
    late = producer_on(rig, rig.port)
    send(rig, late, 1)
    held = rig.engine.parked._on_paused
    assert [*held[rig.topic.publishing]] == [rig.producer, late]
    rig.topic.remove_producer(late)
    assert [*held[rig.topic.publishing]] == [rig.producer]
    let_go(rig, 4)
    assert not rig.port.is_paused
    assert held == {}


def test_thousands_that_a_quota_holds_are_not_all_asked_for_each_one_that_is_closed() -> None:
    """5,000 that began to wait one after the other took 3 ms for each of them."""
    rig = QuotaRig(size_quota(10))
    rig.subscribe()
    producers = [producer_on(rig, FakePort(), number) for number in range(2, 502)]
    rig.publish(2, body=TEN)
    for producer in producers:
        rig.advance(1)
        send(rig, producer, 1)
    rig.advance(rig.engine.limits.hold_park_ns // NS_PER_MS - len(producers) - 1)
    assert not any(producer.closed for producer in producers)
    looks = 0
    engine = rig.engine
    while not all(producer.closed for producer in producers):
        wake_ns = engine.next_wake_ns()
        assert wake_ns is not None
        rig.advance(-(-(wake_ns - engine.now_ns) // NS_PER_MS))
        looks += 1
    assert looks <= 4


def test_thousands_that_were_held_since_the_same_instant_are_closed_in_several_looks() -> None:
    """50,000 held up the loop for 1.8 s, in three pieces."""
    rig = QuotaRig(size_quota(10))
    rig.subscribe()
    producers = [producer_on(rig, FakePort(), number) for number in range(2, 1_002)]
    rig.publish(2, body=TEN)
    for producer in producers:
        send(rig, producer, 1)
    rig.advance(rig.engine.limits.hold_park_ns // NS_PER_MS)
    assert sum(producer.closed for producer in producers) <= ENDED_IN_LOOK
    rig.advance(4 * NEXT_LOOK_NS // NS_PER_MS)
    assert all(producer.closed for producer in producers)


class Looks:
    """How often somebody looks at what a producer or a connection parks."""

    count = 0

    @property
    def parked_bytes(self) -> int:
        Looks.count += 1
        return self.counted_bytes

    @parked_bytes.setter
    def parked_bytes(self, size_bytes: int) -> None:
        self.counted_bytes = size_bytes


class CountedProducer(Looks, Producer):  # type: ignore[misc]
    """A producer that counts them."""


class CountedPort(Looks, FakePort):  # type: ignore[misc]
    """A connection that counts them."""


def test_what_is_parked_beyond_a_bound_does_not_look_at_all_that_park() -> None:
    """With 104,500 that a quota held each further SEND looked at all: 5 s without a pause."""
    rig = QuotaRig(size_quota(10))
    rig.subscribe()
    rig.engine.limits.parked_bytes_max = len(TEN) * 1_000
    ports = [FakePort() for _ in range(4)]
    producers = [
        CountedProducer(number, f"c{number}", ports[number % 4]) for number in range(2, 2_002)
    ]
    for producer in producers:
        rig.topic.add_producer(producer)
    rig.publish(2, body=TEN)
    for producer in producers:
        send(rig, producer, 1)
    parking = [producer for producer in producers if producer.parked]
    assert 990 < len(parking) <= 1_000
    Looks.count = 0
    for producer in parking[-50:]:
        send(rig, producer, 1)
    assert sum(producer.closed for producer in producers) >= 1_000
    assert Looks.count < 50 * 40


def test_of_very_many_connections_those_that_park_most_make_room_without_a_look_for_each() -> None:
    """With 7,000 each further SEND took 2.4 ms."""
    rig = QuotaRig(size_quota(10))
    rig.subscribe()
    rig.engine.limits.parked_bytes_max = len(TEN) * 1_000
    producers = [producer_on(rig, CountedPort(), number) for number in range(2, 1_202)]
    rig.publish(2, body=TEN)
    for producer in producers[:999]:
        send(rig, producer, 1)
    Looks.count = 0
    for producer in producers[999:1_099]:
        send(rig, producer, 1)
    assert 90 < sum(producer.closed for producer in producers) <= 100
    assert Looks.count < 100 * 100


def held_topic(rig: QuotaRig, name: str, number: int, producers: int) -> list[Producer]:
    """A topic whose quota holds a SEND of each of so many producers."""
    topic = rig.engine.load_topic(parse_topic(f"persistent://{name}"), FakeLog(number))
    topic.add_subscription("s", AckSet(-1), cursor_id=number)
    found = [Producer(each, f"p{each}", FakePort()) for each in range(producers)]
    for producer in found:
        topic.add_producer(producer)
    topic.publishing.publish(found[0], 0, 0, 1, 3 * TEN)
    for producer in found:
        topic.publishing.publish(producer, 1, 1, 1, TEN)
    assert all(producer.parked_at is ParkedAt.QUOTA for producer in found)
    return found


def test_holds_of_many_topics_that_end_at_one_instant_take_several_looks() -> None:
    """Each topic had a look of its own: the loop closed 12,800 producers of 200 in one step."""
    rig = QuotaRig(size_quota(10))
    producers: list[Producer] = []
    for number in range(2, 22):
        producers += held_topic(rig, f"acme/ns/t{number}", number, 60)
    rig.advance(rig.engine.limits.hold_park_ns // NS_PER_MS)
    assert 0 < sum(producer.ending for producer in producers) <= ENDED_IN_LOOK
    for _ in range(6):
        before = sum(producer.ending for producer in producers)
        rig.advance(NEXT_LOOK_NS // NS_PER_MS)
        assert sum(producer.ending for producer in producers) <= before + ENDED_IN_LOOK
    assert all(producer.ending for producer in producers)


def test_the_holds_of_one_tenant_do_not_make_those_of_others_last() -> None:
    rig = QuotaRig(size_quota(10))
    for number in range(2, 22):
        held_topic(rig, f"acme/ns/t{number}", number, 60)
    honest = held_topic(rig, "globex/ns/t", 22, 10)
    rig.advance(rig.engine.limits.hold_park_ns // NS_PER_MS)
    assert all(producer.ending for producer in honest)


def test_the_hold_of_a_topic_that_was_deleted_ends_without_it() -> None:
    """Its timer asked the topic, which was gone, for its tenant: the broker ended."""
    rig = QuotaRig(size_quota(10))
    producers = held_topic(rig, "acme/ns/t", 2, 3)
    topic = rig.engine.topics["persistent://acme/ns/t"]
    assert isinstance(topic.log, FakeLog)
    topic.log.end = topic.log.staged_end
    topic.publishing.entries_durable(0)
    while producers:
        topic.remove_producer(producers.pop())
    rig.engine.unload_topic(topic, deleted=True)
    gone = ref(topic)
    del topic
    rig.engine.quotas.sample(rig.engine.quotas.sample_count())
    rig.flush()
    assert gone() is None
    rig.advance(rig.engine.limits.hold_park_ns // NS_PER_MS)
    assert not rig.engine.parked._overdue
