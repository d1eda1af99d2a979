"""What a producer counts, and the port of one without a connection."""

from __future__ import annotations

from headgate.base.park_cause import ParkCause
from headgate.engine.producer import Producer, ProducerTurns, UnboundedPort
from tests.unit.engine.harness import Rig


def test_published_messages_and_bytes() -> None:
    rig = Rig()
    rig.publish(2, messages=5, body=b"123")
    assert rig.producer.counters() == (10, 6, 0)


def test_an_unbounded_port_holds_nobody_up() -> None:
    port = UnboundedPort()
    for report in (port.throttled, port.unthrottled):
        report(ParkCause.TOPIC_RATE)
    port.pause_for_parked()
    port.resume_for_parked()
    port.send_staged()
    assert port.has_room
    assert not port.brings_acks
    assert (port.parked_bytes, len(port.waiting)) == (0, 0)


def test_thousands_of_producers_leave_their_turns_in_any_order() -> None:
    """In a list, each of 60,000 looked at all before it: 17 s for those that leave in the opposite
    order, by 20 bytes each."""

    class Unlike(Producer):
        __hash__ = Producer.__hash__

        def __eq__(self, other: object) -> bool:
            raise AssertionError("it is compared with others")

    producers = [Unlike(number, f"p{number}", UnboundedPort()) for number in range(100)]
    turns = ProducerTurns()
    for producer in producers:
        turns.append(producer)
    assert turns.first is producers[0]
    turns.pass_turn()
    assert turns.first is producers[1]
    for producer in reversed(producers):
        turns.remove(producer)
    assert not turns
