"""Other users of the machine may not read a data directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from headgate.app.private_files import make_private, tighten


def modes(path: Path) -> dict[str, int]:
    found = [path, *path.rglob("*")]
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in found}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A directory as an earlier release made it, with a link out of it."""
    data = tmp_path / "data"
    (data / "log").mkdir(parents=True)
    for path in (data / "metadata.sqlite3", data / "log" / "segment", tmp_path / "elsewhere"):
        path.write_bytes(b"")
        path.chmod(0o644)
    for path in (data, data / "log"):
        path.chmod(0o755)
    (data / "link").symlink_to(tmp_path / "elsewhere")
    return data


def test_an_old_directory_is_tightened_with_one_line(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tighten(str(old))
    found = modes(old)
    assert found.pop("link") == 0o644, "what a link leads to is not the broker's"
    assert found == {"data": 0o700, "log": 0o700, "metadata.sqlite3": 0o600, "segment": 0o600}
    assert [record.getMessage() for record in caplog.records] == [
        f"data directory {old}: other users of this machine could read 4 files and directories; "
        "now only its owner can"
    ]
    tighten(str(old))
    assert len(caplog.records) == 1


def test_files_that_cannot_be_changed_do_not_stop_a_start(
    old: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    assert make_private(str(old)) == 0
    (record,) = caplog.records
    assert record.getMessage() == (
        f"other users of this machine may read {old}, and that cannot be changed: "
        "Operation not permitted"
    )


def test_a_directory_of_another_user_does_not_stop_a_start(
    old: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old / "lost+found").mkdir(mode=0o700)
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("lost+found"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert make_private(str(old)) == 4
    assert not caplog.records
