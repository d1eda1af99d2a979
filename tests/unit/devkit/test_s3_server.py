"""The environment of the S3 server is made once for a lock, and again when it was cut short."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from devkit import s3_server, side_environment
from devkit.console import DevError


class Made:
    """Stands in for venv and pip: notes what was called, and makes what they would."""

    def __init__(self, folder: Path, status: int = 0) -> None:
        self.folder, self.status = folder, status
        self.calls: list[list[str]] = []

    def venv(self, command: list[str], _: float) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        if not self.status:
            (self.folder / "bin").mkdir(parents=True)
            (self.folder / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, self.status, "", "no room\n")

    def pip(self, python: Path, arguments: list[str], **_: Any) -> None:
        self.calls.append([str(python), *arguments])


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    lock = tmp_path / "peer.txt"
    lock.write_text("moto==5 \\\n    --hash=sha256:1\n")
    made = Made(tmp_path / "cache" / "s3-server")
    monkeypatch.setattr(side_environment, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(s3_server, "LOCK", lock)
    monkeypatch.setattr(side_environment, "captured", made.venv)
    monkeypatch.setattr(side_environment, "run_pip", made.pip)
    return made


def test_it_is_made_once_for_a_lock(made: Made) -> None:
    python = s3_server.ensure_s3_server(Path("/some/python"))
    assert python == made.folder / "bin" / "python"
    venv, pip = made.calls
    assert venv == ["/some/python", "-m", "venv", str(made.folder)]
    assert "--require-hashes" in pip
    assert s3_server.ensure_s3_server(Path("/some/python")) == python
    assert len(made.calls) == 2
    s3_server.LOCK.write_text("moto==6\n")
    s3_server.ensure_s3_server(Path("/some/python"))
    assert len(made.calls) == 4


def test_what_was_cut_short_is_made_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(side_environment, "run_pip", fail)
        with pytest.raises(KeyboardInterrupt):
            s3_server.ensure_s3_server(Path("/some/python"))
    s3_server.ensure_s3_server(Path("/some/python"))
    assert len(made.calls) == 3


def test_the_output_of_venv_is_reported(made: Made) -> None:
    made.status = 1
    with pytest.raises(DevError, match="no room"):
        s3_server.ensure_s3_server(Path("/some/python"))
