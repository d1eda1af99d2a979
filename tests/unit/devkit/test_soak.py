"""``./dev soak`` runs the grid or kills, so many times, and refuses anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import soak
from devkit.console import DevError

PYTHON = Path(sys.executable)


def add_test(file: Path, option: str, unit: int, options_in: Path | None = None) -> None:
    """Write a test that ends pytest with the number in ``option``, in units of ``unit``, as its
    status. The folder ``options_in``, by default that of the file, knows the option."""
    file.parent.mkdir(parents=True)
    ((options_in or file.parent) / "conftest.py").write_text(
        f"def pytest_addoption(parser):\n    parser.addoption('{option}', type=int)\n"
    )
    file.write_text(
        "import pytest\n"
        "def test_number(request):\n"
        f"    pytest.exit('told', returncode=request.config.getoption('{option}') // {unit})\n"
    )


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose grid fails with the number of seeds, and whose kills with theirs."""
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    # To import the plugins takes most of the time of a run without tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/adaptive_grid.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n")
    add_test(tmp_path / "tests/spark/test_pipeline_kills.py", "--kills", 1)
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
    file = tree / "tests/service/faults/test_f01_kills_beside_changes.py"
    add_test(file, "--rounds", 1, options_in=tree / "tests/service")
    assert soak.soak(PYTHON, ["broker", "7"]) == 7
    assert soak.soak(PYTHON, ["broker"]) == soak.KILLS


def test_clients_over_tls_are_a_test_that_gets_their_number(tree: Path) -> None:
    file = tree / "tests/service/faults/test_f14_tls_crowd.py"
    add_test(file, "--clients", 1_000, options_in=tree / "tests/service")
    assert soak.soak(PYTHON, ["tls", "7000"]) == 7


def test_clients_are_a_test_that_gets_their_number(tree: Path) -> None:
    add_test(tree / "tests/service/test_client_memory.py", "--clients", 1_000)
    assert soak.soak(PYTHON, ["clients", "7000"]) == 7
    assert soak.soak(PYTHON, ["clients"]) == soak.CLIENTS // 1_000
    with pytest.raises(DevError, match="how many clients"):
        soak.soak(PYTHON, ["clients", "many"])


def test_topics_are_a_test_that_gets_their_number(tree: Path) -> None:
    add_test(tree / "tests/faults/test_f15_many_topics.py", "--topics", 1_000)
    assert soak.soak(PYTHON, ["topics", "7000"]) == 7
    assert soak.soak(PYTHON, ["topics"]) == soak.TOPICS // 1_000


def test_flips_are_tests_of_the_log_and_of_the_metadata(tree: Path) -> None:
    add_test(tree / "tests/faults/test_f04_flipped_bytes.py", "--flip-stride", 1)
    store = tree / "tests/unit/metadata/test_sqlite_store.py"
    store.parent.mkdir(parents=True)
    store.write_text("def test_flipped(): pass\n")
    assert soak.soak(PYTHON, ["flips", "7"]) == 7
    assert soak.soak(PYTHON, ["flips"]) == 1


def test_the_space_bound_is_a_test_that_gets_its_segments(tree: Path) -> None:
    add_test(tree / "tests/sim/test_space_bound.py", "--lifetimes", 100)
    assert soak.soak(PYTHON, ["space", "700"]) == 7
    assert soak.soak(PYTHON, ["space"]) == soak.LIFETIMES // 100


def test_faults_are_a_folder_of_tests_that_get_the_seconds_of_each(tree: Path) -> None:
    add_test(tree / "tests/preload/test_f07_slow_disk.py", "--seconds", 1)
    assert soak.soak(PYTHON, ["faults", "7"]) == 7
    assert soak.soak(PYTHON, ["faults"]) == soak.FAULT_SECONDS


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


def test_races_get_a_number_of_seeds(tree: Path) -> None:
    folder = tree / "tests/sim"
    folder.mkdir()
    (folder / "more_races.py").write_text("import sys\nsys.exit(int(sys.argv[1]) % 256)\n")
    assert soak.soak(PYTHON, ["races", "7"]) == 7
    assert soak.soak(PYTHON, ["races"]) == soak.RACE_SEEDS


@pytest.mark.parametrize("words", [["kills", "0"], ["kills", "all"], ["kills", "1", "2"]])
def test_other_kills_are_refused(words: list[str]) -> None:
    with pytest.raises(DevError, match="how many kills"):
        soak.soak(PYTHON, words)


@pytest.mark.parametrize("words", [["many"], ["0"], ["-1"], ["3", "4"]])
def test_anything_else_is_refused(words: list[str]) -> None:
    with pytest.raises(DevError, match="how many seeds"):
        soak.soak(PYTHON, words)


def test_the_fuzzer_is_a_test_that_gets_its_seed(tree: Path) -> None:
    file = tree / "tests/service/test_fuzzing.py"
    add_test(file, "--fuzz-seed", 1)
    conftest = file.parent / "conftest.py"
    conftest.write_text(
        f"{conftest.read_text()}    parser.addoption('--fuzz-minutes', type=float)\n"
    )
    assert soak.soak(PYTHON, ["fuzz", "7"]) == 7
