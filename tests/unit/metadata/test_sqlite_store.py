"""The store on disk: durable, whole transactions, and no file of somebody else's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headgate.base.errors import CorruptionError, StorageError
from headgate.metadata.sqlite_store import SqliteStore
from headgate.metadata.store import MetadataStore, Write
from tests.unit.metadata.store_suite import SUITE, Reopen


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "metadata.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


@pytest.mark.parametrize("behaviour", SUITE)
def test_behaves_as_a_store(
    behaviour: Callable[[MetadataStore, Reopen], None], store: SqliteStore, path: str
) -> None:
    def reopen(old: MetadataStore) -> MetadataStore:
        old.close()
        return SqliteStore(path)

    behaviour(store, reopen)


def test_a_commit_is_synchronous_and_logged_ahead(store: SqliteStore) -> None:
    with closing(store._open().execute("PRAGMA synchronous")) as row:
        assert row.fetchone() == (2,)
    with closing(store._open().execute("PRAGMA journal_mode")) as row:
        assert row.fetchone() == ("wal",)


def test_a_transaction_that_fails_changes_nothing(store: SqliteStore) -> None:
    store.commit([Write("a", "1", b"x")])
    bad = Write("a", "2", object())  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        store.commit([Write("a", "1", b"changed"), bad])
    assert store.load() == {("a", "1"): b"x"}
    store.commit([Write("a", "3", b"after")])
    assert len(store.load()) == 2


class Failing:
    """A connection on which some statements fail, as those of a disk that does."""

    def __init__(self, inner: sqlite3.Connection, **codes: int) -> None:
        self.inner, self.codes = inner, codes

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    def execute(self, statement: str, values: tuple[object, ...] = ()) -> object:
        code = self.codes.get(statement)
        if code is None:
            return self.inner.execute(statement, values)
        error = sqlite3.OperationalError(f"{statement} failed")
        error.sqlite_errorcode = code
        raise error


@pytest.mark.parametrize(
    ("codes", "retryable"),
    [
        ({"COMMIT": sqlite3.SQLITE_FULL}, True),
        ({"COMMIT": sqlite3.SQLITE_IOERR_FSYNC}, False),
        ({"COMMIT": sqlite3.SQLITE_FULL, "ROLLBACK": sqlite3.SQLITE_IOERR}, False),
    ],
)
def test_only_what_was_rolled_back_for_sure_may_be_tried_again(
    codes: dict[str, int], retryable: bool, path: str
) -> None:
    store = SqliteStore(path)
    inner = store._open()
    store._connection = Failing(inner, **codes)  # type: ignore[assignment]
    with pytest.raises(StorageError) as caught:
        store.commit([Write("a", "1", b"x")])
    assert caught.value.retryable is retryable
    inner.close()


def test_a_file_in_use_is_refused(store: SqliteStore, path: str) -> None:
    store.commit([Write("a", "1", b"x")])
    with pytest.raises(StorageError, match="locked") as caught:
        SqliteStore(path, busy_timeout_s=0.01)
    assert caught.value.retryable


def test_a_file_that_is_no_database_is_corruption(path: str) -> None:
    Path(path).write_bytes(b"these are not the rows you are looking for" * 100)
    with pytest.raises(CorruptionError, match="not a database"):
        SqliteStore(path)


def test_somebody_elses_database_is_left_alone(path: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")
    before = Path(path).read_bytes()
    with pytest.raises(CorruptionError, match="no Headgate metadata"):
        SqliteStore(path)
    assert Path(path).read_bytes() == before


def test_a_newer_format_is_refused(path: str) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version=99")
    with pytest.raises(CorruptionError, match="format 99"):
        SqliteStore(path)


def test_a_folder_that_is_missing_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="unable to open"):
        SqliteStore(str(tmp_path / "none" / "metadata.db"))


def test_a_closed_store_says_so(path: str) -> None:
    store = SqliteStore(path)
    store.close()
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.load()
