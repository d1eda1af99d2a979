"""Publish limits: who waits, for what, in which order, and how much goes a second (law 3)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.engine_policies import EnginePolicies
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS
from tests.unit.engine.harness import START_MS, FakeLog, FakePort, Rig
from tests.unit.engine.quota_rig import QuotaRig, size_quota

TEN = b"0123456789"


def messages(per_s: int) -> RateLimit:
    return RateLimit(messages=per_s, bytes=None)


def limited(rig: Rig, limit: RateLimit | None) -> None:
    """Set the topic's own publish limit."""
    rig.publish_limit = limit
    rig.engine.reload_publish_limit(rig.topic)
    rig.flush()


class Sent:
    """When each entry was staged, and whose it was."""

    def __init__(self, rig: Rig) -> None:
        self.at_ns: list[int] = []
        self.names: list[str] = []
        self.amounts: list[int] = []
        self._append, effects = rig.effects.append, rig.effects
        self._rig = rig
        effects.append = self._staged  # type: ignore[method-assign]

    def _staged(self, log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        self.at_ns.append(self._rig.engine.now_ns)
        self.names.append(body.decode().split("/")[0])
        self.amounts.append(message_count)
        return self._append(log, message_count, log_ms, body)

    def most_in_a_second(self) -> int:
        """The most messages in any sliding second."""
        most = 0
        for start in self.at_ns:
            window = zip(self.at_ns, self.amounts, strict=True)
            most = max(most, sum(n for at, n in window if start <= at < start + NS_PER_S))
        return most

    def between(self, start_s: float, stop_s: float, origin_ns: int) -> int:
        """Messages in a span of seconds after ``origin_ns``."""
        first, last = origin_ns + start_s * NS_PER_S, origin_ns + stop_s * NS_PER_S
        return sum(n for at, n in zip(self.at_ns, self.amounts, strict=True) if first <= at < last)


def other_producer(rig: Rig, number: int, port: FakePort | None = None) -> Producer:
    producer = Producer(number, f"p{number}", port or FakePort())
    rig.topic.add_producer(producer)
    return producer


def publish(topic: Topic, producer: Producer, count: int, *, batch: int = 1) -> None:
    for sequence in range(count):
        topic.publishing.publish(
            producer, sequence, 0, batch, f"{producer.name}/{sequence}".encode()
        )


@pytest.mark.parametrize("batch", [1, 7])
def test_any_second_has_the_limit_and_no_more_than_an_entry_beyond(batch: int) -> None:
    """Rule 3.2, from the very first second on."""
    rig = Rig()
    sent = Sent(rig)
    limited(rig, messages(50))
    origin_ns = rig.engine.now_ns
    publish(rig.topic, rig.producer, 1 + 400 // batch, batch=batch)
    rig.advance(6_000)
    assert sent.most_in_a_second() <= 50 + batch - 1
    for second in range(1, 6):
        assert sent.between(second, second + 1, origin_ns) >= 0.98 * 50 - batch
    assert [int(body.split(b"/")[1]) for body in rig.log.bodies] == list(range(len(sent.at_ns)))


def test_bytes_are_those_of_the_stored_entry() -> None:
    """Rule 3.2."""
    rig = Rig()
    limited(rig, RateLimit(messages=None, bytes=100))
    rig.send(25, body=TEN)
    assert rig.log.staged_end == 10
    rig.advance(1_000)
    assert rig.log.staged_end <= 21


def test_others_go_on_while_one_waits() -> None:
    """Rule 3.1: another topic's producer on the same connection."""
    rig = Rig()
    limited(rig, messages(1))
    log = FakeLog(2)
    free = rig.engine.load_topic(parse_topic("persistent://acme/ns/free"), log)
    neighbour = Producer(2, "n", rig.port)
    free.add_producer(neighbour)
    rig.send(5)
    publish(free, neighbour, 100)
    assert (rig.log.staged_end, log.staged_end) == (1, 100)
    assert rig.port.parked_bytes == 16
    assert +rig.port.causes == Counter([ParkCause.TOPIC_RATE])


def test_producers_share_their_topics_limit_by_messages() -> None:
    """Rule 3.2: a producer of batches gets no more messages than one of single ones."""
    rig = Rig()
    sent = Sent(rig)
    limited(rig, messages(100))
    batching = other_producer(rig, 2)
    rig.producer.name = "p1"
    publish(rig.topic, rig.producer, 600)
    publish(rig.topic, batching, 60, batch=10)
    rig.advance(5_000)
    shares: Counter[str] = Counter()
    for name, amount in zip(sent.names, sent.amounts, strict=True):
        shares[name] += amount
    # The first burst belongs to whoever sent first; from then on they share.
    assert abs((shares["p1"] - 100) - shares["p2"]) <= 20


def test_topics_share_the_brokers_limit() -> None:
    rig = Rig()
    rig.set_broker_publish_limit(messages(100))
    log = FakeLog(2)
    other = rig.engine.load_topic(parse_topic("persistent://acme/ns/other"), log)
    second = Producer(2, "o", FakePort())
    other.add_producer(second)
    publish(rig.topic, rig.producer, 600)
    publish(other, second, 600)
    rig.advance(5_000)
    assert rig.log.staged_end + log.staged_end <= 601
    assert abs(rig.log.staged_end - 100 - log.staged_end) <= 4
    parking = rig.topic.publishing.parking
    assert parking is not None
    assert parking.waiting(ParkCause.BROKER_RATE).producers == 1


def test_the_cause_is_the_limit_that_releases_last() -> None:
    """Rule 3.3: of the topic's two the tighter one, and the quota before all."""
    rig = QuotaRig()
    rig.subscribe()
    limited(rig, messages(10))
    rig.topic.publishing.adaptive_limit = messages(5)
    rig.engine.admission.put_in_force(rig.topic)
    rig.send(10, body=TEN)
    parking = rig.topic.publishing.parking
    assert parking is not None
    assert rig.log.staged_end == 5
    assert parking.waiting(ParkCause.ADAPTIVE) == (1, 5, 50)
    rig.topic.publishing.adaptive_limit = messages(20)
    rig.engine.admission.put_in_force(rig.topic)
    rig.advance(900)
    assert rig.log.staged_end == 10
    rig.send(5, body=TEN)
    assert parking.waiting(ParkCause.TOPIC_RATE) == (1, 5, 50)
    rig.set_quotas(size_quota(50))
    assert parking.waiting(ParkCause.BACKLOG_QUOTA) == (1, 5, 50)
    rig.advance(3_000)
    assert rig.log.staged_end == 10
    rig.set_quotas(NO_QUOTAS)
    rig.advance(2_000)
    assert rig.log.staged_end == 15
    assert not parking


@pytest.mark.parametrize("raised", [None, messages(1_000_000)])
def test_a_raise_or_a_removal_releases_at_once(raised: RateLimit | None) -> None:
    """Rule 3.3, however deep the debt."""
    rig = Rig()
    limited(rig, messages(1))
    rig.send(1, messages=100_000)
    rig.send(500)
    rig.advance(5_000)
    assert rig.log.staged_end == 1
    limited(rig, raised)
    rig.advance(100)
    assert rig.log.staged_end == 501
    assert not rig.topic.publishing.parking
    assert rig.port.parked_bytes == rig.engine.parked.bytes == 0


def test_a_limit_forgives_nothing_over_an_unload() -> None:
    rig = Rig()
    limited(rig, messages(10))
    rig.send(10)
    rig.commit()
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.topic = rig.engine.load_topic(rig.topic.name, rig.log)
    rig.topic.add_producer(producer := Producer(1, "p", rig.port))
    rig.producer = producer
    rig.send(1)
    assert rig.log.staged_end == 10


def test_what_is_parked_goes_with_its_producer() -> None:
    """Rule 3.4."""
    rig = Rig()
    limited(rig, messages(2))
    rig.send(10)
    other = other_producer(rig, 2)
    publish(rig.topic, other, 3)
    rig.topic.remove_producer(rig.producer)
    assert rig.port.parked_bytes == 0
    assert rig.engine.parked.bytes == other.parked_bytes > 0
    rig.advance(3_000)
    assert rig.log.staged_end == 5
    assert not rig.topic.publishing.parking
    assert rig.engine.admission.gate.demand == 0


def test_what_was_not_stored_is_not_charged() -> None:
    """Rule 3.4: neither what the log refuses nor what a commit loses."""
    rig = Rig()
    limited(rig, messages(10))
    rig.send(10)
    rig.log.bodies.clear()
    rig.log.counts.clear()
    rig.topic.publishing.fail_pending(StorageError("lost", retryable=True))
    assert len(rig.port.failures) == 10
    rig.send(10)
    assert rig.log.staged_end == 10
    rig.send(1)
    assert rig.log.staged_end == 10
    assert rig.producer.parked_bytes > 0


def test_a_full_log_charges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    limited(rig, messages(3))

    def refuse(*_: object) -> int:
        raise StorageError("full", retryable=True)

    with monkeypatch.context() as patch:
        patch.setattr(rig.effects, "append", refuse)
        for _ in range(5):
            with pytest.raises(StorageError):
                rig.send(1)
    rig.send(3)
    assert rig.log.staged_end == 3


def test_receipts_stay_in_the_order_of_the_sends() -> None:
    """Rule 3.4."""
    rig = Rig()
    limited(rig, messages(20))
    rig.send(60)
    for _ in range(40):
        rig.advance(100)
        rig.commit()
    assert [sequence for sequence, _ in rig.port.receipts] == list(range(60))


class BoundedPort(FakePort):
    """A connection with a maximum of unanswered SENDs."""

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self.maximum = maximum
        self.pending = 0

    @property
    def has_room(self) -> bool:  # type: ignore[override]
        return self.pending < self.maximum


def test_beyond_its_unanswered_sends_a_connections_producers_take_turns() -> None:
    """Rule 3.1: and no other connection of the topic waits."""
    rig = Rig()
    port = BoundedPort(4)
    one, two = other_producer(rig, 2, port), other_producer(rig, 3, port)
    sent = Sent(rig)

    def send(producer: Producer, sequence: int) -> None:
        body = f"{producer.name}/{sequence}".encode()
        if port.has_room:
            port.pending += rig.topic.publishing.publish(producer, sequence, 0, 1, body)
        else:
            rig.topic.publishing.park(producer, sequence, 0, 1, body)

    for sequence in range(6):
        send(one, sequence)
    for sequence in range(3):
        send(two, sequence)
    assert sent.names == ["p2"] * 4
    parking = rig.topic.publishing.parking
    assert parking is not None
    assert parking.waiting(ParkCause.PENDING_LIMIT).messages == 5
    rig.send(1, body=b"free/0")
    assert sent.names[-1] == "free"
    port.maximum = 7
    rig.engine.admission.recheck_pending_limits()
    rig.flush()
    assert sent.names[5:] == ["p2", "p3", "p2", "p3", "p3"]
    assert not parking


def test_a_topic_without_limits_asks_nothing() -> None:
    """Disabled costs nothing: the append is one comparison."""
    rig = Rig()
    rig.send(3)
    assert rig.topic.publishing.gate is None
    assert rig.producer.gate is None
    assert rig.topic.publishing.staged_bytes < rig.topic.publishing.admit_below
    limited(rig, messages(5))
    limited(rig, None)
    rig.send(3)
    assert rig.topic.publishing.staged_bytes < rig.topic.publishing.admit_below


def test_the_brokers_own_topics_have_no_limits() -> None:
    rig = Rig()
    rig.topic.is_system = True
    rig.set_broker_publish_limit(messages(1))
    rig.send(50)
    assert rig.log.staged_end == 50


def test_a_flush_stages_a_bounded_number_and_asks_for_another() -> None:
    rig = Rig()
    limited(rig, messages(1))
    rig.send(2_000)
    limited_at = rig.log.staged_end
    rig.publish_limit = None
    rig.engine.reload_publish_limit(rig.topic)
    assert rig.engine.flush()
    assert limited_at < rig.log.staged_end < 400
    rig.flush()
    assert rig.log.staged_end == 2_000


def test_slices_follow_each_other_closely() -> None:
    """What waits goes evenly, not once a second."""
    rig = Rig()
    sent = Sent(rig)
    limited(rig, messages(500))
    publish(rig.topic, rig.producer, 1_500)
    rig.advance(3_000)
    waited = [b - a for a, b in pairwise(sent.at_ns) if b > a]
    assert max(waited[2:]) <= 1_000 * NS_PER_MS
    assert sorted(waited)[len(waited) // 2] <= 10 * NS_PER_MS


@pytest.mark.parametrize(("own", "broker"), [(10, 40), (20, 80), (100, 400)])
def test_a_small_share_is_had_in_full_although_others_go_first(own: int, broker: int) -> None:
    """Rule 1.4: what a topic's own limit allows is less than its fair share of the broker's."""
    rig = Rig()
    rig.set_broker_publish_limit(messages(broker))
    limited(rig, messages(own))
    for number in (2, 3):
        log = FakeLog(number)
        other = rig.engine.load_topic(parse_topic(f"persistent://acme/ns/o{number}"), log)
        producer = Producer(number, f"o{number}", FakePort())
        other.add_producer(producer)
        publish(other, producer, broker * 22)
    publish(rig.topic, rig.producer, own * 40)
    rig.advance(2_000)
    before = rig.log.staged_end
    rig.advance(20_000)
    assert rig.log.staged_end - before >= 0.95 * own * 20


def test_who_waits_goes_at_once_when_what_was_charged_before_is_lost() -> None:
    """Rule 3.4: what failed to persist is not charged, and nobody waits for its room."""
    rig = Rig()
    limited(rig, messages(10))
    other = other_producer(rig, 2)
    rig.send(10)
    publish(rig.topic, other, 5)
    rig.flush()
    rig.log.bodies.clear()
    rig.log.counts.clear()
    pending_before = rig.effects.work_count
    rig.topic.publishing.fail_pending(StorageError("lost", retryable=True))
    assert rig.effects.work_count > pending_before
    rig.advance(600)  # paced
    assert rig.log.staged_end == 5
    assert not rig.topic.publishing.parking


@pytest.mark.parametrize("level", ["topic", "broker"])
def test_a_limit_that_was_removed_leaves_no_debt_to_the_next_one(level: str) -> None:
    """Rule 3.3: removing it and setting a higher one is no worse than raising it."""
    rig = Rig()

    def put(limit: RateLimit | None) -> None:
        if level == "topic":
            limited(rig, limit)
        else:
            rig.set_broker_publish_limit(limit)

    put(messages(1))
    rig.send(1, messages=100_000)
    rig.advance(5_000)
    put(None)
    put(messages(1_000))
    rig.send(1_000)
    assert rig.log.staged_end == 1_001
    put(None)
    put(messages(1_000))
    rig.send(1)
    assert rig.log.staged_end == 1_001  # what was accepted in the last second still counts


def test_the_cause_of_a_wait_is_the_limit_that_released_last() -> None:
    """Rule 3.3: known at its end only, where the topic's limit opens before it is the topic's turn
    at the broker's. What was told once stays."""
    rig = Rig()
    topics = [rig.topic]
    for number in (2, 3):
        name = parse_topic(f"persistent://acme/ns/t{number}")
        topics.append(rig.engine.load_topic(name, FakeLog(number)))
    rig.engine.policies.publish_limit_of = lambda _: messages(10)
    for number, topic in enumerate(topics, 1):
        rig.engine.reload_publish_limit(topic)
        producer = Producer(number, f"w{number}", FakePort())
        topic.add_producer(producer)
    rig.set_broker_publish_limit(messages(15))
    for topic in topics:
        (producer,) = [p for p in topic.producers.values() if p.name.startswith("w")]
        publish(topic, producer, 200)
    told = []
    for _ in range(50):
        rig.advance(200)
        parkings = [
            topic.publishing.parking for topic in topics if topic.publishing.parking is not None
        ]
        for parking in parkings:
            parking.fix_causes(rig.engine.now_ns)
        told.append(
            [
                sum(parking.parked_ns(cause, rig.engine.now_ns) for parking in parkings)
                for cause in (ParkCause.BROKER_RATE, ParkCause.TOPIC_RATE)
            ]
        )
    assert told[-1][0] + told[-1][1] == 3 * 10 * NS_PER_S
    assert told[-1][0] >= 0.8 * 3 * 10 * NS_PER_S
    for before, after in pairwise(told):
        assert after[0] >= before[0]
        assert after[1] >= before[1]


def test_who_begins_to_wait_has_the_loop_look_when_it_may_go() -> None:
    """Rule 3.2: also where nothing was staged in the same turn."""
    rig = Rig()
    limited(rig, messages(1))
    rig.send(1)
    rig.commit()
    before = rig.effects.work_count
    rig.send(1)
    assert rig.effects.work_count > before


def in_a_second(rig: Rig) -> None:
    """One flush, a second later."""
    now_ms = START_MS + 1_000
    rig.engine.begin_turn(rig.engine.now_ns + NS_PER_S, now_ms, now_ms)
    rig.engine.flush()


def flood(rig: Rig) -> Topic:
    """A topic of another tenant, for which 100 SENDs wait at each of 20 connections."""
    flooded = rig.engine.load_topic(parse_topic("persistent://globex/ns/t"), FakeLog(2))
    for number in range(20):
        producer = Producer(number, f"f{number}", FakePort())
        flooded.add_producer(producer)
        for sequence in range(100):
            flooded.publishing.park(producer, sequence, 0, 1, b"flood")
    return flooded


def test_connections_that_flood_hold_up_no_limited_producer() -> None:
    """They were served first, and never ran out: 20 connections that send as fast as they can,
    8 MB/s, left a producer of another tenant, which had waited for its limit once, nothing at all
    for as long as they did so."""
    rig = Rig()
    limited(rig, messages(100))
    publish(rig.topic, rig.producer, 150)
    flooded = flood(rig)
    rig.engine.admission.recheck_pending_limits()
    in_a_second(rig)
    assert len(rig.log.bodies) > 100
    assert flooded.publishing.pending_count < 20 * 100
    rig.flush()
    assert flooded.publishing.pending_count == 20 * 100


def test_connections_that_flood_hold_up_none_of_another_tenant() -> None:
    rig = Rig()
    flooded = flood(rig)
    rig.topic.publishing.park(rig.producer, 0, 0, 1, b"p/0")
    rig.engine.admission.recheck_pending_limits()
    in_a_second(rig)
    assert rig.log.bodies == [b"p/0"]
    assert flooded.publishing.pending_count < 20 * 100


def test_producers_that_need_many_turns_hold_up_no_limited_one() -> None:
    """Those with more to stage than fits in a turn came first, again and again."""
    rig = Rig()
    other = rig.engine.load_topic(parse_topic("persistent://globex/ns/t"), FakeLog(2))
    limits: dict[Topic, RateLimit | None] = {rig.topic: messages(1), other: messages(1)}
    rig.engine.policies = EnginePolicies(publish_limit_of=limits.get)
    for topic in limits:
        rig.engine.reload_publish_limit(topic)
    for number in range(20):
        publish(rig.topic, other_producer(rig, 10 + number), 100)
    waits = Producer(1, "waits", FakePort())
    other.add_producer(waits)
    publish(other, waits, 3)
    limits[rig.topic] = None
    rig.engine.reload_publish_limit(rig.topic)
    for _ in range(2):
        rig.engine.flush()
    staged = len(rig.log.bodies)
    in_a_second(rig)
    assert staged < len(rig.log.bodies) < 20 * 100
    assert other.publishing.pending_count == 2
