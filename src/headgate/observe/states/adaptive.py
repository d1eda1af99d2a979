"""Adaptive publish throttling of a topic: the figures and decisions of the controller (law 5.6)."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.base.instants import iso_time
from headgate.control.adaptive import DECISIONS_MAX, AdaptiveThrottle
from headgate.engine.topic import Topic
from headgate.explain.states import AdaptiveState, DecisionState
from headgate.flow.adaptive.cycle import Decision, PublishLimit
from headgate.flow.sentences.adaptive import decision_sentence, publish_limit_text


def adaptive_state(
    throttle: AdaptiveThrottle | None, topics: Sequence[Topic]
) -> AdaptiveState | None:
    """What the controller does to a topic, given as its partitions; None if it is not enabled or
    has not seen the topic yet."""
    known = [topic for topic in topics if topic.publishing.control is not None]
    if throttle is None or not known:
        return None
    records = [(record, topic) for topic in known for record in throttle.decisions(topic)]
    records.sort(key=lambda each: each[0].at_ms)
    last = records[-DECISIONS_MAX:]
    figures = [
        topic.publishing.control.figures()
        for topic in known
        if topic.publishing.control is not None
    ]
    limited = [topic for topic in known if topic.publishing.adaptive_limit is not None]
    decision = records[-1][0].decision if records else None
    settings = throttle.settings
    return AdaptiveState(
        law=settings.law.value,
        observe_only=settings.observe_only,
        active=len(limited),
        natural_messages_per_s=sum(each.natural_rate for each in figures),
        effective_messages_per_s=sum(each.effective_rate for each in figures),
        memory_pressure=max(each.memory_pressure for each in figures),
        backlog_pressure=max(each.backlog_pressure for each in figures),
        decisions=[decision_state(record.at_ms, topic, record.decision) for record, topic in last],
        sentence=_sentence(decision, known),
    )


def decision_state(at_ms: int, topic: Topic, decision: Decision) -> DecisionState:
    """One decision about a topic."""
    return DecisionState(
        at=iso_time(at_ms),
        topic=topic.name.full,
        kind=decision.kind.value,
        observe_only=decision.observe_only,
        law=decision.law.value,
        rule=decision.rule.value,
        memory_rule=decision.inputs.memory_rule,
        memory_pressure=decision.inputs.memory_pressure,
        backlog_pressure=decision.inputs.backlog_pressure,
        before=_limit_text(decision.old),
        after=_limit_text(decision.new),
        sentence=decision_sentence(decision),
    )


def _limit_text(limit: PublishLimit | None) -> str | None:
    return None if limit is None else publish_limit_text(limit)


def _sentence(decision: Decision | None, topics: Sequence[Topic]) -> str:
    if decision is not None:
        return decision_sentence(decision)
    quotas = [topic.quota.quotas for topic in topics if topic.quota is not None]
    if any(quota is not None and quota.policy.stops_producers for each in quotas for quota in each):
        return "it was never slowed since it was loaded"
    return "it has no backlog quota that stops producers, so only memory pressure slows it"
