"""An audit fails for what is vulnerable, and also for what was not looked at."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from devkit import audit
from devkit.console import DevError

CLEAN = {"name": "good", "version": "1", "vulns": []}
BAD = {"name": "bad", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]},
                                                {"id": "CVE-2", "fix_versions": []}]}  # fmt: skip
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found"}


def report(*packages: Any) -> dict[str, Any]:
    return {"dependencies": list(packages), "fixes": []}


class Program:
    """Stands in for the programs of the audit."""

    def __init__(self, *reports: Any) -> None:
        self.reports = list(reports)
        self.calls: list[list[str]] = []

    def __call__(self, command: list[str], _: float, **__: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        if "cyclonedx_py" in command:
            Path(command[-1]).write_text("{}")
            return subprocess.CompletedProcess(command, 0, "", "")
        found = self.reports.pop(0)
        text = found if isinstance(found, str) else json.dumps(found)
        return subprocess.CompletedProcess(command, 1, text, "ConnectionError: no route\n")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    locks = tmp_path / "locks"
    locks.mkdir()
    for name in ("broker", "spark"):
        (locks / f"{name}.txt").write_text("x==1\n")
    monkeypatch.setattr(audit, "LOCKS", locks)
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "DIST", tmp_path / "dist")
    monkeypatch.setattr(audit, "ensure_side_environment", lambda *_: Path("/some/python"))
    return tmp_path


def play(monkeypatch: pytest.MonkeyPatch, *reports: Any) -> tuple[int, Program]:
    program = Program(*reports)
    monkeypatch.setattr(audit, "captured", program)
    return audit.audit(Path("/some/python")), program


def test_every_lock_is_checked_and_each_product_has_its_list(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, program = play(monkeypatch, report(CLEAN), report(CLEAN))
    assert status == 0
    assert sorted(path.name for path in (tree / "dist").iterdir()) == [
        "headgate-broker.cdx.json", "headgate-pipeline.cdx.json",
    ]  # fmt: skip
    audited = [command for command in program.calls if "pip_audit" in command]
    assert [Path(command[command.index("-r") + 1]).name for command in audited] == [
        "broker.txt", "spark.txt",
    ]  # fmt: skip
    assert "dist/headgate-broker.cdx.json" in capsys.readouterr().out


def test_a_vulnerability_fails_with_its_line(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = play(monkeypatch, report(CLEAN, BAD), report(CLEAN))
    assert status == 1
    said = capsys.readouterr().err
    assert "bad 2: CVE-1, fixed in 3" in said
    assert "bad 2: CVE-2, fixed in no version" in said
    assert "The audit failed for locks/broker.txt." in said


def test_what_the_service_does_not_know_was_not_checked(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pip-audit itself calls that a success: with a mirror as its registry it checks nothing."""
    status, _ = play(monkeypatch, report(*[UNKNOWN] * 7), report(CLEAN))
    assert status == 1
    said = capsys.readouterr().err
    assert "knows nothing of unknown, unknown, unknown, unknown, unknown and 2 more" in said


@pytest.mark.parametrize("answer", ["", "no JSON", json.dumps(report())])
def test_a_service_that_cannot_be_reached_is_said_so(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    status, _ = play(monkeypatch, answer, report(CLEAN))
    assert status == 1
    assert "was not checked: ConnectionError: no route" in capsys.readouterr().err


def test_a_list_that_cannot_be_made_is_an_error(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "no lock\n")
    monkeypatch.setattr(audit, "captured", lambda *_: failed)
    with pytest.raises(DevError, match="no lock"):
        audit.audit(Path("/some/python"))
