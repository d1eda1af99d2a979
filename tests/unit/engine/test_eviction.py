"""How far a subscription is moved so that a backlog fits, to the entry (rule 4.3)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet
from headgate.base.units import NS_PER_S
from headgate.engine.eviction import (
    EVICTED_IN_STEP,
    NOTHING_EVICTED,
    Eviction,
    EvictionPass,
    SubscriptionLoss,
    TopicEvictions,
    first_kept,
)
from headgate.engine.subscription import Subscription
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, QuotaType
from tests.unit.engine.harness import Rig
from tests.unit.engine.quota_rig import EVICT, QuotaRig, size_quota, time_quota
from tests.unit.work_meter import bytecodes

TEN = b"0123456789"
QUOTA = Quota(QuotaType.SIZE, 1, QuotaPolicy.EVICTION, "topic policy")


def standing(
    sizes: list[int], *, at: int = 0, acked: tuple[int, ...] = (), first: int = 0
) -> tuple[Rig, Subscription]:
    """A subscription that owes entries of these sizes from ``at`` on, less those ``acked``."""
    rig = Rig()
    for size in sizes:
        rig.publish(body=bytes(size))
    rig.log.first = first
    acks = AckSet(at - 1)
    for ordinal in acked:
        acks.ack(ordinal)
    return rig, rig.topic.add_subscription("s", acks, cursor_id=1)


def test_an_eviction_over_very_many_runs_looks_at_those_of_few_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It went through all of them, twice, for each of 16 subscriptions without a pause."""
    rig = Rig()
    rig.publish(4 * BLOCK_ORDINALS, body=TEN)
    monkeypatch.setattr(rig.log, "messages_before", lambda ordinal: ordinal)
    monkeypatch.setattr(rig.log, "bytes_before", lambda ordinal: 10 * ordinal)
    subscription = rig.subscribe()
    consumer, _ = rig.consumer(subscription)
    for ordinal in range(1, 4 * BLOCK_ORDINALS, 2):
        subscription.ack_entry(consumer, ordinal)
    plain = AckSet()
    plain.apply(subscription.acks.whole())
    log, acks = subscription.topic.log, subscription.acks
    for excess in (1, 10, 10 * BLOCK_ORDINALS, 15 * BLOCK_ORDINALS + 1, 20 * BLOCK_ORDINALS):
        assert first_kept(log, acks, excess) == first_kept(log, plain, excess)
    excess = 19 * BLOCK_ORDINALS
    assert 2 * bytecodes(lambda: first_kept(log, acks, excess)) < bytecodes(
        lambda: first_kept(log, plain, excess)
    )


@pytest.mark.parametrize(
    ("excess", "kept"),
    [(1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (60, 3), (61, 4), (100, 4), (10_000, 4)],
)
def test_entries_go_until_enough_is_gone(excess: int, kept: int) -> None:
    _, subscription = standing([10, 20, 30, 40])
    assert first_kept(subscription.topic.log, subscription.acks, excess) == kept


def test_what_is_acknowledged_counts_nothing() -> None:
    """The holes of a shared subscription are passed, not charged."""
    _, subscription = standing([10, 20, 30, 40, 50], acked=(1, 3))
    assert first_kept(subscription.topic.log, subscription.acks, 10) == 1
    assert first_kept(subscription.topic.log, subscription.acks, 11) == 3
    assert first_kept(subscription.topic.log, subscription.acks, 41) == 5
    assert first_kept(subscription.topic.log, subscription.acks, 91) == 5


def test_what_the_topic_gave_up_counts_nothing() -> None:
    _, subscription = standing([10, 20, 30, 40], first=2)
    assert first_kept(subscription.topic.log, subscription.acks, 1) == 3
    assert first_kept(subscription.topic.log, subscription.acks, 31) == 4


def test_who_owes_nothing_stays() -> None:
    _, subscription = standing([10, 20], at=2)
    assert first_kept(subscription.topic.log, subscription.acks, 5) == 2
    assert subscription.evict_to(2, QUOTA) == (0, 0)


def test_an_act_adds_up_what_all_lost() -> None:
    quota = Quota(QuotaType.SIZE, 100, QuotaPolicy.EVICTION, "topic policy")
    losses = [SubscriptionLoss("a", 3, 40), SubscriptionLoss("b", 1, 5)]
    act = Eviction(quota, 120, -1, losses, 90, -1)
    assert (act.messages, act.bytes) == (4, 45)


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=25),
    st.integers(0, 25),
    st.sets(st.integers(0, 24)),
    st.integers(0, 24),
    st.integers(0, 1_600),
)
def test_just_enough_goes(
    sizes: list[int], at: int, acked: set[int], first: int, target: int
) -> None:
    """Rule 4.3: against brute force, over real sizes and holes. What is left fits the target; with
    one entry less gone it would not."""
    count = len(sizes)
    holes = tuple(sorted(ordinal for ordinal in acked if at <= ordinal < count))
    rig, subscription = standing(sizes, at=min(at, count), acked=holes, first=min(first, count))
    owed = [o for o in range(rig.log.first, count) if not subscription.acks.is_acked(o)]
    backlog = sum(sizes[o] for o in owed)
    assert subscription.backlog_bytes == backlog
    assume(backlog > target)
    kept = first_kept(subscription.topic.log, subscription.acks, backlog - target)
    gone = [o for o in owed if o < kept]
    assert gone
    assert sum(sizes[o] for o in owed if o >= kept) <= target
    assert sum(sizes[o] for o in owed if o >= gone[-1]) > target
    lost = subscription.evict_to(kept, QUOTA)
    assert lost == (len(gone), sum(sizes[o] for o in gone))
    assert subscription.backlog_bytes == backlog - lost[1] <= target


def test_each_subscription_loses_what_it_has_too_much_the_largest_loss_first() -> None:
    rig, slow = standing([10] * 10)
    rig.topic.add_subscription("fast", AckSet(4), cursor_id=2)
    rig.topic.add_subscription("done", AckSet(9), cursor_id=3)
    quota = Quota(QuotaType.SIZE, 50, QuotaPolicy.EVICTION, "topic policy")
    subscriptions = list(rig.topic.subscriptions.values())
    evicting = EvictionPass(rig.log, subscriptions, quota, 100, rig.engine.log_ms)
    assert evicting.run(rig.topic, list)
    assert evicting.losses == [SubscriptionLoss("s", 6, 60), SubscriptionLoss("fast", 1, 10)]
    assert slow.backlog_bytes == 40


def test_evictions_of_a_topic_are_counted_by_type() -> None:
    evictions = TopicEvictions()
    assert evictions.amounts == [NOTHING_EVICTED, NOTHING_EVICTED]
    losses = [SubscriptionLoss("s", 2, 20), SubscriptionLoss("t", 1, 10)]
    for now_ns in (5, 7):
        evictions.add(Eviction(QUOTA, 100, -1, losses, 70, -1), now_ns)
    assert evictions.amounts == [(2, 6, 60), NOTHING_EVICTED]
    assert evictions.last_ns == [7, None]


def test_an_eviction_of_very_many_subscriptions_takes_turns() -> None:
    """A message to each of 200 topics with 100 subscriptions held the event loop for 0.1 s."""
    rig = QuotaRig(time_quota(1_000, EVICT))
    count = 5 * EVICTED_IN_STEP
    subscriptions = [rig.subscribe(f"s{number}") for number in range(count)]
    rig.publish(body=TEN)
    engine = rig.engine
    engine.begin_turn(engine.now_ns + 2 * NS_PER_S, engine.now_ms + 2_000, engine.log_ms + 2_000)
    moved = [0]
    while engine.flush():
        moved.append(sum(s.evicted_messages for s in subscriptions))
        assert moved[-1] - moved[-2] <= 3 * EVICTED_IN_STEP
    assert sum(s.evicted_messages for s in subscriptions) == count
    assert rig.told.evictions == [("time", count, 10 * count, 0)]


def test_the_end_of_a_commit_leaves_an_eviction_to_the_flush() -> None:
    """A message to each of 990 partitions with 20 subscriptions held the event loop for 0.07 s,
    because the end of a commit moved all of them at once."""
    rig = QuotaRig(size_quota(100, EVICT))
    subscription = rig.subscribe()
    rig.publish(9, body=TEN)
    rig.send(1, body=TEN)
    rig.log.end = rig.log.staged_end
    rig.topic.publishing.entries_durable(0)
    assert subscription.evicted_messages == 0
    rig.flush()
    assert subscription.evicted_messages > 0


def test_an_eviction_over_very_many_runs_that_are_not_known_yet_takes_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first eviction of a topic that was loaded again held the event loop for 0.16 s, with ten
    subscriptions that had acknowledged every second one of 200,000 messages; 0.36 s with the index
    on the disk."""
    rig = Rig()
    rig.publish(4 * BLOCK_ORDINALS, body=TEN)
    monkeypatch.setattr(rig.log, "messages_before", lambda ordinal: ordinal)
    monkeypatch.setattr(rig.log, "bytes_before", lambda ordinal: 10 * ordinal)
    acks = AckSet()
    for ordinal in range(1, 4 * BLOCK_ORDINALS, 2):
        acks.ack(ordinal)
    stored = acks.whole()
    subscriptions = []
    for number in range(3):
        acks = AckSet()
        acks.apply(stored)
        subscriptions.append(rig.topic.add_subscription(f"s{number}", acks, cursor_id=number + 1))
        acks.sums.clear()  # what an unload counted stays, and the cursor does not count again
    quota = Quota(QuotaType.SIZE, BLOCK_ORDINALS, QuotaPolicy.EVICTION, "topic policy")
    staged_bytes = rig.topic.publishing.staged_bytes
    evicting = EvictionPass(rig.topic.log, subscriptions, quota, staged_bytes, 0)
    known = [sum(map(len, (s.acks.sums for s in subscriptions)))]
    while not evicting.run(rig.topic, rig.flush):
        known.append(sum(map(len, (s.acks.sums for s in subscriptions))))
        assert known[-1] <= known[-2] + 1, "no more than a block without a pause"
    assert len(known) > 3 * 3
    assert all(s.backlog_bytes <= BLOCK_ORDINALS for s in subscriptions)
    assert len(evicting.losses) == 3


def test_who_sends_amid_an_eviction_goes_on_when_it_is_over() -> None:
    rig = QuotaRig(size_quota(40, EVICT))
    count = 3 * EVICTED_IN_STEP
    subscriptions = [rig.subscribe(f"s{number}") for number in range(count)]
    rig.publish(3, body=TEN)
    rig.send(2, body=TEN)
    assert rig.stored == 4, "one waits"
    assert sum(s.evicted_messages > 0 for s in subscriptions) == EVICTED_IN_STEP
    rig.flush()
    assert rig.stored == 5
    assert all(s.evicted_messages for s in subscriptions)
    assert rig.told.evictions[0][:2] == ("size", count)


def test_an_eviction_that_can_take_nothing_more_does_not_begin_again_and_again() -> None:
    """What is staged cannot be evicted: its producer waits for the commit, and the engine rests."""
    rig = QuotaRig(size_quota(40, EVICT))
    for number in range(3 * EVICTED_IN_STEP):
        rig.subscribe(f"s{number}")
    rig.send(6, body=TEN)
    flushes = 0
    while rig.engine.flush():
        flushes += 1
        assert flushes < 50
    assert rig.stored == 4
    rig.commit()
    assert rig.stored == 6
