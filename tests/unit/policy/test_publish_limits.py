"""Which publish limit is set, and where."""

from __future__ import annotations

import pytest

from headgate.base.names import parse_topic
from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.limits.precedence import ADAPTIVE_SOURCE, EffectiveLimit, RatePolicy
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.policies import DispatchRate, PublishRate
from headgate.policy.publish_limits import (
    PublishLimitsInForce,
    PublishLimitTable,
    policy_of,
    rate_of,
)
from headgate.policy.settings import Settings
from tests.unit.engine.harness import FakeEffects, FakeLog

NAME = parse_topic("persistent://public/default/orders")
PARTITIONED = parse_topic("persistent://public/default/parted")
UNLIMITED = PublishRate(unlimited=True)


class Rig:
    """A catalog whose changes are durable at once, and the table over it."""

    def __init__(self) -> None:
        self.catalog = Catalog("c", {})
        self.settings = Settings()
        self.table = PublishLimitTable(self.catalog, self.settings)
        self.make(self.catalog.plan_first_boot())
        self.make(self.catalog.plan_create_topic(NAME, now_ms=0))
        self.make(self.catalog.plan_create_partitioned(PARTITIONED, 2, now_ms=0))

    def make(self, change: Change | None) -> None:
        assert change is not None
        self.catalog.apply(change)

    def topic(self, rate: PublishRate | None) -> None:
        self.make(self.catalog.plan_topic_policies(NAME, publish_rate=rate))

    def namespace(self, rate: PublishRate | None) -> None:
        self.make(self.catalog.plan_namespace_policies(NAME.namespace, publish_rate=rate))

    def told(self) -> tuple[RateLimit | None, str]:
        """The topic's limit, and where it is set."""
        found = self.table.of_topic(NAME)
        return found.limit, found.source


def test_nothing_is_limited_at_first() -> None:
    table = Rig().table
    assert table.of_broker() == table.of_topic(NAME) == EffectiveLimit(None, "")


def test_the_nearest_setting_of_a_topic_counts() -> None:
    """Law 1.8, with the names of publish limits."""
    rig = Rig()
    rig.settings.set("maxPublishRatePerTopicInMessages", "100")
    broker = (RateLimit(100, None), "broker setting maxPublishRatePerTopicInMessages")
    assert rig.told() == broker
    rig.namespace(PublishRate(50, 5_000))
    namespace = (RateLimit(50, 5_000), "namespace policy public/default")
    assert rig.told() == namespace
    rig.topic(PublishRate(-1, 7_000))
    assert rig.told() == (RateLimit(None, 7_000), "topic policy")
    rig.topic(PublishRate(0, -1))
    assert rig.told() == namespace
    rig.topic(None)
    assert rig.told() == namespace
    rig.namespace(None)
    assert rig.told() == broker


@pytest.mark.parametrize("level", ["topic", "namespace"])
def test_unlimited_ends_the_search(level: str) -> None:
    rig = Rig()
    rig.settings.set("maxPublishRatePerTopicInBytes", "100")
    rig.namespace(PublishRate(50))
    getattr(rig, level)(UNLIMITED)
    limit, source = rig.told()
    assert limit is None
    assert source.startswith(f"{level} policy")


def test_both_settings_of_the_broker_are_named() -> None:
    rig = Rig()
    for name, value in (
        ("maxPublishRatePerTopicInMessages", "10"),
        ("maxPublishRatePerTopicInBytes", "20"),
        ("brokerPublisherThrottlingMaxMessageRate", "30"),
        ("brokerPublisherThrottlingMaxByteRate", "40"),
    ):
        rig.settings.set(name, value)
    topic, broker = rig.table.of_topic(NAME), rig.table.of_broker()
    assert (topic.limit, broker.limit) == (RateLimit(10, 20), RateLimit(30, 40))
    assert topic.source == (
        "broker setting maxPublishRatePerTopicInMessages and maxPublishRatePerTopicInBytes"
    )
    assert topic.source_of(Dimension.BYTES) == "broker setting maxPublishRatePerTopicInBytes"
    assert broker.source_of(Dimension.MESSAGES) == (
        "broker setting brokerPublisherThrottlingMaxMessageRate"
    )
    assert broker.source_of(Dimension.BYTES) == (
        "broker setting brokerPublisherThrottlingMaxByteRate"
    )


@pytest.mark.parametrize("value", ["0", "-1"])
def test_zero_and_less_are_no_limit(value: str) -> None:
    rig = Rig()
    for name in ("brokerPublisherThrottlingMaxMessageRate", "maxPublishRatePerTopicInMessages"):
        rig.settings.set(name, value)
    assert rig.table.of_broker().limit is None
    assert rig.table.of_topic(NAME).limit is None


def test_dispatch_rates_say_nothing_about_publishing() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(NAME, dispatch_rate=DispatchRate(5)))
    rig.settings.set("dispatchThrottlingRatePerTopicInMsg", "5")
    assert rig.told() == (None, "")


def test_a_partition_has_the_limit_of_its_topic() -> None:
    rig = Rig()
    rig.make(rig.catalog.plan_topic_policies(PARTITIONED, publish_rate=PublishRate(10)))
    assert rig.table.of_topic(PARTITIONED.partition_name(1)).limit == RateLimit(10, None)


def test_a_publish_limit_counts_over_a_second_and_is_plain() -> None:
    policy = policy_of(PublishRate(5, 6))
    assert policy == RatePolicy(messages=5, bytes=6)
    assert policy.limit() == RateLimit(5, 6, NS_PER_S, relative=False)
    assert policy_of(None) is None


def test_what_rest_shows_is_what_was_set() -> None:
    for stored in (PublishRate(5, 6), PublishRate(5), UNLIMITED):
        assert rate_of(policy_of(stored)) == stored
    assert rate_of(None) is None


def live(rig: Rig, adaptive: RateLimit | None = None) -> Topic:
    """The topic with what is set, and what the controller allows, in force."""
    engine = Engine(FakeEffects(), publish_limit_of=lambda t: rig.table.of_topic(t.name).limit)
    topic = engine.load_topic(NAME, FakeLog(1))
    topic.adaptive_limit = adaptive
    engine.intake.put_in_force(topic)
    return topic


@pytest.mark.parametrize(
    ("static", "adaptive", "limit", "sources"),
    [
        (None, None, None, ("", "")),
        (PublishRate(50, 5_000), None, (50, 5_000), ("topic policy", "topic policy")),
        (None, (70, None), (70, None), (ADAPTIVE_SOURCE, "")),
        (PublishRate(50), (70, 9_000), (50, 9_000), ("topic policy", ADAPTIVE_SOURCE)),
        (PublishRate(50, 5_000), (40, None), (40, 5_000), (ADAPTIVE_SOURCE, "topic policy")),
        (PublishRate(50, 5_000), (40, 4_000), (40, 4_000), (ADAPTIVE_SOURCE, ADAPTIVE_SOURCE)),
        (PublishRate(50), (50, None), (50, None), ("topic policy", "")),
        (UNLIMITED, (40, None), (40, None), (ADAPTIVE_SOURCE, "")),
    ],
)
def test_in_each_dimension_the_tighter_holds_and_says_where_it_comes_from(
    static: PublishRate | None,
    adaptive: tuple[int | None, int | None] | None,
    limit: tuple[int | None, int | None] | None,
    sources: tuple[str, str],
) -> None:
    """What is told is what is enforced."""
    rig = Rig()
    if static is not None:
        rig.topic(static)
    topic = live(rig, None if adaptive is None else RateLimit(*adaptive))
    found = PublishLimitsInForce(rig.table).of_topic(topic)
    assert found.limit == (None if limit is None else RateLimit(*limit))
    if limit is not None:
        amounts = zip(Dimension, limit, sources, strict=True)
        assert [found.source_of(d) for d, amount, _ in amounts if amount is not None] == [
            source for source in sources if source
        ]
        assert found.source == " and ".join(dict.fromkeys(filter(None, sources)))
    enforced = {} if topic.publish_gate is None else topic.publish_gate.budgets
    assert {budget.dimension: budget.limit for budget in enforced} == {
        d: amount for d, amount in zip(Dimension, limit or (), strict=False) if amount is not None
    }


def test_the_brokers_limit_and_none_on_a_topic_of_the_system() -> None:
    rig = Rig()
    rig.topic(PublishRate(50))
    rig.settings.set("brokerPublisherThrottlingMaxMessageRate", "30")
    in_force, topic = PublishLimitsInForce(rig.table), live(rig)
    assert [each.limit for each in in_force.on(topic)] == [
        RateLimit(50, None),
        RateLimit(30, None),
    ]
    topic.is_system = True
    assert [each.limit for each in in_force.on(topic)] == [None, None]
