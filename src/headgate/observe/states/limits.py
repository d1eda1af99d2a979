"""Current limits: where each is set, how full it is, which subscriptions wait for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.states import (
    BudgetState,
    LimitState,
    ThrottledAmount,
    WaitingSubscription,
)
from headgate.flow.limits.gate_node import GateStatistics
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level, RateLimit
from headgate.flow.sentences.backlog import limit_text
from headgate.policy.current_limits import (
    PUBLISH_BROKER,
    PUBLISH_TOPIC,
    CurrentDispatchLimits,
    CurrentPublishLimits,
)


def broker_limit(limits: CurrentDispatchLimits, engine: Engine) -> LimitState | None:
    """The broker-wide dispatch limit; None if nothing is set."""
    effective = limits.of_broker()
    if not effective.source:
        return None
    return _state(
        "broker", "", effective, engine.limit_statistics(), engine.throttle_counts_entries
    )


def topic_limit(limits: CurrentDispatchLimits, topic: Topic) -> LimitState | None:
    """A topic's own dispatch limit; None if nothing is set."""
    effective = limits.of_topic(topic)
    if not effective.source:
        return None
    statistics = topic.limit_statistics()
    return _state("topic", topic.name.full, effective, statistics, topic.batches_count_as_one)


def subscription_limit(
    limits: CurrentDispatchLimits, subscription: Subscription
) -> LimitState | None:
    """A subscription's own dispatch limit; None if nothing is set."""
    topic = subscription.topic
    effective = limits.of_subscription(subscription)
    if not effective.source:
        return None
    statistics = subscription.limit_statistics()
    subject = f"{topic.name.full} / {subscription.name}"
    return _state("subscription", subject, effective, statistics, topic.batches_count_as_one)


def publish_limits(limits: CurrentPublishLimits, topics: Sequence[Topic]) -> list[LimitState]:
    """The publish limits of a topic, given as its partitions, and of the broker."""
    states = []
    for topic in topics:
        effective = limits.of_topic(topic)
        if effective.source:
            statistics = topic.publishing.limit_statistics()
            states.append(_state(PUBLISH_TOPIC, topic.name.full, effective, statistics, False))
    of_broker = limits.of_broker()
    if of_broker.source and not all(topic.is_system for topic in topics):
        statistics = topics[0].publishing.broker_limit_statistics()
        states.append(_state(PUBLISH_BROKER, "", of_broker, statistics, False))
    return states


def throttled_amounts(subscriptions: Sequence[Subscription]) -> list[ThrottledAmount]:
    """What each limiter throttled of a subscription, given as its parts; those that throttled
    nothing are left out."""
    events, amounts = Counter[tuple[Level, Dimension]](), Counter[tuple[Level, Dimension]]()
    for subscription in subscriptions:
        subscription.count_throttling()
        counts = subscription.throttled_dispatch.counts
        for level in Level:
            for dimension in Dimension:
                events[level, dimension] += subscription.gate.throttled_events[level][dimension]
                amounts[level, dimension] += counts[level][dimension]
    return [
        ThrottledAmount(
            level=level.name.lower(),
            dimension=dimension.name.lower(),
            events=count,
            amount=amounts[level, dimension],
        )
        for (level, dimension), count in events.items()
        if count or amounts[level, dimension]
    ]


def _text(limit: RateLimit | None, dimension: Dimension, batches_count_as_one: bool) -> str:
    if limit is None:
        return ""
    text = limit_text(limit, dimension)
    if batches_count_as_one and dimension == Dimension.MESSAGES:
        text += ", a batch as one"
    return text


def _state(
    level: str,
    subject: str,
    effective: EffectiveLimit,
    statistics: GateStatistics,
    batches_count_as_one: bool,
) -> LimitState:
    """``batches_count_as_one``: dispatch limits may count a batch as one message, publish limits
    never do."""
    limit = effective.limit
    base = None if limit is None else limit.base
    return LimitState(
        level=level,
        subject=subject,
        source=effective.source,
        unlimited=limit is None,
        relative=base is not None,
        budgets=[
            BudgetState(
                dimension=budget.dimension.name.lower(),
                limit=budget.limit,
                period_s=budget.period_ns / NS_PER_S,
                in_window=budget.delivered_in_window,
                debt=budget.debt,
                granted=budget.granted,
                above_publish_rate=None if base is None else base.amount(budget.dimension),
                publish_rate_times=None if limit is None or base is None else limit.times,
                text=_text(limit, budget.dimension, batches_count_as_one),
                source=effective.source_of(budget.dimension),
            )
            for budget in statistics.budgets
        ],
        waiters=statistics.waiters,
        waiters_max=statistics.waiters_max,
        waiting_s=statistics.waiting_ns / NS_PER_S,
        longest_waiting=[
            WaitingSubscription(
                topic=owner.topic.name.full, subscription=owner.name, waiting_s=ns / NS_PER_S
            )
            for owner, ns in statistics.largest_waiters
            if isinstance(owner, Subscription)
        ],
    )
