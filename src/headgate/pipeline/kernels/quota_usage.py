"""Rows of ``quota_usage`` from the minutes of topics.

A row depends on its minute, and its forecast on the hour before.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_S, NS_PER_US
from headgate.pipeline.kernels.account_windows import longs
from headgate.pipeline.kernels.array_types import Doubles, Flags
from headgate.pipeline.kernels.column_values import (
    hour_rows,
    known,
    nullable,
    quotients,
    texts_by_code,
)
from headgate.pipeline.kernels.quota_forecast import (
    FORECAST_COLUMNS,
    METHODS,
    QuotaForecasts,
    row_forecasts,
)
from headgate.pipeline.kernels.quota_sentences import QuotaArrays, quota_sentences
from headgate.pipeline.tables.arrow_types import (
    TIMESTAMP,
    conform,
    partition_columns,
    table_arrow_schema,
)
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.quotas import EVICTION_FIELDS, NO_METHOD, QUOTA_USAGE
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

INPUT_COLUMNS: Final = tuple(
    dict.fromkeys(
        (
            *_SAME,
            *FORECAST_COLUMNS,
            *(f"quota_{name}" for name in _SET),
            "parked_backlog_quota_ns",
            "parked_backlog_quota_messages",
            "parked_backlog_quota_bytes",
        )
    )
)
"""Columns of ``intervals`` that the kernel needs."""

_NONE: Final = METHODS.index(NO_METHOD)


def quota_usage_table(table: pa.Table, hours: Collection[int]) -> pa.Table:
    """One row for each topic and minute of some hours (numbers since the epoch).

    A minute has a row if a quota was in force at its end, or acted in it. ``table`` has
    :data:`INPUT_COLUMNS` of these hours and of those before them, sorted by ``TOPIC_ORDER``.
    """
    schema = table_arrow_schema(QUOTA_USAGE)
    rows = np.flatnonzero(hour_rows(table, hours) & _has_row(table))
    if len(rows) == 0:
        return schema.empty_table()
    forecasts = row_forecasts(table, rows)
    minutes = table.select(INPUT_COLUMNS).take(pa.array(rows))
    passed_s = (longs(minutes, "to_ns") - forecasts.made_at_ns) / NS_PER_S
    quotas = [_quota(minutes, quota, forecasts.by_quota[quota], passed_s) for quota in QUOTA_TYPES]
    in_force = np.logical_or.reduce([quota.forecast.in_force for quota in quotas])
    made_at = pa.array(forecasts.made_at_ns // NS_PER_US, mask=~in_force)
    columns: dict[str, Any] = {
        **partition_columns(longs(minutes, "from_ns")),
        **{name: minutes.column(name) for name in _SAME},
        **{name: minutes.column(f"quota_{name}") for name in _SET},
        **{f"{quota.kind}_use": nullable(quota.use) for quota in quotas},
        **{f"{quota.kind}_use_max": nullable(quota.use_max) for quota in quotas},
        **_breach_columns(quotas, in_force),
        "forecast_at": made_at.cast(TIMESTAMP),
        "seconds_to_breach_broker": nullable(_broker_s(minutes, quotas)),
        "held_seconds": nullable(_seconds(minutes, "parked_backlog_quota_ns")),
        "parked_messages": minutes.column("parked_backlog_quota_messages"),
        "parked_bytes": minutes.column("parked_backlog_quota_bytes"),
        "sentence": pa.array(quota_sentences(minutes, quotas), pa.string()),
    }
    return conform(columns, schema, len(rows))


def _has_row(table: pa.Table) -> Flags:
    """Which minutes have a row."""
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    for kind, name in _LIMITS.items():
        mask |= known(table, f"quota_{kind}_{name}")
    for name in _ACTS:
        mask |= longs(table, name) > 0
    return mask


def _quota(
    minutes: pa.Table, kind: str, forecast: QuotaForecasts, passed_s: Doubles
) -> QuotaArrays:
    """One type of quota in each minute."""
    levels = ("backlog_bytes", "backlog_bytes_max")
    if kind == "time":
        levels = ("oldest_age_ns", "oldest_age_max_ns")
    limit = longs(minutes, f"quota_{kind}_{_LIMITS[kind]}")
    uses = []
    for name in levels:
        # A limit of 0 is legal and stops all producers: every backlog exceeds it.
        use = quotients(longs(minutes, name), np.maximum(limit, 1))
        there = (limit > 0) if kind == "time" else (limit > 0) & known(minutes, name)
        uses.append(np.where(there, use, np.nan))
    made = (forecast.earliest_s, forecast.likely_s, forecast.latest_s)
    left_s = [
        np.where(
            forecast.reached,
            seconds,
            np.maximum(seconds - passed_s, np.minimum(seconds, _LEFT_S_MIN)),
        )
        for seconds in made
    ]
    return QuotaArrays(kind, forecast, uses[0], uses[1], left_s[0], left_s[1], left_s[2])


def _breach_columns(quotas: list[QuotaArrays], in_force: Flags) -> dict[str, pa.Array]:
    """The columns of the quota that is reached first.

    At equal times it is the size quota.
    """
    size, time = quotas
    size_is, time_is = (quota.forecast.method != _NONE for quota in quotas)
    is_time = time_is & (~size_is | time.breaks_before(size))
    place = np.where(is_time, 1, np.where(size_is, 0, -1))
    method = np.where(is_time, time.forecast.method, size.forecast.method)
    method = np.where(place < 0, _NONE, method)

    def of_first(of_size: Doubles, of_time: Doubles) -> pa.Array:
        seconds = np.where(is_time, of_time, of_size)
        return nullable(np.where(place < 0, np.nan, seconds))

    return {
        "seconds_to_breach_earliest": of_first(size.left_earliest_s, time.left_earliest_s),
        "seconds_to_breach": of_first(size.left_likely_s, time.left_likely_s),
        "seconds_to_breach_latest": of_first(size.left_latest_s, time.left_latest_s),
        "breach_quota": texts_by_code(QUOTA_TYPES, place),
        "method": texts_by_code(METHODS, np.where(in_force, method, -1)),
    }


def _broker_s(minutes: pa.Table, quotas: list[QuotaArrays]) -> Doubles:
    """The broker's own seconds to the nearer breach; NaN if it gave none."""
    found = [
        np.where(
            quota.forecast.in_force, _seconds(minutes, f"quota_{quota.kind}_breach_ns"), np.nan
        )
        for quota in quotas
    ]
    return np.asarray(np.fmin(*found), dtype=np.float64)


def _seconds(minutes: pa.Table, name: str) -> Doubles:
    """A column of nanoseconds in seconds; null is NaN."""
    values = longs(minutes, name)
    return np.where(known(minutes, name), quotients(values, np.full_like(values, NS_PER_S)), np.nan)
