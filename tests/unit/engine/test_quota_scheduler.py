"""What the quotas of all topics share: due times, bounds on what waits, work in each turn, checks.

Rules 4.2 (a time quota acts within a second), 4.3 (what waits is bounded), 4.6 (the check finds
nothing, or a counted defect) and 4.7 (no turn takes long, and idle topics cost nothing).
"""

from __future__ import annotations

import gc
import weakref

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.errors import StorageError
from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.units import MS_PER_S, NS_PER_S
from headgate.engine.engine import FLUSH_ENTRIES_MAX, WAITING_ENTRIES_MIN
from headgate.engine.producer import Producer
from headgate.engine.quota_check import is_consistent
from headgate.engine.quota_scheduler import SAMPLES_MAX
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quotas, QuotaType
from tests.unit.engine.harness import START_MS, FakeLog, FakePort
from tests.unit.engine.quota_rig import EVICT, HOLD, QuotaRig, size_quota, time_quota

TEN = b"0123456789"
WEEK_MS = 7 * 24 * 3_600 * MS_PER_S


def more_topics(rig: QuotaRig, count: int) -> list[Topic]:
    """Further topics with the rig's quotas and a subscription each."""
    topics = []
    for number in range(2, 2 + count):
        name = parse_topic(f"persistent://acme/ns/t{number}")
        topics.append(rig.engine.load_topic(name, FakeLog(number)))
    return topics


# -- how long something may wait -----------------------------------------------------------------


def test_a_producer_whose_send_waits_too_long_is_closed_and_nothing_of_it_is_stored() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(12, body=TEN)
    rig.advance(19_990)
    assert rig.port.closed == []
    rig.advance(20)
    assert rig.port.closed == [1]
    assert rig.topic.producers == {}
    assert rig.engine.parked.bytes == 0
    subscription.ack_through(consumer, 9)
    rig.flush()
    rig.commit()
    assert rig.stored == 10
    assert rig.told.turns == [("size", True), ("size", False)]


def test_each_send_may_wait_as_long_as_the_first() -> None:
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    other, other_port = rig.second_producer()
    rig.publish(11, body=TEN)
    rig.advance(10_000)
    rig.topic.publishing.publish(other, 0, 0, 1, TEN)
    rig.advance(10_010)
    assert (rig.port.closed, other_port.closed) == ([1], [])
    rig.advance(10_000)
    assert other_port.closed == [2]


def test_what_waits_is_bounded_for_each_connection() -> None:
    rig = QuotaRig(size_quota(100))
    rig.engine.limits.parked_bytes_per_connection_max = 55
    rig.subscribe()
    other, other_port = rig.second_producer()
    rig.publish(10, body=TEN)
    rig.send(5, body=TEN)
    assert rig.port.closed == []
    rig.topic.publishing.publish(other, 0, 0, 1, bytes(50))
    rig.send(1, body=TEN)
    assert rig.port.closed == [1]
    assert other_port.closed == []
    assert rig.engine.parked.bytes == other_port.parked_bytes == 50


def test_what_waits_is_bounded_for_all() -> None:
    rig = QuotaRig(size_quota(100))
    rig.engine.limits.parked_bytes_max = 100
    rig.subscribe()
    other, other_port = rig.second_producer()
    rig.publish(10, body=TEN)
    for sequence in range(6):
        rig.topic.publishing.publish(other, sequence, 0, 1, TEN)
    rig.send(5, body=TEN)
    assert (rig.port.closed, other_port.closed) == ([], [2])
    assert rig.engine.parked.bytes == 50


def test_idle_topics_are_not_followed_and_wake_up_with_an_append() -> None:
    rig = QuotaRig(Quotas(size_quota(1_000).size, time_quota(5_000).time))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    scheduler, quota = rig.engine.quotas, rig.topic.quota
    assert quota is not None
    rig.publish(1, body=TEN)
    assert quota.is_active
    subscription.ack_entry(consumer, 0)
    scheduler.sample(scheduler.sample_count())
    assert not quota.is_active
    assert scheduler.sample_count() == 0
    rig.advance(60_000)
    rig.publish(1, body=TEN)
    assert quota.is_active
    rig.advance(5_300)
    assert quota.exceeded is not None


def test_a_verification_finds_nothing_and_mends_what_a_defect_left() -> None:
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.publish(10, body=TEN)
    scheduler, quota = rig.engine.quotas, rig.topic.quota
    assert quota is not None
    scheduler.verify([rig.topic])
    assert scheduler.defects_count == 0
    quota.exceeded, rig.topic.quota.awaits_acks = None, False  # as if it had been missed
    scheduler.verify([rig.topic])
    assert scheduler.defects_count == 1
    assert quota.exceeded is not None


def test_an_unloaded_topic_is_looked_at_no_more() -> None:
    rig = QuotaRig(time_quota(1_000))
    rig.subscribe()
    rig.publish(1)
    told = rig.told.turns
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.advance(10_000)
    assert told == []
    scheduler = rig.engine.quotas
    scheduler.sample(scheduler.sample_count())
    assert scheduler.sample_count() == 0


def test_the_account_of_what_waits() -> None:
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(10, body=TEN)
    rig.send(1, body=TEN, messages=3)
    parking = rig.topic.publishing.parking
    assert parking is not None
    rig.advance(1_500)
    cause = ParkCause.BACKLOG_QUOTA
    assert parking.waiting(cause) == (1, 3, 10)
    assert parking.parked_ns(cause, rig.engine.now_ns) == 1_500_000_000
    subscription.ack_through(consumer, 9)
    rig.flush()
    rig.advance(1_000)
    assert not parking
    assert (parking.messages, parking.bytes) == (0, 0)
    assert parking.parked_ns(cause, rig.engine.now_ns) == 1_500_000_000


def test_another_longest_wait_counts_for_what_waits_already() -> None:
    """Rule 4.3: shortened, it ends holds that are older; lengthened, it spares them."""
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    other, other_port = rig.second_producer()
    rig.publish(11, body=TEN)
    rig.advance(5_000)
    rig.topic.publishing.publish(other, 0, 0, 1, TEN)
    rig.engine.limits.hold_park_ns = 4_000_000_000
    rig.engine.parked.recheck_hold_timeouts()
    assert (rig.port.closed, other_port.closed) == ([1], [])
    rig.engine.limits.hold_park_ns = 30_000_000_000
    rig.engine.parked.recheck_hold_timeouts()
    rig.advance(29_990)
    assert other_port.closed == []
    rig.advance(20)
    assert other_port.closed == [2]


def test_without_any_patience_producers_are_closed_at_once() -> None:
    rig = QuotaRig(size_quota(100))
    rig.engine.limits.hold_park_ns = 0
    rig.subscribe()
    rig.publish(11, body=TEN)
    assert rig.port.closed == [1]
    assert rig.engine.parked.bytes == 0


def test_a_lower_bound_for_connections_counts_with_the_next_send() -> None:
    """Rule 4.3: however far it fell, what waits is within it then."""
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.publish(10, body=TEN)
    producers = [Producer(number, f"p{number}", rig.port) for number in range(2, 8)]
    for one in producers:
        rig.topic.add_producer(one)
        rig.topic.publishing.publish(one, 0, 0, 1, TEN)
    rig.engine.limits.parked_bytes_per_connection_max = 25
    rig.send(1, body=b"5byte")
    assert rig.port.parked_bytes <= 25
    assert rig.engine.parked.bytes == rig.port.parked_bytes > 0


def test_who_waits_behind_a_producer_that_goes_is_looked_at() -> None:
    """Rule 4.4: a large entry waits for more room than the small one behind it, whose turn comes
    when the large one's producer leaves."""
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    other, _ = rig.second_producer()
    rig.publish(10, body=TEN)
    rig.send(1, body=bytes(60))
    rig.topic.publishing.publish(other, 0, 0, 1, b"x")
    subscription.ack_entry(consumer, 0)
    rig.flush()
    assert rig.stored == 10  # 90 are owed: too much for the 60 that go next
    rig.topic.remove_producer(rig.producer)
    rig.flush()
    assert rig.stored == 11


# -- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit_ms", [1_000, 1_333, 10_000, 59_999, 61_234, 3_600_000])
def test_a_time_quota_acts_within_a_quarter_of_a_second(limit_ms: int) -> None:
    """Rule 4.2."""
    rig = QuotaRig(time_quota(limit_ms))
    rig.subscribe()
    rig.advance(777)
    rig.publish(1)
    rig.advance(limit_ms - 1)
    assert rig.told.turns == []
    rig.advance(252)
    assert rig.told.turns == [("time", True)]


def test_a_lower_time_quota_acts_in_time_too() -> None:
    rig = QuotaRig(time_quota(WEEK_MS))
    rig.subscribe()
    rig.publish(1)
    rig.advance(10_000)
    rig.set_quotas(time_quota(12_000))
    rig.advance(1_999)
    assert rig.told.turns == []
    rig.advance(252)
    assert rig.told.turns == [("time", True)]


def test_what_became_durable_late_is_as_old_as_it_is() -> None:
    """Rule 4.5: the disk stood still for longer than the limit; the age counts from the SEND."""
    rig = QuotaRig(time_quota(10 * MS_PER_S, EVICT))
    subscription = rig.subscribe()
    rig.send(1)
    rig.advance(13_000)
    assert rig.told.evictions == []
    rig.commit()
    assert rig.told.evictions == [("time", 1, 4, 0)]
    assert subscription.backlog_messages == 0


def test_a_quota_of_weeks_is_looked_at_a_few_times() -> None:
    """Rule 4.7: topics whose times are far apart share the instants at which they are looked at."""
    rig = QuotaRig(time_quota(WEEK_MS))
    rig.subscribe()
    topics = more_topics(rig, 300)
    instants: set[int | None] = set()
    for number, topic in enumerate(topics):
        rig.advance(7)
        topic.publishing.publish(Producer(number, "p", FakePort()), 0, 0, 1, TEN)
        instants.add(rig.engine.next_wake_ns())
    rig.advance(WEEK_MS // 2)
    instants.add(rig.engine.next_wake_ns())
    assert len(rig.engine.quotas._wheel) <= 2
    assert len(instants) <= 3


def test_quotas_of_years_that_change_all_the_time_leave_few_timers() -> None:
    """Each left a bucket and a timer for as long as it lasted."""
    rig = QuotaRig(time_quota(WEEK_MS))
    rig.subscribe()
    rig.publish(1)
    for days in range(10, 500):
        rig.set_quotas(time_quota(days * 86_400 * MS_PER_S))
        rig.flush()
    assert len(rig.engine._timers) <= 3
    rig.set_quotas(time_quota(3 * 86_400 * MS_PER_S))
    for _ in range(3):
        rig.advance(86_400 * MS_PER_S - 1_000)
    assert rig.told.turns == []
    rig.advance(3_251)
    assert rig.told.turns == [("time", True)]


def test_a_topic_that_owes_nothing_needs_no_timer() -> None:
    """Rule 4.7: a hundred thousand idle topics cost nothing; the next append is looked at."""
    rig = QuotaRig(time_quota(5_000))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(1)
    subscription.ack_entry(consumer, 0)
    rig.advance(20_000)
    assert rig.engine.next_wake_ns() is None
    rig.publish(1)
    rig.advance(5_251)
    assert rig.told.turns == [("time", True)]


def test_what_grew_old_while_the_machine_slept_is_found_at_once() -> None:
    """Rule 4.2: timers do not count that time, the log does."""
    rig = QuotaRig(time_quota(10_000))
    rig.subscribe()
    rig.publish(1)
    rig.engine.log_ms += 3_600_000
    rig.engine.quotas.time_jumped()
    rig.flush()
    assert rig.told.turns[-1] == ("time", True)
    assert rig.topic.quota is not None
    assert is_consistent(rig.topic.quota)


def test_the_wall_clock_makes_nothing_older() -> None:
    """Rule 4.5: it is only shown."""
    rig = QuotaRig(time_quota(10_000))
    rig.subscribe()
    rig.publish(1)
    rig.engine.now_ms += 3_600_000
    rig.engine.quotas.time_jumped()
    rig.flush()
    assert rig.told.turns == []
    assert rig.topic.quota is not None
    assert is_consistent(rig.topic.quota)


def test_after_the_machine_slept_all_are_due_at_their_new_instants() -> None:
    """Rule 4.2: topics that come later share no instant that was reckoned before."""
    rig = QuotaRig(time_quota(3_600_000))
    rig.subscribe()
    rig.publish(1)
    rig.engine.log_ms += 3_590_000
    rig.engine.quotas.time_jumped()
    (other,) = more_topics(rig, 1)
    rig.flush()
    assert other.quota is not None
    assert rig.engine.next_wake_ns() is not None
    log_ms = rig.engine.log_ms + 10_250
    rig.engine.begin_turn(rig.engine.now_ns + 10_250_000_000, log_ms, log_ms)
    rig.flush()
    assert rig.told.turns == [("time", True)]
    assert len(rig.engine.quotas._wheel) <= 1


# -- the turn ------------------------------------------------------------------------------------


def test_a_flush_stages_a_bounded_number_and_asks_for_another() -> None:
    """Rule 4.7, and rule 4.4: each SEND goes in its order, over as many turns as that takes."""
    rig = QuotaRig(size_quota(100_000))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=10)
    rig.publish(1, body=bytes(100_000))
    rig.send(1_000, body=TEN)
    assert rig.stored == 1
    subscription.ack_entry(consumer, 0)
    flushes, before = 0, rig.stored
    while rig.engine.flush():
        assert 0 < rig.stored - before <= WAITING_ENTRIES_MIN
        before = rig.stored
        flushes += 1
    rig.commit()
    assert flushes >= 1_000 // FLUSH_ENTRIES_MAX
    assert [sequence for sequence, _ in rig.port.receipts] == list(range(1_001))


def test_what_is_sent_while_others_are_let_go_on_waits_behind_them() -> None:
    rig = QuotaRig(size_quota(100_000))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=10)
    rig.publish(1, body=bytes(100_000))
    rig.send(500, body=TEN)
    subscription.ack_entry(consumer, 0)
    assert rig.engine.flush()
    rig.send(1, body=TEN)
    rig.flush()
    rig.commit()
    assert [sequence for sequence, _ in rig.port.receipts] == list(range(502))


def test_one_topic_with_much_waiting_does_not_keep_others_waiting() -> None:
    rig = QuotaRig(size_quota(100_000))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=10)
    rig.publish(1, body=bytes(100_000))
    rig.send(1_000, body=TEN)
    (other,) = more_topics(rig, 1)
    subscription.ack_entry(consumer, 0)
    assert other.quota is not None
    rig.engine.quotas.touch(other.quota)
    rig.engine.flush()
    assert rig.engine.flush()
    assert not other.quota.is_dirty
    assert rig.stored < 1_000


# -- sweeps --------------------------------------------------------------------------------------


def test_many_topics_are_looked_at_in_turn() -> None:
    rig = QuotaRig(size_quota(1_000))
    topics = more_topics(rig, SAMPLES_MAX + 200)
    rig.flush()
    scheduler = rig.engine.quotas
    # Nobody owes anything: each look lets go of one.
    scheduler.sample(scheduler.sample_count())
    left = [t for t in [rig.topic, *topics] if t.quota is not None and t.quota.is_active]
    assert len(left) == 201
    assert scheduler.sample_count() == 201


def test_a_hold_without_a_reason_is_a_defect() -> None:
    """Rule 4.6: producers that wait although there is room are found, and let go on."""
    rig = QuotaRig(size_quota(100))
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(12, body=TEN)
    rig.topic.quota.awaits_acks = False  # as if nobody had told of the acknowledgements
    subscription.ack_through(consumer, 9)
    rig.flush()
    scheduler = rig.engine.quotas
    scheduler.verify([rig.topic])
    rig.flush()
    assert scheduler.defects_count == 1
    assert rig.stored == 12
    scheduler.verify([rig.topic])
    assert scheduler.defects_count == 1


def test_what_this_turn_will_look_at_is_no_defect() -> None:
    """Rule 4.6: the check may come between an event and the flush that follows it."""
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.publish(9, body=TEN)
    rig.quotas = size_quota(50)
    rig.engine.reload_quotas(rig.topic)
    scheduler = rig.engine.quotas
    scheduler.verify([rig.topic])
    assert scheduler.defects_count == 0
    rig.flush()
    assert rig.topic.quota.awaits_acks


def test_what_reaches_the_limit_and_is_not_durable_yet_is_no_defect() -> None:
    """Rule 4.6: it is looked at when it is durable."""
    for policy in (HOLD, EVICT):
        rig = QuotaRig(size_quota(100, policy))
        rig.subscribe()
        rig.publish(9, body=TEN)
        rig.send(1, body=TEN)
        scheduler = rig.engine.quotas
        scheduler.verify([rig.topic])
        assert scheduler.defects_count == 0
        rig.commit()
        assert rig.topic.quota.awaits_acks == (policy is HOLD)


def test_the_brokers_totals_stay_when_a_topic_goes() -> None:
    """Rule 4.6: one act of eviction on a topic counts one, for each type by itself."""
    rig = QuotaRig(Quotas(size_quota(100, EVICT).size, time_quota(5_000, EVICT).time))
    rig.subscribe("a")
    rig.subscribe("b")
    rig.publish(10, body=TEN)
    rig.advance(6_000)
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    assert rig.engine.quotas.evicted == [(1, 2, 20), (1, 18, 180)]


def test_what_a_removed_quota_kept_waiting_goes_although_the_disk_fails_meanwhile() -> None:
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.publish(10, body=TEN)
    rig.send(2, body=TEN)
    rig.set_quotas(NO_QUOTAS)
    assert rig.stored == 12
    for column in (rig.log.bodies, rig.log.counts, rig.log.times):
        del column[rig.log.end :]
    rig.topic.publishing.fail_pending(StorageError("disk full", retryable=True))
    assert [sequence for sequence, _ in rig.port.failures] == [10, 11]
    assert rig.topic.quota is not None
    assert rig.topic.quota.backlog_bytes() == 100
    assert rig.topic.quota.evictions(QuotaType.SIZE) == (0, 0, 0)


def test_a_topic_that_only_readers_use_is_no_defect() -> None:
    """Rule 4.6: nobody whose cursor is stored owes anything."""
    for quotas in (size_quota(100), size_quota(100, EVICT), time_quota(1_000)):
        rig = QuotaRig(quotas)
        rig.subscribe("reader", durable=False)
        rig.publish(20, body=TEN)
        quota, scheduler = rig.topic.quota, rig.engine.quotas
        assert quota is not None
        assert quota.is_active
        scheduler.verify([rig.topic])
        assert scheduler.defects_count == 0


def test_a_topic_that_is_gone_is_not_kept_for_the_time_of_its_quota() -> None:
    rig = QuotaRig(time_quota(30 * 86_400 * MS_PER_S))
    rig.subscribe()
    rig.publish(1)
    gone = weakref.ref(rig.log)
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic, deleted=True)
    scheduler = rig.engine.quotas
    scheduler.sample(scheduler.sample_count())
    rig.flush()
    del rig.topic, rig.log
    gc.collect()
    assert gone() is None


def test_readers_that_come_and_go_leave_nothing_in_the_due_times() -> None:
    rig = QuotaRig(time_quota(7 * 86_400 * MS_PER_S))
    rig.subscribe()
    rig.publish(1)
    for number in range(1_000):
        rig.subscribe(f"r{number}", durable=False)
        rig.flush()
        rig.topic.remove_subscription(f"r{number}")
        rig.flush()
    quota = rig.topic.quota
    assert quota is not None
    assert quota.due is not None
    assert len(quota.due.topics) <= 3


def test_a_shorter_hold_counts_although_an_older_timer_still_runs() -> None:
    rig = QuotaRig(size_quota(100))
    rig.engine.limits.hold_park_ns = 3_600 * NS_PER_S
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription, permits=100)
    rig.publish(11, body=TEN)
    subscription.ack_through(consumer, 9)
    rig.flush()
    rig.commit()
    rig.engine.limits.hold_park_ns = 5 * NS_PER_S
    rig.engine.parked.recheck_hold_timeouts()
    rig.publish(11, body=TEN)
    assert rig.engine.parked.bytes > 0
    rig.advance(5_010)
    assert rig.port.closed == [1]


def test_changes_of_the_longest_hold_leave_one_timer() -> None:
    rig = QuotaRig(size_quota(100))
    rig.subscribe()
    rig.publish(11, body=TEN)
    for seconds in range(51, 101):
        rig.engine.limits.hold_park_ns = seconds * NS_PER_S
        rig.engine.parked.recheck_hold_timeouts()
    rig.advance(99_000)
    assert rig.port.closed == []
    assert len(rig.engine._timers) == 1
    rig.advance(1_010)
    assert rig.port.closed == [1]


def test_very_many_topics_with_held_producers_hold_up_none_of_another_tenant() -> None:
    """Each of them had a whole flush, and had more to stage again when its turn came: for as long
    as clients sent as fast as that, who came behind them waited for all of them."""
    rig = QuotaRig(size_quota(10))
    topics = [
        rig.engine.load_topic(parse_topic(f"persistent://{name}"), FakeLog(2 + number))
        for number, name in enumerate([*(f"acme/ns/t{n}" for n in range(50)), "globex/ns/t"])
    ]
    for topic in topics:
        topic.add_subscription("s", AckSet(), cursor_id=topic.log.number)
        producer = Producer(1, "p", FakePort())
        topic.add_producer(producer)
        for sequence in range(200):
            topic.publishing.publish(producer, sequence, 0, 1, bytes(20))
    rig.flush()
    assert [topic.publishing.pending_count for topic in topics] == [1] * len(topics)
    rig.quotas = size_quota(1_000_000)
    for topic in topics:
        rig.engine.reload_quotas(topic)
    rig.engine.flush()
    *many, other = [topic.publishing.pending_count for topic in topics]
    assert other > 16
    assert sum(many) < 1_000
    rig.flush()
    assert [topic.publishing.pending_count for topic in topics] == [200] * len(topics)


def test_topics_whose_messages_get_too_old_hold_up_none_of_another_tenant() -> None:
    """Those that were due went first, and an eviction that moves 15 subscriptions takes half a
    flush. Where more of them became due than flushes could evaluate, producers of another tenant
    that a quota had held were held for ever, although there was room."""
    rig = QuotaRig(time_quota(1, policy=EVICT))
    many = more_topics(rig, 20)
    for topic in many:
        for number in range(15):
            topic.add_subscription(f"s{number}", AckSet(), cursor_id=1 + number)
        topic.publishing.publish(Producer(1, "p", FakePort()), 0, 0, 1, TEN)
        topic.log.end = topic.log.staged_end
        topic.publishing.entries_durable(0)
    rig.flush()
    rig.quotas = size_quota(10)
    other = rig.engine.load_topic(parse_topic("persistent://globex/ns/t"), FakeLog(100))
    other.add_subscription("s", AckSet(), cursor_id=1)
    producer = Producer(1, "p", FakePort())
    other.add_producer(producer)
    for sequence in range(3):
        other.publishing.publish(producer, sequence, 0, 1, bytes(20))
    rig.flush()
    assert other.publishing.pending_count == 1
    rig.quotas = size_quota(1_000_000)
    later_ms = START_MS + 2 * MS_PER_S
    rig.engine.begin_turn(rig.engine.now_ns + 2 * NS_PER_S, later_ms, later_ms)
    rig.engine.reload_quotas(other)
    rig.engine.flush()
    assert other.publishing.pending_count == 3
    evicted = rig.engine.quotas.evicted[QuotaType.TIME][0]
    assert 0 < evicted < len(many)
    rig.flush()
    assert rig.engine.quotas.evicted[QuotaType.TIME][0] == len(many)


@pytest.mark.parametrize("has_backlog", [False, True])
def test_durable_entries_whose_receipts_wait_are_not_taken_for_staged_ones(
    has_backlog: bool,
) -> None:
    """A large commit is answered in slices. A quota that was evaluated meanwhile, on a topic
    without a backlog, asked for the time of an entry that did not exist: the broker ended."""
    rig = QuotaRig(time_quota(1_000, policy=EVICT))
    if has_backlog:
        rig.subscribe()
    rig.advance(2_000)
    rig.send(3, body=TEN)
    rig.log.end = rig.log.staged_end
    rig.advance(3_000)
    assert rig.topic.quota is not None
    rig.engine.quotas.touch(rig.topic.quota)
    rig.flush()
    assert rig.engine.quotas.evicted[QuotaType.TIME][1] == 3 * has_backlog
    assert rig.topic.publishing.entries_durable(0, 1)
    rig.engine.quotas.time_jumped()
    rig.flush()
    assert not rig.topic.publishing.entries_durable(0)
    rig.flush()
    assert rig.topic.publishing.pending_count == 0
    assert len(rig.port.receipts) == 3


def test_what_is_durable_and_waits_for_receipts_is_no_defect() -> None:
    """It may be too old as soon as it is durable, and is evaluated when the receipts are sent."""
    rig = QuotaRig(time_quota(1_000))
    rig.subscribe()
    rig.send(3, body=TEN)
    rig.advance(10_000)
    rig.log.end = rig.log.staged_end
    rig.engine.quotas.verify([rig.topic])
    assert rig.engine.quotas.defects_count == 0
    rig.topic.publishing.entries_durable(0)
    rig.flush()
    assert rig.told.turns == [("time", True)]
