"""A metadata store in memory, for tests: it keeps or loses whole transactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.base.errors import StorageError
from headgate.metadata.sqlite_store import SqliteStore
from headgate.metadata.store import Write, first_rows


class MemoryStore:
    """Keeps rows in a dictionary. ``crash_clone`` returns the store after a power cut.

    A test decides about transactions: ``fail_next`` makes the next commits raise without storing
    anything; ``crash_at`` makes a later one raise, whose rows are then kept or lost as a whole.
    """

    def __init__(self, rows: dict[tuple[str, str], bytes] | None = None) -> None:
        self._rows: dict[tuple[str, str], bytes] = dict(rows or {})
        self._failures: list[StorageError] = []
        self._crash: tuple[int, bool] | None = None
        self._crashed = False
        self.commits = 0
        """Transactions stored."""

    def load(self) -> dict[tuple[str, str], bytes]:
        """All rows."""
        return dict(self._rows)

    def rows_in_pieces(self, count: int) -> Iterator[list[tuple[str, str, bytes]]]:
        """All rows, ``count`` at a time, or fewer large ones."""
        last = ("", "")
        while keys := sorted(key for key in self._rows if key > last)[:count]:
            rows = first_rows((*key, self._rows[key]) for key in keys)
            yield rows
            last = rows[-1][:2]

    def commit(self, writes: Sequence[Write]) -> None:
        """Store all ``writes``, or none if the test planned a failure.

        Raises:
            StorageError: the test planned a failure or a crash.
        """
        if self._failures:
            raise self._failures.pop(0)
        if self._crashed:
            raise StorageError("the power is off", retryable=False)
        if self._crash is None or self.commits < self._crash[0]:
            self._store(writes)
            return
        self._crashed = True
        if self._crash[1]:
            self._store(writes)
        raise StorageError("the power was cut during this transaction", retryable=False)

    def flush(self) -> None:
        """No effect: there is no write-ahead log."""

    def copy_to(self, path: str) -> None:
        store = SqliteStore(path)
        store.commit([Write(kind, key, value) for (kind, key), value in self._rows.items()])
        store.close()

    def close(self) -> None:
        """No effect: there is no file."""

    def fail_next(self, error: StorageError, count: int = 1) -> None:
        """Make the next ``count`` commits raise ``error`` and store nothing."""
        self._failures += [error] * count

    def crash_at(self, commits: int, *, keep: bool) -> None:
        """Cut the power in the commit after ``commits`` successful ones.

        ``keep``: whether that transaction reaches the disk. Later commits raise as well.
        """
        self._crash = (commits, keep)

    def crash_clone(self) -> MemoryStore:
        """A new store with the durable rows, as a restart finds them."""
        return MemoryStore(self._rows)

    def _store(self, writes: Sequence[Write]) -> None:
        for write in writes:
            key = (write.kind, write.key)
            if write.value is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = write.value
        self.commits += 1
