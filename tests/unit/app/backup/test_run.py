"""A backup and a restore on real files: what comes back can be verified and started."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.app.backup.manifest import BackupError
from headgate.app.backup.run import (
    BackupOptions,
    back_up_stopped,
    list_generations,
    restore_into,
)
from headgate.app.ledger_tools import dump_directory, verify_directory
from headgate.base.errors import StorageError
from tests.unit.app.test_ledger_tools import TOPIC, fill


def ignore(_done: int, _all: int) -> None: ...


def test_a_stopped_broker_comes_back(tmp_path: Path) -> None:
    data, folder, new = (str(tmp_path / name) for name in ("data", "backup", "new"))
    fill(tmp_path / "data")
    seen: list[tuple[int, int]] = []
    row = back_up_stopped(data, BackupOptions(folder), lambda done, of: seen.append((done, of)))
    assert row["generation"] == 1
    assert seen[-1][0] == seen[-1][1] == row["bytes"] == row["copiedBytes"]
    assert [found["generation"] for found in list_generations(folder)] == [1]
    assert restore_into(folder, None, new, 0, ignore)["directory"] == new
    assert verify_directory(new)["isSound"]
    rows = dump_directory(new, "log", topic=TOPIC)
    assert [row["ordinal"] for row in rows if row["kind"] == "entry"] == [0, 1, 2, 3, 4]


def test_the_tools_refuse_an_unfinished_restore(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    (tmp_path / "data" / "restore-unfinished").touch()
    with pytest.raises(StorageError, match="run headgate restore again"):
        verify_directory(str(tmp_path / "data"))


def test_an_error_of_the_disk_is_one_sentence(tmp_path: Path) -> None:
    fill(tmp_path / "data")
    (tmp_path / "file").touch()
    target = str(tmp_path / "file" / "backup")
    with pytest.raises(BackupError, match="Not a directory"):
        back_up_stopped(str(tmp_path / "data"), BackupOptions(target), ignore)


def test_a_restore_removes_nothing_through_a_link(tmp_path: Path) -> None:
    """What looks like an unfinished restore may have come from elsewhere."""
    fill(tmp_path / "data")
    back_up_stopped(str(tmp_path / "data"), BackupOptions(str(tmp_path / "backup")), ignore)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "thesis").touch()
    new = tmp_path / "new"
    new.mkdir()
    (new / "restore-unfinished").touch()
    (new / "log").symlink_to(tmp_path / "documents")
    restore_into(str(tmp_path / "backup"), None, str(new), 0, ignore)
    assert [path.name for path in (tmp_path / "documents").iterdir()] == ["thesis"]
    assert not (new / "log").is_symlink()
    assert verify_directory(str(new))["isSound"]
