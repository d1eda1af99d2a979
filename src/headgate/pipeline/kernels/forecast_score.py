"""Accuracy of past quota forecasts, measured against what happened next.

There are two measures, because each alone can be gamed:

* *Time of the breach.* It alone would say nothing about forecasts without a breach. So a band also
  counts as wrong if its latest time passed without a breach.
* *Level 15 and 30 minutes later.* Every forecast has one. At the limit the broker stops producers
  or evicts messages, so there is nothing more to predict: once the limit is reached, the level
  counts as the limit, and the edges of the band end there.

A forecast whose limit changed before its outcome is not scored. All amounts are sums, so the scores
of topics add up.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.base.units import NS_PER_S
from headgate.flow.quota.backlog_quota import BREACH_S_MAX
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.breach import (
    EDGE_SHARES,
    SAMPLES_MIN,
    Band,
    Breach,
    approaches,
    breach,
)
from headgate.pipeline.kernels.column_values import doubles
from headgate.pipeline.kernels.level_windows import TopicMinutes
from headgate.pipeline.kernels.quota_forecast import (
    QuotaLevels,
    quota_levels,
    source_rows,
    topic_minutes,
)
from headgate.pipeline.tables.arrow_types import arrow_schema
from headgate.pipeline.tables.columns import DOUBLE, LONG, STRING, TableColumn
from headgate.pipeline.tables.intervals import TOPIC_COLUMNS, TOPIC_KEY
from headgate.record.fields import QUOTA_TYPES

LEVEL_MINUTES: Final = (15, 30)
"""Horizons at which levels are scored, in minutes."""

SOON_S: Final = 3_600.0
"""A breach within this time must not be missed; a forecast of one is an alarm."""

_SHARES: Final = (EDGE_SHARES[0], 0.5, EDGE_SHARES[1])


@dataclass(frozen=True, slots=True)
class Score:
    """Sums over forecasts, which may be added."""

    forecasts: int = 0
    """Forecasts from enough samples, for a limit that was not reached."""
    told: int = 0
    """Of these, those that predicted a breach: method theil_sen."""
    overtaken: int = 0
    """Of these, those whose limit changed before a breach."""
    breached: int = 0
    """Of these, those with a breach within a day."""
    resolved: int = 0
    """Of these, those with a breach, or whose latest time passed without one."""
    covered: int = 0
    """Of the resolved, those with a breach between the earliest and the latest time."""
    pinball_10_s: float = 0.0
    """Pinball loss of the earliest time, summed over the breached. [s]"""
    pinball_50_s: float = 0.0
    """The same of the likely time."""
    pinball_90_s: float = 0.0
    """The same of the latest time."""
    levels: int = 0
    """Known levels 15 or 30 minutes after a forecast, whether it predicted a breach or not."""
    levels_covered: int = 0
    """Of these, those between the band's edges."""
    level_pinball_10: float = 0.0
    """Pinball loss of the lower edge, in parts of the limit, summed over the levels."""
    level_pinball_50: float = 0.0
    """The same of the band's middle."""
    level_pinball_90: float = 0.0
    """The same of the upper edge."""
    soon: int = 0
    """Forecasts with a breach within an hour."""
    missed: int = 0
    """Of these, those that predicted no breach."""
    alarms: int = 0
    """Forecasts of a likely breach within an hour whose outcome is known two hours later."""
    false_alarms: int = 0
    """Of these, those without a breach within two hours."""

    def __add__(self, other: Score) -> Score:
        """The sum of both scores."""
        return Score(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Score)))

    @property
    def coverage(self) -> float | None:
        """Share of resolved forecasts with the breach inside the band, 0 to 1; None without any."""
        return _ratio(self.covered, self.resolved)

    @property
    def level_coverage(self) -> float | None:
        """Share of known levels inside the band, 0 to 1; None without any."""
        return _ratio(self.levels_covered, self.levels)

    def document(self) -> dict[str, Any]:
        """Counts, shares and mean losses by name."""
        counts = {f.name: getattr(self, f.name) for f in fields(Score) if "pinball" not in f.name}
        means = {
            f.name: _ratio(
                getattr(self, f.name), self.levels if "level" in f.name else self.breached
            )
            for f in fields(Score)
            if "pinball" in f.name
        }
        return {
            **counts,
            **means,
            "coverage": self.coverage,
            "level_coverage": self.level_coverage,
            "missed_share": _ratio(self.missed, self.soon),
            "false_alarm_share": _ratio(self.false_alarms, self.alarms),
        }


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


_TYPES: Final = {"int": LONG, "float": DOUBLE}

SCORE_COLUMNS: Final = (
    *TOPIC_COLUMNS,
    TableColumn("quota", STRING, "The quota that was forecast: size or time."),
    *(TableColumn(f.name, _TYPES[str(f.type)]) for f in fields(Score)),
)
"""Columns of :func:`score_table`."""


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Outcomes of some forecasts; parallel arrays."""

    breached: Flags
    """The limit was reached within a day and had not changed before."""
    overtaken: Flags
    before_s: Doubles
    """Last known time before the breach."""
    at_s: Doubles
    """Estimated time of the breach; infinite without one."""
    after_s: Doubles
    """First known time after the breach."""
    seen_s: Doubles
    """How long the outcome is known, under an unchanged limit."""


def score_table(table: pa.Table, since_ns: int, until_ns: int) -> pa.Table:
    """One row of :data:`SCORE_COLUMNS` for each topic and quota with forecasts in a range.

    A minute is in the range if it begins in ``[since_ns, until_ns)``. ``table`` has the columns of
    :mod:`headgate.pipeline.kernels.quota_forecast`, in the order given there. It has the minutes of
    the range, of the hour before, and of the time after in which outcomes may lie.
    """
    minutes = topic_minutes(table)
    from_ns = np.asarray(table.column("from_ns").to_numpy(), dtype=np.int64)
    in_range = (from_ns >= since_ns) & (from_ns < until_ns)
    levels = quota_levels(table, minutes)
    made = (source_rows(minutes, levels) == np.arange(len(minutes))) & in_range
    keys = table.select(list(TOPIC_KEY))
    found: list[dict[str, Any]] = []
    for quota in QUOTA_TYPES:
        level = levels[quota]
        rows = np.flatnonzero(
            made & level.in_force & ~level.reached & (level.samples >= SAMPLES_MIN)
        )
        acts = np.nan_to_num(doubles(table, f"eviction_{quota}_acts"))
        parts = _scores(minutes, level, rows, level.reached | (acts > 0))
        for topic in np.unique(minutes.topic[rows]):
            own = minutes.topic[rows] == topic
            key = keys.slice(int(rows[own.argmax()]), 1).to_pylist()[0]
            sums = {name: values[own].sum().item() for name, values in parts.items()}
            found.append({**key, "quota": quota, **sums})
    return pa.Table.from_pylist(found, schema=arrow_schema(SCORE_COLUMNS))


def _scores(
    minutes: TopicMinutes, level: QuotaLevels, rows: Longs, breaches: Flags
) -> dict[str, Any]:
    """The fields of :class:`Score` for each single forecast: (rows,) each."""
    bands = level.bands(minutes, rows)
    limits = level.limits[rows]
    forecast = breach(bands, limits)
    predicted = approaches(forecast, level.use(rows))
    outcomes = _outcomes(minutes, level, rows, breaches)
    soon = outcomes.breached & (outcomes.before_s < SOON_S)
    alarms = predicted & (forecast.likely_s <= SOON_S) & ~outcomes.overtaken
    no_breach = ~(outcomes.breached & (outcomes.at_s <= 2 * SOON_S))
    alarms &= ~no_breach | (outcomes.seen_s >= 2 * SOON_S)
    return {
        "forecasts": np.ones(len(rows), dtype=np.int64),
        "told": predicted,
        "overtaken": predicted & outcomes.overtaken,
        **_time_scores(forecast, outcomes, predicted),
        **_level_scores(minutes, level, rows, breaches, bands),
        "soon": soon,
        "missed": soon & ~predicted,
        "alarms": alarms,
        "false_alarms": alarms & no_breach,
    }


def _outcomes(minutes: TopicMinutes, level: QuotaLevels, rows: Longs, breaches: Flags) -> _Outcomes:
    last = _next(~np.append(minutes.follows()[1:], False))[rows]
    changed = np.append(~_same(level.limits[1:], level.limits[:-1]), False)
    changed[:-1] &= minutes.follows()[1:]
    # The last row of the topic with the same limit.
    end = np.minimum(_next(changed)[rows], last)
    following = _next(breaches)[np.minimum(rows + 1, len(minutes) - 1)]
    there = (following > rows) & (following <= end)
    row = np.where(there, following, rows)
    before = np.maximum(row - 1, rows)
    began_ns = minutes.to_ns[rows]
    before_s, after_s = ((minutes.to_ns[at] - began_ns) / NS_PER_S for at in (before, row))
    low, high, limit = level.values[before], level.values[row], level.limits[rows]
    crossed = (low < limit) & (high >= limit)
    rise = np.where(crossed, high - low, 1.0)
    part = np.where(crossed, (limit - low) / rise, 0.5)
    at_s = before_s + part * (after_s - before_s)
    there &= at_s <= BREACH_S_MAX
    overtaken = ~there & (end < last)
    seen_s = (minutes.to_ns[end] - began_ns) / NS_PER_S
    return _Outcomes(there, overtaken, before_s, np.where(there, at_s, np.inf), after_s, seen_s)


def _same(one: Doubles, other: Doubles) -> Flags:
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _next(flags: Flags) -> Longs:
    """For each row, the first row from it on that has the flag; the row count if none has."""
    rows = np.where(flags, np.arange(len(flags)), len(flags))
    return np.minimum.accumulate(rows[::-1])[::-1]


def _time_scores(forecast: Breach, outcomes: _Outcomes, predicted: Flags) -> dict[str, Any]:
    breached = predicted & outcomes.breached
    resolved = breached | (predicted & ~outcomes.overtaken & (forecast.latest_s < outcomes.seen_s))
    covered = breached & (forecast.earliest_s <= outcomes.after_s)
    covered &= forecast.latest_s >= outcomes.before_s
    # A forecast beyond a day predicted a day at least.
    times = [
        np.minimum(seconds, BREACH_S_MAX)
        for seconds in (forecast.earliest_s, forecast.likely_s, forecast.latest_s)
    ]
    at_s = np.where(breached, outcomes.at_s, 0.0)
    losses = [
        np.where(breached, pinball(at_s, time, share), 0.0)
        for time, share in zip(times, _SHARES, strict=True)
    ]
    names = ("pinball_10_s", "pinball_50_s", "pinball_90_s")
    return {
        "breached": breached,
        "resolved": resolved,
        "covered": covered,
        **dict(zip(names, losses, strict=True)),
    }


def _level_scores(
    minutes: TopicMinutes, level: QuotaLevels, rows: Longs, breaches: Flags, bands: Band
) -> dict[str, Any]:
    names = ("level_pinball_10", "level_pinball_50", "level_pinball_90")
    sums: dict[str, Any] = dict.fromkeys(("levels", "levels_covered", *names), 0.0)
    limit = level.limits[rows]
    line = minutes.topic * (int(np.ptp(minutes.minute)) + 1_000 if len(minutes) else 1)
    line = line + minutes.minute - minutes.minute.min(initial=0)
    changed = np.cumsum(~_same(level.limits, np.roll(level.limits, 1)))
    broken = np.cumsum(breaches)
    for ahead in LEVEL_MINUTES:
        row = np.minimum(np.searchsorted(line, line[rows] + ahead), len(line) - 1)
        known = (line[row] == line[rows] + ahead) & ~np.isnan(level.values[row])
        known &= changed[row] == changed[rows]
        outcomes = np.where(broken[row] > broken[rows], limit, np.minimum(level.values[row], limit))
        edges = [np.clip(edge, 0.0, limit) for edge in bands.at(ahead)]
        known &= ~np.isnan(edges[0] + edges[2])
        # Rounding may move an edge by its last digit.
        margin = limit * 1e-9
        inside = known & (edges[0] - margin <= outcomes) & (outcomes <= edges[2] + margin)
        sums["levels"] = sums["levels"] + known.astype(np.int64)
        sums["levels_covered"] = sums["levels_covered"] + inside.astype(np.int64)
        for name, edge, share in zip(names, edges, _SHARES, strict=True):
            loss = np.where(known, pinball(outcomes, edge, share) / limit, 0.0)
            sums[name] = sums[name] + loss
    return sums


def pinball(outcomes: Doubles, predicted: Doubles, share: float) -> Doubles:
    """The pinball loss of a predicted quantile.

    It is ``share`` times the error if the prediction is too low, 1 - ``share`` times if it is too
    high. Its mean is least if ``share`` of all outcomes lie below the prediction.
    """
    return np.maximum(share * (outcomes - predicted), (share - 1.0) * (outcomes - predicted))
