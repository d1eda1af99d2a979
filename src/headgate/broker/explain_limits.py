"""The limits in force as explain shows them: what is set where, how full it is, who waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.base.units import NS_PER_S
from headgate.broker.explain_types import BudgetState, HeldSubscription, LimitState
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.limits import EffectiveLimit, Level
from headgate.flow.node import GateStatistics
from headgate.flow.sentence import limit_text

if TYPE_CHECKING:
    from headgate.broker.service import Broker


def broker_limit(broker: Broker) -> LimitState | None:
    """The broker-wide limit; None if nothing is set."""
    effective = broker.in_force.of_broker()
    if not effective.source:
        return None
    statistics = broker.engine.gate.statistics(broker.engine.now_ns)
    return _state(Level.BROKER, "", effective, statistics)


def topic_limit(broker: Broker, topic: Topic) -> LimitState | None:
    """A topic's own limit; None if nothing is set."""
    effective = broker.in_force.of_topic(topic)
    if not effective.source:
        return None
    statistics = topic.gate.statistics(broker.engine.now_ns)
    return _state(Level.TOPIC, topic.name.full, effective, statistics)


def subscription_limit(broker: Broker, subscription: Subscription) -> LimitState | None:
    """A subscription's own limit; None if nothing is set."""
    topic = subscription.topic
    effective = broker.in_force.of_subscription(subscription)
    if not effective.source:
        return None
    statistics = subscription.gate.statistics(broker.engine.now_ns)
    subject = f"{topic.name.full} / {subscription.name}"
    return _state(Level.SUBSCRIPTION, subject, effective, statistics)


def _state(
    level: Level, subject: str, effective: EffectiveLimit, statistics: GateStatistics
) -> LimitState:
    limit = effective.limit
    return LimitState(
        level=level.name.lower(),
        subject=subject,
        source=effective.source,
        unlimited=limit is None,
        relative=limit is not None and limit.base is not None,
        budgets=[
            BudgetState(
                dimension=budget.dimension.name.lower(),
                limit=budget.limit,
                period_s=budget.period_ns / NS_PER_S,
                in_window=budget.delivered_in_window,
                debt=budget.debt,
                granted=budget.granted,
                text="" if limit is None else limit_text(limit, budget.dimension),
                source=effective.source_of(budget.dimension),
            )
            for budget in statistics.budgets
        ],
        waiters=statistics.waiters,
        waiters_max=statistics.waiters_max,
        waiting_s=statistics.waiting_ns / NS_PER_S,
        longest_waiting=[
            HeldSubscription(
                topic=owner.topic.name.full, subscription=owner.name, waiting_s=ns / NS_PER_S
            )
            for owner, ns in statistics.largest_waiters
            if isinstance(owner, Subscription)
        ],
    )
