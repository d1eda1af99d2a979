"""``./dev soak`` runs the grid with so many seeds, and refuses anything else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import soak
from devkit.console import DevError

PYTHON = Path(sys.executable)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree whose grid fails with the number of seeds."""
    monkeypatch.setattr(soak, "ROOT", tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/adaptive_grid.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n")
    return tmp_path


def test_the_grid_gets_the_seeds_and_gives_its_status(tree: Path) -> None:
    assert tree.exists()
    assert soak.soak(PYTHON, ["3"]) == 3
    assert soak.soak(PYTHON, []) == soak.SEEDS


@pytest.mark.parametrize("words", [["many"], ["0"], ["-1"], ["3", "4"]])
def test_anything_else_is_refused(words: list[str]) -> None:
    with pytest.raises(DevError, match="how many seeds"):
        soak.soak(PYTHON, words)
