"""Checks what is in the places of the metadata's files, before SQLite opens them.

A damaged data directory, or one from an archive, may have anything in their places. SQLite would
write through a link into a file elsewhere, wait for the writer of a pipe, and run the triggers and
views of a foreign schema.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from typing import Final

from headgate.base.units import GIB, STAT_BLOCK_BYTES

SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
"""Behind the path of the metadata: the files that SQLite opens."""

BYTES_MAX: Final = 4 * GIB
"""Of one file: tens of millions of topics. More is a length that damage or a stranger made, if it
takes less room on the disk."""

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
    return ""


def schema_problem(connection: sqlite3.Connection) -> str:
    """What a file of the metadata has beside its tables; empty if nothing.

    Raises:
        sqlite3.Error: it cannot be read.
    """
    for kind, name in connection.execute("SELECT type, name FROM sqlite_schema"):
        if (kind, name) not in _TABLES:
            return f"it has the {kind} {name!r}, which is none of Headgate's"
    return ""
