"""The values of backlog quotas in the telemetry's rows and events."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, islice
from typing import Any, Final

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.eviction import Eviction
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, QuotaPolicy, Quotas, QuotaType
from headgate.record.codec import Value
from headgate.record.fields import QUOTA_TYPES, told_count
from headgate.telemetry.records.names import Names

SUBSCRIPTIONS_MAX: Final = 100
"""Subscriptions that an eviction names, those with the largest loss first ..."""
NAMES_CHARACTERS_MAX: Final = 4_096
"""... and most characters of their names. Thousands of events with a hundred long names each would
take hundreds of megabytes, and push what is told of others out of the telemetry."""

LIMIT_COLUMNS: Final = (
    "quota_size_limit_bytes", "quota_size_policy", "quota_size_source",
    "quota_time_limit_ns", "quota_time_policy", "quota_time_source",
)  # fmt: skip

COUNT_COLUMNS: Final = (
    *(f"eviction_{kind}_{part}" for kind in QUOTA_TYPES for part in ("acts", "messages", "bytes")),
)  # fmt: skip

BREACH_COLUMNS: Final = tuple(f"quota_{kind}_breach_ns" for kind in QUOTA_TYPES)
"""They change with time alone, as ages do, and cause no row."""

_ACTIONS: Final = {
    QuotaPolicy.HOLD: "producers_held",
    QuotaPolicy.EXCEPTION: "producers_closed",
    QuotaPolicy.EVICTION: "evicting",
}


def limit_values(quotas: Quotas, names: Names) -> tuple[Value, ...]:
    """The quotas in force, in the order of :data:`LIMIT_COLUMNS`."""
    values: list[Value] = []
    for quota in quotas:
        if quota is None:
            values += (None, None, None)
            continue
        limit = quota.limit if quota.type is QuotaType.SIZE else quota.limit * NS_PER_MS
        values += (limit, quota.policy.value, names.limit_source(quota.source))
    return tuple(values)


def evicted_by_values(quota: Quota | None, names: Names) -> tuple[Value, ...]:
    """The quota that evicted last: its type, its limit (bytes or ns) and where it is set."""
    if quota is None:
        return (None, None, None)
    limit = quota.limit if quota.type is QuotaType.SIZE else quota.limit * NS_PER_MS
    return (quota.type.label, limit, names.limit_source(quota.source))


def count_values(topic: Topic) -> tuple[Value, ...]:
    """The evicted amounts, in the order of :data:`COUNT_COLUMNS`."""
    quota = topic.quota
    if quota is None:
        return (0,) * len(COUNT_COLUMNS)
    return tuple(told_count(n) for kind in QuotaType for n in quota.evictions(kind))


def breach_values(topic: Topic) -> tuple[Value, ...]:
    """Time until each quota is reached, in the order of :data:`BREACH_COLUMNS`."""
    if topic.quota is None:
        return (None, None)
    seconds = (topic.quota.seconds_to_breach(kind) for kind in QuotaType)
    return tuple(None if left_s is None else round(left_s * NS_PER_S) for left_s in seconds)


def event_inputs(quota: Quota, backlog_bytes: int, age_ms: int, names: Names) -> dict[str, Any]:
    """The inputs of an event: the quota, and the backlog at that instant."""
    is_size = quota.type is QuotaType.SIZE
    limit = {"limit_bytes": quota.limit} if is_size else {"limit_ns": quota.limit * NS_PER_MS}
    return {
        "quota": quota.type.label,
        "policy": quota.policy.value,
        "source": names.limit_source(quota.source),
        **limit,
        "backlog_bytes": backlog_bytes,
        "oldest_age_ns": _age_ns(age_ms),
    }


def producers_outcome(quota: Quota, exceeded: bool) -> dict[str, Any]:
    """The outcome of an event: what happened to the producers."""
    return {"action": _ACTIONS[quota.policy] if exceeded else "producers_let_go_on"}


def named_count(names: Iterable[str]) -> int:
    """How many of the subscriptions that lost messages an event names, the first ones."""
    characters = islice(accumulate(map(len, names)), SUBSCRIPTIONS_MAX)
    return sum(total <= NAMES_CHARACTERS_MAX for total in characters)


def eviction_outcome(act: Eviction, names: Names) -> dict[str, Any]:
    """The outcome of an eviction: the lost amounts."""
    named = named_count(loss.subscription for loss in act.losses)
    return {
        "messages": act.messages,
        "bytes": act.bytes,
        "backlog_bytes": act.backlog_bytes,
        "oldest_age_ns": _age_ns(act.age_ms),
        "subscriptions": [
            {"subscription": names.part(name), "messages": messages, "bytes": size}
            for name, messages, size in act.losses[:named]
        ],
        "subscriptions_more": len(act.losses) - named,
    }


def _age_ns(age_ms: int) -> int | None:
    return age_ms * NS_PER_MS if age_ms >= 0 else None
