"""Differences between two states of a list of names: which left, and which came.

A name that left and came back is in both; one that came and left again is in neither.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import Final

from headgate.base.units import KIB
from headgate.base.work_units import JOB_STEP_UNITS_MAX

Names = dict[str, None]

PART_BYTES_MAX: Final = 256 * KIB
"""Names of one part of a difference."""

NAMES_COMPARED: Final = 64
"""Names that are looked up in one step."""


def add_difference(left: Names, came: Names, left_later: Names, came_later: Names) -> None:
    """Add a later difference to an earlier one."""
    for name in left_later:
        if name in came:
            del came[name]
        else:
            left[name] = None
    came |= came_later


def only_in_first(names: Sequence[str], others: Sequence[str]) -> Generator[int, None, Names]:
    """Steps that return the names in the first of two sorted lists that the second one lacks."""
    found: Names = {}
    for start in range(0, len(names), NAMES_COMPARED):
        for name in names[start : start + NAMES_COMPARED]:
            at = bisect_left(others, name)
            if at == len(others) or others[at] != name:
                found[name] = None
        yield JOB_STEP_UNITS_MAX
    return found


def parts_of(left: Names, came: Names) -> Iterator[tuple[list[str], list[str]]]:
    """A difference in parts of about :data:`PART_BYTES_MAX`, what left first."""
    gone: list[str] = []
    come: list[str] = []
    size_bytes = 0
    for number, name in enumerate(chain(left, came)):
        (gone if number < len(left) else come).append(name)
        size_bytes += len(name)
        if size_bytes >= PART_BYTES_MAX:
            yield gone, come
            gone, come, size_bytes = [], [], 0
    if gone or come:
        yield gone, come
