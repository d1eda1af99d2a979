"""Which points share a cell of the grid for their age."""

from __future__ import annotations

from headgate.base.units import NS_PER_HOUR, NS_PER_MINUTE, NS_PER_S
from headgate.explain.downsampling import bucket_of


def test_the_cells_grow_with_age() -> None:
    at_ns = 7 * NS_PER_MINUTE + 3 * NS_PER_S
    ages_ns = (5 * NS_PER_S, NS_PER_MINUTE, 5 * NS_PER_MINUTE, NS_PER_HOUR)
    lengths_ns = [cell[0] for age in ages_ns if (cell := bucket_of(age, at_ns))]
    # The youngest are kept whole: a round gives one a second.
    assert lengths_ns == [1, 5 * NS_PER_S, NS_PER_MINUTE, 5 * NS_PER_MINUTE]


def test_points_older_than_the_hour_and_its_last_cell_have_no_cell() -> None:
    assert bucket_of(NS_PER_HOUR + 5 * NS_PER_MINUTE, 0) is None
    assert bucket_of(NS_PER_HOUR + 5 * NS_PER_MINUTE - 1, 0) is not None
