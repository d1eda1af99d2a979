"""The delivering side of a topic in reports: its subscriptions and its dispatch limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.base.sliced import Sliced
from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE
from headgate.broker.damage import damage_of, subscription_damage_sentence
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.explain.delivery import (
    Instant,
    SubscriptionNow,
    subscription_fields,
    window_report,
)
from headgate.explain.reports import SubscriptionAccount, SubscriptionReport
from headgate.explain.states import LimitState
from headgate.explain.window import window
from headgate.observe.changes.change_history import TopicChanges
from headgate.observe.explain.diagnosis import diagnose_subscription
from headgate.observe.explain.timelines import Timelines
from headgate.observe.explain.window import Part, parts_of
from headgate.observe.history.tracks import History
from headgate.observe.states.limits import (
    broker_limit,
    subscription_limit,
    throttled_amounts,
    topic_limit,
)
from headgate.observe.states.quotas import breaches_s
from headgate.policy.current_limits import CurrentDispatchLimits


class DeliveryReports:
    """Reports on delivery, from the subscriptions' history and the current dispatch limits."""

    def __init__(self, engine: Engine, history: History, limits: CurrentDispatchLimits) -> None:
        self._engine = engine
        self._history = history
        self._limits = limits
        self._timelines = Timelines()

    def report(
        self,
        subscriptions: Sequence[Subscription],
        name: str = "",
        partitions: int = 0,
        *,
        with_timeline: bool = False,
        changes: TopicChanges | None = None,
    ) -> Sliced[SubscriptionReport]:
        """The report on one subscription, given as its partitions' parts (at least one).

        ``name`` is that of the topic in the report, by default the first part's. ``partitions`` is
        0 for a topic that is not partitioned. ``changes`` are those of the topic.
        """
        parts = yield from parts_of(self._history, subscriptions)
        fields = yield from self._fields(parts, name, partitions, with_timeline, changes)
        return SubscriptionReport(**fields)

    def broker_limit(self) -> LimitState | None:
        """The broker-wide dispatch limit; None if nothing is set."""
        return broker_limit(self._limits, self._engine)

    def limits(self, topics: Sequence[Topic], broker_limit: LimitState | None) -> list[LimitState]:
        """The dispatch limits of a topic, given as its partitions. ``broker_limit`` does not hold
        for system topics."""
        limits = [topic_limit(self._limits, topic) for topic in topics]
        if not all(topic.is_system for topic in topics):
            limits.append(broker_limit)
        return [limit for limit in limits if limit is not None]

    def account(
        self,
        subscriptions: Sequence[Subscription],
        name: str,
        partitions: int,
        *,
        with_timeline: bool = False,
        changes: TopicChanges | None = None,
    ) -> Sliced[SubscriptionAccount]:
        """The report on one subscription with its account in full; see :meth:`report`. With a
        timeline, what took messages from the subscription is added to ``changes``."""
        parts = yield from parts_of(self._history, subscriptions)
        fields = yield from self._fields(parts, name, partitions, with_timeline, changes)
        if with_timeline and changes is not None:
            for part in parts:
                changes.add_messages(part)
                yield
        minute = window_report(window(parts, NS_PER_MINUTE))
        yield
        hour = window_report(window(parts, NS_PER_HOUR))
        limits = []
        live = [part.subscription for part in parts if not part.subscription.removed]
        for subscription in live:
            limit = subscription_limit(self._limits, subscription)
            if limit is not None:
                limits.append(limit)
            yield
        return SubscriptionAccount(
            **fields,
            minute=minute,
            hour=hour,
            limits=limits,
            spared=bool(live) and all(s.gate.exempt and not s.topic.is_system for s in live),
            held_back=throttled_amounts(live),
        )

    def _fields(
        self,
        known: Sequence[Part],
        name: str,
        partitions: int,
        with_timeline: bool,
        changes: TopicChanges | None,
    ) -> Sliced[dict[str, Any]]:
        judged = yield from diagnose_subscription(self._limits, known)
        parts = judged.parts
        largest = max(parts, key=lambda part: part.backlog_messages)
        damage = next(filter(None, map(damage_of, parts)), "")
        consumers = [consumer for part in parts for consumer in part.consumers]
        now = SubscriptionNow(
            topic=name or largest.topic.name.full,
            subscription=largest.name,
            partitions=partitions,
            type=largest.type.label if largest.type_known else "",
            consumers=len(consumers),
            cell=largest.account.cell,
            backlog_bytes=sum(part.backlog_bytes for part in parts),
            permits=sum(consumer.permits for consumer in consumers),
            permits_max=sum(consumer.window for consumer in consumers),
            damage=damage,
            breaches_s=breaches_s(parts),
        )
        sentence = subscription_damage_sentence(parts) if damage else judged.sentence
        instant = Instant(self._engine.now_ns, self._engine.now_ms)
        fields = subscription_fields(judged.diagnosis, sentence, now, instant)
        fields["timeline"] = (yield from self._timelines.of(known)) if with_timeline else None
        if changes is not None:
            began_ns = judged.diagnosis.backlog_since_ns
            fields["before_growth"] = changes.before_growth(
                fields["verdict"], largest.name, began_ns
            )
        return fields
