"""``./dev test``: the lanes of the test suite, one after the other, with their times.

Each lane is a run of its own, so that Spark's session, the service tests' processes and the
simulator's memory never meet, and pytest's own output passes through untouched. One lane at a
time; within one, tests whose verdict does not hang on the clock run in two processes. Those that
measure rates and delays have the machine to themselves, in the lane of that name.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.lint import LIMIT_S, lint_commands
from devkit.paths import ROOT
from devkit.processes import GivenUpError, shown

_NO_TESTS_COLLECTED: Final = 5
_FAULTHANDLER_S: Final = 120
"""A single test that takes this long has its threads' stacks printed, by pytest."""


@dataclass(frozen=True)
class TestLane:
    """A part of the suite that runs as one process."""

    name: str
    folders: tuple[str, ...]
    limit_s: int
    """When the lane is given up, so that one test that hangs cannot hold all of CI."""
    processes: int = 1
    """Among how many its files are dealt out."""
    marks: str = ""
    """Which tests of its folders are meant, as ``pytest -m``; all when empty."""
    needs_spark: bool = False
    needs_promtool: bool = False

    def test_folders(self) -> list[str]:
        """Those of its folders that hold tests."""
        return [name for name in self.folders if any((ROOT / name).rglob("test_*.py"))]


LANES: Final = (
    TestLane(
        "unit",
        ("tests/unit", "tests/conformance", "tests/scenarios", "tests/tidy"),
        900,
        processes=2,
    ),
    TestLane("simulation", ("tests/sim",), 900, processes=2),
    TestLane("service", ("tests/service",), 1200, processes=2, marks="not alone"),
    TestLane("rates", ("tests/service",), 900, marks="alone"),
    TestLane("alerts", ("tests/alerts",), 300, needs_promtool=True),
    TestLane("spark", ("tests/spark",), 1500, processes=2, needs_spark=True),
)
LINT: Final = "lint"
NAMES: Final = (LINT, *(lane.name for lane in LANES))


@dataclass(frozen=True)
class Outcome:
    """How one lane went."""

    name: str
    elapsed_s: float
    problem: str
    """Empty when it passed."""


def wanted_lanes(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the command line into lane names and pytest's arguments.

    Without a name, every lane that has tests is meant.

    Raises:
        DevError: a word before ``--`` is no lane.
    """
    words, rest = list(arguments), []
    if "--" in words:
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    for word in words:
        if word not in NAMES:
            raise DevError(
                f"There is no test lane {word!r}: {', '.join(NAMES)} are allowed, and what "
                "stands behind -- goes to pytest."
            )
    return words or [LINT, *(lane.name for lane in LANES if lane.test_folders())], rest


def run_lanes(python: Path, names: Sequence[str], pytest_arguments: Sequence[str]) -> int:
    """Run the lanes named, each to its end, and return the exit status for all of them."""
    outcomes = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name in names:
        print(f"\n=== lane {name}", flush=True)
        started_s = time.monotonic()
        problem = _run(python, name, pytest_arguments)
        outcomes.append(Outcome(name, time.monotonic() - started_s, problem))
        elapsed_s = outcomes[-1].elapsed_s
        print(f"=== lane {name}: {problem or 'passed'}, {elapsed_s:.1f} s", flush=True)
    print()
    for outcome in outcomes:
        print(f"  {outcome.name:<11}{outcome.elapsed_s:7.1f} s   {outcome.problem or 'passed'}")
    failed = [outcome.name for outcome in outcomes if outcome.problem]
    total_s = sum(outcome.elapsed_s for outcome in outcomes)
    verdict = f"failed: {', '.join(failed)}" if failed else "every lane passed"
    print(f"  {'total':<11}{total_s:7.1f} s   {verdict}", flush=True)
    return 1 if failed else 0


def _run(python: Path, name: str, pytest_arguments: Sequence[str]) -> str:
    """Run one lane; what went wrong, or nothing."""
    if name == LINT:
        results = [_run_one(command, LIMIT_S) for command in lint_commands(python)]
        return next((problem for problem in results if problem), "")
    lane = next(lane for lane in LANES if lane.name == name)
    folders = lane.test_folders()
    if not folders:
        return "there are no tests in " + " or ".join(lane.folders)
    # By files, because what a module sets up once is worth sharing.
    dealt = ["-n", str(lane.processes), "--dist", "loadfile"] if lane.processes > 1 else []
    marked = ["-m", lane.marks] if lane.marks else []
    command = [
        str(python), "-m", "pytest", "-o", f"faulthandler_timeout={_FAULTHANDLER_S}", *dealt,
        *marked, *folders, *pytest_arguments,
    ]  # fmt: skip
    return _run_one(command, lane.limit_s)


def _run_one(command: Sequence[str], limit_s: float) -> str:
    """Run a command; what went wrong, or nothing."""
    try:
        status = shown(command, limit_s, ROOT)
    except GivenUpError:
        return f"given up after {limit_s:.0f} s"
    if status == _NO_TESTS_COLLECTED and "pytest" in command:
        return "pytest found no test to run"
    return f"failed with status {status}" if status else ""
