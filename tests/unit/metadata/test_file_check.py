"""What is in the places of the metadata's files, before SQLite opens them."""

from __future__ import annotations

import os
import sqlite3
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
