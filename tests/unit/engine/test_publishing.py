"""The publish side of a topic: receipts, failed commits, and how long writes take."""

from __future__ import annotations

import pytest

from headgate.base.errors import StorageError
from headgate.base.positions import Position
from headgate.base.units import NS_PER_MS
from headgate.engine.errors import DiskFullError, ProducersHeldError
from headgate.engine.producer import Producer
from headgate.engine.write_histograms import PERIOD_NS
from headgate.flow.limits.gate_node import NO_STATISTICS
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from tests.unit.engine.harness import START_MS, Rig
from tests.unit.engine.quota_rig import size_quota


def test_nothing_is_seen_before_it_is_durable() -> None:
    rig = Rig()
    subscription = rig.subscribe()
    _, port = rig.consumer(subscription, permits=10)
    rig.topic.publishing.publish(rig.producer, 5, 0, 1, b"x")
    rig.flush()
    assert rig.port.receipts == []
    assert port.entries == []
    assert subscription.backlog_messages == 0
    rig.log.end = 1
    rig.topic.publishing.entries_durable(0)
    rig.flush()
    assert rig.port.receipts == [(5, Position(7, 0))]
    assert port.ordinals == [0]


def test_receipts_come_in_send_order_over_several_commits() -> None:
    rig = Rig()
    for sequence in range(4):
        rig.topic.publishing.publish(rig.producer, sequence, 0, 1, b"x")
    rig.log.end = 3
    rig.topic.publishing.entries_durable(0)
    rig.log.end = 4
    rig.topic.publishing.entries_durable(0)
    assert [sequence for sequence, _ in rig.port.receipts] == [0, 1, 2, 3]
    assert rig.producer.pending_count == 0


def test_a_failed_commit_is_reported_to_each_sender() -> None:
    rig = Rig()
    rig.subscribe()
    rig.publish(1)
    rig.topic.publishing.publish(rig.producer, 8, 0, 1, b"x")
    rig.topic.publishing.publish(rig.producer, 9, 0, 1, b"x")
    rig.topic.publishing.fail_pending(StorageError("disk full", retryable=True))
    assert rig.port.failures == [(8, "disk full"), (9, "disk full")]
    assert rig.topic.publishing.pending_count == 0
    assert sorted(rig.topic.cache) == [0]


def test_a_closed_producer_gets_no_receipt_but_its_entry_is_stored() -> None:
    rig = Rig()
    rig.topic.publishing.publish(rig.producer, 1, 0, 1, b"x")
    rig.topic.remove_producer(rig.producer)
    rig.log.end = 1
    rig.topic.publishing.entries_durable(0)
    assert rig.port.receipts == []
    assert rig.topic.messages_in() == 1


def test_writes_are_timed_from_the_turn_of_their_arrival() -> None:
    rig = Rig()

    def arrive(count: int, after_ms: int) -> None:
        rig.engine.begin_turn(rig.engine.now_ns + after_ms * NS_PER_MS, START_MS, START_MS)
        for _ in range(count):
            rig.topic.publishing.publish(rig.producer, 0, 0, 1, b"x" * 200)

    def durable(end: int, after_ms: int, storage_ms: int) -> None:
        rig.engine.begin_turn(rig.engine.now_ns + after_ms * NS_PER_MS, START_MS, START_MS)
        rig.log.end = end
        rig.topic.publishing.entries_durable(storage_ms * NS_PER_MS)

    rig.engine.begin_turn(20 * PERIOD_NS, START_MS, START_MS)
    arrive(2, after_ms=0)
    arrive(3, after_ms=3)
    arrive(4, after_ms=2)
    # The commit took the first two turns and one entry of the third: 5, 2 and 0 ms ago.
    durable(6, after_ms=0, storage_ms=4)
    arrive(1, after_ms=30)
    # The rest of the third turn waited 30 ms + 60 ms, the last entry 60 ms.
    durable(10, after_ms=60, storage_ms=15)
    assert rig.topic.publishing.writes_last_minute().entries == 0
    rig.engine.begin_turn(21 * PERIOD_NS, START_MS, START_MS)
    figures = rig.topic.publishing.writes_last_minute()
    assert figures.latency == [1, 0, 2 + 3, 0, 0, 0, 3 + 1, 0, 0, 0]
    assert figures.latency_ns == (2 * 5 + 3 * 2 + 0 + 3 * 90 + 60) * NS_PER_MS
    assert figures.storage == [0, 0, 6, 0, 4, 0, 0, 0, 0, 0]
    assert figures.storage_ns == (6 * 4 + 4 * 15) * NS_PER_MS
    assert figures.sizes == [0, 10, 0, 0, 0, 0, 0, 0, 0]
    assert figures.size_bytes == 10 * 200


def test_a_failed_commit_leaves_no_arrivals_behind() -> None:
    rig = Rig()
    rig.engine.begin_turn(20 * PERIOD_NS, START_MS, START_MS)
    rig.topic.publishing.publish(rig.producer, 1, 0, 1, b"lost")
    rig.topic.publishing.fail_pending(StorageError("disk full", retryable=True))
    rig.log.bodies.clear()
    rig.log.counts.clear()
    assert rig.topic.publishing.writes_last_minute().entries == 0
    # The same turn, and the ordinal of the lost one again.
    rig.topic.publishing.publish(rig.producer, 2, 0, 1, b"stored")
    rig.engine.begin_turn(20 * PERIOD_NS + 7 * NS_PER_MS, START_MS, START_MS)
    rig.log.end = 1
    rig.topic.publishing.entries_durable(NS_PER_MS)
    rig.engine.begin_turn(21 * PERIOD_NS, START_MS, START_MS)
    assert rig.topic.publishing.writes_last_minute().latency_ns == 7 * NS_PER_MS
    assert rig.topic.publishing.writes_last_minute().entries == 1


def test_reports_read_publish_limits_and_the_full_disk() -> None:
    rig = Rig()
    publishing = rig.topic.publishing
    assert not publishing.is_limited
    assert publishing.limit_statistics() == NO_STATISTICS
    assert publishing.broker_limit_statistics() == NO_STATISTICS
    rig.publish_limit = RateLimit(10, None)
    rig.engine.reload_publish_limit(rig.topic)
    assert publishing.is_limited
    assert [b.dimension for b in publishing.limit_statistics().budgets] == [Dimension.MESSAGES]
    assert not publishing.is_disk_full
    rig.engine.disk_full_hold.disk_changed(full=True)
    assert publishing.is_disk_full
    publishing.check_newcomer(rig.port)
    rig.engine.disk_full_hold.over_bound(rig.port)
    with pytest.raises(DiskFullError):
        publishing.check_newcomer(rig.port)


def test_a_full_quota_refuses_new_producers_of_a_live_topic() -> None:
    rig = Rig(quotas=size_quota(4))
    rig.subscribe()
    rig.publish(2)
    with pytest.raises(ProducersHeldError):
        rig.topic.publishing.check_newcomer(rig.port)
    rig.topic.fenced = True
    rig.topic.publishing.check_newcomer(rig.port)


def test_thousands_that_wait_for_their_receipts_end_and_leave_in_any_order() -> None:
    """In a list, which was copied for each, 50,000 held up the loop for 2 s; those that leave in
    the opposite order looked at all before them."""

    class Unlike(Producer):
        __hash__ = Producer.__hash__

        def __eq__(self, other: object) -> bool:
            raise AssertionError("it is compared with others")

    rig = Rig()
    publishing, crowd = rig.topic.publishing, [Unlike(n, f"p{n}", rig.port) for n in range(100)]
    for producer in crowd:
        rig.topic.add_producer(producer)
        publishing.publish(producer, 0, 0, 1, b"x")
    publishing.close_when_answered(crowd[0])
    waiting = publishing.ending
    for producer in crowd:
        publishing.close_when_answered(producer)
    assert publishing.ending is waiting
    for producer in reversed(crowd[1:]):
        rig.topic.remove_producer(producer)
    rig.commit()
    assert rig.port.closed == [0]
    assert not publishing.ending
