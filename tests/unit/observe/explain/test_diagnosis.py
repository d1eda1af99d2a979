"""Whose fault is it now: every situation judged from the broker's own last minute."""

from __future__ import annotations

import pytest

from headgate.base.units import NS_PER_MINUTE
from headgate.engine.subscription import Subscription
from headgate.explain.diagnosis import SETTLED_NS, named_level
from headgate.flow.account.verdict import Verdict, blame_shares
from headgate.flow.limits.rate_limit import Level
from tests.unit.broker.virtual import VirtualBroker
from tests.unit.observe.explain.asking import FAST, S, judge, restarted, verdict

# -- what each situation was built to be --------------------------------------------------------


@pytest.mark.parametrize("seconds", [5, 30, 90])
def test_the_situations_of_the_demo(seconds: int) -> None:
    broker = VirtualBroker()

    def subscribe(name: str, published: float, rate: float | None, **limits: int) -> Subscription:
        topic = broker.topic(name, published)
        made = broker.subscription(topic, "s", limit=limits.get("subscription"))
        if "topic" in limits:
            broker.limit_topic(topic, limits["topic"])
        if rate is not None:
            broker.client(made, rate)
        return made

    slow = subscribe("slow", 300, 100)
    held = subscribe("held", 300, FAST, subscription=100)
    shared = subscribe("shared", 200, FAST, topic=50)
    second = broker.subscription(shared.topic, "second")
    broker.client(second, FAST)
    keeps_up = subscribe("keeps-up", 300, FAST)
    alone = subscribe("alone", 100, None)
    broker.run(seconds)
    assert verdict(broker, slow) is Verdict.CONSUMER
    assert verdict(broker, held) is Verdict.THROTTLED_SUBSCRIPTION
    assert verdict(broker, shared) is Verdict.THROTTLED_TOPIC
    assert verdict(broker, second) is Verdict.THROTTLED_TOPIC
    assert verdict(broker, keeps_up) is Verdict.NONE
    assert verdict(broker, alone) is Verdict.NO_CONSUMER
    assert "held 2 waiting subscriptions for" in judge(broker, shared).sentence
    # At first its queue takes everything.
    stopped_by = "the consumer holds everything, unacknowledged"
    if seconds > 20:
        stopped_by = "the consumer's receiver queue was full"
    assert f" now ({stopped_by});" in judge(broker, slow).sentence
    for each in (slow, held, shared, second, alone):
        assert judge(broker, each).diagnosis.judgement.confidence > 0.7


def test_held_by_the_broker_limit() -> None:
    broker = VirtualBroker()
    broker.limit_broker(100)
    subscriptions = []
    for i in range(3):
        subscriptions.append(broker.subscription(broker.topic(f"t{i}", 100)))
        broker.client(subscriptions[-1], FAST)
    broker.run(10)
    for subscription in subscriptions:
        found = judge(broker, subscription)
        assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_BROKER
        assert found.diagnosis.named_level is Level.BROKER
        assert found.diagnosis.named_limit.limit is not None
        assert found.diagnosis.named_limit.limit.messages == 100
        assert "the broker-wide limit of 100 msg/s (broker setting" in found.sentence
        assert "held 3 waiting subscriptions" in found.sentence
        assert found.sentence.endswith("so raise it above what all topics need together.")


@pytest.mark.parametrize(("rate", "meant"), [(400, "CONSUMER"), (600, "THROTTLED_SUBSCRIPTION")])
def test_the_busy_limit_and_the_bottleneck(rate: float, meant: str) -> None:
    """A consumer of 400/s under a limit of 500/s is throttled most of the time by the clock,
    because clients return permits in lumps; it is the bottleneck all the same."""
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 800), limit=500)
    broker.client(subscription, rate, queue=1_000)
    broker.run(40)
    assert verdict(broker, subscription).value == meant


@pytest.mark.parametrize(
    ("turn_ticks", "used", "meant"), [(2, 1.0, 0.0), (3, 0.67, 0.33), (10, 0.2, 0.8)]
)
def test_what_a_slow_broker_leaves_of_a_limit_is_its_own(
    turn_ticks: int, used: float, meant: float
) -> None:
    """A stall is caught up to 20 ms. Of a turn of 30 ms the limit explains two thirds, and of one
    of 100 ms a fifth, whoever shares it; what is left of the time is the broker's."""
    broker = VirtualBroker()
    own = broker.subscription(broker.topic("own", 2_000), limit=1_000)
    shared = broker.topic("shared", 1_000)
    broker.limit_topic(shared, 1_000)
    parts = [broker.subscription(shared, name) for name in ("a", "b")]
    for each in (own, *parts):
        broker.client(each, FAST, queue=5_000)
    broker.turn_ticks = turn_ticks
    broker.run(60)
    # At first, when nothing waits, a period's amount goes at once.
    assert own.messages_sent / 60_000 == pytest.approx(used, abs=0.05)
    assert sum(part.messages_sent for part in parts) / 60_000 == pytest.approx(used, abs=0.05)
    for each in (own, *parts):
        found = judge(broker, each)
        shares = found.diagnosis.judgement.shares
        assert shares[Verdict.BROKER] == pytest.approx(meant, abs=0.05)
        limiter = Verdict.THROTTLED_SUBSCRIPTION if each is own else Verdict.THROTTLED_TOPIC
        assert shares[limiter] == pytest.approx(1 - meant, abs=0.05)
        if meant == 0.0:
            assert "the broker itself" not in found.sentence
        elif meant < used:
            assert found.diagnosis.judgement.verdict is limiter
            assert "% of the time it was the broker itself that was behind" in found.sentence
        else:
            assert found.diagnosis.judgement.verdict is Verdict.BROKER
            assert "; a limit held it for " in found.sentence


def test_a_slow_broker_takes_no_time_from_a_busy_consumer() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 800), limit=500)
    broker.client(subscription, 300, queue=1_000)
    broker.turn_ticks = 3
    broker.run(40)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.CONSUMER
    assert found.diagnosis.judgement.shares[Verdict.BROKER] < 0.1


def test_after_a_burst_the_silence_is_the_limits() -> None:
    """An idle limit lets a period's amount through at once, and nothing after it for a period."""
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic, limit=100)
    broker.client(subscription, FAST)
    for _ in range(20):
        broker.publish(topic, 150)
        broker.run(2.5)
    seconds = sum(ns for ns in subscription.account.peek(broker.engine.now_ns)) / S
    shares = blame_shares(subscription.account.peek(broker.engine.now_ns))
    assert seconds == pytest.approx(50)
    assert shares[Verdict.THROTTLED_SUBSCRIPTION] > 0.5
    assert shares[Verdict.BROKER] < 0.01


# -- from when on -------------------------------------------------------------------------------


def test_it_settles_within_three_seconds() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 100), limit=10)
    broker.client(subscription, FAST)
    broker.run(1)
    young = judge(broker, subscription)
    assert young.diagnosis.settled is False
    assert young.sentence.startswith("settling: ")
    assert "a verdict needs 3 s" in young.sentence
    broker.run(SETTLED_NS / S + 1)
    assert judge(broker, subscription).diagnosis.settled is True


def test_one_message_waits() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    broker.publish(topic, 1)
    broker.run(0.5)
    assert judge(broker, subscription).sentence.startswith("settling: 1 message waits, ")


def test_before_the_first_round_the_present_is_all_there_is() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t"))
    found = judge(broker, subscription)
    assert broker.observer.history.track(subscription) is None
    assert found.diagnosis.window.length_ns == 1
    assert found.diagnosis.has_backlog is False
    assert found.diagnosis.settled is False


def test_the_minute_before_the_trouble_is_no_evidence() -> None:
    """An hour of keeping up must not outweigh ten seconds without a consumer."""
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 100))
    client = broker.client(subscription, FAST)
    broker.run(55)
    assert verdict(broker, subscription) is Verdict.NONE
    assert judge(broker, subscription).diagnosis.backlog_since_ns is None
    subscription.remove_consumer(client.consumer)
    broker.clients.clear()
    left_ns = broker.engine.now_ns
    broker.run(10)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.NO_CONSUMER
    assert found.diagnosis.judgement.shares[Verdict.NO_CONSUMER] > 0.85
    assert found.diagnosis.backlog_since_ns == pytest.approx(left_ns, abs=2 * S)
    assert found.diagnosis.verdict_since_ns == pytest.approx(left_ns, abs=3 * S)


def test_a_verdict_is_about_at_most_the_last_minute() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    subscription = broker.subscription(topic)
    broker.run(90)
    assert verdict(broker, subscription) is Verdict.NO_CONSUMER
    broker.client(subscription, 20)
    began_ns = broker.engine.now_ns
    broker.run(70)
    found = judge(broker, subscription)
    assert found.diagnosis.window.length_ns <= NS_PER_MINUTE
    assert found.diagnosis.judgement.verdict is Verdict.CONSUMER
    # The backlog is older than what is to blame for it now.
    assert found.diagnosis.backlog_since_ns is not None
    assert found.diagnosis.verdict_since_ns is not None
    assert found.diagnosis.backlog_since_ns < began_ns - 80 * S
    assert found.diagnosis.verdict_since_ns >= began_ns - 5 * S


def test_what_another_limit_did_is_no_evidence() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    subscription = broker.subscription(topic)
    broker.limit_topic(topic, 20)
    broker.client(subscription, 50)
    broker.run(40)
    assert verdict(broker, subscription) is Verdict.THROTTLED_TOPIC
    broker.limit_topic(topic, 1_000)
    broker.run(25)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.CONSUMER
    assert found.diagnosis.window.length_ns < 27 * S


def test_a_limit_of_another_level_is_another_situation_however_soon() -> None:
    """A broker setting that follows a topic policy begins anew, as the policy did."""
    broker = VirtualBroker()
    topic = broker.topic("t", 100)
    subscription = broker.subscription(topic)
    broker.limit_topic(topic, 60)
    broker.client(subscription, FAST)
    broker.run(30)
    broker.limit_topic(topic, 80)
    broker.run(7)
    assert verdict(broker, subscription) is Verdict.THROTTLED_TOPIC
    broker.limit_broker(40)
    broker.run(2)
    assert judge(broker, subscription).sentence.startswith("settling: ")
    broker.run(3)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_BROKER
    assert found.diagnosis.judgement.confidence > 0.9
    assert found.diagnosis.window.length_ns < 6 * S


def test_settling_says_how_old_and_how_long_watched() -> None:
    broker, subscription = restarted(back_s=2.2)
    found = judge(broker, subscription)
    assert not found.diagnosis.settled
    assert found.sentence == (
        "settling: 64,531 messages wait, for at least 4 min, and are watched for 1 s; "
        "a verdict needs 3 s of history."
    )


def test_a_broker_that_fetches_what_it_had_in_memory_is_not_blamed_at_once() -> None:
    broker, subscription = restarted(limit=1_000, back_s=0.2)
    broker.turn_ticks = 10
    broker.run(6)
    early = judge(broker, subscription)
    assert (early.diagnosis.judgement.verdict, early.diagnosis.settled) == (Verdict.BROKER, False)
    assert early.sentence.endswith("a verdict needs 10 s of history.")
    broker.run(6)
    later = judge(broker, subscription)
    assert (later.diagnosis.judgement.verdict, later.diagnosis.settled) == (Verdict.BROKER, True)


# -- over partitions ----------------------------------------------------------------------------


def test_partitions_are_judged_as_one() -> None:
    broker = VirtualBroker()
    parts = []
    for i in range(3):
        topic = broker.topic(f"t-partition-{i}", 40)
        broker.limit_topic(topic, 10)
        parts.append(broker.subscription(topic))
        broker.client(parts[-1], FAST)
    broker.run(20)
    found = judge(broker, *parts)
    assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_TOPIC
    assert found.diagnosis.window.gained("appended") == pytest.approx(
        3 * 40 * found.diagnosis.window.length_ns / S, 0.1
    )
    assert found.diagnosis.window.per_second("sent") == pytest.approx(30, rel=0.15)
    assert sum(found.diagnosis.window.cells_ns) == 3 * found.diagnosis.window.length_ns
    assert found.diagnosis.window.total_end("backlog") == sum(
        part.backlog_messages for part in parts
    )
    assert "of 10 msg/s (topic policy) on each of 3 partitions held this" in found.sentence
    assert "; 40 msg/s are published to a partition on average" in found.sentence


def test_a_partition_without_trouble_does_not_hide_the_others() -> None:
    broker = VirtualBroker()
    calm = broker.subscription(broker.topic("t-partition-0", 10))
    broker.client(calm, FAST)
    stuck = broker.subscription(broker.topic("t-partition-1", 10))
    broker.run(30)
    found = judge(broker, calm, stuck)
    assert found.diagnosis.has_backlog is True
    assert found.diagnosis.judgement.verdict is Verdict.NO_CONSUMER


# -- what the consumer has demonstrated ----------------------------------------------------------


def test_a_consumer_proves_its_rate_while_nothing_throttles_it() -> None:
    broker = VirtualBroker()
    topic = broker.topic("t", 300)
    subscription = broker.subscription(topic)
    broker.client(subscription, 100, queue=100)
    broker.run(30)
    assert judge(broker, subscription).diagnosis.demonstrated_ack_per_s == pytest.approx(
        100, rel=0.1
    )
    broker.limits.messages[(topic.name.full, "s")] = 20
    broker.engine.reload_limits(topic)
    broker.run(30)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.THROTTLED_SUBSCRIPTION
    assert found.diagnosis.demonstrated_ack_per_s == pytest.approx(100, rel=0.1)
    # 300 a second are published: without the limit it would have grown all the same.
    assert found.diagnosis.judgement.would_have_grown is True
    assert "raising it helps only in part" in found.sentence


def test_who_never_had_enough_has_demonstrated_nothing() -> None:
    broker = VirtualBroker()
    keeps_up = broker.subscription(broker.topic("a", 100))
    broker.client(keeps_up, FAST)
    held = broker.subscription(broker.topic("b", 100), limit=10)
    broker.client(held, FAST)
    broker.run(30)
    assert judge(broker, keeps_up).diagnosis.demonstrated_ack_per_s is None
    assert judge(broker, held).diagnosis.demonstrated_ack_per_s is None
    assert judge(broker, held).diagnosis.judgement.would_have_grown is None


# -- small parts --------------------------------------------------------------------------------


def test_the_level_that_a_judgement_names() -> None:
    broker = VirtualBroker()
    held = broker.subscription(broker.topic("a", 100), limit=10)
    broker.client(held, FAST)
    slow = broker.subscription(broker.topic("b", 100))
    broker.client(slow, 10)
    broker.run(5)
    assert named_level(judge(broker, held).diagnosis.judgement) is Level.SUBSCRIPTION
    assert named_level(judge(broker, slow).diagnosis.judgement) is None
    assert judge(broker, slow).diagnosis.named_limit.limit is None


def test_who_has_come_by_now_is_not_said_to_be_missing() -> None:
    broker = VirtualBroker()
    subscription = broker.subscription(broker.topic("t", 50), limit=20)
    broker.run(37)
    broker.client(subscription, FAST)
    broker.run(20)
    found = judge(broker, subscription)
    assert found.diagnosis.judgement.verdict is Verdict.NO_CONSUMER
    assert found.diagnosis.judgement.confidence < 0.5
    assert "no consumer was connected for most of the time, now one is, 2," in found.sentence


@pytest.mark.parametrize("limits", [(5_000,), (5_000, 0), (7, 5_000)])
def test_a_limit_that_is_set_on_an_idle_backlog_begins_a_situation_once(
    limits: tuple[int, ...],
) -> None:
    """Nothing else happens to it: the look that sees the change must be kept."""
    broker = VirtualBroker()
    topic = broker.topic("t")
    subscription = broker.subscription(topic)
    for _ in range(3):
        broker.publish(topic, 200)
        broker.run(4)
    broker.run(20)
    for messages in limits:
        broker.limit_topic(topic, messages)
        broker.run(0.5)
    broker.run(12)
    found = judge(broker, subscription)
    assert found.diagnosis.settled
    assert found.diagnosis.judgement.verdict is Verdict.NO_CONSUMER


def test_a_batch_that_counts_as_one_is_said() -> None:
    broker = VirtualBroker()
    broker.engine.throttle_counts_entries = True
    subscription = broker.subscription(broker.topic("t", 100), limit=10)
    broker.client(subscription, FAST)
    broker.run(20)
    found = judge(broker, subscription)
    assert "10 msg/s (topic policy), a batch counting as one message, held" in found.sentence
    assert found.sentence.endswith("raise it above the batches that are published.")
