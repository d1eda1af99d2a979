"""What waits before its append: whose turn it is, how much that is, and since when.

Rules 4.3 and 4.4: each producer's order is kept, and producers take turns.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.engine.parking import ParkedSend, Parking
from headgate.engine.producer import Producer
from tests.unit.engine.harness import FakePort


def producer(number: int, port: FakePort | None = None) -> Producer:
    return Producer(number, f"p{number}", port or FakePort())


def send(sequence: int, size: int = 10, *, messages: int = 1, at_ns: int = 0) -> ParkedSend:
    return ParkedSend(sequence, 0, messages, bytes(size), at_ns)


def drained(parking: Parking, now_ns: int = 0) -> list[tuple[int, int]]:
    """(Producer, sequence id) of everything that waits, in the order in which it would go."""
    found = []
    while (waiting := parking.next()) is not None:
        found.append((waiting[0].producer_id, waiting[1].sequence_id))
        parking.take(now_ns)
    return found


def test_producers_take_turns_one_send_each() -> None:
    """Rule 4.4."""
    parking, first, second, third = Parking(), producer(1), producer(2), producer(3)
    for sequence in range(3):
        parking.park(first, send(sequence))
    parking.park(second, send(7))
    parking.park(third, send(8))
    parking.park(third, send(9))
    assert [p.producer_id for p in parking.producers] == [1, 2, 3]
    assert parking.producers_count == 3
    assert drained(parking) == [(1, 0), (2, 7), (3, 8), (1, 1), (3, 9), (1, 2)]
    assert not parking
    assert parking.next() is None


def test_who_comes_back_goes_behind_the_others() -> None:
    parking, first, second = Parking(), producer(1), producer(2)
    parking.park(first, send(0))
    parking.park(second, send(0))
    parking.take(0)
    parking.park(first, send(1))
    assert drained(parking) == [(2, 0), (1, 1)]


def test_what_waits_is_counted_for_topic_producer_and_connection() -> None:
    parking, port = Parking(), FakePort()
    first, second, other = producer(1, port), producer(2, port), producer(3)
    parking.park(first, send(0, 10, messages=4))
    parking.park(second, send(0, 20))
    parking.park(other, send(0, 40, messages=2))
    assert (parking.messages, parking.bytes) == (7, 70)
    assert (first.parked_bytes, second.parked_bytes, port.parked_bytes) == (10, 20, 30)
    parking.take(0)
    assert (parking.messages, parking.bytes, first.parked_bytes) == (3, 60, 0)
    assert (port.parked_bytes, other.port.parked_bytes) == (20, 40)
    parking.discard(other, 0)
    assert (parking.messages, parking.bytes) == (1, 20)
    assert (other.parked_bytes, other.port.parked_bytes) == (0, 0)
    assert drained(parking) == [(2, 0)]
    assert (parking.messages, parking.bytes, port.parked_bytes) == (0, 0, 0)


def test_a_producer_that_goes_leaves_the_others_their_turns() -> None:
    parking, producers = Parking(), [producer(number) for number in range(4)]
    for one in producers:
        parking.park(one, send(0))
        parking.park(one, send(1))
    parking.take(0)
    parking.discard(producers[2], 0)
    parking.discard(producers[2], 0)  # it has nothing more: nothing happens
    assert drained(parking) == [(1, 0), (3, 0), (0, 1), (1, 1), (3, 1)]
    parking.park(producers[2], send(5))
    assert drained(parking) == [(2, 5)]


def test_the_time_in_which_something_waited() -> None:
    parking, one, other = Parking(), producer(1), producer(2)
    assert parking.parked_ns(100) == 0
    parking.park(one, send(0, at_ns=100))
    parking.park(other, send(0, at_ns=150))
    assert parking.parked_ns(200) == 100
    parking.take(200)
    assert parking.parked_ns(300) == 200
    parking.take(300)
    assert parking.parked_ns(1_000) == 200
    parking.park(one, send(1, at_ns=1_000))
    parking.discard(one, 1_050)
    assert parking.parked_ns(5_000) == 250


acts = st.lists(
    st.tuples(st.sampled_from(["park", "take", "discard"]), st.integers(0, 3), st.integers(1, 50)),
    max_size=60,
)


@given(acts)
def test_nothing_is_lost_doubled_or_overtaken(story: list[tuple[str, int, int]]) -> None:
    """Against plain lists: each producer's order, and figures that agree with what waits."""
    parking, ports = Parking(), [FakePort(), FakePort()]
    producers = [producer(number, ports[number % 2]) for number in range(4)]
    waiting: dict[int, list[tuple[int, int]]] = {number: [] for number in range(4)}
    ring: list[int] = []
    for sequence, (act, number, size) in enumerate(story):
        if act == "park":
            parking.park(producers[number], send(sequence, size, messages=size))
            if not waiting[number]:
                ring.append(number)
            waiting[number].append((sequence, size))
        elif act == "discard":
            parking.discard(producers[number], 0)
            waiting[number].clear()
            ring = [other for other in ring if other != number]
        elif ring:
            number = ring.pop(0)
            found = parking.next()
            assert found is not None
            parking.take(0)
            expected = waiting[number].pop(0)
            assert (found[0].producer_id, found[1].sequence_id) == (number, expected[0])
            ring += [number] if waiting[number] else []
        total = sum(size for sends in waiting.values() for _, size in sends)
        assert parking.bytes == parking.messages == total
        assert [p.producer_id for p in parking.producers] == ring
        for port in ports:
            mine = [p for p in producers if p.port is port]
            assert port.parked_bytes == sum(p.parked_bytes for p in mine)
        for one in producers:
            assert one.parked_bytes == sum(size for _, size in waiting[one.producer_id])
