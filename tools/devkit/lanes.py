"""The lanes of the test suite: parts that ``./dev test`` runs each as a run of pytest of its own.

So Spark's session, the service tests' processes and the simulator's memory never share a process.
Within a lane, several processes run tests whose verdict does not depend on the clock. Tests that
measure rates and delays run apart from them: those that load the machine one at a time, in the lane
``rates``, and those that mostly wait two files at a time, in the lane ``waits``. Clients that
publish and consume at set rates while Spark judges them run one at a time, in the lane ``demo``.

These lanes wait for processes and for the clock, and leave processors unused. All other lanes run
behind them at the same time: see :mod:`devkit.lane_runs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from devkit.console import DevError
from devkit.lint import BUDGET_S
from devkit.paths import ROOT

TOTAL_BUDGET_S: Final = 840
"""How long all lanes together take at most on two quiet cores. The set-up of a clean checkout takes
up to a minute more, so CI has its verdict within a quarter of an hour."""


@dataclass(frozen=True)
class TestLane:
    """A part of the suite that one run of pytest covers."""

    name: str
    folders: tuple[str, ...]
    budget_s: int
    """How much processor time it takes at most. A lane over its budget is reported and does not
    fail, because machines differ."""
    limit_s: int
    """After this time ``./dev`` ends the lane, so that a test that hangs cannot hold all of CI."""
    processes: int = 1
    """How many processes of one run of pytest share its test files: each takes the next file when
    it has ended one, and imports all of them."""
    parts: int = 1
    """Into how many runs of pytest at the same time it is divided: each imports a part of its test
    files, settled beforehand (``tests/order.py``). For thousands of short tests this costs less
    than ``processes``."""
    marks: str = ""
    """Selects tests of its folders, as ``pytest -m`` does; empty selects all."""
    needs_spark: bool = False
    needs_promtool: bool = False
    needs_browser: bool = False
    is_timed: bool = False
    """Whether real processes and the clock decide its verdicts. Then a test that failed runs a
    second time."""
    is_first: bool = False
    """Whether it takes processors before other lanes, because its tests measure time. The others
    run behind it, with what it leaves."""
    after: str = ""
    """One of the lanes that run first: it has to have ended before this one begins behind them."""

    def test_folders(self) -> list[str]:
        """The folders that hold tests."""
        return [name for name in self.folders if any((ROOT / name).rglob("test_*.py"))]


LANES: Final = (
    # First those that measure time.
    TestLane(
        "rates",
        ("tests/service",),
        budget_s=65,
        limit_s=900,
        marks="alone",
        is_timed=True,
        is_first=True,
    ),
    TestLane(
        "waits",
        ("tests/service",),
        budget_s=30,
        limit_s=900,
        # Each file and its brokers use less than a fifth of a core.
        processes=2,
        marks="waits",
        is_timed=True,
        is_first=True,
    ),
    TestLane(
        "page",
        ("tests/page",),
        # Without the browser's processes that draw, which take as much: no parent waits for them.
        budget_s=75,
        limit_s=900,
        needs_browser=True,
        # The browser is a real process, and one test measures its first paint.
        is_timed=True,
        is_first=True,
    ),
    TestLane(
        "service",
        ("tests/service",),
        budget_s=190,
        limit_s=1200,
        # Its tests wait for the start and end of brokers most of the time.
        processes=4,
        marks="not alone and not waits",
        is_timed=True,
        is_first=True,
    ),
    TestLane(
        "demo",
        ("tests/demo", "tests/spark"),
        budget_s=80,
        limit_s=900,
        marks="alone",
        needs_spark=True,
        is_timed=True,
        is_first=True,
    ),
    # Then those that run behind them.
    TestLane(
        "unit",
        ("tests/unit", "tests/conformance", "tests/scenarios", "tests/tidy"),
        budget_s=450,
        limit_s=2400,
        parts=2,
    ),
    TestLane("simulation", ("tests/sim",), budget_s=175, limit_s=2400, processes=2),
    TestLane(
        "spark",
        ("tests/spark",),
        budget_s=470,
        limit_s=2400,
        # Each has a Java of its own, which takes long until its first test has an answer.
        processes=2,
        marks="not alone",
        needs_spark=True,
        # Brokers, streams and their checkpoints are real. None of its tests measures time, so it
        # runs behind others.
        is_timed=True,
        # It writes much to the disk, for which those whose rates are measured would wait.
        after="rates",
    ),
    # Short ones last, so that processors stay busy to the end.
    TestLane("faults", ("tests/faults",), budget_s=85, limit_s=2400, processes=2),
    TestLane("alerts", ("tests/alerts",), budget_s=15, limit_s=300, needs_promtool=True),
)
LINT: Final = "lint"
NAMES: Final = (LINT, *(lane.name for lane in LANES))


@dataclass(frozen=True)
class Order:
    """In which order lanes run."""

    first: Sequence[str]
    """One after the other."""
    behind: Sequence[str]
    """At the same time, some at once, with what the others leave of the machine."""


def lane_of(name: str) -> TestLane | None:
    """The lane of that name; None for the lint lane."""
    return next((lane for lane in LANES if lane.name == name), None)


def order_of(names: Sequence[str]) -> Order:
    """The order of lanes that were asked for."""
    first = [name for name in names if (lane := lane_of(name)) and lane.is_first]
    others = [name for name in names if name not in first]
    return Order(first, others) if first else Order(others, [])


def budget_s_of(name: str) -> int:
    """The budget of a lane, the lint lane included, in seconds of processor time."""
    lane = lane_of(name)
    return BUDGET_S if lane is None else lane.budget_s


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
