"""Checks what is in the places of the metadata's files, before SQLite opens them.

A damaged data directory, or one from an archive, may have anything in their places. SQLite would
write through a link into a file elsewhere, wait for the writer of a pipe, run the triggers and
views of a foreign schema, and remove the file that a rollback journal names.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from typing import Final

from headgate.base.units import GIB, STAT_BLOCK_BYTES

_JOURNAL: Final = "-journal"
SUFFIXES: Final = ("", "-wal", "-shm", _JOURNAL)
"""Behind the path of the metadata: the files that SQLite opens."""

BYTES_MAX: Final = 4 * GIB
"""Of one file: tens of millions of topics. More is a length that damage or a stranger made, if it
takes less room on the disk."""

_JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""At the end of a rollback journal that names another one: SQLite removes the file of that name,
whatever it is, once it has rolled back. Transactions of one file, as Headgate's, name none."""

_TABLES: Final = frozenset({("table", "row"), ("table", "total")})


def file_problem(path: str) -> str:
    """Why the files of the metadata at ``path`` cannot be used; empty if they can, or are missing.

    Raises:
        OSError: one cannot be looked at.
    """
    for suffix in SUFFIXES:
        name = f"{path}{suffix}"
        try:
            info = os.lstat(name)
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(info.st_mode):
            return f"metadata file {name} is a symbolic link: put the file itself there"
        if not stat.S_ISREG(info.st_mode):
            return f"metadata file {name} is no file"
        if info.st_size > BYTES_MAX and info.st_blocks * STAT_BLOCK_BYTES < info.st_size:
            return f"metadata file {name} has {info.st_size:,} bytes: {BYTES_MAX:,} at most"
        if suffix == _JOURNAL and _names_another_file(name, info.st_size):
            return f"metadata file {name} names another file, which SQLite would remove"
    return ""


def _names_another_file(journal: str, size_bytes: int) -> bool:
    with Path(journal).open("rb") as file:
        file.seek(max(size_bytes - len(_JOURNAL_MAGIC), 0))
        return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC


def schema_problem(connection: sqlite3.Connection) -> str:
    """What a file of the metadata has beside its tables; empty if nothing.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    for kind, name in connection.execute("SELECT type, name FROM sqlite_schema"):
        if (kind, name) not in _TABLES:
            return f"it has the {kind} {name!r}, which is none of Headgate's"
    return ""
