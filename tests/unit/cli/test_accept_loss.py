"""The command prints the accepted loss, or one sentence if there is none."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from headgate.cli.group import main
from tests.unit.app.test_open_stores import run


def test_what_is_given_up_is_said(tmp_path: Path) -> None:
    run(tmp_path)
    old = (tmp_path / "metadata.sqlite3").read_bytes()
    run(tmp_path)
    run(tmp_path)
    (tmp_path / "metadata.sqlite3").write_bytes(old)
    words = ["accept-loss", "metadata", "--data-dir", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    assert "is older than" in result.stdout
    assert result.stdout.endswith("\nNoted: the next start accepts this loss.\n")


def test_nothing_to_give_up_is_wrong_input(tmp_path: Path) -> None:
    run(tmp_path)
    result = CliRunner().invoke(main, ["accept-loss", "log", "--data-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: there is no loss to accept in ")


def test_what_is_lost_has_to_be_named() -> None:
    result = CliRunner().invoke(main, ["accept-loss", "everything"])
    assert result.exit_code == 2
    assert "metadata" in result.stderr
