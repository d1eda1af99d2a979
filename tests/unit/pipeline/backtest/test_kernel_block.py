"""Tuples in a block, and selections without a branch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from headgate.pipeline.backtest.kernel_block import (
    LANES,
    WIDTH,
    load_lane,
    offsets,
    store_lane,
    where,
)


class Small(NamedTuple):
    """Of each kind one."""

    number: float
    count: int
    is_so: bool


class Other(NamedTuple):
    """What lies behind it."""

    number: float


SMALL, OTHER, BLOCK = offsets((Small, Other))


@numba.njit  # type: ignore[untyped-decorator]
def _put(block: Any, lane: int, number: float, count: int, is_so: bool) -> None:
    store_lane(block, SMALL, lane, Small(number, count, is_so))
    store_lane(block, OTHER, lane, Other(-number))


@numba.njit  # type: ignore[untyped-decorator]
def _get(block: Any, lane: int) -> Any:
    return load_lane(Small, block, SMALL, lane), load_lane(Other, block, OTHER, lane)


@numba.njit  # type: ignore[untyped-decorator]
def _chosen(is_so: bool, one: Any, other: Any) -> Any:
    return where(is_so, one, other)


def test_each_lane_keeps_its_values() -> None:
    block = np.full(BLOCK, np.nan)
    for lane in range(LANES):
        _put(block, lane, 1.5 * lane, -lane, lane % 3 == 0)
    assert not np.isnan(block).any()
    for lane in range(LANES):
        small, other = _get(block, lane)
        assert small == Small(1.5 * lane, -lane, lane % 3 == 0)
        assert type(small.is_so) is bool
        assert other == Other(-1.5 * lane)


def test_a_block_has_the_fields_of_all_tuples_one_after_the_other() -> None:
    assert (SMALL, OTHER, BLOCK) == (0, 3 * LANES, 4 * LANES)
    assert LANES % WIDTH == 0


def test_where_selects_numbers_conditions_and_tuples() -> None:
    one, other = Small(1.0, 2, True), Small(3.0, 4, False)
    for is_so in (True, False):
        assert _chosen(is_so, 1.0, 2) == (1.0 if is_so else 2.0)
        assert _chosen(is_so, True, False) is is_so
        assert _chosen(is_so, one, other) == (one if is_so else other)


def test_the_unselected_value_may_be_invalid() -> None:
    assert _chosen(True, 1.0, np.nan) == 1.0
    assert _chosen(False, np.inf, 2.0) == 2.0
