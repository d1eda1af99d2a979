"""The peer test builds with Maven, plays with the Java that is there, and gives up in words."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from devkit import peer
from devkit.console import DevError
from devkit.paths import ROOT
from devkit.processes import TimedOutError


class Runs:
    """Stands in for the two ways to run a program: notes commands, and answers with a status, or as
    one that hangs."""

    def __init__(self, *statuses: int | None) -> None:
        self.statuses = list(statuses)
        self.commands: list[Sequence[str]] = []

    def captured(
        self, command: Sequence[str], limit_s: float, *, folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Stands for ``processes.captured``."""
        status = self.shown(command, limit_s, folder)
        return subprocess.CompletedProcess(command, status, "", "no such artifact\n")

    def shown(self, command: Sequence[str], limit_s: float, folder: Path) -> int:
        """Stands for ``processes.shown``."""
        assert folder == ROOT
        self.commands.append(command)
        status = self.statuses.pop(0)
        if status is None:
            raise TimedOutError(f"{command[0]} timed out after {limit_s} s")
        return status


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(peer, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(peer, "ensure_s3_server", lambda python: Path("/s3/python"))
    return tmp_path / "cache"


def plays(monkeypatch: pytest.MonkeyPatch, *statuses: int | None) -> Runs:
    runs = Runs(*statuses)
    monkeypatch.setattr(peer, "captured", runs.captured)
    monkeypatch.setattr(peer, "shown", runs.shown)
    return runs


def test_it_builds_and_hands_on_the_status(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = plays(monkeypatch, 0, 0, 0, 1)
    assert peer.play_peer(Path("/some/python")) == 1
    build, go, fetch, run = runs.commands
    assert [build[0], go[0], fetch[0]] == ["mvn", "go", "mvn"]
    assert [build[-1], fetch[-1]] == ["process-classes", "process-resources"]
    assert go[1:4] == ["build", "-C", str(peer.GO_PROJECT)]
    assert run[:3] == ["/some/python", "-m", "tests.peer.run"]
    assert run[4].endswith("/lib/*")
    assert run[5:] == [str(peer.PULSAR_JARS), "/s3/python", str(peer.GO_PROGRAM)]
    assert cache.is_dir()


def test_the_output_of_maven_is_reported(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plays(monkeypatch, 1)
    with pytest.raises(DevError, match="no such artifact"):
        peer.maven(peer.PROJECT, "process-classes", "building")


def test_a_tool_that_is_not_there_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(command: Sequence[str], limit_s: float, *, folder: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory", command[0])

    monkeypatch.setattr(peer, "captured", captured)
    with pytest.raises(DevError, match="mvn is needed"):
        peer.play_peer(Path("/some/python"))


@pytest.mark.parametrize(
    "statuses", [(None,), (0, None), (0, 0, 0, None)], ids=["Maven", "Go", "peer test"]
)
def test_what_hangs_is_timed_out(
    cache: Path, monkeypatch: pytest.MonkeyPatch, statuses: tuple[int | None, ...]
) -> None:
    plays(monkeypatch, *statuses)
    with pytest.raises(TimedOutError):
        peer.play_peer(Path("/some/python"))


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("home/bin", "path"):
        (tmp_path / name).mkdir(parents=True)
        program = tmp_path / name / "java"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert peer.java_program() == str(tmp_path / "path/java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert peer.java_program() == str(tmp_path / "home/bin/java")
