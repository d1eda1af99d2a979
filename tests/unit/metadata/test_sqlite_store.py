"""The store on disk: durable, whole transactions, and no file of somebody else's."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headgate.base.errors import CorruptionError, NoRoomError, StorageError
from headgate.metadata.memory_store import MemoryStore
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
    bad = Write("a", object(), b"y")  # type: ignore[arg-type]
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


def test_a_full_disk_is_asked_for_room_as_long_as_there_is_some(path: str) -> None:
    asked: list[None] = []

    def make_room() -> bool:
        asked.append(None)
        if len(asked) == 2:
            store._connection = inner
        return len(asked) <= 2

    store = SqliteStore(path, make_room=make_room)
    inner = store._open()
    full: sqlite3.Connection = Failing(inner, COMMIT=sqlite3.SQLITE_FULL)  # type: ignore[assignment]
    store._connection = full
    store.commit([Write("a", "1", b"x")])
    assert store.load() == {("a", "1"): b"x"}
    store._connection = full
    with pytest.raises(NoRoomError):
        store.commit([Write("a", "2", b"x")])
    inner.close()
    assert len(asked) == 3


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


# -- damage and formats ------------------------------------------------------------------------

ROWS = [Write("topic", f"persistent://a/b/t{i}", b'{"number":%d}' % i) for i in range(40)]


def closed_with(path: str, writes: list[Write]) -> dict[tuple[str, str], bytes]:
    """A file without a WAL that holds these rows."""
    store = SqliteStore(path)
    store.commit(writes)
    rows = store.load()
    store.close()
    return rows


def load_of(path: str) -> dict[tuple[str, str], bytes]:
    store = SqliteStore(path)
    try:
        return store.load()
    finally:
        store.close()


def change(path: str, statement: str, *values: object) -> None:
    """Behind the store's back, as damage that SQLite takes for sound."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(statement, values)


def test_a_damaged_row_is_named(path: str) -> None:
    closed_with(path, ROWS)
    found = Path(path).read_bytes()
    at = found.index(b'{"number":17}') + len(b'{"number":1')
    Path(path).write_bytes(found[:at] + b"9" + found[at + 1 :])
    with pytest.raises(CorruptionError, match=r"the row topic 'persistent://a/b/t17' has a wrong"):
        load_of(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM row WHERE key = 'persistent://a/b/t3'",
        "INSERT INTO row SELECT 'x', key, value, crc FROM row WHERE key = 'persistent://a/b/t3'",
        "UPDATE row SET value = 7 WHERE key = 'persistent://a/b/t3'",
        "UPDATE row SET key = CAST(x'ff' AS TEXT) WHERE key = 'persistent://a/b/t3'",
        "UPDATE total SET row_count = row_count + 1",
        "DELETE FROM total",
        "DROP TABLE row",
    ],
)
def test_rows_that_are_lost_doubled_or_others_are_found(path: str, statement: str) -> None:
    closed_with(path, ROWS)
    change(path, statement)
    with pytest.raises(CorruptionError, match=r"is damaged: .* from the same backup"):
        load_of(path)
    store = SqliteStore(path)
    with pytest.raises(CorruptionError, match=r"is damaged: .* from the same backup"):
        list(store.rows_in_pieces(3))
    store.close()


def test_a_flipped_bit_anywhere_is_refused_or_harmless(path: str, flip_stride: int | None) -> None:
    rows = closed_with(path, ROWS)
    sound = Path(path).read_bytes()
    refused = 0
    for at in {*range(0, 120, 3), *range(120, len(sound), flip_stride or 61)}:
        Path(path).write_bytes(sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :])
        try:
            assert load_of(path) == rows, at
        except (CorruptionError, StorageError):
            refused += 1
    assert refused > 20


def test_a_flipped_bit_in_the_wal_is_refused_or_loses_the_last_changes_alone(
    path: str, flip_stride: int | None
) -> None:
    """Those are told by the revision: see headgate.storage.store_binding."""
    store = SqliteStore(path)
    for write in ROWS[:12]:
        store.commit([write])
    main, wal = Path(path).read_bytes(), Path(f"{path}-wal").read_bytes()
    store.close()
    refused, short = 0, 0
    for at in range(0, len(wal), flip_stride or 499):
        Path(path).write_bytes(main)
        Path(f"{path}-wal").write_bytes(wal[:at] + bytes([wal[at] ^ 1]) + wal[at + 1 :])
        try:
            found = load_of(path)
        except CorruptionError as error:
            refused += "move this file away" in str(error)
        else:
            assert len(found) >= 10
            short += len(found) < 12
    assert refused > short > 0


def test_an_old_file_under_a_newer_wal_is_refused(path: str) -> None:
    long = [Write(write.kind, write.key, bytes(400)) for write in ROWS]
    closed_with(path, long[:20])
    old = Path(path).read_bytes()
    closed_with(path, long)
    store = SqliteStore(path)
    store.commit([Write("topic", "persistent://a/b/t5", None)])
    wal = Path(f"{path}-wal").read_bytes()
    store.close()
    Path(path).write_bytes(old)
    Path(f"{path}-wal").write_bytes(wal)
    with pytest.raises(CorruptionError):
        load_of(path)


def of_format_1(path: str, rows: dict[tuple[str, str], bytes]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as before:
        before.execute("PRAGMA application_id=0x68676D64")
        before.execute("PRAGMA journal_mode=WAL")
        before.execute(
            "CREATE TABLE row (kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, "
            "PRIMARY KEY (kind, key)) WITHOUT ROWID"
        )
        before.execute("PRAGMA user_version=1")
        before.executemany(
            "INSERT INTO row VALUES (?, ?, ?)", [(*key, value) for key, value in rows.items()]
        )


def test_a_file_of_the_release_before_is_taken_over(path: str) -> None:
    rows = {(write.kind, write.key): write.value or b"" for write in ROWS}
    of_format_1(path, rows)
    assert load_of(path) == rows
    store = SqliteStore(path)
    store.commit([Write("topic", "persistent://a/b/t3", None), Write("topic", "new", b"1")])
    del rows["topic", "persistent://a/b/t3"]
    assert store.load() == {**rows, ("topic", "new"): b"1"}
    store.close()
    assert load_of(path) == {**rows, ("topic", "new"): b"1"}


def test_a_taking_over_that_failed_is_repeated(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {("topic", "t"): b"1"}
    of_format_1(path, rows)
    with monkeypatch.context() as patched:
        patched.setattr("headgate.metadata.sqlite_store._MAKE_TOTAL", "NOT SQL")
        with pytest.raises(CorruptionError):
            SqliteStore(path)
    assert load_of(path) == rows


def test_a_copy_has_the_rows_of_the_last_transaction(tmp_path: Path) -> None:
    rows = [Write("topic", f"t{at}", b"x" * 500) for at in range(200)]
    for number, store in enumerate((SqliteStore(str(tmp_path / "m")), MemoryStore())):
        store.commit(rows)
        store.copy_to(str(tmp_path / f"copy{number}"))
        store.commit([Write("topic", "later", b"x")])
        copy = SqliteStore(str(tmp_path / f"copy{number}"))
        assert copy.load() == {(row.kind, row.key): row.value for row in rows}
        copy.close()
        store.close()


def test_a_copy_that_cannot_be_written_leaves_the_store(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "m"))
    with pytest.raises(StorageError):
        store.copy_to(str(tmp_path / "missing" / "copy"))
    store.commit([Write("topic", "t", b"x")])
    store.close()
