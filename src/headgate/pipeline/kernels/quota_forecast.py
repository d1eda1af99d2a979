"""Forecasts of when topics reach their backlog quotas.

The kernel makes a forecast in the first row of every five minutes, and the following rows carry it.
Its seconds count from :attr:`RowForecasts.made_at_ns`. A new one is made at once if the limits
change, if the level was cleared, or if a limit is reached or has room again. A limit counts as
reached in every minute in which its quota acts, because eviction and parking keep the level just
below it. With fewer than ten samples, each row has the broker's own figure instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.quota.backlog_quota import EVICTION_PERCENT
from headgate.pipeline.kernels.account_windows import longs
from headgate.pipeline.kernels.array_types import Codes, Doubles, Flags, Longs
from headgate.pipeline.kernels.breach import SAMPLES_MIN, Band, approaches, band, breach
from headgate.pipeline.kernels.column_values import doubles
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


METHODS: Final = (NO_METHOD, THEIL_SEN_METHOD, BROKER_METHOD)
"""Methods of forecasts by code."""

_NONE, _THEIL_SEN, _BROKER = range(len(METHODS))


@dataclass(frozen=True, slots=True)
class QuotaForecasts:
    """Forecast breaches of one type of quota by row, in seconds since the forecast was made.

    Rows without such a quota have method ``none``. NaN stands for unknown seconds.
    """

    in_force: Flags
    earliest_s: Doubles
    """NaN if the forecast has no band, or predicts no breach."""
    likely_s: Doubles
    """NaN if none is likely."""
    latest_s: Doubles
    """NaN if it is too far away."""
    method: Codes
    """Place in :data:`METHODS`."""
    reached: Flags
    """The limit is reached, or was and has no room yet, or its quota acted in this minute.

    All seconds then are 0.
    """
    stopped: Flags
    """The limit is reached, or has no room yet, at the minute's end."""


@dataclass(frozen=True, slots=True)
class RowForecasts:
    """The forecasts of some rows, by type of quota."""

    made_at_ns: Longs
    by_quota: dict[str, QuotaForecasts]


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

    def use(self, rows: Longs) -> Doubles:
        """The levels of some rows as parts of their limits; NaN for a limit of 0."""
        limits = self.limits[rows]
        return self.values[rows] / np.where(limits > 0, limits, np.nan)

    def bands(self, minutes: TopicMinutes, rows: Longs) -> Band:
        """The forecast bands of the level from some rows on."""
        times_s, values = trailing_windows(minutes, self.values, rows, self.starts)
        return band(times_s, values, pace_max=self.pace_max)


def topic_minutes(table: pa.Table) -> TopicMinutes:
    """The minutes of a table with :data:`FORECAST_COLUMNS`, sorted by :data:`TOPIC_ORDER`."""
    breaks = [np.nan_to_num(doubles(table, name)) > 0 for name in _BREAK_COLUMNS]
    return TopicMinutes(
        np.cumsum(changes(table, TOPIC_KEY)),
        longs(table, "from_ns") // MINUTE_NS,
        longs(table, "to_ns"),
        np.logical_or.reduce(breaks),
    )


def quota_levels(table: pa.Table, minutes: TopicMinutes) -> dict[str, QuotaLevels]:
    """Levels and limits by type of quota."""
    backlog, limit = doubles(table, "backlog_bytes"), doubles(table, "quota_size_limit_bytes")
    ages, limit_ns = doubles(table, "oldest_age_ns"), doubles(table, "quota_time_limit_ns")
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
    evicted = np.nan_to_num(doubles(table, f"eviction_{quota}_acts")) > 0
    held = np.nan_to_num(doubles(table, "parked_backlog_quota_ns")) >= HELD_NS_MIN
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
    broker_s = doubles(table, f"quota_{quota}_breach_ns") / NS_PER_S
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


def row_forecasts(table: pa.Table, rows: Longs) -> RowForecasts:
    """The forecasts of some rows of a table.

    ``table`` has :data:`FORECAST_COLUMNS`, is sorted by :data:`TOPIC_ORDER`, and reaches back an
    hour before the first of the rows.
    """
    minutes = topic_minutes(table)
    levels = quota_levels(table, minutes)
    source = source_rows(minutes, levels)[rows]
    return RowForecasts(
        minutes.to_ns[source],
        {quota: _forecasts(minutes, levels[quota], source) for quota in QUOTA_TYPES},
    )


def _forecasts(minutes: TopicMinutes, level: QuotaLevels, rows: Longs) -> QuotaForecasts:
    """The forecasts of one type of quota that are made in some rows."""
    in_force, reached = level.in_force[rows], level.reached[rows]
    sampled = level.samples[rows] >= SAMPLES_MIN
    seconds = breach_of_rows(minutes, level, rows)
    broker_s = np.where(sampled | ~in_force, np.nan, level.broker_s[rows])
    predicted = ~np.isnan(seconds).all(axis=0)
    by_broker = ~predicted & ~np.isnan(broker_s)
    seconds[1] = np.where(by_broker, broker_s, seconds[1])
    method = np.where(predicted, _THEIL_SEN, np.where(by_broker, _BROKER, _NONE))
    method = np.where(reached, np.where(sampled, _THEIL_SEN, _BROKER), method)
    earliest_s, likely_s, latest_s = np.where(
        reached, 0.0, np.where(seconds < inf, seconds, np.nan)
    )
    return QuotaForecasts(
        in_force,
        earliest_s,
        likely_s,
        latest_s,
        np.where(in_force, method, _NONE).astype(np.int8),
        in_force & reached,
        in_force & reached & level.stopped[rows],
    )


def breach_of_rows(minutes: TopicMinutes, level: QuotaLevels, rows: Longs) -> Doubles:
    """By row, the earliest, likely and latest seconds to the breach, [3, n].

    They are infinite if not within a day, and NaN without a predicted breach: also if a row has too
    few samples, or its limit is reached.
    """
    due, place = np.unique(rows, return_inverse=True)
    seconds = np.full((3, len(due)), np.nan)
    is_open = level.in_force[due] & ~level.reached[due] & (level.samples[due] >= SAMPLES_MIN)
    if is_open.any():
        due = due[is_open]
        found = breach(level.bands(minutes, due), level.limits[due])
        predicted = approaches(found, level.use(due))
        told = np.stack([found.earliest_s, found.likely_s, found.latest_s])
        seconds[:, is_open] = np.where(predicted, told, np.nan)
    return np.asarray(seconds[:, place], dtype=np.float64)
