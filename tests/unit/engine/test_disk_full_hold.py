"""What a full disk holds (rule 3.6): in order, once, within bounds, each producer in its turn."""

from __future__ import annotations

import pytest

from headgate.base.errors import NoRoomError, StorageError
from headgate.base.fair_queue import FairQueue
from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.disk_full_hold import held_since_ns
from headgate.engine.errors import DiskFullError
from headgate.engine.parked_bounds import ENDED_IN_LOOK, NEXT_LOOK_NS
from headgate.engine.parked_send import ParkedAt
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.flow.limits.rate_limit import RateLimit
from tests.unit.engine.harness import START_MS, FakeLog, FakePort, Rig


class FullRig(Rig):
    """A log that takes entries or does not."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = False
        append = self.effects.append

        def refusing(log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
            if self.is_full:
                raise NoRoomError("no room")
            return append(log, message_count, log_ms, body)

        self.effects.append = refusing  # type: ignore[method-assign]

    def fill(self) -> None:
        self.is_full = True
        self.engine.disk_full_hold.disk_changed(full=True)

    def make_room(self) -> None:
        self.is_full = False
        self.engine.disk_full_hold.disk_changed(full=False)
        self.flush()

    def lose(self) -> None:
        """The commit of what is staged found no room."""
        self.fill()
        del self.log.bodies[self.log.end :], self.log.counts[self.log.end :]
        del self.log.times[self.log.end :]
        self.topic.publishing.park_pending()
        self.flush()

    def second(self, name: str = "q") -> tuple[Producer, FakePort]:
        port = FakePort()
        producer = Producer(2, name, port)
        self.topic.add_producer(producer)
        return producer, port

    def waiting(self) -> int:
        parking = self.topic.publishing.parking
        return 0 if parking is None else parking.waiting(ParkCause.DISK_FULL).messages


def test_sends_wait_for_room_and_then_go_in_order_once() -> None:
    rig = FullRig()
    rig.send(2)
    rig.is_full = True
    rig.send(3)
    assert rig.engine.disk_full_hold.is_full
    assert (rig.waiting(), rig.producer.pending_count) == (3, 2)
    assert held_since_ns(rig.producer) == rig.engine.now_ns
    rig.commit()
    rig.flush()
    assert rig.log.end == 2
    rig.make_room()
    rig.commit()
    assert [sequence for sequence, _ in rig.port.receipts] == [0, 1, 2, 3, 4]
    assert rig.port.staged_count == 3
    assert not rig.topic.publishing.parking
    assert (rig.port.failures, rig.port.refusals) == ([], [])
    assert held_since_ns(rig.producer) is None


def test_what_was_in_the_commit_waits_before_what_came_after_it() -> None:
    rig = FullRig()
    rig.publish()
    rig.send(2, body=b"in it")
    rig.is_full = True
    rig.send(2, body=b"after")
    assert rig.producer.messages_published == 1
    rig.lose()
    assert (rig.waiting(), rig.producer.pending_count) == (4, 0)
    assert rig.port.unstaged_count == 2
    assert (rig.producer.messages_published, rig.producer.bytes_published) == (1, 4)
    assert rig.topic.publishing.staged_bytes == 4
    rig.make_room()
    rig.commit()
    assert rig.log.bodies[1:] == [b"in it", b"in it", b"after", b"after"]
    assert [sequence for sequence, _ in rig.port.receipts] == [0, 1, 2, 3, 4]
    assert rig.producer.messages_published == 5


def test_whose_turn_is_next_is_not_searched_for() -> None:
    """The first one of an ordinary table stands behind the places of all that left before it: the
    SENDs of 90,000 producers took 4.4 s of the processor instead of 1.6 when there was room."""
    assert isinstance(FullRig().engine.disk_full_hold._turns, FairQueue)


def flooded(rig: FullRig, count: int) -> Topic:
    """A topic of another tenant, of which so many producers wait for room with 100 SENDs each."""
    topic = rig.engine.load_topic(parse_topic("persistent://globex/ns/t"), FakeLog(2))
    for number in range(count):
        producer = Producer(number, f"f{number}", FakePort())
        topic.add_producer(producer)
        for sequence in range(100):
            topic.publishing.publish(producer, sequence, 0, 1, b"flood")
    return topic


def test_very_many_producers_of_one_tenant_hold_up_none_of_another() -> None:
    """They took turns in one line, and those that send faster than that have always more: with
    10,000 of them a producer of another tenant had one SEND in 80 flushes."""
    rig = FullRig()
    rig.fill()
    topic = flooded(rig, 300)
    rig.send(20)
    rig.is_full = False
    rig.engine.disk_full_hold.disk_changed(full=False)
    rig.engine.flush()
    assert len(rig.log.bodies) == 20
    assert 0 < topic.publishing.pending_count < 300
    rig.flush()
    assert topic.publishing.pending_count == 300 * 100


def test_those_that_waited_for_room_hold_up_no_limited_producer() -> None:
    """They were served before all that waits for anything else, for as long as they send faster
    than a flush stages."""
    rig = FullRig()
    rig.publish_limit = RateLimit(100, None)
    rig.engine.reload_publish_limit(rig.topic)
    rig.send(150)
    rig.fill()
    topic = flooded(rig, 20)
    rig.is_full = False
    rig.engine.disk_full_hold.disk_changed(full=False)
    rig.engine.begin_turn(rig.engine.now_ns + NS_PER_S, START_MS + 1_000, START_MS + 1_000)
    staged = len(rig.log.bodies)
    rig.engine.flush()
    assert len(rig.log.bodies) > staged
    assert 0 < topic.publishing.pending_count < 20 * 100


def test_those_that_left_while_the_disk_was_full_are_forgotten() -> None:
    rig = FullRig()
    rig.fill()
    topic = flooded(rig, 5)
    for producer in list(topic.producers.values()):
        topic.remove_producer(producer)
    rig.send(1)
    rig.engine.disk_full_hold.recheck_hold_timeouts()
    assert list(rig.engine.disk_full_hold._waiting) == [rig.producer]
    assert len(rig.engine.disk_full_hold._turns) == 1
    rig.make_room()
    assert len(rig.log.bodies) == 1


def test_what_is_taken_back_makes_no_rate_negative() -> None:
    rig = FullRig()
    rig.send(2)
    rig.producer.rates.sample(rig.producer.counters(), rig.engine.now_ns)
    rig.lose()
    rates = rig.producer.rates.per_second(rig.producer.counters(), rig.engine.now_ns + NS_PER_S)
    assert rates == (0.0, 0.0, 0.0)


def test_a_bad_moment_changes_nothing_but_the_time() -> None:
    rig = FullRig()
    rig.send(3)
    del rig.log.bodies[:], rig.log.counts[:], rig.log.times[:]
    rig.topic.publishing.restage_pending()
    assert rig.producer.pending_count == 3
    rig.commit()
    assert [sequence for sequence, _ in rig.port.receipts] == [0, 1, 2]
    assert rig.topic.publishing.parking is None


def test_limits_are_charged_when_it_is_stored() -> None:
    rig = FullRig()
    rig.publish_limit = RateLimit(10, None)
    rig.engine.reload_publish_limit(rig.topic)
    rig.send(4)
    rig.lose()
    rig.is_full = False
    rig.make_room()
    assert rig.producer.pending_count == 4
    rig.send(20)
    assert rig.producer.pending_count == 10
    assert rig.topic.publishing.parking is not None
    assert rig.topic.publishing.parking.waiting(ParkCause.TOPIC_RATE).messages == 14


def test_who_waits_for_a_limit_waits_for_the_disk_when_its_turn_comes() -> None:
    rig = FullRig()
    rig.publish_limit = RateLimit(1, None)
    rig.engine.reload_publish_limit(rig.topic)
    rig.send(3)
    assert rig.producer.parked_at is ParkedAt.GATE
    rig.fill()
    rig.advance(2_000)
    assert rig.producer.parked_at is ParkedAt.DISK
    rig.make_room()
    rig.advance(10_000)
    assert rig.log.staged_end == 3


def test_producers_take_turns() -> None:
    rig = FullRig()
    other, _ = rig.second()
    rig.fill()
    rig.send(3, body=b"p")
    for sequence in range(3):
        rig.topic.publishing.publish(other, sequence, 0, 1, b"q")
    rig.make_room()
    assert rig.log.bodies == [b"p", b"q", b"p", b"q", b"p", b"q"]


def test_full_again_half_way_keeps_the_rest_in_order() -> None:
    rig = FullRig()
    rig.fill()
    rig.send(5)
    appended = rig.effects.append
    count = 0

    def two_more(log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        nonlocal count
        count += 1
        if count > 2:
            rig.is_full = True
        return appended(log, message_count, log_ms, body)

    rig.effects.append = two_more  # type: ignore[method-assign]
    rig.make_room()
    assert (rig.log.staged_end, rig.waiting()) == (2, 3)
    rig.effects.append = appended  # type: ignore[method-assign]
    rig.make_room()
    rig.commit()
    assert [sequence for sequence, _ in rig.port.receipts] == [0, 1, 2, 3, 4]


def test_beyond_the_bounds_a_producer_is_closed_and_its_connection_gets_no_other() -> None:
    rig = FullRig()
    rig.engine.limits.parked_bytes_per_connection_max = 100
    other, other_port = rig.second()
    rig.fill()
    rig.topic.publishing.publish(other, 0, 0, 1, b"small")
    rig.engine.disk_full_hold.check_newcomer(rig.port)
    rig.send(3, body=b"x" * 40)
    assert (rig.port.closed, rig.port.is_paused, other_port.closed) == ([1], False, [])
    assert rig.waiting() == 1
    with pytest.raises(DiskFullError, match="headgateMaxParkedBytesPerConnection"):
        rig.engine.disk_full_hold.check_newcomer(rig.port)
    rig.engine.disk_full_hold.check_newcomer(other_port)
    rig.make_room()
    rig.engine.disk_full_hold.check_newcomer(rig.port)
    assert rig.log.bodies == [b"small"]


def test_more_in_the_commit_than_may_wait_ends_its_producer_without_an_answer() -> None:
    rig = FullRig()
    rig.engine.limits.parked_bytes_per_connection_max = 100
    rig.send(5, body=b"x" * 40)
    rig.lose()
    assert (rig.port.closed, rig.port.failures, rig.waiting()) == ([1], [], 0)
    assert rig.port.unstaged_count == 5


def test_who_waits_too_long_is_closed_and_may_come_back() -> None:
    rig = FullRig()
    other, other_port = rig.second()
    rig.fill()
    rig.send()
    rig.advance(10_000)
    rig.topic.publishing.publish(other, 0, 0, 1, b"later")
    rig.advance(9_000)
    assert not rig.port.closed
    rig.advance(2_000)
    assert (rig.port.closed, other_port.closed) == ([1], [])
    rig.engine.disk_full_hold.check_newcomer(rig.port)
    rig.advance(10_000)
    assert other_port.closed == [2]
    assert not rig.engine.disk_full_hold.is_busy
    rig.advance(60_000)


def test_a_shorter_hold_acts_at_once() -> None:
    rig = FullRig()
    rig.fill()
    rig.send()
    rig.advance(5_000)
    rig.engine.limits.hold_park_ns = NS_PER_S
    rig.engine.parked.recheck_hold_timeouts()
    assert rig.port.closed == [1]


def test_thousands_that_waited_since_the_same_instant_are_closed_in_several_looks() -> None:
    rig = FullRig()
    rig.fill()
    crowd = [Producer(number, f"p{number}", rig.port) for number in range(2, 1_002)]
    for producer in crowd:
        rig.topic.add_producer(producer)
        rig.topic.publishing.publish(producer, 0, 0, 1, b"x")
    rig.advance(rig.engine.limits.hold_park_ns // NS_PER_MS)
    assert len(rig.port.closed) == ENDED_IN_LOOK
    rig.advance(4 * NEXT_LOOK_NS // NS_PER_MS)
    assert sorted(rig.port.closed) == list(range(2, 1_002))
    assert rig.waiting() == 0


def test_a_paused_connection_is_read_again_for_the_acknowledgements() -> None:
    rig = FullRig()
    rig.publish_limit = RateLimit(1, None)
    rig.engine.reload_publish_limit(rig.topic)
    rig.engine.limits.parked_bytes_per_connection_max = 100
    rig.send(10, body=b"x" * 40)
    assert rig.port.is_paused
    rig.commit()
    rig.fill()
    rig.advance(2_000)
    assert rig.port.closed == [1]
    assert not rig.port.is_paused


def test_a_closed_producer_leaves_nothing_behind() -> None:
    rig = FullRig()
    rig.send(2)
    rig.topic.remove_producer(rig.producer)
    rig.lose()
    assert (rig.waiting(), rig.port.unstaged_count) == (0, 0)
    rig.make_room()
    assert rig.log.staged_end == 0


def test_a_producer_that_is_ending_is_closed() -> None:
    rig = FullRig()
    rig.send(2)
    rig.topic.publishing.end_producer(rig.producer)
    assert not rig.port.closed
    rig.lose()
    assert rig.port.closed == [1]
    assert rig.waiting() == 0


def test_topics_of_the_system_do_not_wait() -> None:
    rig = FullRig()
    rig.topic.is_system = True
    rig.fill()
    with pytest.raises(NoRoomError):
        rig.send()
    assert rig.topic.publishing.parking is None


def test_a_failed_disk_is_reported() -> None:
    rig = FullRig()
    rig.fill()
    rig.send()

    def broken(log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        raise StorageError("failed", retryable=False)

    rig.effects.append = broken  # type: ignore[method-assign]
    rig.make_room()
    assert rig.port.refusals == [(0, "failed")]
