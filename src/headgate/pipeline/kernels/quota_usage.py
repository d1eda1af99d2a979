"""How full backlog quotas are: minutes of topics in Arrow, rows of ``quota_usage`` out.

Each row follows from one minute alone, so the input needs no order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.quota import age_exceeded, size_exceeded
from headgate.flow.quota_sentence import quota_sentence, size_text, time_text
from headgate.flow.sentence import number
from headgate.pipeline.tables.arrow_types import table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.quotas import EVICTION_FIELDS, QUOTA_USAGE
from headgate.record.fields import QUOTA_TYPES

BROKER_METHOD: Final = "broker"
"""The broker itself told the time to the breach, from the rate that it smooths."""

_SAME: Final = (
    *TOPIC_KEY,
    "minute",
    "broker",
    "completeness",
    "backlog_bytes",
    "oldest_age_ns",
    "oldest_age_max_ns",
    "oldest_subscription",
    *EVICTION_FIELDS,
)
"""Columns that the row has from the minute as they are."""

_LIMITS: Final = {"size": "limit_bytes", "time": "limit_ns"}
_SET: Final = tuple(
    f"{quota}_{part}" for quota in QUOTA_TYPES for part in (_LIMITS[quota], "policy", "source")
)
"""Columns of the row that in the record are ``quota_*``."""

_ACTS: Final = ("eviction_size_acts", "eviction_time_acts", "parked_backlog_quota_ns")

_HELD_SHOWN_MIN_S: Final = 0.05
"""A shorter hold reads as none. One that evicts has many: sends wait for the eviction itself."""

INPUT_COLUMNS: Final = (
    *_SAME,
    "from_ns",
    *(f"quota_{name}" for name in _SET),
    *(f"quota_{quota}_breach_ns" for quota in QUOTA_TYPES),
    "parked_backlog_quota_ns",
    "parked_backlog_quota_messages",
    "parked_backlog_quota_bytes",
)
"""Columns of ``intervals`` that are needed."""

Minute = Mapping[str, Any]
"""One row of ``intervals`` of kind topic."""


@dataclass(frozen=True, slots=True)
class _Quota:
    """One quota in force at a minute's end."""

    kind: Literal["size", "time"]
    limit_text: str
    use: float | None
    """None where there is nothing to divide by, or the backlog is not known."""
    exceeded: bool
    seconds_to_breach: float | None


def quota_usage_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each topic and minute of the wanted hours (numbers since the epoch) in which a
    quota was in force at the end, or acted; other minutes have none."""
    found: list[dict[str, Any]] = []
    for minute in table.filter(_concerned(table)).to_pylist():
        hour = minute["from_ns"] // HOUR_NS
        if hour in hours:
            start = datetime.fromtimestamp(hour * 3_600, UTC)
            found.append({"date": start.date(), "hour": start.hour, **quota_usage(minute)})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(QUOTA_USAGE))


def _concerned(table: pa.Table) -> pa.ChunkedArray:
    """Which minutes have a row. Most topics have no quota, so this is no loop over them."""
    limits = [table.column(f"quota_{kind}_{name}") for kind, name in _LIMITS.items()]
    mask = pc.or_(*map(pc.is_valid, limits))
    for name in _ACTS:
        mask = pc.or_(mask, pc.greater(pc.fill_null(table.column(name), 0), 0))
    return mask


def quota_usage(minute: Minute) -> dict[str, Any]:
    """The row of one minute, but for the columns of its partition.

    ``minute`` has :data:`INPUT_COLUMNS`.
    """
    quotas = [quota for quota in (_size(minute), _time(minute)) if quota is not None]
    nearest = _nearest(quotas)
    held_ns = minute["parked_backlog_quota_ns"]
    return {
        **{name: minute[name] for name in _SAME},
        **{name: minute[f"quota_{name}"] for name in _SET},
        **{f"{quota.kind}_use": quota.use for quota in quotas},
        "seconds_to_breach": None if nearest is None else nearest.seconds_to_breach,
        "breach_quota": None if nearest is None else nearest.kind,
        "method": None if nearest is None else BROKER_METHOD,
        "held_seconds": None if held_ns is None else held_ns / NS_PER_S,
        "parked_messages": minute["parked_backlog_quota_messages"],
        "parked_bytes": minute["parked_backlog_quota_bytes"],
        "sentence": "; ".join((*_state(minute, quotas), *_acts(minute))) or None,
    }


def _size(minute: Minute) -> _Quota | None:
    limit, backlog = minute["quota_size_limit_bytes"], minute["backlog_bytes"]
    if limit is None:
        return None
    return _Quota(
        "size",
        size_text(limit),
        # A limit of 0 is a legal way to stop everybody: every backlog is over it.
        backlog / limit if limit > 0 and backlog is not None else None,
        backlog is not None and size_exceeded(backlog, limit),
        _seconds(minute["quota_size_breach_ns"]),
    )


def _time(minute: Minute) -> _Quota | None:
    limit_ns, age_ns = minute["quota_time_limit_ns"], minute["oldest_age_ns"]
    if limit_ns is None:
        return None
    age_ms = -1 if age_ns is None else age_ns // NS_PER_MS
    return _Quota(
        "time",
        time_text(limit_ns / NS_PER_S),
        (age_ns or 0) / limit_ns if limit_ns > 0 else None,
        age_exceeded(age_ms, limit_ns // NS_PER_MS),
        _seconds(minute["quota_time_breach_ns"]),
    )


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / NS_PER_S


def _until_breach(quota: _Quota) -> float:
    return inf if quota.seconds_to_breach is None else quota.seconds_to_breach


def _nearest(quotas: Sequence[_Quota]) -> _Quota | None:
    """The quota that is reached first, of two at once the size's; None if none is approached."""
    nearest = min(quotas, key=_until_breach, default=None)
    return None if nearest is None or nearest.seconds_to_breach is None else nearest


def _state(minute: Minute, quotas: Sequence[_Quota]) -> list[str]:
    """How the more pressing of the quotas stands at the minute's end."""
    if not quotas:
        return ["no backlog quota is in force at the end of this minute"]
    known = [quota for quota in quotas if quota.exceeded or quota.use is not None]
    if not known:
        return []
    told = min(known, key=lambda q: (not q.exceeded, _until_breach(q), -(q.use or 0.0)))
    return [
        quota_sentence(
            use=told.use or 0.0,
            limit_text=told.limit_text,
            source=minute[f"quota_{told.kind}_source"] or "",
            kind=told.kind,
            policy=minute[f"quota_{told.kind}_policy"] or "",
            subscription=minute["oldest_subscription"],
            oldest_age_s=_seconds(minute["oldest_age_ns"]),
            seconds_to_breach=told.seconds_to_breach,
            exceeded=told.exceeded,
        )
    ]


def _acts(minute: Minute) -> list[str]:
    """What quotas did in the minute."""
    said = []
    held_s = (minute["parked_backlog_quota_ns"] or 0) / NS_PER_S
    if held_s >= _HELD_SHOWN_MIN_S:
        said.append(f"sent messages were held for {number(held_s)} s of this minute")
    lost = sum(minute[f"eviction_{quota}_messages"] or 0 for quota in QUOTA_TYPES)
    if any(minute[f"eviction_{quota}_acts"] for quota in QUOTA_TYPES):
        lost_bytes = sum(minute[f"eviction_{quota}_bytes"] or 0 for quota in QUOTA_TYPES)
        messages = "1 message" if lost == 1 else f"{lost:,} messages"
        said.append(f"evictions took {messages} ({size_text(lost_bytes)}) in this minute")
    return said
