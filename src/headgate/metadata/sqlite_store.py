"""The metadata store of a broker: one SQLite file.

    table row(kind TEXT, key TEXT, value BLOB, crc INTEGER, PRIMARY KEY (kind, key)) WITHOUT ROWID
    table total(id INTEGER PRIMARY KEY, row_count INTEGER, crc_sum INTEGER), one line with id 0
    PRAGMA application_id = 0x68676d64 ("hgmd"); PRAGMA user_version = FORMAT_VERSION

``crc`` is the CRC-32 of kind, key and value with a zero byte between them. ``total`` has the number
of rows and the sum of their checksums. So a start detects flipped bits, missing rows and duplicate
rows, also where SQLite does not. Format 1 had neither column nor table: the first start rewrites
it in one transaction.

WAL mode with ``synchronous=FULL``: a commit costs one sync and survives a power cut. All calls must
come from one thread (SQLite checks that). The lock of the data directory, not SQLite's, keeps a
second broker out; ``locking_mode=EXCLUSIVE`` also prevents changes by other tools while a broker
runs.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from headgate.base.errors import CorruptionError, NoRoomError, StorageError
from headgate.metadata.errors import DamagedMetadataError
from headgate.metadata.file_check import file_problem, schema_problem
from headgate.metadata.store import Write, first_rows
from headgate.metadata.wal import wal_damage

APPLICATION_ID = 0x68676D64
FORMAT_VERSION = 2

_UPSERT = (
    "INSERT INTO row (kind, key, value, crc) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, crc = excluded.crc"
)
_PIECE = (
    "SELECT kind, key, value, crc FROM row WHERE (kind, key) > (?, ?) ORDER BY kind, key LIMIT ?"
)
_TOTAL = "SELECT row_count, crc_sum FROM total WHERE id = 0"
_DELETE = "DELETE FROM row WHERE kind = ? AND key = ?"
_CRC_OF = "SELECT crc FROM row WHERE kind = ? AND key = ?"
_ADD = "UPDATE total SET row_count = row_count + ?, crc_sum = crc_sum + ? WHERE id = 0"
_MAKE_ROWS = (
    "CREATE TABLE row (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, "
    "crc INTEGER NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
)
_MAKE_TOTAL = (
    "CREATE TABLE total (id INTEGER PRIMARY KEY, row_count INTEGER NOT NULL, "
    "crc_sum INTEGER NOT NULL)"
)


_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a call may raise. SQLite's messages quote names that may be damaged, and then not decode."""


class SqliteStore:
    """Rows in a SQLite file. Open, use and close it in one thread."""

    def __init__(
        self,
        path: str,
        *,
        busy_timeout_s: float = 1.0,
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """Open ``path``, or create it (its folder must exist).

        ``busy_timeout_s`` is the time to wait for another process to close it. If the disk is
        full, ``make_room`` is called, and the operation retried while that returns True.

        Raises:
            CorruptionError: it is not a metadata file, or is damaged, or has an unknown format.
            StorageError: it cannot be opened, or another process has it open.
        """
        self._path = path
        self._make_room = make_room
        self._connection: sqlite3.Connection | None = None
        self._check_files(Path(f"{path}-wal"))
        while True:
            try:
                self._connect(busy_timeout_s)
                return
            except NoRoomError:
                if not make_room():
                    raise

    def _connect(self, busy_timeout_s: float) -> None:
        try:
            # The starting thread opens and loads it, then one lane's thread uses it: never two
            # threads at once.
            self._connection = sqlite3.connect(
                self._path, isolation_level=None, timeout=busy_timeout_s, check_same_thread=False
            )
            # Decode damaged text without an error: its checksum shows the damage.
            self._connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
            self._prepare(self._connection)
        except _ERRORS as error:
            self.close()
            raise self._error_from(error) from error
        except CorruptionError:
            self.close()
            raise

    def load(self) -> dict[tuple[str, str], bytes]:
        """All rows.

        Raises:
            CorruptionError: the file is damaged; the text names a damaged row.
            StorageError: it cannot be read.
        """
        connection = self._open()
        try:
            self._check_pages(connection)
            found = connection.execute("SELECT kind, key, value, crc FROM row").fetchall()
            total = connection.execute(_TOTAL).fetchone()
        except _ERRORS as error:
            raise self._error_from(error) from error
        self._check_rows(found)
        self._check_total(len(found), sum(crc for *_, crc in found), total)
        return {(kind, key): value for kind, key, value, _ in found}

    def rows_in_pieces(self, count: int) -> Iterator[list[tuple[str, str, bytes]]]:
        """All rows, ``count`` at a time, or fewer large ones. Raises as :meth:`load`; missing rows,
        at the end."""
        last = ("", "")
        try:
            self._check_pages(self._open())
            while True:
                with contextlib.closing(self._open().execute(_PIECE, (*last, count))) as cursor:
                    found = first_rows(cursor)
                if not found:
                    break
                self._check_rows(found)
                yield [row[:3] for row in found]
                last = found[-1][:2]
            # Without a turn of Python for each row.
            sums = self._open().execute("SELECT count(*), ifnull(sum(crc), 0) FROM row").fetchone()
            self._check_total(sums[0], sums[1], self._open().execute(_TOTAL).fetchone())
        except _ERRORS as error:
            raise self._error_from(error) from error

    def _check_total(self, count: int, crc_sum: int, total: tuple[int, int] | None) -> None:
        row_count, total_sum = total or (-1, -1)
        if (count, crc_sum) != (row_count, total_sum):
            raise self._damaged(f"it has {count} rows where {row_count} were stored")

    def _check_rows(self, found: Sequence[tuple[str, str, object, int]]) -> None:
        for kind, key, value, crc in found:
            if not isinstance(value, bytes) or crc != _crc(kind, key, value):
                raise self._damaged(f"the row {kind} {key!r} has a wrong checksum")

    def commit(self, writes: Sequence[Write]) -> None:
        """Make all ``writes`` durable, or none.

        Raises:
            StorageError: ``retryable``, and nothing was changed, if the disk was full or busy.
                After any other error, the next start may find ``writes`` durable.
        """
        while True:
            try:
                self._commit(writes)
                return
            except NoRoomError:
                if not self._make_room():
                    raise

    def _commit(self, writes: Sequence[Write]) -> None:
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            for write in writes:
                _change(connection, write)
            connection.execute("COMMIT")
        except _ERRORS as error:
            try:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            except _ERRORS as worse:
                raise self._error_from(worse) from error
            raise self._error_from(error) from error

    def flush(self) -> None:
        """Checkpoint the WAL into the file. If that fails, everything stays durable in the WAL."""
        with contextlib.suppress(*_ERRORS):
            self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def copy_to(self, path: str) -> None:
        try:
            copy = sqlite3.connect(path)
            try:
                self._open().backup(copy)
            finally:
                copy.close()
        except _ERRORS as error:
            raise self._error_from(error) from error

    def close(self) -> None:
        """Close the file, which checkpoints the WAL into it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StorageError(f"metadata file {self._path} is closed", retryable=False)
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check the application and format of the file, then set it up."""
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        application_id = _pragma(connection, "application_id")
        version = _pragma(connection, "user_version")
        if application_id == 0 and version == 0 and _pragma(connection, "schema_version") == 0:
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        elif application_id != APPLICATION_ID:
            raise CorruptionError(f"{self._path} is a SQLite file, but no Headgate metadata")
        elif not 0 <= version <= FORMAT_VERSION:
            raise CorruptionError(
                f"metadata file {self._path} has format {version}; this version of Headgate "
                f"knows formats up to {FORMAT_VERSION}"
            )
        elif problem := schema_problem(connection):
            raise self._damaged(problem)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        if version < FORMAT_VERSION:
            connection.execute("BEGIN IMMEDIATE")
            if version == 0:
                connection.execute(_MAKE_ROWS)
                connection.execute(_MAKE_TOTAL)
                connection.execute("INSERT INTO total VALUES (0, 0, 0)")
            else:
                _add_checksums(connection)
            connection.execute(f"PRAGMA user_version={FORMAT_VERSION}")
            connection.execute("COMMIT")

    def _check_files(self, path: Path) -> None:
        """Raise as :meth:`__init__` if something else is in the place of a file, or if SQLite would
        silently drop transactions behind damage of the write-ahead log at ``path``."""
        try:
            if problem := file_problem(self._path):
                raise DamagedMetadataError(problem, self._way_out())
            at = wal_damage(path.read_bytes())
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageError(f"metadata file {path}: {error}", retryable=True) from error
        if at is not None:
            raise DamagedMetadataError(
                f"metadata file {path} is damaged at offset {at}, and changes that were stored "
                "after that would be lost",
                f"{self._way_out()}; or move this file away: the next start says what it lacks "
                "then, and how to go on without that",
            )

    def _check_pages(self, connection: sqlite3.Connection) -> None:
        """Check the pages of the file: a later write would make damage worse."""
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged(verdict)

    def _damaged(self, what: str) -> DamagedMetadataError:
        return DamagedMetadataError(
            f"metadata file {self._path} is damaged: {what}", self._way_out()
        )

    def _way_out(self) -> str:
        folder = self._path.rpartition("/")[0] or "."
        return (
            "Put metadata and log back from the same backup; or rebuild the metadata from their "
            "copy in the log, which this command shows first: headgate ledger repair --dry-run "
            f"--data-dir {folder}"
        )

    def _error_from(self, error: Exception) -> CorruptionError | StorageError:
        if isinstance(error, UnicodeDecodeError):
            return self._damaged("it holds text that is not UTF-8")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = f"metadata file {self._path}: {error}"
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return self._damaged(str(error))
        if code == sqlite3.SQLITE_ERROR:
            return self._damaged(str(error))  # the statements are right, so tables are missing
        if code == sqlite3.SQLITE_FULL:
            return NoRoomError(text)
        return StorageError(text, retryable=code == sqlite3.SQLITE_BUSY)


def _crc(kind: str, key: str, value: bytes) -> int:
    text = f"{kind}\0{key}\0".encode(errors="surrogateescape")
    return zlib.crc32(value, zlib.crc32(text))


def _change(connection: sqlite3.Connection, write: Write) -> None:
    """Execute one write, within a transaction."""
    row = (write.kind, write.key)
    before = connection.execute(_CRC_OF, row).fetchone()
    crc = 0
    if write.value is not None:
        crc = _crc(*row, write.value)
        connection.execute(_UPSERT, (*row, write.value, crc))
    elif before is not None:
        connection.execute(_DELETE, row)
    added = (write.value is not None) - (before is not None)
    connection.execute(_ADD, (added, crc - (before[0] if before is not None else 0)))


def _add_checksums(connection: sqlite3.Connection) -> None:
    """Convert format 1 to 2, within a transaction."""
    found = connection.execute("SELECT kind, key, value FROM row").fetchall()
    connection.execute("DROP TABLE row")
    connection.execute(_MAKE_ROWS)
    connection.execute(_MAKE_TOTAL)
    rows = [(*row, _crc(*row)) for row in found]
    connection.executemany("INSERT INTO row VALUES (?, ?, ?, ?)", rows)
    total = (len(rows), sum(crc for *_, crc in rows))
    connection.execute("INSERT INTO total VALUES (0, ?, ?)", total)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
