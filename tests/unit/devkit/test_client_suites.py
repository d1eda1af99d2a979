"""The clients' own suites run in a network namespace, and what is missing is said in words."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from devkit import client_suites
from devkit.console import DevError

PYTHON = Path("/some/python")


class Runs:
    """Stands in for the two ways to run a program."""

    def __init__(self, module: Path, status: int = 0) -> None:
        self.module = module
        self.status = status
        self.commands: list[Sequence[str]] = []

    def captured(
        self, command: Sequence[str], _limit_s: float, *, folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Stands for ``processes.captured``."""
        assert folder.is_dir()
        answers = {
            "mod": json.dumps({"Dir": str(self.module), "Version": "v1", "Sum": "h1:x"}),
            "test": "",
            "rev-parse": "abc123\n",
        }
        return subprocess.CompletedProcess(command, 0, answers[command[1]], "")

    def shown(self, command: Sequence[str], _limit_s: float, _folder: Path) -> int:
        """Stands for ``processes.shown``."""
        self.commands.append(command)
        return self.status


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    module = tmp_path / "module"
    (module / "pulsar").mkdir(parents=True)
    (module / "pulsar/a_test.go").write_text("package pulsar\n")
    (module / "pulsar/a_test.go").chmod(0o444)
    found = Runs(module)
    monkeypatch.setattr(client_suites, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(client_suites, "captured", found.captured)
    monkeypatch.setattr(client_suites, "shown", found.shown)
    monkeypatch.delenv(client_suites.CHECKOUT_VARIABLE, raising=False)
    return found


def test_gos_suite_is_copied_built_and_played(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client_suites.play_suites(PYTHON, ["go", "TestTLS"]) == 0
    (command,) = runs.commands
    assert command[:2] == ["unshare", "--net"]
    assert command[-4:] == [
        "go", str(tmp_path / "cache/go-client"), str(tmp_path / "cache/go-client-tests"), "TestTLS",
    ]  # fmt: skip
    copied = tmp_path / "cache/go-client/pulsar/a_test.go"
    assert copied.stat().st_mode & 0o200
    assert "go client v1 (h1:x)" in capsys.readouterr().out
    client_suites.play_suites(PYTHON, ["go"])  # a second time over the copy


def test_pythons_suite_needs_a_checkout(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client_suites.play_suites(PYTHON, ["python"]) == 0
    assert client_suites.CHECKOUT_VARIABLE in capsys.readouterr().out
    assert runs.commands == []
    monkeypatch.setenv(client_suites.CHECKOUT_VARIABLE, str(tmp_path))
    assert client_suites.play_suites(PYTHON, ["python"]) == 0
    assert runs.commands[0][-3:] == ["python", str(tmp_path), "/some/python"]
    assert "abc123" in capsys.readouterr().out


def test_a_failed_suite_is_told(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(client_suites.CHECKOUT_VARIABLE, str(runs.module))
    runs.status = 1
    assert client_suites.play_suites(PYTHON, []) == 1
    assert len(runs.commands) == 2


def test_a_tool_that_is_not_there_is_named(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def captured(command: Sequence[str], _limit_s: float, *, folder: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory", command[0])

    monkeypatch.setattr(client_suites, "captured", captured)
    with pytest.raises(DevError, match="go is needed"):
        client_suites.play_suites(PYTHON, ["go"])
