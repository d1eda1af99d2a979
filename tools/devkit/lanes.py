"""``./dev test``: the lanes of the test suite, one after the other, each beside its time budget.

Each lane is a separate run of pytest, so Spark's session, the service tests' processes and the
simulator's memory never share a process, and pytest's output passes through unchanged. Within a
lane, several processes run tests whose verdict does not depend on the clock. Tests that measure
rates and delays run apart from them: those that load the machine one at a time, in the lane
``rates``, and those that mostly wait two files at a time, in the lane ``waits``. The demo's clients
publish and consume at set rates, so it runs by itself, too.

Real processes and the clock decide the verdicts of some lanes. A machine that other programs use
can break such a test once. There, the few tests that failed run a second time, one after the other
with nothing beside them, and the summary names them: see docs/decisions/0051.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devkit.console import DevError
from devkit.durations import (
    Duration,
    failed_tests,
    read_report,
    report_arguments,
    slowest_lines,
)
from devkit.lint import BUDGET_S, LIMIT_S, lint_commands
from devkit.paths import ROOT
from devkit.processes import TimedOutError, shown

_NO_TESTS_COLLECTED: Final = 5
_FAULTHANDLER_S: Final = 120
"""If one test takes this long, pytest prints the stacks of its threads."""
_RUN_AGAIN_MAX: Final = 4
"""Where more tests fail than this, a busy machine is not the cause."""


@dataclass(frozen=True)
class TestLane:
    """A part of the suite that one run of pytest covers."""

    name: str
    folders: tuple[str, ...]
    budget_s: int
    """How long it takes at most on two quiet cores. A lane over its budget is reported and does not
    fail, because machines differ."""
    limit_s: int
    """After this time ``./dev`` ends the lane, so that a test that hangs cannot hold all of CI."""
    processes: int = 1
    """How many processes share its test files."""
    marks: str = ""
    """Selects tests of its folders, as ``pytest -m`` does; empty selects all."""
    needs_spark: bool = False
    needs_promtool: bool = False
    needs_browser: bool = False
    runs_again: bool = False
    """Whether real processes and the clock decide its verdicts, so that a test that failed runs a
    second time."""

    def test_folders(self) -> list[str]:
        """The folders that hold tests."""
        return [name for name in self.folders if any((ROOT / name).rglob("test_*.py"))]


LANES: Final = (
    TestLane(
        "unit",
        ("tests/unit", "tests/conformance", "tests/scenarios", "tests/tidy"),
        budget_s=100,
        limit_s=900,
        processes=2,
    ),
    TestLane("simulation", ("tests/sim",), budget_s=60, limit_s=900, processes=2),
    TestLane("faults", ("tests/faults",), budget_s=25, limit_s=900, processes=2),
    TestLane(
        "service",
        ("tests/service",),
        budget_s=85,
        limit_s=1200,
        # Its tests wait for the start and end of brokers half of the time.
        processes=3,
        marks="not alone and not waits",
        runs_again=True,
    ),
    TestLane(
        "rates", ("tests/service",), budget_s=120, limit_s=900, marks="alone", runs_again=True
    ),
    TestLane(
        "waits",
        ("tests/service",),
        budget_s=55,
        limit_s=900,
        # Each file and its brokers use less than a fifth of a core.
        processes=2,
        marks="waits",
        runs_again=True,
    ),
    TestLane("alerts", ("tests/alerts",), budget_s=5, limit_s=300, needs_promtool=True),
    TestLane(
        "page",
        ("tests/page",),
        budget_s=50,
        limit_s=600,
        needs_browser=True,
        # The browser is a real process, and one test measures its first paint.
        runs_again=True,
    ),
    TestLane(
        "spark",
        ("tests/spark",),
        budget_s=165,
        limit_s=2400,
        processes=2,
        needs_spark=True,
        runs_again=True,
    ),
    TestLane("demo", ("tests/demo",), budget_s=75, limit_s=600, needs_spark=True, runs_again=True),
)
LINT: Final = "lint"
NAMES: Final = (LINT, *(lane.name for lane in LANES))


@dataclass(frozen=True)
class Outcome:
    """The result of one lane."""

    name: str
    elapsed_s: float
    budget_s: float
    problem: str
    """Empty if the lane passed."""
    passed_again: Sequence[str] = ()
    """Tests that failed, and passed when they ran a second time."""

    @property
    def verdict(self) -> str:
        """What the summary says about the lane."""
        over = f", over its budget of {self.budget_s:.0f} s" * (self.elapsed_s > self.budget_s)
        again = f", {len(self.passed_again)} of its tests at the second attempt"
        return (self.problem or "passed") + again * bool(self.passed_again) + over


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
    """Run the named lanes, each to its end, and return the exit status for all of them."""
    outcomes: list[Outcome] = []
    durations: list[Duration] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="headgate-tests-") as reports:
        for name in names:
            print(f"\n=== lane {name}", flush=True)
            report = Path(reports, f"{name}.xml")
            started_s = time.monotonic()
            problem = _run(python, name, [*report_arguments(report), *pytest_arguments])
            failed = failed_tests(report) if problem else []
            if passes_again := _pass_again(python, name, failed):
                problem = ""
            elapsed_s = time.monotonic() - started_s
            passed_again = failed if passes_again else ()
            outcome = Outcome(name, elapsed_s, budget_s_of(name), problem, passed_again)
            print(f"=== lane {name}: {outcome.verdict}, {outcome.elapsed_s:.1f} s", flush=True)
            outcomes.append(outcome)
            durations += read_report(name, report)
    print("\n" + "\n".join([*slowest_lines(durations), "", *summary_lines(outcomes)]), flush=True)
    return 1 if any(outcome.problem for outcome in outcomes) else 0


def budget_s_of(name: str) -> int:
    """The time budget of a lane, the lint lane included."""
    return next((lane.budget_s for lane in LANES if lane.name == name), BUDGET_S)


def summary_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """A table of the lanes with time, budget and verdict, and their total."""
    failed = [outcome.name for outcome in outcomes if outcome.problem]
    total = Outcome(
        "total",
        sum(outcome.elapsed_s for outcome in outcomes),
        sum(outcome.budget_s for outcome in outcomes),
        f"failed: {', '.join(failed)}" if failed else "every lane passed",
    )
    return [
        *(
            f"  {outcome.name:<11}{outcome.elapsed_s:7.1f} s of {outcome.budget_s:4.0f} s   "
            + outcome.verdict
            for outcome in (*outcomes, total)
        ),
        *(
            f"  passed at the second attempt: {test}"
            for outcome in outcomes
            for test in outcome.passed_again
        ),
    ]


def _run(python: Path, name: str, pytest_arguments: Sequence[str]) -> str:
    """Run one lane; return what failed, or an empty string."""
    if name == LINT:
        results = [_run_one(command, LIMIT_S) for command in lint_commands(python)]
        return next((problem for problem in results if problem), "")
    lane = next(lane for lane in LANES if lane.name == name)
    folders = lane.test_folders()
    if not folders:
        return "there are no tests in " + " or ".join(lane.folders)
    # By files, because tests of a module share what it sets up once; in the order of the tests'
    # conftest, which puts long files first.
    dealt = ["-n", str(lane.processes), "--dist", "loadfile", "--no-loadscope-reorder"]
    dealt = dealt if lane.processes > 1 else []
    marked = ["-m", lane.marks] if lane.marks else []
    command = [
        str(python), "-m", "pytest", "-o", f"faulthandler_timeout={_FAULTHANDLER_S}", *dealt,
        *marked, *folders, *pytest_arguments,
    ]  # fmt: skip
    return _run_one(command, lane.limit_s)


def _pass_again(python: Path, name: str, failed: Sequence[str]) -> bool:
    """Run failed tests of a lane by themselves; returns whether all pass now."""
    lane = next((lane for lane in LANES if lane.name == name), None)
    if lane is None or not lane.runs_again or not 0 < len(failed) <= _RUN_AGAIN_MAX:
        return False
    print(f"=== lane {name}: {len(failed)} failed, a second attempt", flush=True)
    command = [
        str(python), "-m", "pytest", "-o", f"faulthandler_timeout={_FAULTHANDLER_S}", *failed
    ]  # fmt: skip
    return not _run_one(command, lane.limit_s)


def _run_one(command: Sequence[str], limit_s: float) -> str:
    """Run a command; return what failed, or an empty string."""
    try:
        status = shown(command, limit_s, ROOT)
    except TimedOutError:
        return f"ended after {limit_s:.0f} s"
    if status == _NO_TESTS_COLLECTED and "pytest" in command:
        return "pytest found no test to run"
    return f"failed with status {status}" if status else ""
