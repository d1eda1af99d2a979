"""Which lanes run, and what becomes of one that fails, hangs or is empty."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import lanes
from devkit.console import DevError
from devkit.lanes import TestLane as Lane

PYTHON = Path(sys.executable)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with the two lanes ``good`` and ``empty``."""
    # This process may be one of two, which is nothing to the lanes that it runs.
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    good = Lane("good", ("tests/good",), 60)
    empty = Lane("empty", ("tests/empty",), 60)
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "LANES", (good, empty))
    monkeypatch.setattr(lanes, "NAMES", ("lint", "good", "empty"))
    (tmp_path / "tests/good").mkdir(parents=True)
    (tmp_path / "tests/empty").mkdir()
    (tmp_path / "tests/good/test_it.py").write_text("def test_it():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_all_lanes_with_tests_run_unless_some_are_named(tree: Path) -> None:
    assert tree.exists()
    assert lanes.wanted_lanes([]) == (["lint", "good"], [])
    assert lanes.wanted_lanes(["good"]) == (["good"], [])
    assert lanes.wanted_lanes(["good", "--", "-k", "it"]) == (["good"], ["-k", "it"])


def test_an_unknown_lane_is_refused_with_those_that_exist() -> None:
    with pytest.raises(DevError, match="no test lane 'units': lint, unit, simulation"):
        lanes.wanted_lanes(["units"])


def test_a_lane_that_passes(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert tree.exists()
    assert lanes.run_lanes(PYTHON, ["good"], ["-p", "no:cacheprovider"]) == 0
    captured = capfd.readouterr()
    assert "= 1 passed in " in captured.out
    assert "every lane passed" in captured.out.splitlines()[-1]


def test_a_lane_in_two_processes(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import os\n\ndef test_it():\n    assert os.environ['PYTEST_XDIST_WORKER_COUNT'] == '2'\n"
    )
    for name in ("test_it.py", "test_other.py"):
        (tree / "tests/good" / name).write_text(text)
    assert lanes.run_lanes(PYTHON, ["good"], ["-p", "no:cacheprovider"]) == 1
    monkeypatch.setattr(lanes, "LANES", (Lane("good", ("tests/good",), 60, processes=2),))
    assert lanes.run_lanes(PYTHON, ["good"], ["-p", "no:cacheprovider"]) == 0


def test_a_lane_of_marked_tests(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "pytest.ini").write_text("[pytest]\nmarkers = alone: by itself\n")
    (tree / "tests/good/test_it.py").write_text(
        "import pytest\n\n@pytest.mark.alone\ndef test_it():\n    raise ValueError\n\n"
        "def test_other():\n    pass\n"
    )
    both = [
        Lane(marks.split()[0], ("tests/good",), 60, marks=marks) for marks in ("not alone", "alone")
    ]
    monkeypatch.setattr(lanes, "LANES", both)
    assert lanes.run_lanes(PYTHON, ["not"], ["-p", "no:cacheprovider"]) == 0
    assert lanes.run_lanes(PYTHON, ["alone"], ["-p", "no:cacheprovider"]) == 1


def test_one_failure_fails_the_whole_and_the_others_still_run(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "tests/empty/test_bad.py").write_text("def test_bad():\n    raise ValueError\n")
    assert lanes.run_lanes(PYTHON, ["empty", "good"], ["-p", "no:cacheprovider"]) == 1
    output = capfd.readouterr().out
    assert "lane empty: failed with status 1" in output
    assert "lane good: passed" in output
    assert output.splitlines()[-1].endswith("failed: empty")


def test_a_lane_that_is_named_and_empty_fails(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert lanes.run_lanes(PYTHON, ["empty"], []) == 1
    assert "there are no tests in tests/empty" in capfd.readouterr().out
    (tree / "tests/empty/test_none.py").write_text("")
    assert lanes.run_lanes(PYTHON, ["empty"], ["-p", "no:cacheprovider"]) == 1
    assert "pytest found no test to run" in capfd.readouterr().out


def test_a_lane_that_hangs_is_given_up(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "tests/good/test_it.py").write_text(
        "import threading\n\ndef test_it():\n    threading.Event().wait()\n"
    )
    monkeypatch.setattr(lanes, "LANES", (Lane("good", ("tests/good",), 1),))
    assert lanes.run_lanes(PYTHON, ["good"], ["-p", "no:cacheprovider"]) == 1


def test_every_folder_of_tests_belongs_to_a_lane() -> None:
    owned = {folder for lane in lanes.LANES for folder in lane.folders}
    found = {
        f"tests/{path.relative_to(lanes.ROOT / 'tests').parts[0]}"
        for path in (lanes.ROOT / "tests").rglob("test_*.py")
    }
    assert found <= owned
