"""What ``./dev`` prints and refuses, and that it needs nothing installed for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from devkit import commands
from devkit.paths import ROOT


def test_alone_it_lists_every_command_on_one_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert commands.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    for command in commands.COMMANDS:
        assert sum(line.strip().startswith(f"./dev {command.name} ") for line in lines) == 1
    assert all(len(line) <= 100 for line in lines)


def test_an_unknown_command_is_named_beside_those_that_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert commands.main(["frobnicate"]) == 2
    error = capsys.readouterr().err
    assert "There is no ./dev frobnicate." in error
    assert "./dev test" in error


def test_a_known_trouble_is_reported_in_its_own_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_lane: object) -> Path:
        raise commands.DevError("The disk is full.")

    monkeypatch.setattr(commands, "ensure", fail)
    assert commands.main(["lint"]) == 1
    assert capsys.readouterr().err == "The disk is full.\n"


def test_an_interrupt_says_that_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_lane: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "ensure", interrupt)
    assert commands.main(["lint"]) == commands.INTERRUPTED
    assert "Finished set-up steps are kept" in capsys.readouterr().err


def test_it_runs_with_nothing_installed() -> None:
    """``-S`` hides every installed package: the set-up may use the standard library only."""
    result = subprocess.run(
        [sys.executable, "-S", "-E", str(ROOT / "tools/dev.py")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert "./dev demo" in result.stdout


def test_without_a_new_python_one_sentence_says_what_is_needed(tmp_path: Path) -> None:
    """A checkout without an environment, on a machine whose only Python is too old."""
    checkout, programs = tmp_path / "checkout", tmp_path / "bin"
    checkout.mkdir()
    programs.mkdir()
    (checkout / "dev").write_bytes((ROOT / "dev").read_bytes())
    (programs / "dirname").symlink_to("/usr/bin/dirname")
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    result = subprocess.run(
        ["/bin/sh", str(checkout / "dev"), "test"],
        env={**os.environ, "PATH": str(programs), "HEADGATE_PYTHON": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 1
    assert "needs Python 3.11 or newer" in result.stderr
    assert result.stderr.count("\n") == 1
