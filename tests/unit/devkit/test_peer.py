"""Parts of the peer test are built with Maven and Go, and played with the Java that is there."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from devkit import peer
from devkit.console import DevError
from devkit.parts import Part
from devkit.paths import ROOT
from devkit.processes import TimedOutError

PYTHON = Path("/some/python")


class Builds:
    """Stands in for programs that build: notes commands, and answers with a status, or hangs."""

    def __init__(self, status: int | None = 0) -> None:
        self.status = status
        self.commands: list[Sequence[str]] = []

    def captured(
        self, command: Sequence[str], limit_s: float, *, folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Stands for ``processes.captured``."""
        assert folder == ROOT
        self.commands.append(command)
        if self.status is None:
            raise TimedOutError(f"{command[0]} timed out after {limit_s} s")
        return subprocess.CompletedProcess(command, self.status, "", "no such artifact\n")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "BUILT", "BUILT_5"):
        monkeypatch.setattr(peer, name, tmp_path / name.lower())
    for folder in (peer.BUILT, peer.BUILT_5):
        (folder / "lib").mkdir(parents=True)
    monkeypatch.setattr(peer, "ensure_s3_server", lambda python: Path("/s3/python"))
    monkeypatch.setattr(peer, "ensure_node_client", lambda python: Path("/node/modules"))
    monkeypatch.setattr(peer, "suite_command", lambda python, suite: [suite])
    monkeypatch.setattr(peer, "java_program", lambda: "/a/java")
    return tmp_path / "cache"


def builds(monkeypatch: pytest.MonkeyPatch, status: int | None = 0) -> Builds:
    found = Builds(status)
    monkeypatch.setattr(peer, "captured", found.captured)
    return found


def test_each_part_is_built_and_named_to_its_program(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = builds(monkeypatch)
    words = {part.name: list(part.command(PYTHON)) for part in peer.PARTS}
    prefix = [str(PYTHON), "-m", "tests.peer.run"]
    assert words == {
        "java": [
            *prefix, "java", "/a/java", str(peer.BUILT / "test-classes"), str(peer.BUILT / "lib"),
        ],
        "java-5": [
            *prefix, "java-5", "/a/java", str(peer.BUILT / "test-classes"),
            str(peer.BUILT_5 / "test-classes"), str(peer.BUILT_5 / "lib"),
        ],
        "node": [*prefix, "node", "/node/modules"],
        "go": [*prefix, "go", str(peer.GO_PROGRAM)],
        "tools": [*prefix, "tools", "/a/java", str(peer.PULSAR_JARS)],
        "s3": [*prefix, "s3", "/s3/python"],
        "spark": [*prefix, "spark", "/a/java", str(peer.PULSAR_JARS)],
        "agent": [*prefix, "agent", "/a/java", str(peer.PULSAR_JARS)],
        "go-suite": ["go"],
        "python-suite": ["python"],
    }  # fmt: skip
    java, again, v5, go, tools, spark, agent = found.commands
    assert java == again
    assert v5[-2:] == [str(peer.PROJECT_5), "process-test-classes"]
    assert [java[0], java[-1]] == ["mvn", "process-test-classes"]
    assert go[1:4] == ["build", "-C", str(peer.GO_PROJECT)]
    assert tools == spark == agent
    assert [tools[0], tools[-1]] == ["mvn", "process-resources"]
    assert cache.is_dir()
    assert not peer.BUILT.exists(), "of an earlier build"
    assert not peer.BUILT_5.exists(), "of an earlier build"


def test_parts_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[list[str]] = []

    def play_parts(_title: str, python: Path, parts: Sequence[Part]) -> int:
        assert python == PYTHON
        chosen.append([part.name for part in parts])
        return 1

    monkeypatch.setattr(peer, "play_parts", play_parts)
    assert peer.play_peer(PYTHON, ["s3", "java"]) == 1
    assert peer.play_peer(PYTHON, []) == 1
    assert chosen == [["java", "s3"], [part.name for part in peer.PARTS]]
    with pytest.raises(DevError, match=r"no rust: java, java-5, node, go"):
        peer.play_peer(PYTHON, ["java", "rust"])


def test_the_output_of_maven_is_reported(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds(monkeypatch, 1)
    with pytest.raises(DevError, match="no such artifact"):
        peer.maven(peer.PROJECT, "process-classes", "building")


def test_a_tool_that_is_not_there_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(command: Sequence[str], limit_s: float, *, folder: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory", command[0])

    monkeypatch.setattr(peer, "captured", captured)
    with pytest.raises(DevError, match="mvn is needed"):
        peer.maven(peer.PROJECT, "process-classes", "building")


def test_what_hangs_is_timed_out(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builds(monkeypatch, None)
    with pytest.raises(TimedOutError):
        peer.maven(peer.PROJECT, "process-classes", "building")


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
