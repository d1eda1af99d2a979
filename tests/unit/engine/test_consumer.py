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


def test_permits_for_messages_that_cost_none_do_not_pass_the_window() -> None:
    """C++ clients return permits for the acknowledged messages of a batch, Java's do not."""
    returning, keeping = Consumer(1, "c++", FakePort()), Consumer(2, "java", FakePort())
    for consumer in (returning, keeping):
        consumer.add_permits(1_000, 0)
    for _ in range(1_000):
        for consumer, count in ((returning, 500), (keeping, 400)):
            consumer.account_sent(50, 400, 400, 0)
            consumer.uncharged_messages += 100
            consumer.add_permits(count, 0)
    for consumer in (returning, keeping):
        assert (consumer.permits, consumer.window) == (1_000, 1_000)
    assert returning.uncharged_messages == 0


def test_a_queue_that_grows_keeps_the_permits_that_its_client_waits_for() -> None:
    """A client that doubles its queue returns half of it at once, and waits for as many."""
    consumer = Consumer(1, "c", FakePort())
    consumer.add_permits(100, 0)
    consumer.uncharged_messages = 5_000
    consumer.account_sent(1, 100, 100, 0)
    for size in (100, 200, 400):
        consumer.add_permits(size, 0)
        assert consumer.permits >= size
    consumer.uncharged_messages = 0
    consumer.add_permits(500, 0)
    assert consumer.window == consumer.permits
