"""When a level reaches its limit: a band of its way on, from the hour that led to it.

The middle of the band goes on from the last level at a pace: the mean of the Theil-Sen slopes of
the whole window and of its last 20 minutes. Its two edges are where the level is below in one
case of ten, and above in one of ten. The quantiles of the slopes of pairs are no such edges: they
say how the pace between two past points varied, not how far off a forecast is. So the edges
come from the errors that the window itself would have made: what the level did over 1 to 20
minutes, again and again, beyond what the pace says. Where the pace of the last minutes is
another than the window's, the band is at least as wide as that change of pace, going on; and it
is never narrower than a doubt about the pace itself, which grows with the time ahead.

Bench and tests measure how often the truth lies between the edges; docs/decisions/0012 has the
figures and what else was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from headgate.base.units import S_PER_MINUTE
from headgate.flow.quota.backlog_quota import BREACH_S_MAX
from headgate.pipeline.kernels.theil_sen import Doubles, quantiles, slope_quantiles

WINDOW_MINUTES: Final = 60
"""Columns of a window: how far is looked back."""

SAMPLES_MIN: Final = 10
"""A forecast from fewer points than this is none."""

RECENT_MINUTES: Final = 20
"""The last part of the window, of which the pace is taken by itself as well."""

EDGE_SHARES: Final = (0.1, 0.9)
"""The quantiles that the band's edges stand for."""

DOUBT_SHARE: Final = 0.4
"""A pace that nothing disturbed for an hour may still be off by this part of itself ..."""

DOUBT_MINUTES: Final = 90
"""... this long from now and later, in proportion before: producers and consumers come and go."""

LAGS_MINUTES: Final = (1, 2, 5, 10, 20)
"""Over how many minutes past errors are looked at."""

ERRORS_MIN: Final = 8
"""Of fewer errors no tenth is known."""

_UNBIASED_MIN: Final = 0.25
"""Errors over a part of a window are too small, the more the larger that part; at most halved."""

USE_MIN: Final = 0.5
"""Below this part of a limit only what is likely is told, not what is merely possible."""

HORIZONS_MINUTES: Final = (
    *range(11), 12, 15, 18, 20, 25, 30, 35, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 360,
    480, 600, 720, 900, 1080, 1260, BREACH_S_MAX // S_PER_MINUTE,
)  # fmt: skip
"""Where the band is computed; straight lines between them. Nothing is told beyond a day."""


@dataclass(frozen=True, slots=True)
class Band:
    """Where levels will be: (windows, horizons) each; NaN where too little is known."""

    lower: Doubles
    middle: Doubles
    upper: Doubles

    def at(self, minutes: int) -> tuple[Doubles, Doubles, Doubles]:
        """The three levels at one of :data:`HORIZONS_MINUTES`."""
        place = HORIZONS_MINUTES.index(minutes)
        return self.lower[:, place], self.middle[:, place], self.upper[:, place]


@dataclass(frozen=True, slots=True)
class Breach:
    """Seconds from each window's end until a limit is reached; infinite: not within a day."""

    earliest_s: Doubles
    likely_s: Doubles
    latest_s: Doubles


def band(times_s: Doubles, values: Doubles, *, pace_max: float = inf) -> Band:
    """The band of each window.

    ``times_s`` and ``values`` are (windows, :data:`WINDOW_MINUTES`), a column for each minute, the
    last one now: its time is 0 and earlier ones are negative. A value that is NaN is none; where
    the last one is, there is no band. ``pace_max`` bounds how much a level can rise in a second.
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
    # A pace that changed by so much within the window's last part may go on changing.
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
    """How far below and above the pace levels come, by horizon: (windows, horizons) each."""
    count = np.count_nonzero(~np.isnan(residuals), axis=1)
    known = np.full((len(residuals), 2, len(LAGS_MINUTES)), np.nan)
    for place, lag in enumerate(LAGS_MINUTES):
        moved = residuals[:, lag:] - residuals[:, :-lag]
        enough = np.count_nonzero(~np.isnan(moved), axis=1) >= ERRORS_MIN
        low, high = quantiles(moved[enough], EDGE_SHARES).T
        unbiased = np.sqrt(np.maximum(1.0 - lag / count[enough], _UNBIASED_MIN))
        known[enough, 0, place] = np.maximum(-low, 0.0) / unbiased
        known[enough, 1, place] = np.maximum(high, 0.0) / unbiased
    # A lag that too few pairs have is as the next smaller one, in proportion to time.
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
    """When each window's level reaches its limit: ``limits`` is (windows,), in units of levels.

    The earliest is when the upper edge first does, the latest when the lower edge does.
    """
    return Breach(
        *(_first_reached(curve, limits) for curve in (found.upper, found.middle, found.lower))
    )


def _first_reached(curve: Doubles, limits: Doubles) -> Doubles:
    """Seconds until a curve first is at its limit; infinite where it never is, or is unknown."""
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


def approaches(found: Breach, use: Doubles) -> npt.NDArray[np.bool_]:
    """Which limits are approached, ``use`` being the parts of them that are taken now.

    A likely pace is told up to a day ahead, a mere possibility for as long as was looked back; of
    a limit that is not half used only where the level is likely to rise.
    """
    likely = np.isfinite(found.likely_s)
    possible = (found.earliest_s <= WINDOW_MINUTES * S_PER_MINUTE) & (use >= USE_MIN)
    return likely | possible
