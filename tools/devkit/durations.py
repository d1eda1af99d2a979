"""The slowest and the failed tests of a run, from the JUnit reports that pytest writes."""

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


def failed_tests(path: Path) -> list[str]:
    """Tests of a report that did not pass, as pytest takes them; empty if something else went wrong
    as well, such as an import, or if pytest ended before it wrote a report."""
    if not path.is_file():
        return []
    cases = [
        case
        for case in ElementTree.parse(path).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    if any(_could_not_be_read(case) for case in cases):
        return []
    return list(dict.fromkeys(f"{case.get('file')}::{case.get('name')}" for case in cases))


def _could_not_be_read(case: ElementTree.Element) -> bool:
    """Whether it stands for a file of tests that pytest could not import."""
    error = case.find("error")
    return not case.get("file") or (
        error is not None and error.get("message") == "collection failure"
    )


def slowest_lines(durations: Sequence[Duration], count: int = SLOWEST) -> Iterable[str]:
    """A heading and a line for each of the slowest tests; nothing if no test ran."""
    if not durations:
        return
    slowest = sorted(durations, key=lambda test: -test.elapsed_s)[:count]
    yield f"  slowest of {len(durations)} tests:"
    for test in slowest:
        yield f"  {test.lane:<11}{test.elapsed_s:7.1f} s   {test.test}"
