"""Limits relative to the publish rate, kept in force by the engine (law 1.7, PIP-52)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.base.units import INT64_MAX
from headgate.engine.producer import Producer
from headgate.engine.relative import SLICE_GATES
from headgate.engine.subscription import Subscription
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.limits.relative import PublishRate
from headgate.flow.limits.waiter_gate import WaiterGate
from tests.unit.engine.harness import FakeLog, Rig

STEP_MS = 10
ENDLESS = 1_000_000
OVER_200 = RateLimit(200, None, relative=True)


def publish_for(rig: Rig, per_s: int, seconds: float, *, entry: int = 0) -> None:
    """Publish steadily: every 10 ms one entry with what is due, or entries of ``entry``."""
    due = 0.0
    for _ in range(round(seconds * 1_000 / STEP_MS)):
        due += per_s * STEP_MS / 1_000
        size = entry or int(due)
        while size and due >= size:
            rig.publish(messages=size)
            due -= size
        rig.advance(STEP_MS)


def with_backlog(rig: Rig, name: str = "s") -> Subscription:
    """A subscription with far more to do than it may, and a consumer that takes everything."""
    subscription = rig.subscribe(name)
    rig.consumer(subscription, SubscriptionType.SHARED, permits=ENDLESS)
    return subscription


def delivered(rig: Rig, subscription: Subscription, per_s: int, seconds: float = 1.0) -> int:
    before = subscription.messages_sent
    publish_for(rig, per_s, seconds)
    return subscription.messages_sent - before


def old_messages(rig: Rig, count: int = 100_000) -> None:
    for _ in range(count // 100):
        rig.topic.publishing.publish(rig.producer, 0, 0, 100, b"b")
    rig.publish(messages=100)
    rig.advance(60_000)


@pytest.mark.parametrize(("published", "allowed"), [(1_000, 1_200), (5_000, 5_200)])
@pytest.mark.parametrize("level", ["topic", "subscription"])
def test_the_examples_of_the_document(level: str, published: int, allowed: int) -> None:
    """Rule 1.7: 1000 + 200 = 1200, 5000 + 200 = 5200."""
    rig = Rig(**{f"{level}_limit": OVER_200})  # type: ignore[arg-type]
    subscription = rig.subscribe()
    old_messages(rig)
    publish_for(rig, published, 3)
    rig.consumer(subscription, SubscriptionType.SHARED, permits=ENDLESS)
    publish_for(rig, published, 1)
    gate = rig.topic.gate if level == "topic" else subscription.gate
    assert [budget.limit for budget in gate.budgets] == [allowed]
    for _ in range(3):
        # Old entries carry 100 messages and are not split.
        assert abs(delivered(rig, subscription, published) - allowed) <= 100


def test_a_rise_is_followed_within_two_seconds_and_a_fall_gradually() -> None:
    """Rule 1.7."""
    rig = Rig(topic_limit=OVER_200)
    with_backlog(rig)
    publish_for(rig, 1_000, 3)
    publish_for(rig, 5_000, 1.2)
    (budget,) = rig.topic.gate.budgets
    assert budget.limit == 5_200
    publish_for(rig, 1_000, 1)
    assert budget.limit > 200 + 5_000 / 2
    publish_for(rig, 1_000, 6)
    assert budget.limit == 1_200
    rig.advance(60_000)
    assert budget.limit == 200


def test_units_agree_over_a_period_of_ten_seconds() -> None:
    """Rule 1.7: +10 per 10 s at 100 a second are 1,010 per 10 s, not 110."""
    limit = RateLimit(10, None, 10_000_000_000, relative=True)
    rig = Rig(subscription_limit=limit)
    subscription = with_backlog(rig)
    publish_for(rig, 100, 3)
    assert [budget.limit for budget in subscription.gate.budgets] == [1_010]


def test_bytes_are_relative_to_published_bytes() -> None:
    """Rule 1.7: per dimension."""
    rig = Rig(topic_limit=RateLimit(None, 500, relative=True))
    with_backlog(rig)
    for _ in range(300):
        rig.publish(messages=7, body=b"x" * 20)
        rig.advance(STEP_MS)
    assert [budget.limit for budget in rig.topic.gate.budgets] == [2_500]


def test_a_topics_limit_lets_all_its_consumers_keep_up() -> None:
    """Rule 1.7: k times the publish rate, k being the subscriptions with a consumer."""
    rig = Rig(topic_limit=RateLimit(10, None, relative=True))
    held = [with_backlog(rig, name) for name in "abc"]
    rig.subscribe("nobody")
    publish_for(rig, 500, 3)
    assert [budget.limit for budget in rig.topic.gate.budgets] == [1_510]
    backlogs = [subscription.messages_sent for subscription in held]
    publish_for(rig, 500, 5)
    for subscription, before in zip(held, backlogs, strict=True):
        assert subscription.messages_sent - before >= 2_500 - 10


def test_nobody_connected_counts_as_one() -> None:
    rig = Rig(topic_limit=OVER_200)
    rig.subscribe()
    publish_for(rig, 1_000, 2)
    assert [budget.limit for budget in rig.topic.gate.budgets] == [1_200]


def test_the_brokers_limit_is_over_what_all_topics_owe() -> None:
    rig = Rig()
    rig.set_broker_limit(OVER_200)
    for name in "ab":
        with_backlog(rig, name)
    publish_for(rig, 1_000, 2)
    assert [budget.limit for budget in rig.engine.gate.budgets] == [2_200]
    rig.set_broker_limit(RateLimit(50, None))
    assert [budget.limit for budget in rig.engine.gate.budgets] == [50]
    assert rig.topic.publish_rate is None


def test_batches_that_count_as_one_are_published_as_one() -> None:
    """Rules 1.7 and 1.9: the publish rate is in the unit of the limit."""
    rig = Rig(topic_limit=OVER_200)
    rig.engine.throttle_counts_entries = True
    with_backlog(rig)
    publish_for(rig, 5_000, 2, entry=50)
    assert [budget.limit for budget in rig.topic.gate.budgets] == [300]


def test_a_limit_that_becomes_relative_knows_the_rate_at_once() -> None:
    rig = Rig()
    subscription = with_backlog(rig)
    for second in range(12):
        publish_for(rig, 1_000, 1)
        if second % 5 == 0:
            rig.topic.rates.sample(rig.topic.counters(), rig.engine.now_ns)
    rig.subscription_limit = OVER_200
    rig.engine.reload_limits(rig.topic)
    assert subscription.gate.budgets[0].limit == pytest.approx(1_200, rel=0.02)


def test_an_unload_forgets_no_publish_rate() -> None:
    rig = Rig(topic_limit=OVER_200)
    publish_for(rig, 1_000, 2)
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.advance(2_000)
    topic = rig.engine.load_topic(rig.topic.name, rig.log)
    # Halved in the two seconds without anybody to publish.
    assert topic.gate.budgets[0].limit == 700
    rig.advance(100)
    assert topic.gate.budgets[0].limit == pytest.approx(683, abs=2)
    topic.fence()
    rig.engine.unload_topic(topic)
    rig.advance(86_400_000)
    assert rig.engine.load_topic(topic.name, rig.log).gate.budgets[0].limit == 200


def test_who_rests_costs_nothing() -> None:
    rig = Rig(topic_limit=OVER_200)
    publish_for(rig, 1_000, 1)
    rig.advance(60_000)
    assert rig.engine.next_wake_ns() is None


def test_without_relative_limits_nothing_is_followed() -> None:
    rig = Rig(topic_limit=RateLimit(5, None))
    publish_for(rig, 1_000, 0.1)
    assert rig.topic.publish_rate is None
    rig.topic_limit = OVER_200
    rig.engine.reload_limits(rig.topic)
    assert rig.topic.publish_rate is not None
    rig.topic_limit = None
    rig.engine.reload_limits(rig.topic)
    assert rig.topic.publish_rate is None
    rig.advance(1_000)
    assert rig.engine.next_wake_ns() is None


def test_topics_of_the_broker_are_not_followed() -> None:
    rig = Rig(topic_limit=OVER_200)
    rig.topic.is_system = True
    rig.engine.reload_limits(rig.topic)
    assert rig.topic.publish_rate is None


def test_the_largest_amounts() -> None:
    rig = Rig(topic_limit=RateLimit(INT64_MAX, INT64_MAX, relative=True))
    with_backlog(rig)
    publish_for(rig, 10_000, 1.5)
    assert {budget.limit for budget in rig.topic.gate.budgets} == {INT64_MAX}


def test_a_rate_that_was_measured_over_a_moment_counts_over_a_second() -> None:
    """Right after their first sample the stats know a mean of milliseconds only."""
    rig = Rig()
    rig.topic.rates.sample(rig.topic.counters(), rig.engine.now_ns)
    rig.advance(11)
    rig.publish(messages=1_000)
    rig.topic_limit = RateLimit(100, None, relative=True)
    rig.engine.reload_limits(rig.topic)
    assert rig.topic.gate.budgets[0].limit <= 1_100


def test_a_policy_that_went_while_the_topic_was_unloaded_follows_nothing() -> None:
    rig = Rig(topic_limit=OVER_200)
    publish_for(rig, 1_000, 2)
    rig.topic.fence()
    rig.engine.unload_topic(rig.topic)
    rig.topic_limit = None
    topic = rig.engine.load_topic(rig.topic.name, rig.log)
    rig.advance(60_000)
    assert topic.publish_rate is None
    assert rig.engine.next_wake_ns() is None


def test_when_the_last_that_follows_goes_nothing_is_followed() -> None:
    rig = Rig(subscription_limit=OVER_200)
    for name in "ab":
        rig.subscribe(name, durable=False)
    publish_for(rig, 100, 1)
    rig.topic.remove_subscription("a")
    assert rig.topic.publish_rate is not None
    rig.topic.remove_subscription("b")
    assert rig.topic.publish_rate is None


def test_setting_limits_again_and_again_samples_no_more_often() -> None:
    rig = Rig(topic_limit=OVER_200)
    publish_for(rig, 1_000, 1)
    for limit in (None, OVER_200) * 20:
        rig.topic_limit = limit
        rig.engine.reload_limits(rig.topic)
    publish_for(rig, 1_000, 1)
    samples = []
    sample = PublishRate.sample

    def counted(rate: PublishRate, counts: Sequence[int], now_ns: int) -> bool:
        samples.append(now_ns)
        return sample(rate, counts, now_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PublishRate, "sample", counted)
        publish_for(rig, 1_000, 1)
    assert 9 <= len(samples) <= 11


def test_many_topics_are_sampled_in_slices() -> None:
    """No turn of the loop is long, and each is sampled ten times a second all the same."""
    rig = Rig(subscription_limit=OVER_200)
    topics = [rig.topic]
    for number in range(400):
        log = FakeLog(2 + number)
        name = parse_topic(f"persistent://acme/ns/t{number}")
        topics.append(rig.engine.load_topic(name, log))
    for topic in topics:
        topic.add_subscription("s", AckSet(), cursor_id=1)
        topic.publishing.publish(Producer(1, "p", rig.port), 0, 0, 50, b"b")
        topic.log.end = topic.log.staged_end
        topic.publishing.entries_durable(0)
    rig.flush()
    turns = []
    set_limit = WaiterGate.set_limit
    seen: list[int] = []

    def noted(gate: WaiterGate, limit: RateLimit | None, now_ns: int) -> None:
        seen.append(now_ns)
        set_limit(gate, limit, now_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaiterGate, "set_limit", noted)
        rig.advance(150)
    turns = Counter(seen)
    assert len(seen) == 401
    assert max(turns.values()) <= SLICE_GATES
    assert {t.subscriptions["s"].gate.budgets[0].limit for t in topics} == {250}


def test_one_topic_with_many_subscriptions_is_put_in_force_in_slices() -> None:
    rig = Rig(subscription_limit=OVER_200)
    for number in range(600):
        rig.subscribe(f"s{number}")
    rig.publish(messages=50)
    turns: Counter[int] = Counter()
    set_limit = WaiterGate.set_limit

    def noted(gate: WaiterGate, limit: RateLimit | None, now_ns: int) -> None:
        turns[now_ns] += 1
        set_limit(gate, limit, now_ns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WaiterGate, "set_limit", noted)
        rig.advance(150)
    assert sum(turns.values()) == 600
    assert max(turns.values()) <= SLICE_GATES
    limits = {s.gate.budgets[0].limit for s in rig.topic.subscriptions.values()}
    assert limits == {250}


def test_very_many_limits_of_one_tenant_hold_up_none_of_another() -> None:
    """All were put in force in one line, 128 in a slice: on a busy loop, which leaves one for each
    20 ms, the 100,000 readers of one topic, to which somebody publishes now and then, were 16 s of
    an old limit for a topic of another tenant whose clients publish more."""
    rig = Rig(subscription_limit=OVER_200)
    for number in range(3):
        name = parse_topic(f"persistent://globex/ns/t{number}")
        other = rig.engine.load_topic(name, FakeLog(2 + number))
        for reader in range(2_000):
            other.add_subscription(f"s{reader}", AckSet(), cursor_id=1 + reader)
        other.publishing.publish(Producer(1, "p", rig.port), 0, 0, 50, b"b")
        other.log.end = other.log.staged_end
        other.publishing.entries_durable(0)
    mine = rig.subscribe()
    rig.publish(messages=50)
    rig.advance(120)
    assert mine.gate.budgets[0].limit == 250
    rig.advance(400)
    limits = {
        each.gate.budgets[0].limit
        for topic in rig.engine.topics.values()
        for each in topic.subscriptions.values()
    }
    assert limits == {250}


def interrupted(rig: Rig) -> None:
    """The sample that finds nothing more to follow is put in force in part."""
    for reader in range(3 * SLICE_GATES):
        rig.subscribe(f"s{reader}")
    rig.publish(messages=50)
    rig.advance(300)
    rate = rig.topic.publish_rate
    assert rate is not None
    while any(rate.per_second):
        rig.advance(1)
    assert len(rig.engine.relative._turns) == 1


def limits_of(rig: Rig) -> set[float]:
    return {each.gate.budgets[0].limit for each in rig.topic.subscriptions.values()}


def test_what_is_published_while_limits_are_put_in_force_is_followed() -> None:
    """If the sample that was interrupted had found nothing more to follow, what was published
    before its end counted for nothing, until somebody published again."""
    rig = Rig(subscription_limit=OVER_200)
    interrupted(rig)
    rig.publish(messages=50)
    rig.advance(300)
    assert limits_of(rig) == {250}
    rig.advance(60_000)
    assert limits_of(rig) == {200}


def test_a_topic_that_is_followed_anew_while_limits_are_put_in_force_is_sampled_on() -> None:
    """The sample that was interrupted ended that of the new rate, too, which stayed in force."""
    rig = Rig(subscription_limit=OVER_200)
    interrupted(rig)
    rig.engine.relative._forget(rig.topic)
    rig.advance(1)
    rig.engine.relative.follow(rig.topic)
    rate = rig.topic.publish_rate
    assert rate is not None
    rate.per_second = 100, 100, 100
    rig.advance(300)
    assert all(rate.per_second)
    rig.advance(60_000)
    assert limits_of(rig) == {200}
    assert not any(rate.per_second)
