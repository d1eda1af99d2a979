"""The resolution of the history: the older its points, the fewer are kept.

One point each second for 10 s, each 5 s for a minute, each minute for ten minutes, and each five
minutes for an hour. All values in a point are cumulative, so a coarser grid loses resolution, never
amounts.
"""

from __future__ import annotations

from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S

THIN_EVERY_POINTS = 16
"""A track thins out its points each time that their number is a multiple of this."""

_GRIDS_NS = (
    (10 * NS_PER_S, 1),
    (NS_PER_MINUTE + 5 * NS_PER_S, 5 * NS_PER_S),
    (10 * NS_PER_MINUTE, NS_PER_MINUTE),
    (NS_PER_HOUR + 5 * NS_PER_MINUTE, 5 * NS_PER_MINUTE),
)
"""(Age up to which it applies, length of a cell). Each grid divides the next, so that the first
point of a coarse cell was the first of its finer one and survives."""


def grid_cell(age_ns: int, at_ns: int) -> tuple[int, int] | None:
    """The cell of a point in the grid for its age, of which the first point is kept; None: too
    old."""
    for until_ns, grid_ns in _GRIDS_NS:
        if age_ns < until_ns:
            return grid_ns, at_ns // grid_ns
    return None
