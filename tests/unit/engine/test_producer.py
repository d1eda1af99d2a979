"""What a producer counts, and the port of one without a connection."""

from __future__ import annotations

from headgate.base.park_cause import ParkCause
from headgate.engine.producer import UnboundedPort
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
