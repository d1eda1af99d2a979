"""Telemetry fields of every topic and subscription between two scrapes of one broker.

Counters give the amounts. ``flow.account.inferred`` infers what no counter has. A field that does
not follow from the scrapes is left out. Amounts are in messages. Backlogs stay in entries, as the
broker counts them, because a conversion would not be exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import LABELS
from headgate.flow.account.inferred import (
    BacklogChanges,
    GrowthCounters,
    SnapshotPair,
    SubscriptionSnapshot,
    backlog_changes,
    inferred_cells,
    oldest_age_ns,
    scaled_cells,
)
from headgate.flow.account.verdict import INFERRED, MEASURED
from headgate.pipeline.scrapes.pairs import (
    Counters,
    Difference,
    Growth,
    ScrapePair,
    difference,
    whole_level,
)
from headgate.pipeline.scrapes.reading import Scrape, TopicName, Values
from headgate.pipeline.scrapes.series import STATE_FIELD
from headgate.record.fields import (
    DIMENSIONS,
    PARK_CAUSES,
    QUOTA_TYPES,
    STATE_FIELD_NAMES,
    THROTTLE_REASONS,
    Kind,
)

_STATE_FIELDS: Final = tuple(
    STATE_FIELD.format(state=label.state.value, dimension=label.dimension, consumer=label.consumer)
    for label in LABELS
)
"""Where ``reading`` keeps the seconds of each cell."""

_EVENTS: Final = tuple(
    f"throttled_{reason}_{dimension}_events"
    for reason in THROTTLE_REASONS
    for dimension in DIMENSIONS
)
_CAUSES: Final = ("rewound", "acked", "skipped", "evicted")
"""Fields of ``BacklogChanges``, in entries."""

ENTRY_MESSAGES_MAX: Final = (1 << 31) - 1
"""More messages than an entry can have: Pulsar counts them with 32 bits."""

_LONG_PERIOD_S: Final = 1_000
"""Period of a limit that is not a whole number a second."""


@dataclass(frozen=True, slots=True)
class _Published:
    """Messages published to a topic, and their entries."""

    messages: int
    entry_messages: float
    """Mean messages in an entry."""
    evicted: bool
    """Whether a quota evicted messages."""
    evicted_by: dict[str, Any]
    """Columns of that quota and its present limit; empty without an eviction.

    Scrapes do not have its source.
    """


def differences(pair: ScrapePair) -> Iterator[tuple[Kind, list[Difference]]]:
    """The differences of the topics and subscriptions in both scrapes, by kind."""
    topics: list[Difference] = []
    published: dict[TopicName, _Published] = {}
    for name, before in pair.before.topics.items():
        after = pair.after.topics.get(name)
        if after is not None:
            counters = Counters(before, after, restarted=pair.restarted)
            topics.append(_of_topic(name, counters, before, after))
            published[name] = _published(counters, before, after, pair.elapsed_ns)
    yield Kind.TOPIC, topics
    yield (
        Kind.SUBSCRIPTION,
        [
            _of_subscription(pair, name, subscription, published[name])
            for name, subscription in pair.before.subscriptions
            if name in published and _has_backlogs(pair, (name, subscription))
        ],
    )


def _has_backlogs(pair: ScrapePair, key: tuple[TopicName, str]) -> bool:
    scrapes = pair.before, pair.after
    return all("backlog" in scrape.subscriptions.get(key, {}) for scrape in scrapes)


def _published(counters: Counters, before: Values, after: Values, elapsed_ns: int) -> _Published:
    messages = counters.amount("msgs_in")
    acts = {quota: counters.amount(f"eviction_{quota}_acts") for quota in QUOTA_TYPES}
    size = _entry_messages(messages, elapsed_ns, after, before)
    if not any(acts.values()):
        return _Published(messages, size, False, {})
    quota = max(acts, key=lambda each: acts[each])
    limit = (
        whole_level(after, "quota_size")
        if quota == "size"
        else whole_level(after, "quota_time_s", NS_PER_S)
    )
    return _Published(messages, size, True, {"evicted_by": quota, "evicted_by_limit": limit})


def _entry_messages(messages: int, elapsed_ns: int, *looks: Values) -> float:
    """Mean messages in an entry, from the rates of the first of ``looks`` with traffic; else 1.

    Brokers average these rates over about a minute. The message rate is that of connected
    producers. If all have left, the counted ``messages`` stand in for it.
    """
    for look in looks:
        entries = look.get("entry_rate_in", 0.0)
        if entries > 0:
            rate = look.get("rate_in", 0.0) or messages * NS_PER_S / elapsed_ns
            return min(max(1.0, rate / entries), ENTRY_MESSAGES_MAX)
    return 1.0


def _of_topic(name: TopicName, counters: Counters, before: Values, after: Values) -> Difference:
    counted = {field: counters.growth(field) for field in ("msgs_in", "bytes_in")}
    for quota in QUOTA_TYPES:
        for what in ("acts", "messages", "bytes"):
            field = f"eviction_{quota}_{what}"
            counted[field] = counters.growth(field)
    for cause in PARK_CAUSES:
        counted[f"parked_{cause}_ns"] = counters.growth(f"parked_{cause}_s", NS_PER_S)
    plain = ("storage_bytes", "backlog_bytes", "producers")
    held = [f"parked_{cause}_{unit}" for cause in PARK_CAUSES for unit in DIMENSIONS]
    levels = {
        **{field: whole_level(after, field) for field in (*plain, *held)},
        "oldest_age_ns": whole_level(after, "age_s", NS_PER_S),
    }
    # A topic that is not persistent has no quota, and its series say 0.
    if name.topic.startswith("persistent:"):
        levels["quota_size_limit_bytes"] = whole_level(after, "quota_size")
        levels["quota_time_limit_ns"] = whole_level(after, "quota_time_s", NS_PER_S)
    first_levels = {"backlog_bytes": whole_level(before, "backlog_bytes")}
    is_measured = any(counted[f"parked_{cause}_ns"] for cause in PARK_CAUSES)
    evidence = MEASURED if is_measured else INFERRED
    return difference(name, counted, first_levels, levels, evidence=evidence)


def _of_subscription(
    pair: ScrapePair, name: TopicName, subscription: str, published: _Published
) -> Difference:
    before = pair.before.subscriptions[name, subscription]
    after = pair.after.subscriptions[name, subscription]
    counters = Counters(before, after, restarted=pair.restarted)
    start, end = _look(before), _look(after)
    growth = end.backlog - start.backlog
    causes = _moved(growth, counters, before, after, published, pair.elapsed_ns)
    exact = _measured_cells(counters, pair.elapsed_ns)
    events = [counters.amount(field) for field in _EVENTS]
    size = published.entry_messages
    acked = round(causes.acked * size)
    cells = exact or inferred_cells(SnapshotPair(pair.elapsed_ns, start, end, acked, size, events))
    counted: dict[str, Growth | None] = {
        **{field: counters.growth(field) for field in ("msgs_out", "bytes_out", *_EVENTS)},
        "appended": (0, published.messages),
        **{field: (0, round(getattr(causes, field) * size)) for field in _CAUSES},
        "expired": (0, round(counters.amount("expired") * size)),
        **dict(zip(STATE_FIELD_NAMES, ((0, ns) for ns in cells), strict=True)),
    }
    if "redeliver_rate" in after:
        counted["redelivered"] = 0, _by_rate(after["redeliver_rate"], pair.elapsed_ns)
    age_ns = whole_level(after, "age_s", NS_PER_S)
    if age_ns is None:
        age_ns = oldest_age_ns(end.deliverable, causes.appended, pair.elapsed_ns)
    levels = {
        **_levels(after, end),
        "oldest_age_ns": age_ns if end.deliverable else None,
        **(published.evicted_by if causes.evicted else {}),
        **_dispatch_limits(pair.after, name, subscription),
    }
    evidence = INFERRED if exact is None else MEASURED
    return difference(
        name, counted, _levels(before, start), levels, evidence=evidence, subscription=subscription
    )


def _look(values: Values) -> SubscriptionSnapshot:
    consumers = round(values.get("consumers", 0.0))
    return SubscriptionSnapshot(
        backlog=max(0, round(values["backlog"])),
        delayed=max(0, round(values.get("delayed", 0.0))),
        unacked=max(0, round(values.get("unacked", 0.0))),
        consumers=consumers,
        blocked=values.get("blocked", 0.0) > 0
        or 0 < consumers <= values.get("blocked_consumers", 0.0),
        permits=round(values["permits"]) if "permits" in values else None,
    )


def _levels(values: Values, look: SubscriptionSnapshot) -> dict[str, Any]:
    return {
        "backlog_messages": look.backlog,
        "permits": look.permits,
        **{field: whole_level(values, field) for field in ("consumers", "delayed", "unacked")},
    }


def _moved(
    growth: int,
    counters: Counters,
    before: Values,
    after: Values,
    published: _Published,
    elapsed_ns: int,
) -> BacklogChanges:
    # The time of the last acknowledgement is that of connected consumers. The mark-delete time also
    # changes if the consumer has left.
    seen = any(before.get(field) != after.get(field) for field in ("acked_ms", "mark_delete_ms"))
    rate = (before.get("ack_rate", 0.0) + after.get("ack_rate", 0.0)) / 2
    return backlog_changes(
        GrowthCounters(
            growth=growth,
            published=published.messages,
            entry_messages=published.entry_messages,
            expired=counters.amount("expired"),
            was_acked=seen or "mark_delete_ms" not in after,
            evicted=published.evicted,
            acked_at_most=_by_rate(rate / published.entry_messages, elapsed_ns),
        )
    )


def _by_rate(per_s: float, elapsed_ns: int) -> int:
    return max(0, round(per_s * elapsed_ns / NS_PER_S))


def _measured_cells(counters: Counters, elapsed_ns: int) -> Sequence[int] | None:
    """The broker's own account, if it has one. A state without any time has no sample."""
    cells_ns = counters.account_ns(_STATE_FIELDS)
    return scaled_cells(cells_ns, elapsed_ns) if any(cells_ns) else None


def _dispatch_limits(scrape: Scrape, name: TopicName, subscription: str) -> dict[str, Any]:
    """Dispatch limits in force, which only the scrapes of a Headgate have."""
    places: dict[str, tuple[Values, TopicName | None, str | None]] = {
        "subscription": (scrape.subscriptions[name, subscription], name, subscription),
        "topic": (scrape.topics[name], name, None),
        "broker": (scrape.broker, None, None),
    }
    found: dict[str, Any] = {}
    for level, (values, topic, owner) in places.items():
        rates = {unit: values.get(f"limit_{level}_{unit}", 0.0) for unit in DIMENSIONS}
        if max(rates.values()) <= 0:
            continue
        period_s = 1 if all(rate.is_integer() for rate in rates.values()) else _LONG_PERIOD_S
        source = f"limit_{level}_source"
        found |= {
            **{f"limit_{level}_{u}": round(r * period_s) for u, r in rates.items() if r > 0},
            f"limit_{level}_period_ns": period_s * NS_PER_S,
            source: scrape.texts.get((topic, owner, source)),
        }
    return found
