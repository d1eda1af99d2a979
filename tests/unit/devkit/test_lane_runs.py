"""What ``./dev test`` says of a lane that fails, hangs, is slow, is empty or runs behind others."""

from __future__ import annotations

import shutil
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from devkit import lane_runs, lanes
from devkit.lane_runs import Outcome
from devkit.lanes import TestLane as Lane
from devkit.paths import ROOT as REPOSITORY
from devkit.processes import Ended, TimedOutError

from tests.order import part_of

PYTHON = Path(sys.executable)
QUIETLY = ["-p", "no:cacheprovider"]
BUSY_S = 600
"""What a real lane of one test may take: these run behind others, on whatever those leave."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with the two lanes ``good`` and ``empty``."""
    # This process may be an xdist worker; pytest in the lanes must not take itself for one.
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    # To import the plugins takes most of the time of a run without tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    good = Lane("good", ("tests/good",), budget_s=60, limit_s=60)
    empty = Lane("empty", ("tests/empty",), budget_s=60, limit_s=60)
    for module in (lanes, lane_runs):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "LANES", (good, empty))
    monkeypatch.setattr(lanes, "NAMES", ("lint", "good", "empty"))
    (tmp_path / "tests/good").mkdir(parents=True)
    (tmp_path / "tests/empty").mkdir()
    (tmp_path / "tests/good/test_it.py").write_text("def test_it():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone: by itself\n")
    return tmp_path


@dataclass
class Programs:
    """Stands for :func:`devkit.processes.ended`: each command ends with a given status."""

    statuses: dict[str, int] = field(default_factory=dict)
    """By a word of the command; 0 for a command without such a word."""
    commands: list[list[str]] = field(default_factory=list)

    def __call__(
        self, command: Sequence[str], limit_s: float, folder: Path, **how: object
    ) -> Ended:
        self.commands.append([*command])
        status = next((self.statuses[word] for word in command if word in self.statuses), 0)
        return Ended(status, processor_s=1.5)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    """The commands that lanes start, instead of starting them."""
    made = Programs()
    monkeypatch.setattr(lane_runs, "ended", made)
    return made


def test_a_real_lane_in_two_processes_passes_and_names_its_slowest_tests(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    two = Lane("good", ("tests/good",), 60, BUSY_S, processes=2, marks="not alone")
    monkeypatch.setattr(lanes, "LANES", (two,))
    (tree / "tests/good/test_it.py").write_text(
        "import os, pytest\n\n\n@pytest.mark.alone\ndef test_alone():\n    raise ValueError\n\n\n"
        "def test_it():\n    assert os.environ['PYTEST_XDIST_WORKER_COUNT'] == '2'\n"
    )
    assert lane_runs.run_lanes(PYTHON, ["good"], QUIETLY) == 0
    output = capfd.readouterr().out
    assert "= 1 passed in " in output
    assert "slowest of 1 tests:" in output
    assert output.splitlines()[-4].endswith(" s   tests/good/test_it.py::test_it")
    assert output.splitlines()[-1].endswith("of   60 s   every lane passed")


def test_a_lane_is_dealt_out_by_files_and_selected_by_its_marks(
    tree: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tree.exists()
    assert lane_runs.run_lanes(PYTHON, ["good"], ["-k", "it"]) == 0
    two = Lane("good", ("tests/good",), 60, 60, processes=2, marks="not alone")
    monkeypatch.setattr(lanes, "LANES", (two,))
    assert lane_runs.run_lanes(PYTHON, ["good"], []) == 0
    first, second = programs.commands
    assert not {"-n", "-m"} & set(first[3:])
    assert first[-2:] == ["-k", "it"]
    assert second[5 : second.index("tests/good")] == [
        "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not alone"
    ]  # fmt: skip


def in_parts(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lane ``good`` is in two parts, and pytest knows them as in this repository."""
    two = Lane("good", ("tests/good",), 60, BUSY_S, parts=2)
    monkeypatch.setattr(lanes, "LANES", (two,))
    for name in ("conftest.py", "order.py"):
        shutil.copy(REPOSITORY / "tests" / name, tree / "tests")
    (tree / "pytest.ini").write_text("[pytest]\npythonpath = .\n")


def test_every_file_of_a_real_lane_runs_in_one_of_two_parts(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    in_parts(tree, monkeypatch)
    names = [f"tests/good/test_{number}.py" for number in range(10)]
    counts = Counter(part_of(name, 2) for name in ["tests/good/test_it.py", *names])
    for name in names:
        (tree / name).write_text("def test_it():\n    pass\n")
    assert lane_runs.run_lanes(PYTHON, ["good"], QUIETLY) == 0
    output = capfd.readouterr().out
    first, _, second = output.partition("\n=== lane good, part 2\n")
    assert min(counts.values()) > 0
    assert f"= {counts[1]} passed in " in first
    assert f"= {counts[2]} passed in " in second
    assert "slowest of 11 tests:" in output


def test_a_part_may_be_left_without_tests_and_a_failure_in_one_fails_the_lane(
    tree: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_parts(tree, monkeypatch)
    nothing = int(pytest.ExitCode.NO_TESTS_COLLECTED)

    def problem(first: int, second: int) -> str:
        programs.statuses = {"--part=1/2": first, "--part=2/2": second}
        run = lane_runs.LaneRun(PYTHON, tree, ["-k", "it"], "good").run()
        assert run.processor_s == 3.0
        return run.problem

    assert problem(0, nothing) == problem(nothing, 0) == problem(0, 0) == ""
    assert problem(nothing, nothing) == "pytest found no test to run"
    assert problem(1, 0) == problem(nothing, 1) == "failed with status 1"
    assert all(command[-2:] == ["-k", "it"] for command in programs.commands)


def test_an_interruption_ends_every_part(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_parts(tree, monkeypatch)
    real, begun = lane_runs.ended, threading.Event()

    def interrupted(command: Sequence[str], *given: Any, **how: Any) -> Ended:
        if "--part=2/2" in command:
            begun.set()
            return real([sys.executable, "-c", "import time; time.sleep(600)"], *given, **how)
        assert begun.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(lane_runs, "ended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lane_runs.run_lanes(PYTHON, ["good"], [])


def test_one_failure_fails_the_whole_and_the_others_still_run(
    tree: Path, programs: Programs, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "tests/empty/test_bad.py").touch()
    programs.statuses["tests/empty"] = 1
    assert lane_runs.run_lanes(PYTHON, ["empty", "good"], []) == 1
    output = capfd.readouterr().out
    assert "lane empty: failed with status 1" in output
    assert "lane good: passed" in output
    assert output.splitlines()[-1].endswith("failed: empty")


def test_a_lane_that_is_named_and_empty_fails(
    tree: Path, programs: Programs, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lane_runs.run_lanes(PYTHON, ["empty"], []) == 1
    assert "there are no tests in tests/empty" in capfd.readouterr().out
    assert not programs.commands
    (tree / "tests/empty/test_none.py").touch()
    programs.statuses["pytest"] = pytest.ExitCode.NO_TESTS_COLLECTED
    assert lane_runs.run_lanes(PYTHON, ["empty"], []) == 1
    assert "pytest found no test to run" in capfd.readouterr().out


def test_a_lane_that_hangs_is_ended_and_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def hang(*_: object, **__: object) -> Ended:
        raise TimedOutError("pytest hangs")

    assert tree.exists()
    monkeypatch.setattr(lane_runs, "ended", hang)
    assert lane_runs.run_lanes(PYTHON, ["good"], []) == 1
    assert "lane good: ended after 60 s" in capfd.readouterr().out


# A test that the machine may have broken ---------------------------------------------------------

FAILS_ONCE = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["one", "two words"])
def test_fails_once(name):
    mark = Path(__file__).with_name(name)
    known = mark.exists()
    mark.touch()
    assert known


def test_passes():
    pass
"""


def again(tree: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, is_timed: bool) -> int:
    lane = Lane("good", ("tests/good",), 60, BUSY_S, is_timed=is_timed)
    monkeypatch.setattr(lanes, "LANES", (lane,))
    (tree / "tests/good/test_it.py").write_text(text)
    return lane_runs.run_lanes(PYTHON, ["good"], QUIETLY)


def test_what_failed_once_runs_a_second_time_and_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert again(tree, monkeypatch, FAILS_ONCE, is_timed=True) == 0
    output = capfd.readouterr().out
    assert "= 2 failed, 1 passed in " in output
    assert "= 2 passed in " in output
    *_, lane, _, first, second = output.splitlines()
    assert lane.endswith("passed, 2 of its tests at the second attempt")
    assert first.endswith("attempt: tests/good/test_it.py::test_fails_once[one]")
    assert second.endswith("attempt: tests/good/test_it.py::test_fails_once[two words]")


def test_what_fails_twice_fails(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert again(tree, monkeypatch, "def test_it():\n    assert False\n", is_timed=True) == 1
    output = capfd.readouterr().out
    assert output.count("= 1 failed in ") == 2
    assert output.splitlines()[-1].endswith("failed: good")


def test_there_is_one_attempt_where_no_clock_decides_many_fail_or_an_import_does(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    many = "import pytest\n\n\n@pytest.mark.parametrize('at', range(5))\ndef test_it(at):\n"
    assert again(tree, monkeypatch, FAILS_ONCE, is_timed=False) == 1
    assert again(tree, monkeypatch, f"{many}    assert False\n", is_timed=True) == 1
    assert again(tree, monkeypatch, "import nothing_of_that_name\n", is_timed=True) == 1
    assert "a second attempt" not in capfd.readouterr().out


def test_a_lane_over_its_budget_is_named_and_passes() -> None:
    slow, quick, red = (
        Outcome("slow", 61.04, 90.06, 60, ""),
        Outcome("quick", 1, 1.5, 60, ""),
        Outcome("red", 70, 140, 60, "failed with status 1"),
    )
    assert lane_runs.summary_lines([slow, quick], 61.2) == [
        "  slow          61.0 s    90.1 s of CPU of   60 s   passed, over its budget of 60 s",
        "  quick          1.0 s     1.5 s of CPU of   60 s   passed",
        "  total         61.2 s    91.6 s of CPU of  120 s   every lane passed",
    ]
    last = lane_runs.summary_lines([slow, quick, red], 1_000)[-1]
    assert last == (
        "  total       1000.0 s   231.6 s of CPU of  180 s   failed: red, over the budget of 840 s"
    )
    assert red.verdict == "failed with status 1, over its budget of 60 s"


# Lanes side by side ------------------------------------------------------------------------------

WAITS_FOR_BOTH = """
from pathlib import Path
from time import monotonic, sleep


def test_meets_the_lane_behind_it():
    end = monotonic() + 300
    while not Path("behind").exists():
        assert monotonic() < end
        sleep(0.01)
    Path("beside").touch()
"""
GIVES_WAY = """
import os
from pathlib import Path
from time import monotonic, sleep


def test_gives_way():
    assert os.sched_getscheduler(0) == os.SCHED_IDLE
    Path("behind").touch()
    end = monotonic() + 300
    while not Path("beside").exists():
        assert monotonic() < end
        sleep(0.01)
"""


@pytest.fixture
def side_by_side(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tree, whose lane ``good`` runs first, and whose lane ``empty`` behind it."""
    good = Lane("good", ("tests/good",), 60, BUSY_S, is_timed=True, is_first=True)
    empty = Lane("empty", ("tests/empty",), 60, BUSY_S)
    monkeypatch.setattr(lanes, "LANES", (empty, good))
    return tree


def test_a_lane_runs_behind_one_that_measures_time(
    side_by_side: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (side_by_side / "tests/good/test_it.py").write_text(WAITS_FOR_BOTH)
    (side_by_side / "tests/empty/test_it.py").write_text(GIVES_WAY)
    assert lane_runs.run_lanes(PYTHON, ["empty", "good"], QUIETLY) == 0
    output = capfd.readouterr().out
    assert output.count("= 1 passed in ") == 2
    ends = [output.index(f"=== lane {name}: passed") for name in ("good", "empty")]
    assert ends[0] < output.index("\n=== lane empty\n") < ends[1]
    assert output.splitlines()[-1].endswith("every lane passed")


def test_a_lane_that_begins_after_another_waits_for_its_end(
    side_by_side: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(lane for lane in lanes.LANES if lane.is_first)
    others = [
        Lane("empty", ("tests/empty",), 60, 60, after=first.name),
        Lane("third", ("tests/third",), 60, 60),
    ]
    monkeypatch.setattr(lanes, "LANES", (*others, first))
    for name in ("empty", "third"):
        (side_by_side / "tests" / name).mkdir(exist_ok=True)
        (side_by_side / "tests" / name / "test_it.py").touch()
    third_has_run = threading.Event()

    def ended(command: Sequence[str], *given: Any, **how: Any) -> Ended:
        if "tests/good" in command:
            assert third_has_run.wait(60)
        done = programs(command, *given, **how)
        if "tests/third" in command:
            third_has_run.set()
        return done

    monkeypatch.setattr(lane_runs, "ended", ended)
    assert lane_runs.run_lanes(PYTHON, ["empty", "third", "good"], []) == 0
    order = [word for command in programs.commands for word in command if word[:6] == "tests/"]
    assert order == ["tests/third", "tests/good", "tests/empty"]


def test_a_failure_behind_another_lane_fails_the_whole(
    side_by_side: Path, programs: Programs, capfd: pytest.CaptureFixture[str]
) -> None:
    (side_by_side / "tests/empty/test_bad.py").touch()
    programs.statuses["tests/empty"] = 1
    assert lane_runs.run_lanes(PYTHON, ["empty", "good"], []) == 1
    assert capfd.readouterr().out.splitlines()[-1].endswith("failed: empty")


def test_an_interruption_ends_the_lane_behind_as_well(
    side_by_side: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun = lane_runs.ended, threading.Event()

    def interrupted(command: Sequence[str], *given: Any, **how: Any) -> Ended:
        if how["gives_way"]:
            begun.set()
            return real([sys.executable, "-c", "import time; time.sleep(600)"], *given, **how)
        assert begun.wait(60)
        raise KeyboardInterrupt

    (side_by_side / "tests/empty/test_it.py").touch()
    monkeypatch.setattr(lane_runs, "ended", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lane_runs.run_lanes(PYTHON, ["empty", "good"], [])


def test_only_lanes_that_run_when_the_others_end_are_cancelled() -> None:
    """One that has ended may get a second attempt."""
    ended, running = threading.Event(), threading.Event()

    def lane(is_over: threading.Event) -> Any:
        return SimpleNamespace(run=is_over.is_set, is_over=is_over, cancelled=threading.Event())

    lanes: list[Any] = [lane(ended), lane(running)]
    ended.set()
    with lane_runs._running(lanes):
        pass
    assert [each.cancelled.is_set() for each in lanes] == [False, True]
