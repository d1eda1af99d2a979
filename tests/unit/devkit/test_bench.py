"""Benches are found by what they say of themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from devkit import bench
from devkit.console import DevError

PYTHON = Path(sys.executable)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one bench and one helper."""
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/helper.py").write_text('"""Not a bench."""\n')
    (tmp_path / "bench/publish.py").write_text(
        '"""Publishes a lot.\n\nMore.\n"""\n'
        'import sys\nif __name__ == "__main__":\n    sys.exit(len(sys.argv) - 1)\n'
    )
    return tmp_path


def test_the_list_has_what_can_be_run(tree: Path) -> None:
    assert tree.exists()
    assert bench.benches() == {"publish": "Publishes a lot."}


def test_without_a_name_they_are_listed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tree.exists()
    assert bench.run_benches(PYTHON, []) == 0
    assert "publish              Publishes a lot." in capsys.readouterr().out


def test_a_bench_gets_its_arguments_and_gives_its_status(tree: Path) -> None:
    assert tree.exists()
    assert bench.run_benches(PYTHON, ["publish"]) == 0
    assert bench.run_benches(PYTHON, ["publish", "one", "two"]) == 2
    assert bench.run_benches(PYTHON, ["all"]) == 0


def test_an_unknown_bench_is_refused(tree: Path) -> None:
    assert tree.exists()
    with pytest.raises(DevError, match="no bench 'nix': publish is there"):
        bench.run_benches(PYTHON, ["nix"])
