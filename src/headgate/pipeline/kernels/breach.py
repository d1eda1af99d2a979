"""Forecast of when a level reaches its limit, as a band around an extrapolated line.

The middle of the band continues from the last level at a constant pace. The pace is the mean of two
Theil-Sen slopes: that of the whole window and that of its last 20 minutes. The edges are the 10 %
and 90 % quantiles of the forecast error. Quantiles of the pairwise slopes would not do: they
describe how the pace varied between past points, not how far off a forecast is. So this module
measures the errors that the same forecast would have made inside the window, 1 to 20 minutes ahead.

Two rules widen the band. If the pace of the last minutes differs from that of the window, the band
is at least as wide as if the pace changed on at that rate. The band is never narrower than a fixed
uncertainty of the pace, which grows with the horizon.

Bench and tests measure how often the outcome lies between the edges. docs/decisions/0012 has the
figures, and the methods that were tried and rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from headgate.base.units import S_PER_MINUTE
from headgate.flow.quota.backlog_quota import BREACH_S_MAX
from headgate.pipeline.kernels.array_types import Doubles, Flags
from headgate.pipeline.kernels.theil_sen import quantiles, slope_quantiles

WINDOW_MINUTES: Final = 60
"""Columns of a window, one a minute: how far back the forecast looks."""

SAMPLES_MIN: Final = 10
"""Fewest points of a window that give a forecast."""

RECENT_MINUTES: Final = 20
"""The last part of the window, whose pace counts for half."""

EDGE_SHARES: Final = (0.1, 0.9)
"""Quantiles of the forecast error that the band's edges are."""

DOUBT_SHARE: Final = 0.4
"""Largest relative uncertainty of a pace, even of one that was steady for an hour."""

DOUBT_MINUTES: Final = 90
"""Horizon from which :data:`DOUBT_SHARE` applies in full; before, it grows in proportion."""

LAGS_MINUTES: Final = (1, 2, 5, 10, 20)
"""Horizons at which past forecast errors are measured, in minutes."""

ERRORS_MIN: Final = 8
"""Fewest errors from which the edges' quantiles are taken."""

_UNBIASED_MIN: Final = 0.25
"""Bound of the correction for errors inside a window, which are too small: at most doubled."""

USE_MIN: Final = 0.5
"""Use of a limit below which a breach is forecast only if it is likely, not if merely possible."""

HORIZONS_MINUTES: Final = (
    *range(11), 12, 15, 18, 20, 25, 30, 35, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 360,
    480, 600, 720, 900, 1080, 1260, BREACH_S_MAX // S_PER_MINUTE,
)  # fmt: skip
"""Horizons at which the band is computed, linear between them. None lies beyond a day."""


@dataclass(frozen=True, slots=True)
class Band:
    """Forecast levels, (windows, horizons) each; NaN where the window has too few points."""

    lower: Doubles
    middle: Doubles
    upper: Doubles

    def at(self, minutes: int) -> tuple[Doubles, Doubles, Doubles]:
        """The three levels at one of :data:`HORIZONS_MINUTES`."""
        place = HORIZONS_MINUTES.index(minutes)
        return self.lower[:, place], self.middle[:, place], self.upper[:, place]


@dataclass(frozen=True, slots=True)
class Breach:
    """Seconds from each window's end to its breach; infinite if it is not within a day."""

    earliest_s: Doubles
    likely_s: Doubles
    latest_s: Doubles


def band(times_s: Doubles, values: Doubles, *, pace_max: float = inf) -> Band:
    """The band of each window.

    ``times_s`` and ``values`` are (windows, :data:`WINDOW_MINUTES`), one column a minute. The last
    column is now, at time 0; earlier times are negative. NaN marks a missing value. A window
    without a last value has no band. ``pace_max`` is the most that a level can rise in a second.
    """
    horizons_s = np.array(HORIZONS_MINUTES, dtype=np.float64) * S_PER_MINUTE
    window_pace = slope_quantiles(times_s, values, (0.5,))[:, 0]
    recent = slice(-RECENT_MINUTES - 1, None)
    recent_pace = slope_quantiles(times_s[:, recent], values[:, recent], (0.5,))[:, 0]
    few = np.count_nonzero(~np.isnan(values[:, recent]), axis=1) < SAMPLES_MIN
    recent_pace = np.where(few, window_pace, recent_pace)
    pace = 0.5 * (window_pace + recent_pace)

    below, above = _errors(values - pace[:, None] * times_s)
    turn = (recent_pace - window_pace)[:, None]
    steady = np.abs(turn) * horizons_s
    # A pace that changed in the last part of the window may change further.
    turning = steady * (1.0 + horizons_s / (2 * RECENT_MINUTES * S_PER_MINUTE))
    above = np.maximum(above, np.where(turn > 0, turning, steady))
    below = np.maximum(below, np.where(turn < 0, turning, steady))
    doubt = DOUBT_SHARE * np.minimum(horizons_s / (DOUBT_MINUTES * S_PER_MINUTE), 1.0)
    doubtful = doubt * np.abs(pace)[:, None] * horizons_s
    above, below = np.maximum(above, doubtful), np.maximum(below, doubtful)

    now = values[:, -1:]
    middle = now + pace[:, None] * horizons_s
    above[:, 0] = below[:, 0] = 0.0
    fastest = now + pace_max * horizons_s if np.isfinite(pace_max) else np.full((1, 1), inf)
    return Band(
        np.minimum(middle - below, fastest),
        np.minimum(middle, fastest),
        np.minimum(middle + above, fastest),
    )


def _errors(residuals: Doubles) -> tuple[Doubles, Doubles]:
    """Forecast errors below and above the line, by horizon: (windows, horizons) each."""
    count = np.count_nonzero(~np.isnan(residuals), axis=1)
    known = np.full((len(residuals), 2, len(LAGS_MINUTES)), np.nan)
    for place, lag in enumerate(LAGS_MINUTES):
        moved = residuals[:, lag:] - residuals[:, :-lag]
        enough = np.count_nonzero(~np.isnan(moved), axis=1) >= ERRORS_MIN
        low, high = quantiles(moved[enough], EDGE_SHARES).T
        unbiased = np.sqrt(np.maximum(1.0 - lag / count[enough], _UNBIASED_MIN))
        known[enough, 0, place] = np.maximum(-low, 0.0) / unbiased
        known[enough, 1, place] = np.maximum(high, 0.0) / unbiased
    # A lag with too few pairs takes the error of the next smaller lag, in proportion to time.
    for place in range(1, len(LAGS_MINUTES)):
        longer = known[:, :, place - 1] * (LAGS_MINUTES[place] / LAGS_MINUTES[place - 1])
        known[:, :, place] = np.where(np.isnan(known[:, :, place]), longer, known[:, :, place])
    for place in reversed(range(len(LAGS_MINUTES) - 1)):
        following = known[:, :, place + 1]
        known[:, :, place] = np.where(np.isnan(known[:, :, place]), following, known[:, :, place])
    spread = np.maximum.accumulate(known, axis=2) @ _BY_HORIZON
    return spread[:, 0], spread[:, 1]


def _weights() -> Doubles:
    """(lags, horizons): straight lines between lags, in proportion to time after the last."""
    found = np.zeros((len(LAGS_MINUTES), len(HORIZONS_MINUTES)))
    for place in range(len(LAGS_MINUTES)):
        unit = np.zeros(len(LAGS_MINUTES))
        unit[place] = 1.0
        found[place] = np.interp(HORIZONS_MINUTES, LAGS_MINUTES, unit)
    found[-1] *= np.maximum(np.array(HORIZONS_MINUTES) / LAGS_MINUTES[-1], 1.0)
    return found


_BY_HORIZON: Final = _weights()


def breach(found: Band, limits: Doubles) -> Breach:
    """When each window's level reaches its limit; ``limits`` is (windows,), in the unit of levels.

    The upper edge of the band gives the earliest time, the lower edge the latest.
    """
    return Breach(
        *(_first_reached(curve, limits) for curve in (found.upper, found.middle, found.lower))
    )


def _first_reached(curve: Doubles, limits: Doubles) -> Doubles:
    """Seconds until a curve first reaches its limit; infinite if it does not, or is unknown."""
    reached = curve >= limits[:, None]
    there = reached.any(axis=1)
    after = reached.argmax(axis=1)
    before = np.maximum(after - 1, 0)
    row = np.arange(len(curve))
    high, low = curve[row, after], curve[row, before]
    rise = np.where(high > low, high - low, 1.0)
    part = np.where(after > 0, (limits - low) / rise, 0.0)
    horizons_s = np.array(HORIZONS_MINUTES, dtype=np.float64) * S_PER_MINUTE
    seconds = horizons_s[before] + part * (horizons_s[after] - horizons_s[before])
    return np.where(there, seconds, inf)


def approaches(found: Breach, use: Doubles) -> Flags:
    """Which breaches are worth reporting; ``use`` is the present level as a part of each limit.

    A likely breach counts up to a day ahead. A merely possible one counts for the length of the
    window, and only if at least half of the limit is used.
    """
    likely = np.isfinite(found.likely_s)
    possible = (found.earliest_s <= WINDOW_MINUTES * S_PER_MINUTE) & (use >= USE_MIN)
    return likely | possible
