"""The commands print what they did, and refuse what is not allowed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headgate.app.backup.manifest import BackupError
from headgate.cli.backup_hold import RunningHold
from headgate.cli.group import main
from tests.unit.app.test_ledger_tools import fill


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_a_backup_and_its_restore(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    to, data, new = str(tmp_path / "b"), str(tmp_path / "data"), str(tmp_path / "new")
    result = call("backup", "--to", to, "--data-dir", data, "--rate", "100M")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Generation 1: ")
    row = json.loads(call("backup", "--to", to, "--data-dir", data, "--json").stdout)
    assert (row["generation"], row["removedGenerations"]) == (2, [])
    listed = call("restore", "--from", to, "--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["1", "2"]
    assert len(json.loads(call("restore", "--from", to, "--list", "--json").stdout)) == 2
    result = call("restore", "--from", to, "--data-dir", new, "--generation", "1")
    assert result.exit_code == 0, result.output
    assert "Restored generation 1 of" in result.stdout
    again = call("restore", "--from", to, "--data-dir", new)
    assert again.exit_code == 2
    assert "is not empty" in again.stderr


def test_a_backup_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    before = os.umask(0o022)
    try:
        call("backup", "--to", str(tmp_path / "b"), "--data-dir", str(tmp_path / "data"))
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert (tmp_path / "b").stat().st_mode & 0o077 == 0
    assert all(p.stat().st_mode & 0o077 == 0 for p in (tmp_path / "b").rglob("*"))


@pytest.mark.parametrize("rate", ["fast", "-1", "0", "3T"])
def test_what_is_no_rate(rate: str) -> None:
    result = call("backup", "--to", "b", "--data-dir", "d", f"--rate={rate}")
    assert result.exit_code == 2
    assert "is no rate" in result.stderr


def test_a_broker_runs_or_is_stopped(tmp_path: Path) -> None:
    result = call("backup", "--to", str(tmp_path), "--data-dir", "d", "--admin-url", "http://b:1")
    assert result.exit_code == 2
    assert "--admin-url for a running broker, or --data-dir" in result.stderr
    result = call("backup", "--to", str(tmp_path), "--url", "http://b:1")
    assert "No such option '--url'. Did you mean '--admin-url'?" in result.stderr


def test_it_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*arguments: Any) -> None:
        arguments[-1]("another backup is under way")
        raise BackupError("it goes on")

    monkeypatch.setattr(RunningHold, "begin", begin)
    result = call("backup", "--to", str(tmp_path))
    assert result.exit_code == 1
    assert result.stdout == ""
    first, last = result.stderr.splitlines()
    waiting = r"Waiting until \d\d:\d\d:\d\d UTC to begin: another backup is under way\."
    assert re.fullmatch(waiting, first)
    assert last == "Error: it goes on"


def test_a_restore_needs_a_directory(tmp_path: Path) -> None:
    result = call("restore", "--from", str(tmp_path))
    assert result.exit_code == 2
    assert "--data-dir, or --list" in result.stderr
    result = call("restore", "--from", str(tmp_path), "--list")
    assert result.exit_code == 2
    assert "is no backup folder" in result.stderr


def test_an_empty_folder_has_no_generations(tmp_path: Path) -> None:
    for name in ("files", "generations"):
        (tmp_path / name).mkdir()
    (tmp_path / "format").write_text("headgate-backup 1\n")
    assert call("restore", "--from", str(tmp_path), "--list").stdout == "No generations.\n"
