"""The schedulers get environments of their own, once, and pip's error is shown."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from devkit import tools_peer
from devkit.console import DevError


class Runs:
    """Notes commands; those that contain a word fail."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.commands: list[Sequence[str]] = []

    def captured(
        self, command: Sequence[str], limit_s: float, *, folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Stands for ``processes.captured``."""
        self.commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir(parents=True)
        status = int(bool(self.failing) and self.failing in " ".join(command))
        return subprocess.CompletedProcess(command, status, "", "no matching distribution\n")

    def shown(self, command: Sequence[str], limit_s: float, folder: Path) -> int:
        """Stands for ``processes.shown``."""
        self.commands.append(command)
        return 0


def play(monkeypatch: pytest.MonkeyPatch, cache: Path, failing: str = "") -> Runs:
    runs = Runs(failing)
    monkeypatch.setattr(tools_peer, "CACHE", cache)
    monkeypatch.setattr(tools_peer, "captured", runs.captured)
    monkeypatch.setattr(tools_peer, "shown", runs.shown)
    assert tools_peer.play_tools(Path("python")) == 0
    return runs


def test_environments_are_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = play(monkeypatch, tmp_path)
    assert [command[2:4] for command in first.commands] == [
        ["venv", "--clear"], ["pip", "install"], ["venv", "--clear"], ["pip", "install"],
        ["pip", "install"],
        ["tests.peer.tools", str(tmp_path / "tools/airflow/bin/python")],
    ]  # fmt: skip
    (tmp_path / "tools/connect/grpc_status").mkdir(parents=True)
    assert len(play(monkeypatch, tmp_path).commands) == 1


def test_what_pip_said_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(DevError, match="installing airflow failed:\nno matching distribution"):
        play(monkeypatch, tmp_path, "apache-airflow")
