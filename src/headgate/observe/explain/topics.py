"""Explain: what holds a backlog, by which limit, set where, since when; from memory, at once.

The answers are plain values for JSON; :mod:`headgate.observe.explain.reports` names and documents
every field. Only what is shown is judged, so an answer costs little more for ten thousand
subscriptions than for ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.base.instants import iso_time
from headgate.base.names import PARTITION_SUFFIX, TopicName, parse_topic
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.broker.damage import (
    damage_of,
    damages,
    subscription_damage_sentence,
    topic_damage_sentence,
)
from headgate.broker.slices import Steps, at_once, in_slices, live_topics
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.account.account import LABELS
from headgate.flow.account.verdict import blame_shares
from headgate.flow.sentences.backlog import limit_text
from headgate.metadata.errors import not_found
from headgate.observe.explain.publishing import held_topics, publishing
from headgate.observe.explain.reports import (
    AccountWindow,
    DamageState,
    LimitRef,
    LimitState,
    StateTime,
    SubscriptionAccount,
    SubscriptionReport,
    TopicReport,
    TopReport,
)
from headgate.observe.explain.situation import Part, Situation, Window, parts_of, situation, window
from headgate.observe.history.grid import HOUR_NS, MINUTE_NS
from headgate.observe.states.adaptive import adaptive_state
from headgate.observe.states.limits import broker_limit, held_back, subscription_limit, topic_limit
from headgate.observe.states.quotas import nearest_quotas, quota_states
from headgate.observe.states.storage import storage_state

if TYPE_CHECKING:
    from headgate.broker.service import Broker

SETTLING = "SETTLING"
"""The verdict while there is none yet."""
HIGH_CONFIDENCE = 0.7
MEDIUM_CONFIDENCE = 0.3
NOBODY = "nobody subscribes to this topic."


async def explain_top(broker: Broker, count: int) -> dict[str, Any]:
    """The ``count`` largest backlogs and what holds each: a :class:`TopReport`.

    A partitioned topic's subscription is one, however many partitions it has: else a single one
    could fill the list. Topics of the system are left out. Raises nothing.
    """
    found = await _walk(broker)
    waiting = [backlog for backlog in found if backlog.messages > 0]
    worst = nlargest(count, waiting, key=lambda backlog: backlog.messages)
    live = [
        (backlog, parts)
        for backlog in worst
        if (parts := [part for part in backlog.parts if not part.removed])
    ]
    reports = []
    for backlog, parts in live:
        partitions = broker.registry.partitions(parse_topic(backlog.topic))
        fields = await in_slices(broker, _report_fields(broker, parts, backlog.topic, partitions))
        reports.append(SubscriptionReport(**fields))
    report = TopReport(
        at=iso_time(broker.engine.now_ms),
        broker=broker.info.broker_id,
        subscriptions_total=len(found),
        with_backlog=len(waiting),
        storage=storage_state(broker),
        subscriptions=reports,
        quotas=await nearest_quotas(broker, count),
        publishing=await held_topics(broker, count),
        damaged=[
            DamageState(topic=one.topic, subscription=one.subscription or None, damage=one.text)
            for one in islice(damages(broker), count)
        ],
    )
    return _plain(report)


@dataclass(slots=True)
class _Backlog:
    """One subscription of one topic, its partitions put together."""

    topic: str
    messages: int
    parts: list[Subscription]


async def _walk(broker: Broker) -> list[_Backlog]:
    """All subscriptions of users' topics, in slices: nobody's publishing waits for an operator."""
    found: list[_Backlog] = []
    partitioned: dict[str, dict[str, _Backlog]] = {}
    async for topic in live_topics(broker.engine, broker):
        if topic.is_system:
            continue
        base = topic.name.full.rpartition(PARTITION_SUFFIX)[0] if topic.partition >= 0 else ""
        # A name may look like a partition's without being one.
        is_part = base and (base in partitioned or broker.registry.partitions(parse_topic(base)))
        by_name = partitioned.setdefault(base, {}) if is_part else {}
        for subscription in topic.subscriptions.values():
            backlog = by_name.get(subscription.name)
            if backlog is None:
                backlog = _Backlog(base if is_part else topic.name.full, 0, [])
                by_name[subscription.name] = backlog
                found.append(backlog)
            backlog.messages += subscription.backlog_messages
            backlog.parts.append(subscription)
    return found


async def explain_topic(
    broker: Broker, topic_name: TopicName, *, per_partition: bool = False
) -> dict[str, Any]:
    """What holds a topic back: a :class:`TopicReport`.

    A partitioned topic is answered as one; ``per_partition`` adds each partition's own report.
    Many partitions are looked at in slices: what goes meanwhile is left out.

    Raises:
        RefusalError: 404, there is no such topic.
    """
    return await in_slices(broker, _explain_topic(broker, topic_name, per_partition=per_partition))


def _explain_topic(
    broker: Broker, topic_name: TopicName, *, per_partition: bool
) -> Steps[dict[str, Any]]:
    partitions = broker.registry.partitions(topic_name)
    above = broker_limit(broker)
    if not partitions:
        topic = broker.registry.get(topic_name)
        if topic is None:
            raise not_found(f"Topic {topic_name} not found")
        report = yield from _topic_report(broker, topic_name, [topic], 0, above)
        return _plain(report)
    topics: list[Topic] = []
    split: list[dict[str, Any]] = []
    for index in range(partitions):
        topic = broker.registry.get(topic_name.partition_name(index))
        if topic is not None:
            topics.append(topic)
            if per_partition:
                own = yield from _topic_report(broker, topic.name, [topic], 0, above)
                split.append(_plain(own))
        yield
    present = [topic for topic in topics if topic.is_live]
    report = yield from _topic_report(broker, topic_name, present, partitions, above)
    return _plain(report) | ({"perPartition": split} if per_partition else {})


def explain_subscription(
    broker: Broker, parts: Sequence[Subscription], *, name: str = "", partitions: int = 0
) -> SubscriptionReport:
    """One subscription, given by its partitions' parts (at least one), judged now.

    ``name``: the topic as it is to be called, the first part's by default. ``partitions``: of how
    many it is made, 0 when it is not partitioned.
    """
    return SubscriptionReport(**at_once(_report_fields(broker, parts, name, partitions)))


def _report_fields(
    broker: Broker, subscriptions: Sequence[Subscription], name: str, partitions: int
) -> Steps[dict[str, Any]]:
    parts = yield from parts_of(broker, subscriptions)
    return (yield from _fields(broker, parts, name, partitions))


def _fields(
    broker: Broker, known: Sequence[Part], name: str, partitions: int
) -> Steps[dict[str, Any]]:
    found = yield from situation(broker, known)
    parts = found.parts
    judgement = found.judgement
    largest = max(parts, key=lambda part: part.backlog_messages)
    labels = LABELS[largest.account.cell]
    damage = next(filter(None, map(damage_of, parts)), "")
    consumers = [consumer for part in parts for consumer in part.consumers]
    began_ms, began_s = _since(broker, found.backlog_since_ns)
    since_ms, since_s = _since(broker, found.verdict_since_ns if found.settled else None)
    known_ms, known_s = _instant(broker, found.known_since_ns)
    return {
        "topic": name or largest.topic.name.full,
        "subscription": largest.name,
        "partitions": partitions,
        "type": largest.type.label if largest.type_known else "",
        "consumers": len(consumers),
        "state": labels.state.value,
        "state_dimension": labels.dimension,
        "state_consumer": labels.consumer,
        "backlog_messages": found.window.total_end("backlog"),
        "backlog_bytes": sum(part.backlog_bytes for part in parts),
        "unacked_messages": found.window.total_end("in_flight"),
        "permits": sum(consumer.permits for consumer in consumers),
        "permits_max": sum(consumer.window for consumer in consumers),
        "oldest_age_s": max(point.age_ns for point in found.window.end) / NS_PER_S,
        "backlog_since": began_ms,
        "backlog_since_s": began_s,
        "known_since": known_ms,
        "known_since_s": known_s,
        "verdict": judgement.verdict.value if found.settled else SETTLING,
        "second": judgement.second.value if found.settled and judgement.second else None,
        "bystander": found.settled and judgement.bystander,
        "verdict_since": since_ms,
        "verdict_since_s": since_s,
        "confidence": judgement.confidence if found.settled else 0.0,
        "confidence_level": _confidence_level(found),
        "window_s": found.window.length_ns / NS_PER_S,
        "growth_messages": judgement.growth,
        "shares": {verdict.value: share for verdict, share in judgement.shares.items()},
        "would_have_grown": judgement.would_have_grown if found.settled else None,
        "proven_ack_per_s": found.demonstrated_ack_per_s,
        "limit": _limit_ref(found),
        "damage": damage or None,
        "sentence": subscription_damage_sentence(parts) if damage else found.sentence,
    }


def _account(
    broker: Broker, subscriptions: Sequence[Subscription], name: str, partitions: int
) -> Steps[SubscriptionAccount]:
    parts = yield from parts_of(broker, subscriptions)
    fields = yield from _fields(broker, parts, name, partitions)
    minute = _window_report(window(parts, MINUTE_NS))
    yield
    hour = _window_report(window(parts, HOUR_NS))
    limits = []
    live = [part.subscription for part in parts if not part.subscription.removed]
    for subscription in live:
        limit = subscription_limit(broker, subscription)
        if limit is not None:
            limits.append(limit)
        yield
    return SubscriptionAccount(
        **fields,
        minute=minute,
        hour=hour,
        limits=limits,
        spared=bool(live) and all(s.gate.exempt and not s.topic.is_system for s in live),
        held_back=held_back(live),
    )


def _topic_report(
    broker: Broker,
    name: TopicName,
    topics: Sequence[Topic],
    partitions: int,
    above: LimitState | None,
) -> Steps[TopicReport]:
    """A report without its partitions' own; ``above`` is the broker-wide limit."""
    by_name: dict[str, list[Subscription]] = {}
    for topic in topics:
        for subscription in topic.subscriptions.values():
            by_name.setdefault(subscription.name, []).append(subscription)
    subscriptions = []
    for parts in by_name.values():
        subscriptions.append((yield from _account(broker, parts, name.full, partitions)))
    subscriptions.sort(key=lambda report: -report.backlog_messages)
    limits: list[LimitState | None] = [topic_limit(broker, topic) for topic in topics]
    if not all(topic.is_system for topic in topics):
        limits.append(above)
    side = yield from publishing(broker, topics)
    damaged = (report for report in subscriptions if report.damage)
    worst = next(damaged, subscriptions[0] if subscriptions else None)
    damage = next((topic.log.damage for topic in topics if topic.log.damage), "")
    said = NOBODY if worst is None else f"{worst.subscription}: {worst.sentence}"
    return TopicReport(
        topic=name.full,
        at=iso_time(broker.engine.now_ms),
        partitions=partitions,
        sentence=topic_damage_sentence(damage) if damage else said,
        damage=damage or None,
        storage_bytes=sum(topic.storage_bytes() for topic in topics),
        storage=storage_state(broker),
        publishing=side,
        quotas=quota_states(topics),
        adaptive=adaptive_state(broker, topics),
        limits=[limit for limit in limits if limit is not None],
        subscriptions=subscriptions,
        per_partition=None,
    )


def _window_report(seen: Window) -> AccountWindow:
    total_ns = sum(seen.cells_ns) or 1
    states = [
        StateTime(
            state=labels.state.value,
            dimension=labels.dimension,
            consumer=labels.consumer,
            seconds=ns / NS_PER_S,
            share=ns / total_ns,
        )
        for ns, labels in zip(seen.cells_ns, LABELS, strict=True)
        if ns
    ]
    states.sort(key=lambda state: -state.seconds)
    return AccountWindow(
        window_s=seen.length_ns / NS_PER_S,
        states=states,
        shares={blame.value: share for blame, share in blame_shares(seen.cells_ns).items()},
        appended=seen.gained("appended"),
        delivered=seen.gained("sent"),
        acked=seen.gained("acked"),
        skipped=seen.gained("skipped"),
        rewound=seen.gained("rewound"),
        expired=seen.gained("expired"),
        evicted=seen.gained("evicted"),
        redelivered=seen.gained("redelivered"),
        backlog_start=seen.total_start("backlog"),
        backlog_end=seen.total_end("backlog"),
        oldest_age_max_s=seen.age_ns_max / NS_PER_S,
        appended_per_s=seen.per_second("appended"),
        delivered_per_s=seen.per_second("sent"),
        acked_per_s=seen.per_second("acked"),
    )


def _limit_ref(found: Situation) -> LimitRef | None:
    dimension = found.judgement.dimension
    if (
        not found.settled
        or found.limit_level is None
        or found.limit.limit is None
        or dimension is None
    ):
        return None
    return LimitRef(
        level=found.limit_level.name.lower(),
        dimension=dimension.name.lower(),
        text=limit_text(found.limit.limit, dimension),
        source=found.limit.source_of(dimension),
    )


def _confidence_level(found: Situation) -> str:
    if not found.settled:
        return SETTLING.lower()
    confidence = found.judgement.confidence
    if confidence >= HIGH_CONFIDENCE:
        return "high"
    return "medium" if confidence >= MEDIUM_CONFIDENCE else "low"


def _since(broker: Broker, since_ns: int | None) -> tuple[str | None, float | None]:
    """A monotonic instant as people see it, and how many seconds ago it was."""
    return (None, None) if since_ns is None else _instant(broker, since_ns)


def _instant(broker: Broker, since_ns: int) -> tuple[str, float]:
    ago_ns = broker.engine.now_ns - since_ns
    return iso_time(broker.engine.now_ms - ago_ns // NS_PER_MS), ago_ns / NS_PER_S


def _plain(report: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(report)
    return plain
