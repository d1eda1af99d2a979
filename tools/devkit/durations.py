"""The slowest tests of a run, from the JUnit reports that pytest writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

SLOWEST: Final = 10
"""Tests that the summary of a run names."""


@dataclass(frozen=True)
class Duration:
    """How long one test took, its fixtures included."""

    lane: str
    test: str
    """As pytest takes it on its command line: ``tests/unit/test_x.py::test_y``."""
    elapsed_s: float


def report_arguments(path: Path) -> list[str]:
    """Pytest's arguments that write a report to ``path``."""
    return ["--junit-xml", str(path), "-o", "junit_family=xunit1"]


def read_report(lane: str, path: Path) -> list[Duration]:
    """Durations of all tests in a report; none if pytest ended before it wrote one."""
    if not path.is_file():
        return []
    cases = ElementTree.parse(path).iter("testcase")
    return [
        Duration(lane, f"{case.get('file')}::{case.get('name')}", float(case.get("time", "0")))
        for case in cases
    ]


def slowest_lines(durations: Sequence[Duration], count: int = SLOWEST) -> Iterable[str]:
    """A heading and a line for each of the slowest tests; nothing if no test ran."""
    if not durations:
        return
    slowest = sorted(durations, key=lambda test: -test.elapsed_s)[:count]
    yield f"  slowest of {len(durations)} tests:"
    for test in slowest:
        yield f"  {test.lane:<11}{test.elapsed_s:7.1f} s   {test.test}"
