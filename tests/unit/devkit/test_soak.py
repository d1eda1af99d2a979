"""``./dev soak`` runs the grid or kills, so many times, and refuses anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import soak
from devkit.console import DevError

PYTHON = Path(sys.executable)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose grid fails with the number of seeds, and whose kills with theirs."""
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/adaptive_grid.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n")
    (tmp_path / "tests/spark").mkdir(parents=True)
    (tmp_path / "tests/spark/conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--kills', type=int)\n"
    )
    (tmp_path / "tests/spark/test_pipeline_kills.py").write_text(
        "import pytest\n"
        "def test_kills(request):\n"
        "    pytest.exit('told', returncode=request.config.getoption('--kills'))\n"
    )
    return tmp_path


def test_the_grid_gets_the_seeds_and_gives_its_status(tree: Path) -> None:
    assert tree.exists()
    assert soak.soak(PYTHON, ["3"]) == 3
    assert soak.soak(PYTHON, []) == soak.SEEDS


def test_kills_are_a_test_that_gets_their_number(tree: Path) -> None:
    assert tree.exists()
    assert soak.soak(PYTHON, ["kills", "7"]) == 7
    assert soak.soak(PYTHON, ["kills"]) == soak.KILLS


def test_kills_of_a_broker_are_a_test_that_gets_their_number(tree: Path) -> None:
    folder = tree / "tests/service/faults"
    folder.mkdir(parents=True)
    (folder.parent / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--rounds', type=int)\n"
    )
    (folder / "test_f01_kills_beside_changes.py").write_text(
        "import pytest\n"
        "def test_kills(request):\n"
        "    pytest.exit('told', returncode=request.config.getoption('--rounds'))\n"
    )
    assert soak.soak(PYTHON, ["broker", "7"]) == 7
    assert soak.soak(PYTHON, ["broker"]) == soak.KILLS


def test_clients_are_a_test_that_gets_their_number(tree: Path) -> None:
    folder = tree / "tests/service"
    folder.mkdir()
    (folder / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--clients', type=int)\n"
    )
    (folder / "test_client_memory.py").write_text(
        "import pytest\n"
        "def test_clients(request):\n"
        "    pytest.exit('told', returncode=request.config.getoption('--clients') // 1_000)\n"
    )
    assert soak.soak(PYTHON, ["clients", "7000"]) == 7
    assert soak.soak(PYTHON, ["clients"]) == soak.CLIENTS // 1_000
    with pytest.raises(DevError, match="how many clients"):
        soak.soak(PYTHON, ["clients", "many"])


def test_topics_are_a_test_that_gets_their_number(tree: Path) -> None:
    folder = tree / "tests/faults"
    folder.mkdir()
    (folder / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--topics', type=int)\n"
    )
    (folder / "test_f15_many_topics.py").write_text(
        "import pytest\n"
        "def test_topics(request):\n"
        "    pytest.exit('told', returncode=request.config.getoption('--topics') // 1_000)\n"
    )
    assert soak.soak(PYTHON, ["topics", "7000"]) == 7
    assert soak.soak(PYTHON, ["topics"]) == soak.TOPICS // 1_000


def test_the_space_bound_is_a_test_that_gets_its_segments(tree: Path) -> None:
    folder = tree / "tests/sim"
    folder.mkdir()
    (folder / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--lifetimes', type=int)\n"
    )
    (folder / "test_space_bound.py").write_text(
        "import pytest\n"
        "def test_bound(request):\n"
        "    pytest.exit('told', returncode=request.config.getoption('--lifetimes') // 100)\n"
    )
    assert soak.soak(PYTHON, ["space", "700"]) == 7
    assert soak.soak(PYTHON, ["space"]) == soak.LIFETIMES // 100


def test_power_cuts_get_a_number_of_seeds_or_none_at_all(tree: Path) -> None:
    folder = tree / "tests/faults"
    folder.mkdir()
    (folder / "more_power_cuts.py").write_text(
        "import sys\nsys.exit(int(sys.argv[1]) if sys.argv[1:] else 5)\n"
    )
    assert soak.soak(PYTHON, ["powercuts", "7"]) == 7
    assert soak.soak(PYTHON, ["powercuts"]) == soak.POWER_CUT_SEEDS
    assert soak.soak(PYTHON, ["powercuts", "forever"]) == 5
    with pytest.raises(DevError, match="how many seeds"):
        soak.soak(PYTHON, ["powercuts", "always"])


@pytest.mark.parametrize("words", [["kills", "0"], ["kills", "all"], ["kills", "1", "2"]])
def test_other_kills_are_refused(words: list[str]) -> None:
    with pytest.raises(DevError, match="how many kills"):
        soak.soak(PYTHON, words)


@pytest.mark.parametrize("words", [["many"], ["0"], ["-1"], ["3", "4"]])
def test_anything_else_is_refused(words: list[str]) -> None:
    with pytest.raises(DevError, match="how many seeds"):
        soak.soak(PYTHON, words)
