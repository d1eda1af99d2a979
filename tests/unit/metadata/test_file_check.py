"""What is in the places of the metadata's files, before SQLite opens them."""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from headgate.metadata.errors import DamagedMetadataError
from headgate.metadata.file_check import BYTES_MAX, file_problem, schema_problem
from headgate.metadata.sqlite_store import SqliteStore
from headgate.metadata.store import Write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of metadata with one row."""
    made = tmp_path / "m.db"
    store = SqliteStore(str(made))
    store.commit([Write("a", "1", b"x")])
    store.close()
    return made


def test_files_and_missing_ones_are_sound(path: Path, tmp_path: Path) -> None:
    assert file_problem(str(path)) == file_problem(str(tmp_path / "absent")) == ""
    with closing(sqlite3.connect(path)) as connection:
        assert schema_problem(connection) == ""


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
def test_a_link_leads_sqlite_nowhere_else(path: Path, tmp_path: Path, suffix: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    place = Path(f"{path}{suffix}")
    place.unlink(missing_ok=True)
    place.symlink_to(victim)
    with pytest.raises(DamagedMetadataError, match="symbolic link"):
        SqliteStore(str(path))
    assert victim.read_bytes() == b""


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_pipe_or_an_endless_file_is_refused(path: Path, suffix: str) -> None:
    place = Path(f"{path}{suffix}")
    place.unlink(missing_ok=True)
    with place.open("wb") as file:
        file.truncate(BYTES_MAX + 1)  # it takes no room
    assert "bytes" in file_problem(str(path))
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(DamagedMetadataError, match="is no file"):
        SqliteStore(str(path))


def forge_journal(path: Path, victim: Path | None = None) -> None:
    """A rollback journal without pages, which SQLite rolls back
    (https://sqlite.org/fileformat.html#the_rollback_journal). With ``victim`` it says that it is a
    part of the transaction with that journal (``readSuperJournal`` in SQLite's ``pager.c``)."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), bytes(victim) if victim else b""
    page_bytes = int.from_bytes(path.read_bytes()[16:18], "big")
    pages = path.stat().st_size // page_bytes
    head = magic + struct.pack(">5I", 0, 1, pages, 512, page_bytes)
    end = struct.pack(">I", 0) + name + struct.pack(">2I", len(name), sum(name)) + magic
    Path(f"{path}-journal").write_bytes(head.ljust(512, b"\0") + (end if victim else b""))


def test_a_journal_has_no_file_elsewhere_removed(path: Path, tmp_path: Path) -> None:
    """SQLite removes the file that a journal names as that of a transaction of several files."""
    victim = tmp_path / "victim"
    victim.write_text("of somebody")
    forge_journal(path, victim)
    with pytest.raises(DamagedMetadataError, match="names another file"):
        SqliteStore(str(path))
    assert victim.read_text() == "of somebody"
    Path(f"{path}-journal").unlink()
    SqliteStore(str(path)).close()


def test_a_journal_of_one_file_is_rolled_back(path: Path) -> None:
    """A first start that was cut off leaves one, if its file has no write-ahead log yet."""
    forge_journal(path)
    store = SqliteStore(str(path))
    assert not any(Path(f"{path}-journal").read_bytes()[:8])
    assert store.load() == {("a", "1"): b"x"}
    store.close()


def test_a_long_file_that_takes_its_room_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a broker with so many topics would not start again."""
    monkeypatch.setattr("headgate.metadata.file_check.BYTES_MAX", 1_000)
    assert path.stat().st_size > 1_000
    assert file_problem(str(path)) == ""


@pytest.mark.parametrize(
    "foreign",
    [
        "CREATE TRIGGER t AFTER INSERT ON row BEGIN DELETE FROM row; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE other (x)",
        "CREATE INDEX i ON row (value)",
    ],
)
def test_a_foreign_schema_is_refused(path: Path, foreign: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(foreign)
    with pytest.raises(DamagedMetadataError, match="none of Headgate's"):
        SqliteStore(str(path))


def test_a_view_without_end_in_the_place_of_a_table_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE row")
        connection.execute(
            "CREATE VIEW row AS WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n) "
            "SELECT 'a' AS kind, k AS key, x'00' AS value, 0 AS crc FROM n"
        )
    with pytest.raises(DamagedMetadataError, match="none of Headgate's"):
        SqliteStore(str(path))
