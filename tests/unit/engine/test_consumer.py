"""Permits and the window of a consumer."""

from __future__ import annotations

from headgate.engine.consumer import Consumer
from tests.unit.engine.harness import FakePort


def test_the_window_is_the_largest_permit_total_ever() -> None:
    consumer = Consumer(1, "c", FakePort())
    consumer.add_permits(1_000, 5)
    consumer.permits -= 700
    consumer.add_permits(500, 6)
    assert (consumer.permits, consumer.window) == (800, 1_000)
    assert consumer.last_flow_ms == 6


def test_ready_needs_permits_room_and_a_writable_socket() -> None:
    port = FakePort()
    consumer = Consumer(1, "c", port)
    assert not consumer.is_ready
    consumer.add_permits(1, 0)
    assert consumer.is_ready
    consumer.blocked_on_unacked = True
    assert not consumer.is_ready
    consumer.blocked_on_unacked = False
    port.writable = False
    assert not consumer.is_ready


def test_counters_for_the_rates() -> None:
    consumer = Consumer(1, "c", FakePort())
    consumer.messages_sent, consumer.bytes_sent = 3, 30
    consumer.messages_acked, consumer.messages_redelivered = 2, 1
    assert consumer.counters() == (3, 30, 2, 1)
