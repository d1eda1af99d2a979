"""Theil-Sen slopes of many short series: the median of the slopes of all pairs of points.

The slope tolerates outliers in a quarter of the points (H. Theil 1950; P. K. Sen, Journal of the
American Statistical Association 63, 1968). A burst or a late sample would bend a least-squares
line. Series may have missing points and unequal spacing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headgate.pipeline.kernels.array_types import Doubles

_ROWS_AT_ONCE = 256
"""Windows whose pairs are in memory at once: 60 points have 1,770 pairs, so 4 MB."""


def slope_quantiles(times: Doubles, values: Doubles, shares: Sequence[float]) -> Doubles:
    """Quantiles of the slopes of all pairs of points, exact, interpolated between neighbours.

    ``times`` and ``values`` are (windows, points), with rising times in each row. NaN marks a
    missing value. ``shares`` are the quantiles; 0.5 gives the Theil-Sen slope. The result is
    (windows, shares) in units of the values by units of the times. It is NaN with fewer than two
    points.
    """
    windows, points = values.shape
    wanted = np.asarray(shares, dtype=np.float64)
    found = np.full((windows, len(wanted)), np.nan)
    if points < 2:
        return found
    pairs = np.empty((min(windows, _ROWS_AT_ONCE), points * (points - 1) // 2))
    for begin in range(0, windows, _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        slopes = _pair_slopes(times[rows], values[rows], pairs)
        slopes.sort(axis=1)  # NaN sorts last
        found[rows] = _quantiles_of_sorted(slopes, wanted)
    return found


def _pair_slopes(times: Doubles, values: Doubles, into: Doubles) -> Doubles:
    """The slopes of all pairs, written into the buffer ``into``."""
    slopes = into[: len(values)]
    place, points = 0, values.shape[1]
    # By distance within the row, so that every step reads contiguous memory.
    for apart in range(1, points):
        end = place + points - apart
        rise = slopes[:, place:end]
        np.subtract(values[:, apart:], values[:, :-apart], out=rise)
        rise /= times[:, apart:] - times[:, :-apart]
        place = end
    return slopes


def _quantiles_of_sorted(rows: Doubles, shares: Doubles) -> Doubles:
    """Quantiles of the numbers in each sorted row; NaN, which sorts last, is ignored."""
    count = np.count_nonzero(~np.isnan(rows), axis=1)[:, None]
    place = shares * np.maximum(count - 1, 0)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, np.maximum(count - 1, 0))
    low = np.take_along_axis(rows, below, axis=1)
    high = np.take_along_axis(rows, above, axis=1)
    # Not low + part * (high - low): rounding would change it if both are equal.
    part = place - below
    return np.where(low == high, low, (1.0 - part) * low + part * high)


def quantiles(rows: Doubles, shares: Sequence[float]) -> Doubles:
    """Quantiles of the numbers in each row, interpolated as in :func:`slope_quantiles`.

    ``rows`` is (rows, numbers); NaN is ignored. The result is (rows, shares), NaN for an empty row.
    """
    return _quantiles_of_sorted(np.sort(rows, axis=1), np.asarray(shares, dtype=np.float64))
