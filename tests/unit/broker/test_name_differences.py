"""Differences between two states of a list of names."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from headgate.base.work_units import JOB_STEP_UNITS_MAX
from headgate.broker.name_differences import (
    NAMES_COMPARED,
    PART_BYTES_MAX,
    Names,
    add_difference,
    only_in_first,
    parts_of,
)

T = TypeVar("T")


def played(steps: Generator[int, None, T]) -> tuple[list[int], T]:
    """The steps and what they return."""
    found: list[int] = []
    while True:
        try:
            found.append(next(steps))
        except StopIteration as end:
            return found, end.value


def test_a_later_difference_is_added() -> None:
    left: Names = {"a": None}
    came: Names = {"b": None, "c": None}
    add_difference(left, came, {"b": None, "d": None}, {"a": None, "e": None})
    assert (list(left), list(came)) == (["a", "d"], ["c", "a", "e"])


def test_what_one_list_lacks_is_found_in_steps() -> None:
    names = [f"{number:04}" for number in range(10 * NAMES_COMPARED)]
    steps, found = played(only_in_first(names, names[1:-1]))
    assert list(found) == [names[0], names[-1]]
    assert steps == [JOB_STEP_UNITS_MAX] * 10
    assert played(only_in_first(names[1:-1], names))[1] == {}
    assert list(played(only_in_first(["a"], []))[1]) == ["a"]


def test_a_long_difference_has_parts() -> None:
    name = "n" * 1_000
    left = {f"{name}{number}": None for number in range(200)}
    came = {f"{name}{number}": None for number in range(200, 400)}
    parts = list(parts_of(left, came))
    assert len(parts) == 400 * 1_003 // PART_BYTES_MAX + 1
    assert [each for gone, _ in parts for each in gone] == list(left)
    assert [each for _, come in parts for each in come] == list(came)
    assert list(parts_of({}, {})) == []
