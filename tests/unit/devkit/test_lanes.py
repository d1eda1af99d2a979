"""Which lanes run and in which order, and that every folder of tests belongs to one."""

from __future__ import annotations

from pathlib import Path

import pytest
from devkit import lanes
from devkit.console import DevError
from devkit.lanes import Order
from devkit.lanes import TestLane as Lane


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with the two lanes ``good`` and ``empty``."""
    good = Lane("good", ("tests/good",), budget_s=60, limit_s=60)
    empty = Lane("empty", ("tests/empty",), budget_s=60, limit_s=60)
    monkeypatch.setattr(lanes, "ROOT", tmp_path)
    monkeypatch.setattr(lanes, "LANES", (good, empty))
    monkeypatch.setattr(lanes, "NAMES", ("lint", "good", "empty"))
    (tmp_path / "tests/good").mkdir(parents=True)
    (tmp_path / "tests/empty").mkdir()
    (tmp_path / "tests/good/test_it.py").touch()
    return tmp_path


def test_all_lanes_with_tests_run_unless_some_are_named(tree: Path) -> None:
    assert tree.exists()
    assert lanes.wanted_lanes([]) == (["lint", "good"], [])
    assert lanes.wanted_lanes(["good"]) == (["good"], [])
    assert lanes.wanted_lanes(["good", "--", "-k", "it"]) == (["good"], ["-k", "it"])


def test_an_unknown_lane_is_refused_with_those_that_exist() -> None:
    with pytest.raises(DevError, match="no test lane 'units': lint, rates, waits"):
        lanes.wanted_lanes(["units"])


def test_lanes_that_measure_time_run_first_and_the_others_behind_them() -> None:
    assert lanes.order_of(lanes.NAMES) == Order(
        first=["rates", "waits", "page", "service", "demo"],
        behind=["lint", "unit", "simulation", "spark", "faults", "alerts"],
    )
    assert lanes.order_of(["unit", "faults"]) == Order(["unit", "faults"], [])
    assert lanes.order_of(["unit", "waits"]) == Order(["waits"], ["unit"])


def test_only_lanes_with_real_processes_are_timed() -> None:
    found = {lane.name for lane in lanes.LANES if lane.is_timed}
    assert found == {"service", "rates", "waits", "page", "spark", "demo"}


def test_every_lane_that_runs_first_gives_its_tests_a_second_attempt() -> None:
    assert all(lane.is_timed for lane in lanes.LANES if lane.is_first)


def test_no_lane_with_second_attempts_is_in_parts() -> None:
    """Of one whose import failed, nothing runs again: a report alone does not show that of another
    part."""
    assert not any(lane.is_timed and lane.parts > 1 for lane in lanes.LANES)
    assert not any(lane.processes > 1 and lane.parts > 1 for lane in lanes.LANES)


def test_a_lane_begins_after_one_that_runs_first() -> None:
    first = {lane.name for lane in lanes.LANES if lane.is_first}
    assert {lane.after for lane in lanes.LANES if lane.after} <= first


def test_two_processors_can_do_the_budgets_of_all_lanes_in_the_time_for_all() -> None:
    assert sum(lanes.budget_s_of(name) for name in lanes.NAMES) <= 2 * lanes.TOTAL_BUDGET_S
    assert all(lanes.budget_s_of(lane.name) < 2 * lane.limit_s for lane in lanes.LANES)


def test_every_folder_of_tests_belongs_to_a_lane() -> None:
    owned = {folder for lane in lanes.LANES for folder in lane.folders}
    owned.add("tests/preload")  # ./dev soak faults: they need a compiler and take minutes
    found = {
        f"tests/{path.relative_to(lanes.ROOT / 'tests').parts[0]}"
        for path in (lanes.ROOT / "tests").rglob("test_*.py")
    }
    assert found <= owned


def test_every_test_of_the_demo_has_the_mark_that_its_lane_selects() -> None:
    files = [*(lanes.ROOT / "tests/demo").glob("test_*.py")]
    assert files
    assert all("\npytestmark = pytest.mark.alone\n" in path.read_text() for path in files)
