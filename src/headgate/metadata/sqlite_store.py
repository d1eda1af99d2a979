"""The metadata store behind a broker: one SQLite file.

    table row(kind TEXT, key TEXT, value BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID
    PRAGMA application_id = 0x68676d64 ("hgmd"); PRAGMA user_version = FORMAT_VERSION

WAL with ``synchronous=FULL``: a commit costs one sync and survives a power cut. All calls must
come from one thread (SQLite's own check is on). The data directory's lock, not SQLite's, keeps a
second broker out; ``locking_mode=EXCLUSIVE`` also keeps the file from being changed by hand
while a broker runs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from headgate.base.errors import CorruptionError, StorageError
from headgate.metadata.store import Write

APPLICATION_ID = 0x68676D64
FORMAT_VERSION = 1

_UPSERT = (
    "INSERT INTO row (kind, key, value) VALUES (?, ?, ?) "
    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value"
)
_DELETE = "DELETE FROM row WHERE kind = ? AND key = ?"


class SqliteStore:
    """Rows in a SQLite file. Open, use and close it in one thread."""

    def __init__(self, path: str, *, busy_timeout_s: float = 1.0) -> None:
        """Open ``path``, or create it (its folder must exist).

        ``busy_timeout_s`` is how long to wait for another process to let go of it.

        Raises:
            CorruptionError: it is not a metadata file, or of a format that is not known.
            StorageError: it cannot be opened, or another process has it.
        """
        self._path = path
        self._connection: sqlite3.Connection | None = None
        try:
            # Opened and loaded by whoever starts the broker, then used by one lane's thread:
            # never by two at once.
            self._connection = sqlite3.connect(
                path, isolation_level=None, timeout=busy_timeout_s, check_same_thread=False
            )
            self._prepare(self._connection)
        except sqlite3.Error as error:
            self.close()
            raise self._bad_news(error) from error
        except CorruptionError:
            self.close()
            raise

    def load(self) -> dict[tuple[str, str], bytes]:
        """All rows.

        Raises:
            CorruptionError: the file is damaged.
            StorageError: it cannot be read.
        """
        try:
            found = self._open().execute("SELECT kind, key, value FROM row").fetchall()
        except sqlite3.Error as error:
            raise self._bad_news(error) from error
        return {(kind, key): value for kind, key, value in found}

    def commit(self, writes: Sequence[Write]) -> None:
        """Make all ``writes`` durable, or none.

        Raises:
            StorageError: ``retryable``, and nothing was changed, if the disk was full or busy.
                After any other error, what lies in the WAL may count at the next start.
        """
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            for write in writes:
                if write.value is None:
                    connection.execute(_DELETE, (write.kind, write.key))
                else:
                    connection.execute(_UPSERT, (write.kind, write.key, write.value))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            except sqlite3.Error as worse:
                raise self._bad_news(worse) from error
            raise self._bad_news(error) from error

    def close(self) -> None:
        """Close the file; the WAL is folded into it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StorageError(f"metadata file {self._path} is closed", retryable=False)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check whose file it is, then set it up."""
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        application_id = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        if application_id == 0 and version == 0 and _pragma(connection, "schema_version") == 0:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        elif application_id != APPLICATION_ID:
            raise CorruptionError(f"{self._path} is a SQLite file, but no Headgate metadata")
        elif version > FORMAT_VERSION:
            raise CorruptionError(
                f"metadata file {self._path} has format {version}; this version of Headgate "
                f"knows formats up to {FORMAT_VERSION}"
            )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS row (kind TEXT NOT NULL, key TEXT NOT NULL, "
            "value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
        )
        connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")

    def _bad_news(self, error: sqlite3.Error) -> CorruptionError | StorageError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = f"metadata file {self._path}: {error}"
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return CorruptionError(text)
        return StorageError(text, retryable=code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY))


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
