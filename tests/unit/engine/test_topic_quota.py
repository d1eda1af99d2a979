"""Backlog quotas of a topic: admitted to the entry, held, refused, evicted, released (law 4)."""

from __future__ import annotations

import pytest

from headgate.base.errors import StorageError
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.engine.errors import ProducersHeldError, ProducersRefusedError
from headgate.engine.quota_check import is_consistent
from headgate.engine.topic_quota import INDEXED_IN_STEP
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quotas, QuotaType
from tests.unit.engine.quota_rig import EVICT, HOLD, REFUSE, QuotaRig, size_quota, time_quota

TEN = b"0123456789"


def test_a_topic_takes_entries_until_its_quota_and_one_more_at_most() -> None:
    rig = QuotaRig(size_quota(45))
    rig.subscribe()
    rig.send(20, body=TEN)  # nothing is durable yet: what is submitted counts
    assert rig.stored == 5
    rig.commit()
    rig.send(1, body=TEN)
    rig.commit()
    assert rig.stored == 5
    assert rig.topic.quota is not None
    assert rig.topic.quota.backlog_bytes() == 50
    assert rig.told.turns == [("size", True)]


def test_without_a_stored_subscription_there_is_no_backlog() -> None:
    rig = QuotaRig(size_quota(45))
    rig.subscribe("reader", durable=False)
    rig.publish(50, body=TEN)
    assert rig.stored == 50


def test_a_hold_ends_at_the_low_mark_and_what_waited_follows_in_order() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(10, body=TEN)
    rig.publish(3, body=b"5bytes"[:5])
    assert rig.stored == 10
    assert rig.port.parked_bytes == rig.engine.parked.bytes == 15
    subscription.ack_entry(consumer, 0)
    rig.flush()
    assert rig.stored == 12  # 90 bytes owed: two of five fit, then 100 are reached again
    rig.commit()
    assert rig.port.parked_bytes == 5
    subscription.ack_entry(consumer, 1)
    rig.flush()
    rig.commit()
    assert rig.port.parked_bytes == rig.engine.parked.bytes == 0
    assert [sequence for sequence, _ in rig.port.receipts] == list(range(13))
    assert rig.port.staged_count == 3
    assert rig.told.turns == [
        ("size", True), ("size", False), ("size", True), ("size", False),
    ]  # fmt: skip


def test_producers_take_turns_after_a_hold() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    other, other_port = rig.second_producer()
    rig.publish(10, body=TEN)
    rig.send(5, body=TEN)
    for sequence in range(5):
        rig.topic.publishing.publish(other, sequence, 0, 1, TEN)
    subscription.ack_through(consumer, 5)
    rig.flush()
    rig.commit()
    assert len(rig.port.receipts) == 13
    assert len(other_port.receipts) == 3


def test_newcomers_are_refused_until_there_is_room() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe("billing")
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(10, body=TEN)
    quota = rig.topic.quota
    assert quota is not None
    with pytest.raises(ProducersHeldError, match=r"billing is at 100 bytes of 100 .*topic policy"):
        quota.check_newcomer()
    subscription.ack_entry(consumer, 0)
    quota.check_newcomer()
    rig.set_quotas(size_quota(50, REFUSE))
    with pytest.raises(ProducersRefusedError, match="90 bytes of 50"):
        quota.check_newcomer()
    rig.set_quotas(size_quota(50, EVICT))
    quota.check_newcomer()


def test_a_refusing_quota_closes_producers_when_their_sends_are_answered() -> None:
    rig = QuotaRig(size_quota(45, REFUSE))
    rig.subscribe()
    other, other_port = rig.second_producer()
    rig.send(9, body=TEN)
    assert rig.stored == 5
    # Its receipts first: a client that missed them would send again what is stored.
    assert rig.port.closed == []
    assert other_port.closed == [2]
    assert other.closed
    rig.commit()
    assert rig.port.closed == [1]
    assert [sequence for sequence, _ in rig.port.receipts] == [0, 1, 2, 3, 4]
    assert rig.engine.parked.bytes == 0


def test_a_refusing_quota_closes_producers_that_send_nothing_more() -> None:
    rig = QuotaRig(size_quota(50, REFUSE))
    rig.subscribe()
    rig.publish(5, body=TEN)
    assert rig.port.closed == [1]


def test_eviction_takes_the_oldest_to_90_percent_and_not_one_entry_further() -> None:
    rig = QuotaRig(size_quota(100, EVICT))
    slow, fast = rig.subscribe("slow"), rig.subscribe("fast")
    consumer, _ = rig.consumer(fast, permits=1_000)
    for size in (30, 1, 1, 30, 30):
        rig.publish(1, body=bytes(size))
    fast.ack_through(consumer, 4)
    assert slow.backlog_bytes == 92
    rig.publish(1, body=bytes(8))  # 100 are owed: down to 90, which takes the 30
    assert slow.acks.mark_delete == 0
    assert slow.backlog_bytes == 70
    assert fast.backlog_bytes == 8
    assert rig.told.evictions == [("size", 1, 30, 70)]
    assert slow.evicted_messages == 1
    assert slow.skipped_messages == 0
    assert rig.topic.quota is not None
    assert rig.topic.quota.evictions(QuotaType.SIZE) == (1, 1, 30)
    assert rig.engine.quotas.evicted[QuotaType.SIZE] == (1, 1, 30)
    assert rig.told.turns == []


def test_eviction_counts_holes_and_passes_them() -> None:
    rig = QuotaRig(size_quota(100, EVICT))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, SubscriptionType.SHARED, permits=1_000)
    rig.publish(9, body=TEN)
    for ordinal in (1, 2, 4):
        subscription.ack_entry(consumer, ordinal)
    rig.publish(3, body=TEN)
    assert subscription.backlog_bytes == 90
    rig.publish(1, body=TEN)
    # 0 goes, then 90 are left; the next two are acknowledged, so mark delete passes them.
    assert subscription.acks.mark_delete == 2
    assert subscription.backlog_bytes == 90
    assert rig.topic.quota is not None
    assert rig.topic.quota.evictions(QuotaType.SIZE) == (1, 1, 10)


def test_evicted_entries_leave_the_consumers_unacked_counts_and_never_come_back() -> None:
    rig = QuotaRig(size_quota(20 * 1024, EVICT))
    subscription = rig.subscribe()
    first, port = rig.consumer(subscription, SubscriptionType.SHARED, permits=1_000)
    rig.publish(19, body=bytes(1024))
    assert first.unacked_messages == 19
    rig.publish(1, body=bytes(1024))
    assert first.unacked_messages == 20 * 1024 * 9 // 10 // 1024
    # Late acknowledgements of what was taken change nothing.
    backlog = subscription.backlog_bytes
    subscription.ack_entry(first, 0)
    assert subscription.backlog_bytes == backlog
    subscription.redeliver(first, None, -1)
    subscription.remove_consumer(first)
    _, other = rig.consumer(
        subscription, SubscriptionType.SHARED, consumer_id=9, name="d", permits=1_000
    )
    assert min(other.ordinals) == subscription.acks.mark_delete + 1
    assert min(port.ordinals) == 0


def test_what_is_not_durable_cannot_be_evicted_and_is_waited_for() -> None:
    rig = QuotaRig(size_quota(45, EVICT))
    subscription = rig.subscribe()
    rig.send(9, body=TEN)
    assert rig.stored == 5
    for _ in range(9):
        rig.commit()
    assert rig.stored == 9
    assert subscription.backlog_bytes <= 45 + len(TEN)
    assert rig.port.closed == []
    assert len(rig.port.receipts) == 9


def test_a_limit_of_zero_blocks_producers_or_keeps_nothing() -> None:
    rig = QuotaRig(size_quota(0, HOLD))
    rig.subscribe()
    rig.publish(3, body=TEN)
    assert rig.stored == 0
    rig.set_quotas(size_quota(0, EVICT))
    for _ in range(4):
        rig.commit()
    assert rig.stored == 3
    assert rig.topic.backlog_bytes() == 0
    rig.publish(1, body=TEN)
    assert rig.stored == 4


def test_a_time_quota_holds_when_the_oldest_gets_too_old() -> None:
    rig = QuotaRig(time_quota(10 * MS_PER_S))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(1)
    rig.advance(4_000)
    rig.publish(1)
    rig.advance(5_999)
    assert rig.told.turns == []
    rig.advance(251)
    assert rig.told.turns == [("time", True)]
    rig.publish(1)
    assert rig.stored == 2
    subscription.ack_entry(consumer, 0)  # the next is six seconds old
    rig.flush()
    rig.commit()
    assert rig.stored == 3
    assert rig.told.turns == [("time", True), ("time", False)]
    rig.advance(4_000)
    assert rig.told.turns[2:] == [("time", True)]


def test_a_time_quota_evicts_what_is_older_and_nothing_younger_than_90_percent() -> None:
    rig = QuotaRig(time_quota(10 * MS_PER_S, EVICT))
    subscription = rig.subscribe()
    for _ in range(12):
        rig.publish(1)
        rig.advance(1_000)
    # At 10 s the first was taken, and the one that was 9 s old; the others are younger.
    assert rig.told.evictions[0] == ("time", 2, 8, subscription.topic.log.bytes_before(10) - 8)
    assert rig.topic.quota is not None
    assert rig.topic.quota.age_ms() < 10_250
    rig.advance(60_000)
    assert subscription.backlog_messages == 0
    acts, messages, size = rig.topic.quota.evictions(QuotaType.TIME)
    assert (messages, size) == (12, 48)
    assert acts == len(rig.told.evictions) <= 7


def test_both_quotas_hold_and_each_is_reported() -> None:
    size, time = size_quota(100).size, time_quota(5_000, EVICT).time
    rig = QuotaRig(Quotas(size, time))
    subscription = rig.subscribe()
    rig.publish(12, body=TEN)
    assert rig.stored == 10
    assert rig.told.turns == [("size", True)]
    rig.advance(6_000)
    # The time quota took everything, so that the size quota has room.
    assert rig.told.turns == [("size", True), ("size", False)]
    rig.commit()
    assert rig.stored == 12
    assert subscription.backlog_bytes == 20


def test_a_raise_or_a_removal_releases_within_the_turn() -> None:
    for quotas in (size_quota(1_000), NO_QUOTAS, size_quota(100, EVICT)):
        rig = QuotaRig(size_quota(100))
        rig.subscribe()
        rig.publish(15, body=TEN)
        assert rig.stored == 10
        rig.set_quotas(quotas)
        rig.commit()
        assert rig.stored == 15


def test_a_new_quota_below_the_backlog_holds_at_once() -> None:
    rig = QuotaRig()
    rig.subscribe()
    rig.publish(20, body=TEN)
    rig.set_quotas(size_quota(100))
    rig.publish(1, body=TEN)
    assert rig.stored == 20


def test_a_subscription_at_the_earliest_or_a_seek_back_counts_at_once() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    for _ in range(4):
        rig.publish(5, body=TEN)
        subscription.ack_through(consumer, rig.log.end - 1)
        rig.flush()
    late = rig.subscribe("late", at=0)
    rig.publish(1, body=TEN)
    assert rig.stored == 20
    rig.topic.remove_subscription(late.name)
    rig.flush()
    rig.commit()
    assert rig.stored == 21
    subscription.disconnect_consumers()
    subscription.reset(0)
    rig.publish(1, body=TEN)
    assert rig.stored == 21


def test_many_subscriptions_are_found_by_heaps() -> None:
    rig = QuotaRig(size_quota(1_000))
    subscriptions = [rig.subscribe(f"s{number:02}") for number in range(40)]
    consumers = [
        rig.consumer(s, permits=1_000, consumer_id=i)[0] for i, s in enumerate(subscriptions)
    ]
    rig.publish(100, body=TEN)
    quota = rig.topic.quota
    assert quota is not None
    assert quota.exceeded is not None
    for number, (subscription, consumer) in enumerate(zip(subscriptions, consumers, strict=True)):
        subscription.ack_through(consumer, 99 - number)
        expected = max(s.backlog_bytes for s in subscriptions)
        assert quota.backlog_bytes() == expected
        assert quota.age_ms() >= 0
    slowest, oldest = quota.slowest(), quota.oldest()
    assert slowest is subscriptions[39]
    assert oldest is subscriptions[39]
    subscriptions[39].disconnect_consumers()
    rig.topic.remove_subscription("s39")
    rig.flush()
    assert quota.slowest() is subscriptions[38]
    subscriptions[3].disconnect_consumers()
    subscriptions[3].reset(0)
    rig.flush()
    assert quota.slowest() is subscriptions[3]
    assert quota.backlog_bytes() == 1_000


def test_a_producer_that_goes_takes_what_it_parked_along() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(15, body=TEN)
    rig.topic.remove_producer(rig.producer)
    assert rig.engine.parked.bytes == rig.port.parked_bytes == 0
    subscription.ack_through(consumer, 9)
    rig.flush()
    rig.commit()
    assert rig.stored == 10


def test_a_full_disk_fails_those_who_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(12, body=TEN)

    def full(*_: object) -> int:
        raise StorageError("disk full", retryable=True)

    monkeypatch.setattr(rig.effects, "append", full)
    subscription.ack_through(consumer, 9)
    rig.flush()
    assert rig.port.refusals[0] == (10, "disk full")


def test_a_failed_commit_gives_its_room_back() -> None:
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.send(12, body=TEN)
    assert rig.stored == 10
    for column in (rig.log.bodies, rig.log.counts, rig.log.times):
        del column[:]
    rig.topic.publishing.fail_pending(StorageError("disk full", retryable=True))
    rig.flush()
    rig.commit()
    assert [sequence for sequence, _ in rig.port.receipts] == [10, 11]


def test_how_long_until_it_breaks() -> None:
    rig = QuotaRig(Quotas(size_quota(1_000).size, time_quota(100 * MS_PER_S).time))
    rig.subscribe()
    quota = rig.topic.quota
    assert quota is not None
    assert quota.seconds_to_breach(QuotaType.SIZE) is None
    rig.publish(1, body=TEN)
    for _ in range(10):
        rig.advance(1_000)
        rig.publish(1, body=TEN)
        rig.engine.quotas.sample(1)
    assert quota.seconds_to_breach(QuotaType.SIZE) == pytest.approx(89)
    assert quota.seconds_to_breach(QuotaType.TIME) == pytest.approx(90)
    assert quota.breach_band(QuotaType.SIZE) is None
    rig.publish(90, body=TEN)
    rig.engine.quotas.sample(1)
    assert quota.seconds_to_breach(QuotaType.SIZE) == 0.0


def test_a_size_that_adaptive_throttling_holds_has_no_forecast_before_it_is_known_to_rise() -> None:
    rig = QuotaRig(Quotas(size_quota(10_000).size, time_quota(300 * MS_PER_S).time))
    rig.subscribe()
    quota = rig.topic.quota
    assert quota is not None
    rig.topic.publishing.adaptive_limit = RateLimit(1_000, None, NS_PER_S)
    rig.publish(20, body=TEN)
    told = {}
    for second in range(130):
        rig.advance(1_000)
        rig.publish(1, body=TEN)
        rig.engine.quotas.sample(1)
        told[second] = [quota.seconds_to_breach(kind) is not None for kind in QuotaType]
    assert told[30] == [False, True]
    assert told[129] == [True, True]


def test_between_which_times_it_may_break() -> None:
    """Known after a minute. The producer is three times as fast in the last seconds."""
    rig = QuotaRig(Quotas(size_quota(10_000).size, time_quota(200 * MS_PER_S).time))
    rig.subscribe()
    quota = rig.topic.quota
    assert quota is not None
    rig.publish(10, body=TEN)
    for second in range(130):
        rig.advance(1_000)
        rig.publish(1 if second < 125 else 3, body=TEN)
        rig.engine.quotas.sample(1)
    likely_s = quota.seconds_to_breach(QuotaType.SIZE)
    found = quota.breach_band(QuotaType.SIZE)
    assert found is not None
    assert likely_s is not None
    assert found.earliest_s == pytest.approx(likely_s, rel=0.02)
    left_bytes = 10_000 - quota.backlog_bytes()
    assert found.latest_s == pytest.approx(left_bytes / 10, rel=0.02)
    # An age grows by a second each second.
    age = quota.breach_band(QuotaType.TIME)
    assert age is not None
    assert age == (pytest.approx(70, abs=1), pytest.approx(70, abs=1))
    rig.publish(900, body=TEN)
    assert quota.breach_band(QuotaType.SIZE) is None


def test_many_subscriptions_that_are_there_already_are_not_looked_through_each_time() -> None:
    """Rule 4.1: also a quota that is set later finds the slowest by heaps."""
    rig = QuotaRig()
    subscriptions = [rig.subscribe(f"s{number:03}") for number in range(200)]
    consumers = [
        rig.consumer(s, permits=1_000, consumer_id=i)[0] for i, s in enumerate(subscriptions)
    ]
    rig.publish(100, body=TEN)
    rig.set_quotas(Quotas(size_quota(500).size, time_quota(10_000).time))
    quota = rig.topic.quota
    assert quota is not None
    assert quota.has_heaps
    for number, (subscription, consumer) in enumerate(zip(subscriptions, consumers, strict=True)):
        subscription.ack_through(consumer, 60 + number % 7)
        rig.flush()
        assert quota.backlog_bytes() == max(s.backlog_bytes for s in subscriptions)
    assert quota.exceeded is None
    assert is_consistent(quota)


def test_many_subscriptions_are_indexed_in_steps_while_they_change() -> None:
    """The first quota of a topic with 10,000 subscriptions held the loop for 31 ms."""
    rig = QuotaRig()
    first = rig.subscribe("first", at=0)
    rig.publish(10, body=TEN)
    subscriptions = [rig.subscribe(f"s{number:03}", at=10) for number in range(200)]
    quotas = Quotas(size_quota(500).size, time_quota(10_000).time)
    rig.quotas = quotas
    steps = rig.engine.quotas_in_steps(rig.topic)
    assert next(steps) == INDEXED_IN_STEP
    quota = rig.topic.quota
    assert quota is not None
    assert quota.quotas is NO_QUOTAS
    slowest = rig.subscribe("late", at=0)
    gone = (first, subscriptions[0], subscriptions[199])
    for each in gone:
        rig.topic.remove_subscription(each.name)
    rig.publish(10, body=TEN)
    assert quota.quotas is NO_QUOTAS
    assert not quota.has_heaps
    assert list(steps) == [INDEXED_IN_STEP] * 2  # of 201, all but the last few
    assert quota.quotas == quotas
    assert quota.has_heaps
    rig.flush()
    assert quota.slowest() is slowest
    assert is_consistent(quota)
    rig.topic.remove_subscription("late")
    assert quota.slowest() not in gone


def test_of_two_quotas_each_is_released_at_its_own_low_mark() -> None:
    """Rule 4.4: a time quota that was exceeded beside the size quota is released at 95 % too."""
    size, time = size_quota(50).size, time_quota(10_000).time
    rig = QuotaRig(Quotas(size, time))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(1, body=TEN)
    rig.advance(450)
    rig.publish(4, body=TEN)
    rig.advance(9_700)
    assert rig.told.turns == [("size", True), ("time", True)]
    subscription.ack_entry(consumer, 0)  # the next is 9.7 s old: above 95 %
    rig.flush()
    assert rig.told.turns[2:] == [("size", False)]
    subscription.ack_entry(consumer, 1)
    rig.flush()
    assert rig.told.turns[3:] == []
    subscription.ack_through(consumer, 4)
    rig.flush()
    assert rig.told.turns[3:] == [("time", False)]


def test_eviction_by_one_quota_ends_the_hold_of_the_other_at_once() -> None:
    rig = QuotaRig(time_quota(5_000, HOLD))
    rig.subscribe()
    rig.publish(4, body=TEN)
    rig.advance(3_000)
    rig.publish(6, body=TEN)
    rig.advance(2_500)
    rig.send(1, body=TEN)
    assert rig.stored == 10
    rig.set_quotas(Quotas(size_quota(60, EVICT).size, rig.quotas.time))
    # What was too old is among what the size quota took.
    assert rig.told.evictions == [("size", 5, 50, 50)]
    assert rig.stored == 11


def test_one_that_evicts_lets_producers_go_on_below_the_limit() -> None:
    """Rule 4.4's low mark is for producers that are stopped: here they only wait for what is not
    durable, and below the limit they need not."""
    rig = QuotaRig(size_quota(100, EVICT))
    rig.subscribe()
    rig.send(2, body=bytes(52))
    rig.send(1, body=b"x")
    assert rig.stored == 2
    rig.set_quotas(size_quota(107, EVICT))
    assert rig.stored == 3
    rig.commit()
    assert rig.told.evictions == []


def test_one_that_refuses_instead_of_holding_closes_nobody_below_its_limit() -> None:
    """Rule 4.4: that an entry waited for more room under the other policy says nothing."""
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.send(1, body=bytes(100))
    rig.send(1, body=bytes(120))
    assert rig.stored == 1
    rig.set_quotas(size_quota(150, REFUSE))
    assert rig.stored == 2
    assert rig.port.closed == []
    rig.commit()
    assert rig.port.closed == [1]


def test_a_small_raise_lets_producers_go_on_at_once() -> None:
    """Rule 4.4: another limit begins anew, also where the backlog is above 95 % of it."""
    rig = QuotaRig(size_quota(1_000))
    rig.subscribe()
    rig.publish(101, body=TEN)
    assert rig.stored == 100
    rig.set_quotas(size_quota(1_050))
    rig.commit()
    assert rig.stored == 101


def test_a_quota_that_is_reached_breaks_in_0_seconds() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(10, body=TEN)
    quota = rig.topic.quota
    assert quota is not None
    assert quota.seconds_to_breach(QuotaType.SIZE) == 0.0
    rig.send(1, body=bytes(30))
    subscription.ack_entry(consumer, 0)
    rig.flush()
    # 90 are owed and the next needs 30: producers are still stopped.
    assert quota.exceeded is not None
    assert quota.seconds_to_breach(QuotaType.SIZE) == 0.0
