"""A port without a connection asks for nothing and holds nobody up."""

from __future__ import annotations

from headgate.base.park_cause import ParkCause
from headgate.engine.ports import UnboundedPort


def test_nothing_waits_for_it() -> None:
    port = UnboundedPort()
    for told in (port.throttled, port.unthrottled):
        told(ParkCause.TOPIC_RATE)
    port.pause_for_parked()
    port.resume_for_parked()
    port.send_staged()
    assert port.has_room
    assert not port.brings_acks
    assert (port.parked_bytes, len(port.waiting)) == (0, 0)
