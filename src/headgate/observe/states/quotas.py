"""Effective backlog quotas: how full each is, whose backlog it is, what happens next."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.base.texts import size_text, time_text
from headgate.base.units import MS_PER_S, NS_PER_S, S_PER_MINUTE
from headgate.engine.eviction import QuotaSubscription
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.topic_quota import TopicQuota
from headgate.explain.states import QuotaState
from headgate.flow.quota.backlog_quota import Quota, QuotaType
from headgate.flow.sentences.quota import quota_sentence

LATELY_NS = S_PER_MINUTE * NS_PER_S
"""A quota that evicted, or released producers, within this time counts as reached: that is why the
topic is below the limit."""


def quota_states(topics: Sequence[Topic]) -> list[QuotaState]:
    """The quotas enforced on a topic, given as its partitions: each as it stands on the fullest
    partition."""
    states = []
    for kind in QuotaType:
        found = [
            (topic_quota, quota)
            for topic in topics
            if (topic_quota := topic.quota) is not None
            and (quota := topic_quota.quotas[kind]) is not None
        ]
        if found:
            fullest, quota = max(found, key=lambda each: _used(each[0], each[1].type))
            states.append(_state(fullest, quota, [part for part, _ in found]))
    return states


def breaches_s(parts: Sequence[Subscription]) -> tuple[float | None, float | None]:
    """In how many seconds the backlog of a subscription, given as its parts, fills the quota of
    each type, indexed by :class:`QuotaType`: 0 while it is full, None if no such breach is
    expected, or another subscription will cause it."""
    size, time = (_breach_s(parts, kind) for kind in QuotaType)
    return size, time


def _breach_s(parts: Sequence[Subscription], kind: QuotaType) -> float | None:
    soonest_s: float | None = None
    for part in parts:
        topic_quota = part.topic.quota
        # Most topics have none, or one that is far from full.
        left_s = None if topic_quota is None else topic_quota.seconds_to_breach(kind)
        if topic_quota is None or left_s is None or _holder(topic_quota, kind) is not part:
            continue
        soonest_s = left_s if soonest_s is None else min(soonest_s, left_s)
    return soonest_s


def _holder(topic_quota: TopicQuota, kind: QuotaType) -> QuotaSubscription | None:
    """The subscription whose backlog, or oldest message, a quota measures."""
    return topic_quota.slowest() if kind is QuotaType.SIZE else topic_quota.oldest()


def _used(topic_quota: TopicQuota, kind: QuotaType) -> int:
    """What a quota of this type bounds: bytes of the backlog, or milliseconds of age."""
    return topic_quota.backlog_bytes() if kind is QuotaType.SIZE else max(topic_quota.age_ms(), 0)


def _state(fullest: TopicQuota, quota: Quota, parts: Sequence[TopicQuota]) -> QuotaState:
    """The state of a quota; ``fullest`` is one of ``parts``."""
    kind = quota.type
    is_size = kind is QuotaType.SIZE
    scale = 1 if is_size else MS_PER_S
    used, age_ms = _used(fullest, kind), fullest.age_ms()
    oldest, slowest = fullest.oldest(), fullest.slowest()
    holder = slowest if is_size else oldest
    exceeded = fullest.is_exceeded(kind)
    left_s, band = fullest.seconds_to_breach(kind), fullest.breach_band(kind)
    use = used / quota.limit if quota.limit else None
    counts = [part.evictions(kind) for part in parts]
    stops, now_ns = [part.stops for part in parts if part.stops], fullest.topic.now_ns
    lately_s = enforced_ago_s(parts, kind)
    sentence = quota_sentence(
        use=use or 0.0,
        limit_text=size_text(quota.limit) if is_size else time_text(quota.limit / scale),
        source=quota.source,
        kind="size" if is_size else "time",
        policy=quota.policy.value,
        subscription=None if oldest is None else oldest.name,
        oldest_age_s=age_ms / MS_PER_S if age_ms >= 0 else None,
        seconds_to_breach=left_s or None,
        exceeded=exceeded,
        slowest=None if slowest is None else slowest.name,
        reached="" if lately_s is None else _ago(lately_s),
    )
    messages, size = (sum(count[i] for count in counts) for i in (1, 2))
    return QuotaState(
        topic=fullest.topic.name.full,
        type=kind.label,
        policy=quota.policy.value,
        source=quota.source,
        limit=quota.limit / scale,
        used=used / scale,
        use=use,
        subscription=holder.name if holder is not None and used else None,
        exceeded=exceeded,
        seconds_to_breach=left_s,
        seconds_to_breach_earliest=None if band is None else band.earliest_s,
        seconds_to_breach_latest=None if band is None else band.latest_s,
        stopped_s=sum(each.stopped_ns(kind, now_ns) for each in stops) / NS_PER_S,
        producers_closed=sum(each.closed_count for each in stops),
        producers_refused=sum(each.refused_count for each in stops),
        evictions=sum(acts for acts, _, _ in counts),
        evicted_messages=messages,
        evicted_bytes=size,
        sentence=sentence,
    )


def _ago(seconds: float) -> str:
    return "just now" if seconds < 1 else f"{time_text(seconds)} ago"


def enforced_ago_s(parts: Sequence[TopicQuota], kind: QuotaType) -> float | None:
    """Seconds since a quota last evicted or stopped producers; None if not in the last minute."""
    last_ns = max(
        (at for part in parts if (at := part.last_enforced_ns(kind)) is not None), default=None
    )
    if last_ns is None:
        return None
    ago_ns = parts[0].topic.now_ns - last_ns
    return None if ago_ns > LATELY_NS else ago_ns / NS_PER_S
