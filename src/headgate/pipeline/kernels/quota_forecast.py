"""Forecasts of when topics reach their backlog quotas.

The kernel makes a forecast in the first row of every five minutes, and the following rows carry it.
Its seconds count from :attr:`RowForecast.made_at_ns`. A new one is made at once if the limits
change, if the level was cleared, or if a limit is reached or has room again. A limit counts as
reached in every minute in which its quota acts, because eviction and parking keep the level just
below it. With fewer than ten samples, each row has the broker's own figure instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.quota.backlog_quota import EVICTION_PERCENT
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.breach import SAMPLES_MIN, Band, Breach, approaches, band, breach
from headgate.pipeline.kernels.level_windows import (
    TopicMinutes,
    sample_counts,
    trailing_windows,
    window_starts,
)
from headgate.pipeline.tables.arrow_types import changes
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.tables.intervals import TOPIC_KEY
from headgate.pipeline.tables.quotas import BROKER_METHOD, NO_METHOD, THEIL_SEN_METHOD
from headgate.record.fields import QUOTA_TYPES

FORECAST_MINUTES: Final = 5
"""Forecasts are made at UTC minutes that are multiples of this. It divides an hour, so no hour
carries a forecast of the previous one."""

HELD_NS_MIN: Final = 50 * NS_PER_MS
"""Shortest parking in a minute that counts: an eviction parks SENDs for a moment, too."""

AT_LIMIT_SHARE: Final = EVICTION_PERCENT / 100
"""A quota that parked in a minute, and is this full at its end, still does."""

_BREAK_COLUMNS: Final = ("restarts", "eviction_size_acts", "eviction_time_acts")

FORECAST_COLUMNS: Final = (
    *TOPIC_KEY,
    "from_ns",
    "to_ns",
    *_BREAK_COLUMNS,
    "backlog_bytes",
    "oldest_age_ns",
    "parked_backlog_quota_ns",
    "quota_size_limit_bytes",
    "quota_size_breach_ns",
    "quota_time_limit_ns",
    "quota_time_breach_ns",
)
"""Columns of ``intervals`` that the kernel needs."""


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
class QuotaLevels:
    """Levels and limits of one type of quota, by row; parallel arrays."""

    values: Doubles
    """Bytes of backlog, or seconds of age; NaN if unknown."""
    limits: Doubles
    """In the same unit; NaN if no quota is in force."""
    broker_s: Doubles
    """The broker's own seconds to the breach; NaN if it gave none."""
    stopped: Flags
    """The limit is reached, or was and has no room yet."""
    reached: Flags
    """``stopped``, or the quota acted in the minute."""
    starts: Longs
    samples: Longs
    pace_max: float

    @property
    def in_force(self) -> Flags:
        """Which rows have a quota of this type."""
        return ~np.isnan(self.limits)

    def bands(self, minutes: TopicMinutes, rows: Longs) -> Band:
        """The forecast bands of the level from some rows on."""
        times_s, values = trailing_windows(minutes, self.values, rows, self.starts)
        return band(times_s, values, pace_max=self.pace_max)


def topic_minutes(table: pa.Table) -> TopicMinutes:
    """The minutes of a table with :data:`FORECAST_COLUMNS`, sorted by :data:`TOPIC_ORDER`."""
    breaks = [np.nan_to_num(_doubles(table, name)) > 0 for name in _BREAK_COLUMNS]
    return TopicMinutes(
        np.cumsum(changes(table, TOPIC_KEY)),
        _longs(table, "from_ns") // MINUTE_NS,
        _longs(table, "to_ns"),
        np.logical_or.reduce(breaks),
    )


def quota_levels(table: pa.Table, minutes: TopicMinutes) -> dict[str, QuotaLevels]:
    """Levels and limits by type of quota."""
    backlog, limit = _doubles(table, "backlog_bytes"), _doubles(table, "quota_size_limit_bytes")
    ages, limit_ns = _doubles(table, "oldest_age_ns"), _doubles(table, "quota_time_limit_ns")
    # To the millisecond, as the broker compares them.
    too_old = ages // NS_PER_MS >= limit_ns // NS_PER_MS
    # Without a backlog the age is null; it counts as 0.
    seconds = np.nan_to_num(ages) / NS_PER_S
    return {
        "size": _levels(table, minutes, "size", backlog, limit, backlog >= limit, inf),
        "time": _levels(table, minutes, "time", seconds, limit_ns / NS_PER_S, too_old, 1.0),
    }


def _acted(table: pa.Table, quota: str, values: Doubles, limits: Doubles) -> Flags:
    """In which minutes a quota evicted, or parked and still does."""
    evicted = np.nan_to_num(_doubles(table, f"eviction_{quota}_acts")) > 0
    held = np.nan_to_num(_doubles(table, "parked_backlog_quota_ns")) >= HELD_NS_MIN
    return np.asarray(evicted | (held & (values >= AT_LIMIT_SHARE * limits)))


def _levels(
    table: pa.Table,
    minutes: TopicMinutes,
    quota: str,
    values: Doubles,
    limits: Doubles,
    over: Flags,
    pace_max: float,
) -> QuotaLevels:
    broker_s = _doubles(table, f"quota_{quota}_breach_ns") / NS_PER_S
    # The broker also reports 0 while a quota that was reached still stops producers.
    stopped = over | (~np.isnan(limits) & (broker_s == 0.0))
    acted = ~np.isnan(limits) & _acted(table, quota, values, limits)
    starts = window_starts(minutes, values)
    return QuotaLevels(
        values,
        limits,
        np.where(np.isnan(limits), np.nan, broker_s),
        stopped,
        stopped | acted,
        starts,
        sample_counts(values, starts),
        pace_max,
    )


def _doubles(table: pa.Table, name: str) -> Doubles:
    column = table.column(name).cast(pa.float64(), safe=False)
    return np.asarray(pc.fill_null(column, np.nan).to_numpy(), dtype=np.float64)


def _longs(table: pa.Table, name: str) -> Longs:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)


def source_rows(minutes: TopicMinutes, levels: dict[str, QuotaLevels]) -> Longs:
    """The row whose forecast each row carries: itself, or an earlier one of the same five minutes.

    A row without a quota in force is its own source.
    """
    rows = np.arange(len(minutes))
    made = ~minutes.follows() | minutes.breaks
    slot = minutes.minute // FORECAST_MINUTES
    made[1:] |= slot[1:] != slot[:-1]
    none_in_force = np.ones(len(minutes), dtype=np.bool_)
    for level in levels.values():
        none_in_force &= ~level.in_force
        # The next minute must not carry the forecast of such a row.
        fleeting = level.reached | (level.in_force & (level.samples < SAMPLES_MIN))
        made |= fleeting | (level.starts == rows)
        before, now = level.limits[:-1], level.limits[1:]
        made[1:] |= fleeting[:-1] | ((now != before) & ~(np.isnan(now) & np.isnan(before)))
    return np.maximum.accumulate(np.where(made | none_in_force, rows, 0))


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
