"""Rows of ``throttle_timeline`` one by one: what the kernel over arrays must equal."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.flow.limits.rate_limit import Dimension, RateLimit
from headgate.flow.sentences.backlog import limit_text
from headgate.flow.sentences.limiter import LimiterFacts, limiter_sentence
from headgate.pipeline.kernels.limiters import SAMPLES
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.bronze import EVENT_IDENTITY
from headgate.pipeline.tables.columns import HOUR_NS, hour_partition
from headgate.pipeline.tables.publishing import LIMITER_KEY, THROTTLE_TIMELINE
from headgate.record.fields import WAITERS_LARGEST

_SAME: Final = (
    *LIMITER_KEY,
    "minute",
    "broker",
    "completeness",
    "from_ns",
    "to_ns",
    "covered_ns",
    "limit",
    "limit_period_ns",
    "limit_source",
    "offered",
    "granted",
    "waiting_ns",
)
"""Columns that are copied from the minute."""

_WAITERS: Final = tuple(
    (f"waiter_{place}", f"waiter_{place}_amount") for place in range(1, WAITERS_LARGEST + 1)
)
Minute = Mapping[str, Any]
"""One limiter's minute, with :data:`INTERVAL_COLUMNS` and :data:`SAMPLES`."""


def counted_ns(minute: Mapping[str, Any]) -> int:
    """The time over which the amounts of a minute were counted."""
    length_ns: int = minute["to_ns"] - minute["from_ns"]
    return length_ns if minute["gaps"] else min(minute["covered_ns"], length_ns)


def timeline_by_row(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each limiter and minute of some hours (numbers since the epoch)."""
    found: list[dict[str, Any]] = []
    for minute in table.to_pylist():
        hour = minute["from_ns"] // HOUR_NS
        if hour in hours:
            found.append({**hour_partition(hour), **_limiter_minute(minute)})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(THROTTLE_TIMELINE))


def _limiter_minute(minute: Minute) -> dict[str, Any]:
    """The row of one minute without its partition columns."""
    samples = _deduplicated(minute[SAMPLES] or ())
    waiters = _waiters(samples)
    limit, period_ns = minute["limit"], minute["limit_period_ns"] or NS_PER_S
    limit_per_s = limit * NS_PER_S / period_ns if limit else None
    granted = minute["granted"]
    base_ns = counted_ns(minute)
    allowed = None if limit_per_s is None else limit_per_s * base_ns / NS_PER_S
    use = granted / allowed if granted is not None and allowed else None
    waiting_ns = minute["waiting_ns"]
    waiting = min(1.0, waiting_ns / base_ns) if waiting_ns is not None and base_ns else None
    peaks = [sample["waiters_max"] for sample in samples if sample["waiters_max"] is not None]
    peak = max(peaks, default=minute["waiters_max"])
    held = None
    if minute["offered"] is not None and granted is not None:
        held = max(0, minute["offered"] - granted)
    facts = LimiterFacts(
        level=minute["level"] or "",
        dimension=minute["dimension"] or "",
        limit_text=_limit_text(minute["dimension"], limit, period_ns),
        source=minute["limit_source"] or "",
        granted=granted,
        held=held,
        use=use,
        waiting_share=waiting,
        waiters_max=peak,
        waiters=waiters,
    )
    named = [{"waiter": name, "granted": amount} for name, amount in waiters]
    return {
        **{name: minute[name] for name in _SAME},
        "counted_ns": base_ns,
        "limit_per_s": limit_per_s,
        "held": held,
        "waiting_share": waiting,
        "waiters_max": peak,
        "use": use,
        "waiters": json.dumps(named) if named else None,
        "sentence": limiter_sentence(facts),
    }


def _deduplicated(samples: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The samples without duplicates, which come from messages that were read twice."""
    return list({tuple(s[name] for name in EVENT_IDENTITY): s for s in samples}.values())


def _waiters(samples: Iterable[Mapping[str, Any]]) -> list[tuple[str, int | None]]:
    """Waiters with the amount that each was granted in all rows that name it, the largest first.

    The amount is None if no row has one.
    """
    granted: dict[str, int | None] = {}
    for sample in samples:
        for name, amount in _WAITERS:
            waiter, got = sample[name], sample[amount]
            if waiter is not None:
                before = granted.get(waiter)
                granted[waiter] = before if got is None else (before or 0) + got
    return sorted(granted.items(), key=lambda pair: (-(pair[1] or 0), pair[0]))


def _limit_text(dimension: str | None, limit: int | None, period_ns: int) -> str:
    if not limit or limit < 0:
        return ""
    if dimension == Dimension.BYTES.name.lower():
        return limit_text(RateLimit(None, limit, period_ns), Dimension.BYTES)
    return limit_text(RateLimit(limit, None, period_ns), Dimension.MESSAGES)
