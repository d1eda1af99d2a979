"""What waits before its append: where, for what, how much that is, and since when (law 3.1)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headgate.base.park_cause import ParkCause
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.parking import ParkedCounts, Parking
from headgate.engine.producer import Producer
from tests.unit.engine.harness import FakePort


def producer(number: int, port: FakePort | None = None) -> Producer:
    return Producer(number, f"p{number}", port or FakePort())


def send(size: int = 10, *, messages: int = 1) -> ParkedSend:
    return ParkedSend(0, 0, messages, bytes(size), 0)


def test_who_waits_is_counted_by_its_cause() -> None:
    parking, port = Parking(), FakePort()
    first, second, third = producer(1, port), producer(2, port), producer(3)
    assert not parking
    places = ParkedAt.QUOTA, ParkedAt.GATE, ParkedAt.CONNECTION
    for one, place in zip((first, second, third), places, strict=True):
        parking.enter(one, place, 0)
        parking.count(one, 1, send(10 * one.producer_id, messages=one.producer_id))
    assert parking
    assert (parking.messages, parking.bytes) == (6, 60)
    assert parking.waiting(ParkCause.BACKLOG_QUOTA) == ParkedCounts(1, 1, 10)
    assert parking.waiting(ParkCause.TOPIC_RATE) == ParkedCounts(1, 2, 20)
    assert parking.waiting(ParkCause.PENDING_LIMIT) == ParkedCounts(1, 3, 30)
    parking.set_gate_cause(ParkCause.BROKER_RATE, 0)
    assert parking.waiting(ParkCause.TOPIC_RATE) == ParkedCounts(0, 0, 0)
    assert parking.waiting(ParkCause.BROKER_RATE) == ParkedCounts(1, 2, 20)
    parking.set_quota_exceeded(True, 0)
    assert parking.waiting(ParkCause.BACKLOG_QUOTA) == ParkedCounts(2, 3, 30)
    assert parking.waiting(ParkCause.BROKER_RATE) == ParkedCounts(0, 0, 0)


def test_since_when_something_waits_without_a_break() -> None:
    parking, one = Parking(), producer(1)
    assert parking.since_ns(ParkCause.TOPIC_RATE) is None
    parking.enter(one, ParkedAt.GATE, 5)
    parking.count(one, 1, send())
    parking.enter(producer(2), ParkedAt.GATE, 7)
    assert parking.since_ns(ParkCause.TOPIC_RATE) == 5
    parking.set_gate_cause(ParkCause.BROKER_RATE, 9)
    assert parking.since_ns(ParkCause.TOPIC_RATE) is None
    assert parking.since_ns(ParkCause.BROKER_RATE) == 9


def test_the_controller_names_producers_when_memory_is_short() -> None:
    parking = Parking()
    one, other = producer(1), producer(2)
    parking.pause(one, False, 0)
    parking.pause(other, True, 3)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(2, 0, 0)
    assert parking.since_ns(ParkCause.MEMORY) == 0
    parking.resume(one, 5)
    parking.resume(one, 5)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(1, 0, 0)


def test_who_parks_too_much_itself_waits_for_what_holds_that() -> None:
    """Rule 3.5; the neighbours on its connection wait for memory, and so does it once its own is
    gone."""
    parking, one, neighbour = Parking(), producer(1), producer(2)
    parking.enter(one, ParkedAt.GATE, 0)
    parking.count(one, 1, send())
    parking.pause(one, True, 10)
    assert parking.causes(100) == [ParkCause.TOPIC_RATE]
    parking.pause(neighbour, True, 100)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(1, 0, 0)
    parking.resume(neighbour, 150)
    parking.enter(one, ParkedAt.QUOTA, 200)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(0, 0, 0)
    parking.leave(one, 300)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(1, 0, 0)
    parking.enter(one, ParkedAt.GATE, 340)
    parking.resume(one, 400)
    parking.leave(one, 400)
    assert not parking.waiting(ParkCause.MEMORY).producers
    assert parking.parked_ns(ParkCause.MEMORY, 500) == 50 + 40


def test_what_is_not_yet_durable_is_memory_for_everybody() -> None:
    parking, one = Parking(), producer(1)
    parking.enter(one, ParkedAt.GATE, 0)
    parking.pause(one, False, 0)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(1, 0, 0)
    parking.pause(one, True, 10)
    assert parking.waiting(ParkCause.MEMORY) == ParkedCounts(0, 0, 0)
    parking.pause(one, False, 20)
    parking.leave(one, 30)
    assert parking.parked_ns(ParkCause.MEMORY, 40) == 30


def test_turns_of_a_quota_and_of_a_connection() -> None:
    parking, port = Parking(), FakePort()
    producers = [producer(number, port) for number in range(4)]
    for one in producers[:3]:
        parking.enter(one, ParkedAt.QUOTA, 0)
    assert list(parking.quota_queue) == producers[:3]
    parking.enter(producers[1], ParkedAt.GATE, 0)
    parking.enter(producers[0], ParkedAt.CONNECTION, 0)
    parking.enter(producers[3], ParkedAt.CONNECTION, 0)
    assert list(parking.quota_queue) == [producers[2]]
    assert list(port.waiting) == [producers[0], producers[3]]
    parking.leave(producers[0], 0)
    parking.leave(producers[0], 0)
    assert list(port.waiting) == [producers[3]]


def test_seconds_run_while_anything_waits_for_the_cause() -> None:
    parking, one, other = Parking(), producer(1), producer(2)
    parking.enter(one, ParkedAt.GATE, 100)
    parking.enter(other, ParkedAt.GATE, 150)
    parking.leave(one, 200)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 300) == 200
    parking.set_gate_cause(ParkCause.ADAPTIVE, 300)
    parking.leave(other, 350)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 1_000) == 200
    assert parking.parked_ns(ParkCause.ADAPTIVE, 1_000) == 50
    parking.pause(one, False, 1_000)
    parking.pause(other, False, 1_100)
    parking.resume(one, 1_500)
    parking.resume(other, 1_500)
    assert parking.parked_ns(ParkCause.MEMORY, 2_000) == 500


def test_a_connection_hears_by_what_each_producer_is_held_and_the_same_when_it_is_not() -> None:
    parking, port = Parking(), FakePort()
    one = producer(1, port)
    parking.enter(one, ParkedAt.GATE, 0)
    parking.set_gate_cause(ParkCause.BROKER_RATE, 0)
    parking.enter(one, ParkedAt.QUOTA, 0)
    assert +port.causes == Counter([ParkCause.BACKLOG_QUOTA])
    parking.enter(one, ParkedAt.GATE, 0)
    assert +port.causes == Counter([ParkCause.BROKER_RATE])
    parking.leave(one, 0)
    assert not +port.causes


acts = st.lists(
    st.tuples(
        st.sampled_from(["enter", "count", "leave", "cause", "over", "wait"]),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=80,
)


@given(acts)
def test_figures_and_seconds_agree_with_plain_lists(story: list[tuple[str, int, int]]) -> None:
    parking, port = Parking(), FakePort()
    producers = [producer(number, port) for number in range(4)]
    places: dict[int, ParkedAt] = {}
    sizes: Counter[int] = Counter()
    cause, over, now_ns = ParkCause.TOPIC_RATE, False, 0
    spent: Counter[ParkCause] = Counter()

    def cause_at(place: ParkedAt) -> ParkCause:
        if place is ParkedAt.CONNECTION:
            return ParkCause.PENDING_LIMIT
        return ParkCause.BACKLOG_QUOTA if over or place is ParkedAt.QUOTA else cause

    for act, number, choice in story:
        one = producers[number]
        if act == "enter":
            places[number] = ParkedAt(choice)
            parking.enter(one, ParkedAt(choice), now_ns)
        elif act == "count" and number in places:
            sizes[number] += 10
            parking.count(one, 1, send())
        elif act == "leave" and number in places:
            parking.leave(one, now_ns)
            del places[number]
            for _ in range(sizes[number] // 10):
                parking.count(one, -1, send())
            sizes[number] = 0
        elif act == "cause":
            cause = ParkCause(choice)
            parking.set_gate_cause(cause, now_ns)
        elif act == "over":
            over = choice > 0
            parking.set_quota_exceeded(over, now_ns)
        elif act == "wait":
            now_ns += 10
            for each in {cause_at(place) for place in places.values()}:
                spent[each] += 10
        for each in ParkCause:
            mine = [n for n, place in places.items() if cause_at(place) is each]
            size = sum(sizes[n] for n in mine)
            assert parking.waiting(each) == ParkedCounts(len(mine), size // 10, size)
            assert parking.parked_ns(each, now_ns) == spent[each]
        assert [p.parked_bytes for p in producers] == [sizes[n] for n in range(4)]
        assert bool(parking) == bool(places)


def test_the_cause_of_a_wait_may_show_at_its_end_and_what_was_reported_stays() -> None:
    """Rule 3.3."""
    parking, one = Parking(), producer(1)
    parking.enter(one, ParkedAt.GATE, 0)
    parking.set_gate_cause(ParkCause.TOPIC_RATE, 100)
    parking.correct_gate_cause(ParkCause.BROKER_RATE, 300)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 300) == 100
    assert parking.parked_ns(ParkCause.BROKER_RATE, 300) == 200
    parking.set_gate_cause(ParkCause.TOPIC_RATE, 300)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 400) == 200
    parking.fix_causes(400)
    parking.correct_gate_cause(ParkCause.BROKER_RATE, 450)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 500) == 200
    assert parking.parked_ns(ParkCause.BROKER_RATE, 500) == 300
    parking.set_quota_exceeded(True, 500)
    parking.correct_gate_cause(ParkCause.TOPIC_RATE, 600)
    assert parking.parked_ns(ParkCause.BACKLOG_QUOTA, 600) == 100
    assert parking.cause_of(one) is ParkCause.BACKLOG_QUOTA
    parking.leave(one, 600)
    assert parking.cause_of(one) is None


def test_reading_seconds_changes_nothing() -> None:
    parking, one = Parking(), producer(1)
    parking.enter(one, ParkedAt.GATE, 0)
    parking.set_gate_cause(ParkCause.TOPIC_RATE, 100)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 200) == 200
    assert parking.causes(200) == [ParkCause.TOPIC_RATE]
    parking.correct_gate_cause(ParkCause.BROKER_RATE, 300)
    assert parking.parked_ns(ParkCause.TOPIC_RATE, 300) == 100
    assert parking.parked_ns(ParkCause.BROKER_RATE, 300) == 200
