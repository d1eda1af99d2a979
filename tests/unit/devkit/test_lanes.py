"""Which lanes run, and what ``./dev test`` says of one that fails, hangs, is slow or is empty."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from devkit import lanes
from devkit.console import DevError
from devkit.lanes import Outcome
from devkit.lanes import TestLane as Lane
from devkit.processes import TimedOutError

PYTHON = Path(sys.executable)
QUIETLY = ["-p", "no:cacheprovider"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with the two lanes ``good`` and ``empty``."""
    # This process may be an xdist worker; pytest in the lanes must not take itself for one.
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    good = Lane("good", ("tests/good",), budget_s=60, limit_s=60)
    empty = Lane("empty", ("tests/empty",), budget_s=60, limit_s=60)
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "LANES", (good, empty))
    monkeypatch.setattr(lanes, "NAMES", ("lint", "good", "empty"))
    (tmp_path / "tests/good").mkdir(parents=True)
    (tmp_path / "tests/empty").mkdir()
    (tmp_path / "tests/good/test_it.py").write_text("def test_it():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone: by itself\n")
    return tmp_path


@dataclass
class Shown:
    """Stands for :func:`devkit.processes.shown`: each command ends with a given status."""

    statuses: dict[str, int] = field(default_factory=dict)
    """By a word of the command; 0 for a command without such a word."""
    commands: list[list[str]] = field(default_factory=list)

    def __call__(self, command: Sequence[str], limit_s: float, folder: Path) -> int:
        self.commands.append([*command])
        return next((self.statuses[word] for word in command if word in self.statuses), 0)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The commands that lanes start, instead of starting them."""
    made = Shown()
    monkeypatch.setattr(lanes, "shown", made)
    return made


def test_all_lanes_with_tests_run_unless_some_are_named(tree: Path) -> None:
    assert tree.exists()
    assert lanes.wanted_lanes([]) == (["lint", "good"], [])
    assert lanes.wanted_lanes(["good"]) == (["good"], [])
    assert lanes.wanted_lanes(["good", "--", "-k", "it"]) == (["good"], ["-k", "it"])


def test_an_unknown_lane_is_refused_with_those_that_exist() -> None:
    with pytest.raises(DevError, match="no test lane 'units': lint, unit, simulation"):
        lanes.wanted_lanes(["units"])


def test_a_real_lane_in_two_processes_passes_and_names_its_slowest_tests(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    two = Lane("good", ("tests/good",), 60, 60, processes=2, marks="not alone")
    monkeypatch.setattr(lanes, "LANES", (two,))
    (tree / "tests/good/test_it.py").write_text(
        "import os, pytest\n\n\n@pytest.mark.alone\ndef test_alone():\n    raise ValueError\n\n\n"
        "def test_it():\n    assert os.environ['PYTEST_XDIST_WORKER_COUNT'] == '2'\n"
    )
    assert lanes.run_lanes(PYTHON, ["good"], QUIETLY) == 0
    output = capfd.readouterr().out
    assert "= 1 passed in " in output
    assert "slowest of 1 tests:" in output
    assert output.splitlines()[-4].endswith(" s   tests/good/test_it.py::test_it")
    assert output.splitlines()[-1].endswith("of   60 s   every lane passed")


def test_a_lane_is_dealt_out_by_files_and_selected_by_its_marks(
    tree: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tree.exists()
    assert lanes.run_lanes(PYTHON, ["good"], ["-k", "it"]) == 0
    two = Lane("good", ("tests/good",), 60, 60, processes=2, marks="not alone")
    monkeypatch.setattr(lanes, "LANES", (two,))
    assert lanes.run_lanes(PYTHON, ["good"], []) == 0
    first, second = shown.commands
    assert not {"-n", "-m"} & set(first[3:])
    assert first[-2:] == ["-k", "it"]
    assert second[5 : second.index("tests/good")] == [
        "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not alone"
    ]  # fmt: skip


def test_one_failure_fails_the_whole_and_the_others_still_run(
    tree: Path, shown: Shown, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "tests/empty/test_bad.py").touch()
    shown.statuses["tests/empty"] = 1
    assert lanes.run_lanes(PYTHON, ["empty", "good"], []) == 1
    output = capfd.readouterr().out
    assert "lane empty: failed with status 1" in output
    assert "lane good: passed" in output
    assert output.splitlines()[-1].endswith("failed: empty")


def test_a_lane_that_is_named_and_empty_fails(
    tree: Path, shown: Shown, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lanes.run_lanes(PYTHON, ["empty"], []) == 1
    assert "there are no tests in tests/empty" in capfd.readouterr().out
    assert not shown.commands
    (tree / "tests/empty/test_none.py").touch()
    shown.statuses["pytest"] = pytest.ExitCode.NO_TESTS_COLLECTED
    assert lanes.run_lanes(PYTHON, ["empty"], []) == 1
    assert "pytest found no test to run" in capfd.readouterr().out


def test_a_lane_that_hangs_is_ended_and_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def hang(*_: object) -> int:
        raise TimedOutError("pytest hangs")

    assert tree.exists()
    monkeypatch.setattr(lanes, "shown", hang)
    assert lanes.run_lanes(PYTHON, ["good"], []) == 1
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


def again(tree: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, runs_again: bool) -> int:
    lane = Lane("good", ("tests/good",), 60, 60, runs_again=runs_again)
    monkeypatch.setattr(lanes, "LANES", (lane,))
    (tree / "tests/good/test_it.py").write_text(text)
    return lanes.run_lanes(PYTHON, ["good"], QUIETLY)


def test_what_failed_once_runs_a_second_time_and_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert again(tree, monkeypatch, FAILS_ONCE, runs_again=True) == 0
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
    assert again(tree, monkeypatch, "def test_it():\n    assert False\n", runs_again=True) == 1
    output = capfd.readouterr().out
    assert output.count("= 1 failed in ") == 2
    assert output.splitlines()[-1].endswith("failed: good")


def test_there_is_one_attempt_where_no_clock_decides_many_fail_or_an_import_does(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    many = "import pytest\n\n\n@pytest.mark.parametrize('at', range(5))\ndef test_it(at):\n"
    assert again(tree, monkeypatch, FAILS_ONCE, runs_again=False) == 1
    assert again(tree, monkeypatch, f"{many}    assert False\n", runs_again=True) == 1
    assert again(tree, monkeypatch, "import nothing_of_that_name\n", runs_again=True) == 1
    assert "a second attempt" not in capfd.readouterr().out


def test_only_lanes_with_real_processes_run_again() -> None:
    found = {lane.name for lane in lanes.LANES if lane.runs_again}
    assert found == {"service", "rates", "waits", "page", "spark", "demo"}


def test_a_lane_over_its_budget_is_named_and_passes() -> None:
    slow, quick, red = (
        Outcome("slow", 61.04, 60, ""),
        Outcome("quick", 1, 60, ""),
        Outcome("red", 70, 60, "failed with status 1"),
    )
    assert lanes.summary_lines([slow, quick]) == [
        "  slow          61.0 s of   60 s   passed, over its budget of 60 s",
        "  quick          1.0 s of   60 s   passed",
        "  total         62.0 s of  120 s   every lane passed",
    ]
    last = lanes.summary_lines([slow, quick, red])[-1]
    assert last == "  total        132.0 s of  180 s   failed: red"
    assert red.verdict == "failed with status 1, over its budget of 60 s"


def test_the_budgets_of_all_lanes_are_thirteen_minutes() -> None:
    assert sum(lanes.budget_s_of(name) for name in lanes.NAMES) <= 13 * 60
    assert all(lanes.budget_s_of(lane.name) < lane.limit_s for lane in lanes.LANES)


def test_every_folder_of_tests_belongs_to_a_lane() -> None:
    owned = {folder for lane in lanes.LANES for folder in lane.folders}
    owned.add("tests/preload")  # ./dev soak faults: they need a compiler and take minutes
    found = {
        f"tests/{path.relative_to(lanes.ROOT / 'tests').parts[0]}"
        for path in (lanes.ROOT / "tests").rglob("test_*.py")
    }
    assert found <= owned
