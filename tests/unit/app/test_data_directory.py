"""The lock and the format of a data directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from headgate.app.data_directory import DataDirectory
from headgate.base.errors import StorageError
from headgate.fs import MemFs, OsFs
from headgate.ledger import LogFound
from headgate.ledger.errors import DirectoryInUseError, UnknownFormatError
from headgate.ledger.format.directory import write_file


def test_a_new_directory_is_made_and_known_again() -> None:
    fs = MemFs()
    directory = DataDirectory.open(fs, "/data/a")
    assert directory.metadata_path == "/data/a/metadata.sqlite3"
    place = directory.log_place()
    assert (place.path, place.metadata_path) == ("/data/a/log", directory.metadata_path)
    assert place.found == LogFound(None, holds_records=False)
    assert not directory.has_metadata()
    fs.create(directory.metadata_path).close()
    assert directory.has_metadata()
    directory.close()
    fs.make_directory("/data/a/log")
    DataDirectory.open(fs, "/data/a").close()


def test_one_owner_at_a_time() -> None:
    fs = MemFs()
    directory = DataDirectory.open(fs, "/data")
    with pytest.raises(DirectoryInUseError, match="/data is in use by another broker"):
        DataDirectory.open(fs, "/data")
    directory.close()
    DataDirectory.open(fs, "/data").close()


def test_a_foreign_directory_is_left_alone_and_unlocked() -> None:
    fs = MemFs()
    fs.make_directory("/data")
    fs.create("/data/thesis.txt").close()
    for _ in range(2):
        with pytest.raises(UnknownFormatError, match=r"holds 'thesis.txt' but no file 'format'"):
            DataDirectory.open(fs, "/data")
    assert "format" not in fs.list_directory("/data")


def test_the_root_of_a_new_file_system_is_empty() -> None:
    fs = MemFs()
    fs.make_directory("/data")
    fs.create("/data/lost+found").close()
    DataDirectory.open(fs, "/data").close()
    assert "format" in fs.list_directory("/data")


def test_a_later_format_is_refused_by_name() -> None:
    fs = MemFs()
    fs.make_directory("/data")
    write_file(fs, "/data", "format", [b"headgate-data 2\n"])
    with pytest.raises(UnknownFormatError, match="has format 'headgate-data 2'"):
        DataDirectory.open(fs, "/data")


def test_a_start_that_was_cut_while_writing_the_format_is_gone_on_with() -> None:
    fs = MemFs()
    fs.make_directory("/data")
    fs.create("/data/format.tmp").close()
    DataDirectory.open(fs, "/data").close()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file/data cannot be used: Not a directory"):
        DataDirectory.open(OsFs(), str(tmp_path / "file/data"))


@pytest.mark.parametrize("kept", ["metadata.sqlite3", "log"])
def test_a_directory_that_lost_its_format_is_not_taken_for_a_foreign_one(kept: str) -> None:
    fs = MemFs()
    fs.make_directory("/data")
    fs.create(f"/data/{kept}").close()
    with pytest.raises(UnknownFormatError, match="lacks its file 'format': put it back") as caught:
        DataDirectory.open(fs, "/data")
    assert "make it anew with the one line 'headgate-data 1'" in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"headgate-data", b"headgate-dat\xe1 1\n"])
def test_a_damaged_format_is_said_to_be_damaged(text: bytes) -> None:
    fs = MemFs()
    fs.make_directory("/data")
    write_file(fs, "/data", "format", [text])
    with pytest.raises(UnknownFormatError, match="/data is damaged: its content is"):
        DataDirectory.open(fs, "/data")


def test_a_new_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It had the modes of the process, by which every user of a machine could read messages."""
    before = os.umask(0o022)
    try:
        path = tmp_path / "new"
        DataDirectory.open(OsFs(), str(path)).close()
        OsFs().make_directory(str(path / "log"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((path / "log").stat().st_mode) == 0o700
    for file in path.iterdir():
        assert not stat.S_IMODE(file.stat().st_mode) & 0o077, file
