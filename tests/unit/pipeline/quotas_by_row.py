"""Rows of ``quota_usage`` one by one: what the kernel over arrays must equal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.texts import number, size_text, time_text
from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.flow.sentences.quota import BreachForecast, quota_sentence
from headgate.pipeline.kernels.array_types import Longs
from headgate.pipeline.kernels.breach import SAMPLES_MIN, Breach, approaches, breach
from headgate.pipeline.kernels.level_windows import TopicMinutes
from headgate.pipeline.kernels.quota_forecast import (
    HELD_NS_MIN,
    QuotaLevels,
    quota_levels,
    source_rows,
    topic_minutes,
)
from headgate.pipeline.tables.arrow_types import TIMESTAMP, table_arrow_schema
from headgate.pipeline.tables.columns import HOUR_NS, hour_partition
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.quotas import (
    BROKER_METHOD,
    EVICTION_FIELDS,
    NO_METHOD,
    QUOTA_USAGE,
    THEIL_SEN_METHOD,
)
from headgate.record.fields import QUOTA_TYPES

_SAME: Final = (
    *TOPIC_KEY,
    "minute",
    "broker",
    "completeness",
    "to_ns",
    "backlog_bytes",
    "backlog_bytes_max",
    "oldest_age_ns",
    "oldest_age_max_ns",
    "oldest_subscription",
    *EVICTION_FIELDS,
)
"""Columns that are copied from the minute."""

_LIMITS: Final = {"size": "limit_bytes", "time": "limit_ns"}
_SET: Final = tuple(
    f"{quota}_{part}" for quota in QUOTA_TYPES for part in (_LIMITS[quota], "policy", "source")
)
"""Columns of the row whose names in the record begin with ``quota_``."""

_ACTS: Final = ("eviction_size_acts", "eviction_time_acts", "parked_backlog_quota_ns")

_LEFT_S_MIN: Final = 0.5
"""Least time to a breach that is overdue: a quota counts as reached only when it is."""

Minute = Mapping[str, Any]
"""One row of ``intervals`` of kind topic."""


@dataclass(frozen=True, slots=True)
class QuotaForecast:
    """Forecast breach of one quota, in seconds since the forecast was made."""

    earliest_s: float | None
    """None if the forecast has no band, or predicts no breach."""
    likely_s: float | None
    latest_s: float | None
    method: str
    reached: bool
    """The limit is reached, or was and has no room yet, or its quota acted in this minute.

    All seconds then are 0.
    """
    stopped: bool
    """The limit is reached, or has no room yet, at the minute's end."""


@dataclass(frozen=True, slots=True)
class RowForecast:
    """The forecasts of the quotas in force in one row, by type."""

    made_at_ns: int
    by_quota: dict[str, QuotaForecast]


@dataclass(frozen=True, slots=True)
class _Quota:
    """One quota in force at a minute's end."""

    kind: Literal["size", "time"]
    limit_text: str
    use: float | None
    """None if the limit is 0 or the backlog is unknown."""
    use_max: float | None
    forecast: QuotaForecast
    passed_s: float
    """Seconds from the forecast to the minute's end."""

    @property
    def order(self) -> tuple[float, float]:
        """Sort key that puts the earliest breach first."""
        seconds = (self.forecast.likely_s, self.forecast.earliest_s)
        likely, earliest = (inf if s is None else s for s in seconds)
        return likely, earliest

    @property
    def left_s(self) -> BreachForecast:
        """The forecast as of the minute's end."""
        made = self.forecast
        return BreachForecast(*map(self._left_s, (made.earliest_s, made.likely_s, made.latest_s)))

    def _left_s(self, seconds: float | None) -> float | None:
        if seconds is None or self.forecast.reached:
            return seconds
        return max(seconds - self.passed_s, min(seconds, _LEFT_S_MIN))


def quota_usage_by_row(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each topic and minute of some hours (numbers since the epoch).

    A minute has a row if a quota was in force at its end, or acted in it. ``table`` has
    :data:`INPUT_COLUMNS` of these hours and of those before them, sorted by ``TOPIC_ORDER``.
    """
    hour_of_row = pc.divide(table.column("from_ns"), HOUR_NS)
    wanted = pc.is_in(hour_of_row, pa.array(sorted(hours), pa.int64()))
    rows = np.flatnonzero(pc.and_(wanted, _has_row(table)).to_numpy())
    found: list[dict[str, Any]] = []
    forecasts = row_forecasts(table, rows)
    for minute, forecast in zip(table.take(pa.array(rows)).to_pylist(), forecasts, strict=True):
        hour = minute["from_ns"] // HOUR_NS
        found.append({**hour_partition(hour), **_quota_usage(minute, forecast)})
    return pa.Table.from_pylist(found, schema=table_arrow_schema(QUOTA_USAGE))


def _has_row(table: pa.Table) -> pa.ChunkedArray:
    """Which minutes have a row; vectorised, because most topics have no quota."""
    limits = [table.column(f"quota_{kind}_{name}") for kind, name in _LIMITS.items()]
    mask = pc.or_(*map(pc.is_valid, limits))
    for name in _ACTS:
        mask = pc.or_(mask, pc.greater(pc.fill_null(table.column(name), 0), 0))
    return mask


def _quota_usage(minute: Minute, forecast: RowForecast) -> dict[str, Any]:
    """The row of one minute without its partition columns.

    ``minute`` has :data:`INPUT_COLUMNS`.
    """
    passed_s = (minute["to_ns"] - forecast.made_at_ns) / NS_PER_S
    quotas = [
        _quota(minute, kind, forecast.by_quota[kind], passed_s)
        for kind in ("size", "time")
        if kind in forecast.by_quota
    ]
    approached = [quota for quota in quotas if quota.forecast.method != NO_METHOD]
    # At equal times the size quota comes first.
    nearest = min(approached, key=lambda quota: quota.order, default=None)
    left_s = BreachForecast(None, None, None) if nearest is None else nearest.left_s
    none = NO_METHOD if quotas else None
    held_ns = minute["parked_backlog_quota_ns"]
    return {
        **{name: minute[name] for name in _SAME},
        **{name: minute[f"quota_{name}"] for name in _SET},
        **{f"{quota.kind}_use": quota.use for quota in quotas},
        **{f"{quota.kind}_use_max": quota.use_max for quota in quotas},
        "seconds_to_breach_earliest": left_s.earliest_s,
        "seconds_to_breach": left_s.likely_s,
        "seconds_to_breach_latest": left_s.latest_s,
        "breach_quota": None if nearest is None else nearest.kind,
        "method": none if nearest is None else nearest.forecast.method,
        "forecast_at": pa.scalar(forecast.made_at_ns // NS_PER_US, TIMESTAMP) if quotas else None,
        "seconds_to_breach_broker": _broker_s(minute, quotas),
        "held_seconds": None if held_ns is None else held_ns / NS_PER_S,
        "parked_messages": minute["parked_backlog_quota_messages"],
        "parked_bytes": minute["parked_backlog_quota_bytes"],
        "sentence": "; ".join((*_state(minute, quotas), *_acts(minute))) or None,
    }


def _quota(
    minute: Minute, kind: Literal["size", "time"], forecast: QuotaForecast, passed_s: float
) -> _Quota:
    limit = minute[f"quota_{kind}_{_LIMITS[kind]}"]
    if kind == "size":
        taken, most = minute["backlog_bytes"], minute["backlog_bytes_max"]
        text = size_text(limit)
    else:
        taken, most = minute["oldest_age_ns"] or 0, minute["oldest_age_max_ns"] or 0
        text = time_text(limit / NS_PER_S)
    return _Quota(kind, text, _use(taken, limit), _use(most, limit), forecast, passed_s)


def _use(taken: int | None, limit: int) -> float | None:
    # A limit of 0 is legal and stops all producers: every backlog exceeds it.
    return taken / limit if limit > 0 and taken is not None else None


def _broker_s(minute: Minute, quotas: Sequence[_Quota]) -> float | None:
    known = [_seconds(minute[f"quota_{quota.kind}_breach_ns"]) for quota in quotas]
    return min((seconds for seconds in known if seconds is not None), default=None)


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / NS_PER_S


def _state(minute: Minute, quotas: Sequence[_Quota]) -> list[str]:
    """The state of the most urgent quota at the minute's end, in words."""
    if not quotas:
        return ["no backlog quota is in force at the end of this minute"]
    known = [quota for quota in quotas if quota.forecast.reached or quota.use is not None]
    if not known:
        return []
    urgent = min(known, key=lambda q: (not q.forecast.reached, *q.order, -(q.use or 0.0)))
    return [
        quota_sentence(
            use=urgent.use or 0.0,
            limit_text=urgent.limit_text,
            source=minute[f"quota_{urgent.kind}_source"] or "",
            kind=urgent.kind,
            policy=minute[f"quota_{urgent.kind}_policy"] or "",
            subscription=minute["oldest_subscription"],
            oldest_age_s=_seconds(minute["oldest_age_ns"]),
            seconds_to_breach=urgent.left_s.likely_s,
            # The broker's own forecast has no band, and without a breach there is none.
            forecast=urgent.left_s if urgent.forecast.method == THEIL_SEN_METHOD else None,
            exceeded=urgent.forecast.stopped,
            reached="in this minute" if urgent.forecast.reached else "",
        )
    ]


def _acts(minute: Minute) -> list[str]:
    """What quotas did in the minute, in words."""
    parts = []
    held_ns = minute["parked_backlog_quota_ns"] or 0
    if held_ns >= HELD_NS_MIN:
        parts.append(f"sent messages were held for {number(held_ns / NS_PER_S)} s of this minute")
    lost = sum(minute[f"eviction_{quota}_messages"] or 0 for quota in QUOTA_TYPES)
    if any(minute[f"eviction_{quota}_acts"] for quota in QUOTA_TYPES):
        lost_bytes = sum(minute[f"eviction_{quota}_bytes"] or 0 for quota in QUOTA_TYPES)
        messages = "1 message" if lost == 1 else f"{lost:,} messages"
        parts.append(f"evictions took {messages} ({size_text(lost_bytes)}) in this minute")
    return parts


def row_forecasts(table: pa.Table, rows: Longs) -> list[RowForecast]:
    """The forecasts of some rows of a table.

    ``table`` has :data:`FORECAST_COLUMNS`, is sorted by :data:`TOPIC_ORDER`, and reaches back an
    hour before the first of the rows.
    """
    minutes = topic_minutes(table)
    levels = quota_levels(table, minutes)
    source = source_rows(minutes, levels)[rows]
    found = [RowForecast(int(minutes.to_ns[row]), {}) for row in source]
    for quota in QUOTA_TYPES:
        level = levels[quota]
        breaches = breach_of_rows(minutes, level, source)
        for place in np.flatnonzero(level.in_force[source]):
            row = source[place]
            found[place].by_quota[quota] = _forecast(level, int(row), breaches.get(int(row)))
    return found


Seconds = tuple[float, float, float]
"""Earliest, likely and latest; infinite if not within a day."""


def breach_of_rows(
    minutes: TopicMinutes, level: QuotaLevels, rows: Longs
) -> dict[int, Seconds | None]:
    """By row, when the limit is reached; None if no breach is predicted.

    Rows with too few samples, or with a limit that is reached, are left out.
    """
    due = np.unique(rows)
    due = due[level.in_force[due] & ~level.reached[due] & (level.samples[due] >= SAMPLES_MIN)]
    if len(due) == 0:
        return {}
    found = breach(level.bands(minutes, due), level.limits[due])
    with np.errstate(invalid="ignore"):  # 0 of a limit of 0 is no use
        predicted = approaches(found, level.values[due] / level.limits[due])
    return {
        int(row): _at(found, place) if predicted[place] else None for place, row in enumerate(due)
    }


def _at(found: Breach, place: int) -> Seconds:
    return (
        float(found.earliest_s[place]),
        float(found.likely_s[place]),
        float(found.latest_s[place]),
    )


def _forecast(level: QuotaLevels, row: int, seconds: Seconds | None) -> QuotaForecast:
    """The forecast of one quota in force."""
    sampled = level.samples[row] >= SAMPLES_MIN
    if level.reached[row]:
        method = THEIL_SEN_METHOD if sampled else BROKER_METHOD
        return QuotaForecast(0.0, 0.0, 0.0, method, True, bool(level.stopped[row]))
    if seconds is not None:
        earliest, likely, latest = (None if s == inf else s for s in seconds)
        return QuotaForecast(earliest, likely, latest, THEIL_SEN_METHOD, False, False)
    broker_s: Any = level.broker_s[row]
    if sampled or np.isnan(broker_s):
        return QuotaForecast(None, None, None, NO_METHOD, False, False)
    return QuotaForecast(None, float(broker_s), None, BROKER_METHOD, False, False)
