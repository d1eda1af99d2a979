"""``./dev test``: runs lanes and says how each ended and what it took.

Lanes that measure time run one after the other, and pytest's output passes through unchanged. They
mostly wait. At the same time, behind them, run the other lanes, two at once: only while a processor
is unused, so that they disturb nothing that is measured. Their output follows when they have ended.

Real processes and the clock decide the verdicts of some lanes. A machine that other programs use
can break such a test once. There, the few tests that failed run a second time at the end, one after
the other with nothing beside them, and the summary names them: see docs/decisions/0051.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from devkit.durations import (
    Duration,
    failed_tests,
    read_report,
    report_arguments,
    slowest_lines,
)
from devkit.lanes import TOTAL_BUDGET_S, TestLane, budget_s_of, lane_of, order_of
from devkit.lint import LIMIT_S, lint_commands
from devkit.paths import ROOT
from devkit.processes import TimedOutError, ended

_NO_TESTS_COLLECTED: Final = 5
_NOTHING_RAN: Final = "pytest found no test to run"
_FAULTHANDLER_S: Final = 120
"""If one test takes this long, pytest prints the stacks of its threads."""
_POLL_S: Final = 0.1
_BEHIND_AT_ONCE: Final = 2
"""One of them may wait, or be down to its last test, while the other one uses the machine."""
_RUN_AGAIN_MAX: Final = 4
"""Where more tests fail than this, a busy machine is not the cause."""


@dataclass(frozen=True)
class Outcome:
    """The result of one lane."""

    name: str
    elapsed_s: float
    processor_s: float
    budget_s: float
    """Of processor time."""
    problem: str
    """Empty if the lane passed."""
    passed_again: Sequence[str] = ()
    """Tests that failed, and passed when they ran a second time."""

    @property
    def verdict(self) -> str:
        """What the summary says about the lane."""
        over = f", over its budget of {self.budget_s:.0f} s" * (self.processor_s > self.budget_s)
        again = f", {len(self.passed_again)} of its tests at the second attempt"
        return (self.problem or "passed") + again * bool(self.passed_again) + over


def run_lanes(python: Path, names: Sequence[str], pytest_arguments: Sequence[str]) -> int:
    """Run the named lanes, each to its end, and return the exit status for all of them."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    order, started_s = order_of(names), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headgate-tests-") as folder:

        def made(some: Sequence[str], *, is_behind: bool = False) -> list[LaneRun]:
            return [
                LaneRun(python, Path(folder), pytest_arguments, name, is_behind) for name in some
            ]

        runs, others = made(order.first), made(order.behind, is_behind=True)
        for other in others:
            lane = lane_of(other.name)
            other.begins_after = [
                run for run in runs if lane is not None and run.name == lane.after
            ]
        with _running(others) as behind:
            for run in runs:
                run.run()
            for future in behind:
                runs.append(future.result())
                _show(runs[-1].output_path)
        for run in runs:
            run.run_again()
    durations = [duration for run in runs for duration in run.durations]
    lines = summary_lines([run.outcome() for run in runs], time.monotonic() - started_s)
    print("\n" + "\n".join([*slowest_lines(durations), "", *lines]), flush=True)
    return 1 if any(run.problem for run in runs) else 0


@contextmanager
def _running(runs: Sequence[LaneRun]) -> Iterator[list[Future[LaneRun]]]:
    """Run lanes on threads, some at once; those that have not ended with the context are
    cancelled."""
    pool = ThreadPoolExecutor(_BEHIND_AT_ONCE)
    try:
        yield [pool.submit(run.run) for run in runs]
    finally:
        for run in runs:
            if not run.is_over.is_set():  # a lane that has ended may get a second attempt
                run.cancelled.set()
        pool.shutdown(cancel_futures=True)


def _show(output: Path) -> None:
    """Print what a lane wrote to a file."""
    sys.stdout.flush()
    _copy(output, sys.stdout.buffer)
    sys.stdout.flush()


def _copy(output: Path, to: BinaryIO) -> None:
    with output.open("rb") as file:
        shutil.copyfileobj(file, to)


def _numbers(lane: TestLane) -> Sequence[int]:
    """The numbers of the parts of a lane."""
    return range(1, lane.parts + 1)


def summary_lines(outcomes: Sequence[Outcome], elapsed_s: float) -> list[str]:
    """A table of the lanes with their time, processor time, budget and verdict, and all together.

    ``elapsed_s`` is the time of all, which is less than the sum where lanes run side by side.
    """
    failed = [outcome.name for outcome in outcomes if outcome.problem]
    over = f", over the budget of {TOTAL_BUDGET_S} s" * (elapsed_s > TOTAL_BUDGET_S)
    lines = [
        (outcome.name, outcome.elapsed_s, outcome.processor_s, outcome.budget_s, outcome.verdict)
        for outcome in outcomes
    ]
    lines.append(
        (
            "total",
            elapsed_s,
            sum(outcome.processor_s for outcome in outcomes),
            sum(outcome.budget_s for outcome in outcomes),
            (f"failed: {', '.join(failed)}" if failed else "every lane passed") + over,
        )
    )
    return [
        *(
            f"  {name:<11}{lasted_s:7.1f} s{processor_s:8.1f} s of CPU of {budget_s:4.0f} s   "
            + verdict
            for name, lasted_s, processor_s, budget_s, verdict in lines
        ),
        *(
            f"  passed at the second attempt: {test}"
            for outcome in outcomes
            for test in outcome.passed_again
        ),
    ]


@dataclass
class LaneRun:
    """One lane, from its start to its end."""

    python: Path
    folder: Path
    """Where its reports go, and its output if it runs behind others."""
    pytest_arguments: Sequence[str]
    name: str
    is_behind: bool = False
    """Whether it runs behind other lanes, and its output goes to a file."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Ends it."""
    begins_after: Sequence[LaneRun] = ()
    """Lanes that have to have ended before."""
    is_over: threading.Event = field(default_factory=threading.Event)
    """Whether it has ended."""
    problem: str = ""
    """What failed; empty if the lane passed."""
    elapsed_s: float = 0.0
    processor_s: float = 0.0
    durations: Sequence[Duration] = ()
    failed: Sequence[str] = ()
    """Tests that failed, as far as the report of the lane names them."""
    passed_again: Sequence[str] = ()
    _output: BinaryIO | None = None
    _adding: threading.Lock = field(default_factory=threading.Lock)
    """Guards what the threads of its parts add up."""

    @property
    def output_path(self) -> Path:
        """The file of its output."""
        return self.folder / f"{self.name}.txt"

    def _report_path(self, part: int) -> Path:
        return self.folder / f"{self.name}-{part}.xml"

    def outcome(self) -> Outcome:
        """What the summary has of it."""
        return Outcome(
            self.name, self.elapsed_s, self.processor_s, budget_s_of(self.name), self.problem,
            self.passed_again,
        )  # fmt: skip

    def run(self) -> LaneRun:
        """Run it to its end, once those that it begins after have ended."""
        for other in self.begins_after:
            while not (other.is_over.wait(_POLL_S) or self.cancelled.is_set()):
                pass
        started_s = time.monotonic()
        with self.output_path.open("wb", buffering=0) if self.is_behind else nullcontext() as out:
            self._output = out
            self._say(f"\n=== lane {self.name}")
            self._run()
            self.elapsed_s = time.monotonic() - started_s
            self._say(f"=== lane {self.name}: {self.outcome().verdict}, {self.elapsed_s:.1f} s")
        self._output = None
        self.is_over.set()
        return self

    def _run(self) -> None:
        lane = lane_of(self.name)
        if lane is None:
            problems = [self._run_one(command, LIMIT_S) for command in lint_commands(self.python)]
            self.problem = next((problem for problem in problems if problem), "")
            return
        self.problem = self._run_tests(lane)
        reports = [self._report_path(part) for part in _numbers(lane)]
        self.failed = [test for report in reports if self.problem for test in failed_tests(report)]
        self.durations = [
            duration for report in reports for duration in read_report(self.name, report)
        ]

    def run_again(self) -> None:
        """Give the few tests that failed a second attempt, if real processes and the clock decide
        their verdicts."""
        lane = lane_of(self.name)
        if lane is None or not lane.is_timed or not 0 < len(self.failed) <= _RUN_AGAIN_MAX:
            return
        started_s = time.monotonic()
        self._say(f"\n=== lane {self.name}: {len(self.failed)} failed, a second attempt")
        if not self._run_one(self._pytest(self.failed), lane.limit_s):
            self.problem, self.passed_again = "", self.failed
        self.elapsed_s += time.monotonic() - started_s
        self._say(f"=== lane {self.name}: {self.outcome().verdict}, {self.elapsed_s:.1f} s")

    def _run_tests(self, lane: TestLane) -> str:
        """Run the tests of a lane; return what failed, or an empty string."""
        folders = lane.test_folders()
        if not folders:
            return "there are no tests in " + " or ".join(lane.folders)
        # By files, because tests of a module share what it sets up once; in the order of the tests'
        # conftest, which puts long files first.
        dealt = ["-n", str(lane.processes), "--dist", "loadfile", "--no-loadscope-reorder"]
        dealt = dealt if lane.processes > 1 else []
        marked = ["-m", lane.marks] if lane.marks else []
        words = [*dealt, *marked, *folders]
        if lane.parts > 1:
            return self._run_parts(lane, words)
        words += [*report_arguments(self._report_path(1)), *self.pytest_arguments]
        return self._run_one(self._pytest(words), lane.limit_s)

    def _run_parts(self, lane: TestLane, words: Sequence[str]) -> str:
        """Run the parts of a lane at the same time. The output of the first one passes through, and
        that of the others follows. Options such as ``-k`` may leave a part without tests."""
        outputs = {part: self.folder / f"{self.name}-{part}.txt" for part in _numbers(lane)[1:]}

        def run(part: int) -> str:
            only = [f"--part={part}/{lane.parts}", *report_arguments(self._report_path(part))]
            command = self._pytest([*words, *only, *self.pytest_arguments])
            if part not in outputs:
                return self._run_one(command, lane.limit_s)
            with outputs[part].open("wb", buffering=0) as out:
                return self._run_one(command, lane.limit_s, out)

        with ThreadPoolExecutor(lane.parts) as pool:
            try:
                problems = [*pool.map(run, _numbers(lane))]
            except BaseException:
                self.cancelled.set()
                raise
        for part, output in outputs.items():
            self._say(f"\n=== lane {self.name}, part {part}")
            _copy(output, sys.stdout.buffer if self._output is None else self._output)
        if all(problem == _NOTHING_RAN for problem in problems):
            return _NOTHING_RAN
        return next((problem for problem in problems if problem not in ("", _NOTHING_RAN)), "")

    def _pytest(self, words: Sequence[str]) -> list[str]:
        option = f"faulthandler_timeout={_FAULTHANDLER_S}"
        return [str(self.python), "-m", "pytest", "-o", option, *words]

    def _run_one(
        self, command: Sequence[str], limit_s: float, output: BinaryIO | None = None
    ) -> str:
        """Run a command; return what failed, or an empty string. ``output``: a file for what it
        writes; None: that of the lane."""
        try:
            done = ended(
                command, limit_s, ROOT,
                output=output or self._output, gives_way=self.is_behind, cancelled=self.cancelled,
            )  # fmt: skip
        except TimedOutError:
            return f"ended after {limit_s:.0f} s"
        with self._adding:
            self.processor_s += done.processor_s
        if done.status == _NO_TESTS_COLLECTED and "pytest" in command:
            return _NOTHING_RAN
        return f"failed with status {done.status}" if done.status else ""

    def _say(self, text: str) -> None:
        if self._output is None:
            print(text, flush=True)
        else:
            self._output.write(f"{text}\n".encode())
