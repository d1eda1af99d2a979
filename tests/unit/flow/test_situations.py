"""Account, gate and verdict together say what each situation was built to be."""

from __future__ import annotations

import pytest

from headgate.flow.account.account import LABELS, difference
from headgate.flow.account.verdict import Verdict
from headgate.flow.limits.rate_limit import Level, RateLimit
from headgate.flow.sentences.backlog import Circumstances, sentence
from tests.unit.flow.world import Consumer, Situation, World, verdict_of


@pytest.fixture(params=[5, 20], ids=["after 5 s", "after 20 s"])
def seconds(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def _run(world: World, seconds: int) -> None:
    world.run(seconds, mark_every_s=1 if seconds == 5 else 5)
    for situation in world.situations:
        cells = situation.account.snapshot(world.now_ns)
        assert sum(cells) == world.now_ns - situation.account.opened_ns


def _share_ns(situation: Situation, prefix: str) -> float:
    evidence = situation.evidence([])
    first, last = situation.snapshots[0]["cells"], situation.snapshots[-1]["cells"]
    assert difference(last, first) == tuple(evidence.cells_ns)  # type: ignore[arg-type]
    held = sum(
        ns
        for ns, labels in zip(evidence.cells_ns, LABELS, strict=True)
        if labels.state.value.startswith(prefix)
    )
    return held / evidence.window_ns


def test_a_consumer_that_is_too_slow(seconds: int) -> None:
    world = World()
    slow = world.add(300, Consumer(rate=100))
    _run(world, seconds)
    judgement = verdict_of(slow)
    assert judgement.verdict is Verdict.CONSUMER
    assert judgement.confidence > 0.9


def test_held_by_a_subscription_limit(seconds: int) -> None:
    world = World()
    held = world.add(300, Consumer(rate=2000), limit=100)
    _run(world, seconds)
    judgement = verdict_of(held, Level.SUBSCRIPTION, 100)
    assert judgement.verdict is Verdict.THROTTLED_SUBSCRIPTION
    assert judgement.second is None
    assert judgement.confidence > 0.8


def test_two_share_a_topic_limit(seconds: int) -> None:
    world = World()
    topic = world.broker.topic()
    topic.set_limit(RateLimit(50, None), world.now_ns)
    pair = [world.add(100, Consumer(rate=1000), topic=topic) for _ in range(2)]
    _run(world, seconds)
    for held in pair:
        assert verdict_of(held, Level.TOPIC, 50).verdict is Verdict.THROTTLED_TOPIC
    assert abs(pair[0].sent - pair[1].sent) <= 2
    assert abs(pair[0].sent + pair[1].sent - 50 * seconds) <= 2


def test_held_by_the_broker_limit(seconds: int) -> None:
    world = World()
    world.broker.set_limit(RateLimit(300, None), world.now_ns)
    held = [world.add(200, Consumer(rate=1000)) for _ in range(4)]
    _run(world, seconds)
    for situation in held:
        judgement = verdict_of(situation, Level.BROKER, 300)
        assert judgement.verdict is Verdict.THROTTLED_BROKER
        assert judgement.confidence > 0.8


def test_the_limit_is_busy_but_the_consumer_is_slower(seconds: int) -> None:
    """400/s under a limit of 500/s with a queue of 1,000 and 600/s published."""
    world = World()
    slow = world.add(600, Consumer(rate=400, queue=1000), limit=500)
    _run(world, seconds)
    assert _share_ns(slow, "throttled_subscription") > 0.2
    assert verdict_of(slow, Level.SUBSCRIPTION, 500).verdict is Verdict.CONSUMER


def test_a_faster_consumer_under_the_same_limit_is_held(seconds: int) -> None:
    world = World()
    held = world.add(700, Consumer(rate=600, queue=1000), limit=500)
    _run(world, seconds)
    judgement = verdict_of(held, Level.SUBSCRIPTION, 500)
    assert judgement.verdict is Verdict.THROTTLED_SUBSCRIPTION


def test_a_queue_still_filling_leaves_the_limiter_a_bystander() -> None:
    """By the clock the limiter holds 90 % of the first seconds; the consumer is at fault."""
    world = World()
    slow = world.add(300, Consumer(rate=50, queue=1000), limit=100)
    _run(world, 5)
    judgement = verdict_of(slow, Level.SUBSCRIPTION, 100)
    assert _share_ns(slow, "throttled") > 0.9
    assert judgement.verdict is Verdict.CONSUMER
    assert judgement.second is Verdict.THROTTLED_SUBSCRIPTION
    assert judgement.bystander
    assert "is not the cause" in sentence(judgement, Circumstances())


@pytest.mark.parametrize("limit", [None, 500])
def test_one_that_keeps_up_has_no_fault(seconds: int, limit: int | None) -> None:
    world = World()
    healthy = world.add(300, Consumer(rate=1000), limit=limit)
    _run(world, seconds)
    judgement = verdict_of(healthy)
    assert judgement.verdict is Verdict.NONE
    assert judgement.confidence > 0.9
    healthy.gate.count_until(world.now_ns)
    assert healthy.gate.throttled_events == [[0, 0], [0, 0], [0, 0]]


def test_without_consumer(seconds: int) -> None:
    world = World()
    alone = world.add(100, None)
    _run(world, seconds)
    assert verdict_of(alone).verdict is Verdict.NO_CONSUMER


def test_raising_the_named_limit_drains_the_backlog() -> None:
    world = World()
    held = world.add(300, Consumer(rate=2000), limit=100)
    world.run(10)
    before = held.appended - held.acked
    held.gate.set_limit(RateLimit(1000, None), world.now_ns)
    world.run(5)
    assert held.appended - held.acked < before - 1500
