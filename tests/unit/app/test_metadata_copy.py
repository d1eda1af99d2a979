"""The copy of the metadata beside the log follows the store, and is never ahead of it."""

from __future__ import annotations

import contextlib
import errno
import random
from collections.abc import Iterator

import pytest

from headgate.app.metadata_copy import CopiedStore, read_copy
from headgate.base.errors import CorruptionError, StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger.format.directory import METADATA_COPY_NAME, PIECE_BYTES
from headgate.metadata.memory_store import MemoryStore
from headgate.metadata.store import Write

LOG = "data/log"
PATH = f"{LOG}/{METADATA_COPY_NAME}"


def made(fs: MemFs | FaultyFs, store: MemoryStore) -> CopiedStore:
    """A start: the rows are read, the log's directory is there."""
    fs.make_directory(LOG)
    copied = CopiedStore(store, fs, LOG)
    copied.load()
    return copied


def put(copied: CopiedStore, *names: str) -> None:
    for name in names:
        copied.commit([Write("tenant", name, name.encode())])


def copied_rows(fs: MemFs | FaultyFs) -> dict[tuple[str, str], bytes]:
    found = read_copy(fs, LOG)
    assert found is not None
    assert found.rest_bytes == 0
    return found.rows


def size(fs: MemFs) -> int:
    return fs.open(PATH).size()


def test_the_first_save_makes_the_copy_and_later_ones_add() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, "a")
    assert read_copy(fs, LOG) is None  # nothing is written before the start has succeeded
    copied.save()
    assert not copied.is_behind
    before = size(fs)
    put(copied, "b", "c")
    copied.commit([Write("tenant", "a", None)])
    assert copied.is_behind
    copied.save()
    assert copied_rows(fs) == store.load() == {("tenant", n): n.encode() for n in "bc"}
    assert before < size(fs) < 3 * before
    copied.close()


def test_a_start_goes_on_with_a_copy_that_is_equal() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, "a")
    copied.save()
    copied.close()
    disk = FaultyFs(fs)
    again = made(disk, store)
    assert not again.is_behind
    kinds: list[str] = []
    disk.plan = lambda operation: kinds.append(operation.kind)
    put(again, "b")
    again.save()
    assert kinds == ["open", "write", "sync"]
    assert copied_rows(fs) == store.load()


@pytest.mark.parametrize("how", ["behind", "torn", "damaged", "foreign", "unreadable"])
def test_a_start_writes_a_copy_that_differs_anew(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, "a")
    copied.save()
    put(copied, "b")
    file = fs.open(PATH, writable=True)
    if how == "torn":
        copied.save()
        file.truncate(file.size() - 1)
    elif how == "damaged":
        file.write_at(30, [b"\xff"])
    elif how == "foreign":
        file.write_at(0, [b"something else"])
    disk = FaultyFs(fs)
    if how == "unreadable":

        def plan(operation: Operation) -> None:
            if operation.kind == "open":
                raise OSError(errno.EIO, "failed")

        disk.plan = plan
    again = made(disk, store)
    assert again.is_behind
    again.save()
    disk.plan = lambda _: None
    assert copied_rows(fs) == store.load()
    assert bool(caplog.messages) == (how in ("damaged", "foreign", "unreadable"))


def test_a_copy_that_grew_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.app.metadata_copy._GROWTH_BYTES", 2_000)
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    sizes = []
    for _ in range(100):
        put(copied, "a")
        copied.save()
        sizes.append(size(fs))
    assert max(sizes) < 2_500
    assert copied_rows(fs) == store.load()


def test_unsaved_changes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.app.metadata_copy._UNSAVED_BYTES_MAX", 50)
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    copied.save()
    for number in range(100):
        put(copied, str(number))
    assert copied._unsaved == []
    copied.save()
    assert copied_rows(fs) == store.load()


def test_few_large_changes_do_not_have_a_large_copy_written_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five changes of a row of 1 MB in a second had the rows of all tenants written again."""
    monkeypatch.setattr("headgate.app.metadata_copy._UNSAVED_BYTES_MAX", 4_000)
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    copied.commit([Write("tenant", f"{number}", b"x" * 1_000) for number in range(100)])
    copied.save()
    whole = size(fs)
    for number in range(40):
        copied.commit([Write("tenant", "large", b"%d" % (number % 10) * 1_000)])
    copied.save()
    assert size(fs) > whole + 40_000
    assert copied_rows(fs) == store.load()
    for number in range(60):
        copied.commit([Write("tenant", "large", b"%d" % (number % 10) * 1_000)])
    assert copied._unsaved == []
    copied.save()
    assert size(fs) < whole + 2_000
    assert copied_rows(fs) == store.load()


def test_a_change_that_the_store_refused_is_not_copied() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    copied.save()
    for retryable in (True, False):
        store.fail_next(StorageError("refused", retryable=retryable))
        with pytest.raises(StorageError):
            put(copied, "a")
        assert copied.is_behind is not retryable  # an unknown outcome: the store is read again
        copied.save()
        assert copied_rows(fs) == {}


@pytest.mark.parametrize("piece_bytes", [1, PIECE_BYTES])
def test_every_failing_operation_is_repaired_by_the_next_save(
    piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.app.metadata_copy.PIECE_BYTES", piece_bytes)
    monkeypatch.setattr("headgate.app.metadata_copy._PIECE_ROWS", 1)
    for failing in range(20):
        fs, store = MemFs(), MemoryStore()
        disk = FaultyFs(fs)
        copied = made(disk, store)
        put(copied, "a")
        first = disk.operations_count

        def plan(operation: Operation, at: int = first + failing) -> None:
            if operation.index == at:
                raise OSError(errno.ENOSPC, "no space")

        disk.plan = plan
        for name in ("b", "c", "d"):
            with contextlib.suppress(StorageError):
                copied.save()
            put(copied, name)
        disk.plan = lambda _: None
        copied.save()
        assert copied_rows(fs) == store.load()
        assert fs.list_directory(LOG) == [METADATA_COPY_NAME]


@pytest.mark.parametrize("piece_bytes", [1, PIECE_BYTES])
def test_a_power_cut_leaves_a_copy_that_is_a_moment_of_the_store(
    piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.app.metadata_copy.PIECE_BYTES", piece_bytes)
    monkeypatch.setattr("headgate.app.metadata_copy._PIECE_ROWS", 1)
    for seed in range(150):
        fs, store = MemFs(), MemoryStore()
        disk = FaultyFs(fs)
        copied = made(disk, store)
        moments: list[dict[tuple[str, str], bytes]] = [{}]
        cut = random.Random(seed).randrange(3, 30)

        def plan(operation: Operation, at: int = cut) -> None:
            if operation.index == at:
                raise InterruptedError

        disk.plan = plan
        saved = 0
        try:
            for number in range(8):
                put(copied, str(number % 3), str(number))
                moments += [store.load()]
                copied.save()
                saved = len(moments) - 1
        except (InterruptedError, StorageError):
            pass
        after = fs.crash_clone(seed)
        found = read_copy(after, LOG) if saved else None
        assert saved == 0 or (found is not None and moments.index(found.rows, saved) >= saved)
        again = made(after, store)
        again.save()
        assert copied_rows(after) == store.load()


def test_a_kill_amid_a_save_leaves_a_copy_that_is_a_moment_of_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows that were read before and behind a change were no moment of the store, until the
    changes from between the steps were there, too: a repair took half of a change for all."""
    monkeypatch.setattr("headgate.app.metadata_copy.PIECE_BYTES", 200)
    monkeypatch.setattr("headgate.app.metadata_copy._PIECE_ROWS", 3)
    monkeypatch.setattr("headgate.app.metadata_copy._PIECE_CHANGES", 2)
    seen = 0
    for seed in range(20):
        chance = random.Random(seed)
        fs, store = MemFs(), MemoryStore()
        disk = FaultyFs(fs)
        copied = made(disk, store)
        put(copied, *(f"{at:02}" for at in range(40)))
        moments = [store.load()]

        def plan(_: Operation, fs: MemFs = fs, moments: list[object] = moments) -> None:
            nonlocal seen
            found = read_copy(fs.crash_clone(), LOG)
            seen += found is not None
            assert found is None or found.rows in moments

        disk.plan = plan
        for _ in copied.save_steps():
            names = chance.sample(range(50), 2)
            copied.commit([Write("tenant", f"{at:02}", b"%d" % len(moments)) for at in names])
            moments.append(store.load())
        put(copied, "later")
        moments.append(store.load())
        copied.save()
        assert copied_rows(fs) == store.load(), seed
    assert seen >= 60  # at the open, the write and the sync of the last change


def test_a_small_disk_keeps_its_room_for_messages() -> None:
    fs = MemFs(8 << 20)
    copied = made(fs, MemoryStore())
    with pytest.raises(StorageError, match="which messages may need"):
        copied.save()
    assert fs.list_directory(LOG) == []


def test_on_a_disk_that_is_nearly_full_a_large_copy_is_not_begun_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headgate.app.metadata_copy.PIECE_BYTES", 100_000)
    fs, store = MemFs((16 << 20) + 500_000), MemoryStore()
    disk = FaultyFs(fs)
    copied = made(disk, store)
    copied.commit([Write("tenant", f"{at:04}", bytes(1_000)) for at in range(1_000)])
    writes = []
    disk.plan = lambda operation: writes.append(operation.kind)
    for _ in range(10):
        with pytest.raises(StorageError, match="which messages may need"):
            copied.save()
        assert fs.list_directory(LOG) == []
    assert writes.count("write") < 10
    fs.capacity_bytes = 1 << 30
    copied.save()
    assert copied_rows(fs) == store.load()


def test_damage_of_the_store_never_replaces_the_copy() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, "a")
    copied.save()
    copied._begin_anew()

    def damaged(count: int) -> Iterator[list[tuple[str, str, bytes]]]:
        yield [("tenant", "a", b"a")][:count]
        raise CorruptionError("rows are missing")

    store.rows_in_pieces = damaged  # type: ignore[method-assign]
    with pytest.raises(CorruptionError):
        copied.save()
    assert copied_rows(fs) == {("tenant", "a"): b"a"}


def test_changes_between_the_steps_are_in_the_copy() -> None:
    """Whatever changes while the rows are read, the copy ends equal to them."""
    for seed in range(60):
        chance = random.Random(seed)
        fs, store = MemFs(), MemoryStore()
        copied = made(fs, store)
        put(copied, *(f"{at:04}" for at in range(450)))
        for _ in copied.save_steps():
            for name in chance.sample(range(600), chance.randrange(4)):
                value = None if chance.random() < 0.4 else b"new %d" % chance.randrange(9)
                copied.commit([Write("tenant", f"{name:04}", value)])
        while copied.is_behind:
            copied.save()
        assert copied_rows(fs) == store.load(), seed
        copied.close()
        again = made(fs, store)
        assert not again.is_behind


def test_a_later_save_ends_the_steps_of_an_earlier_one() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, *(f"{at:04}" for at in range(450)))
    first = copied.save_steps()
    next(first)
    put(copied, "between")
    copied.save()
    put(copied, "later")
    assert list(first) == []
    assert copied.is_behind
    copied.save()
    assert copied_rows(fs) == store.load()


def test_changes_are_added_in_steps_with_one_sync() -> None:
    fs, store = MemFs(), MemoryStore()
    disk = FaultyFs(fs)
    copied = made(disk, store)
    copied.save()
    put(copied, *(f"{at:04}" for at in range(50)))
    kinds: list[str] = []
    disk.plan = lambda operation: kinds.append(operation.kind)
    steps = copied.save_steps()
    next(steps)
    assert copied.is_behind
    copied.save()  # goes on with it
    assert list(steps) == []
    assert kinds == ["open", "write", "write", "write", "sync"]
    assert copied_rows(fs) == store.load()


def test_what_was_added_without_its_sync_is_still_to_be_saved() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    copied.save()
    put(copied, "a")
    next(copied.save_steps())
    assert copied.is_behind
    copied.save()
    assert not copied.is_behind
    assert copied_rows(fs.crash_clone()) == store.load()


def test_too_many_changes_between_the_steps_begin_the_copy_anew() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, *(f"{at:04}" for at in range(450)))
    steps = copied.save_steps()
    next(steps)
    copied.commit([Write("tenant", "large", bytes(5 << 20))])
    assert list(steps) == []
    assert copied.is_behind
    copied.save()
    assert copied_rows(fs) == store.load()


def test_a_large_copy_is_written_in_parts_and_read_without_a_second_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A save had all rows of all tenants in memory, and the next start three times."""
    monkeypatch.setattr("headgate.app.metadata_copy.PIECE_BYTES", 10_000)
    fs, store = MemFs(), MemoryStore()
    disk = FaultyFs(fs)
    copied = made(disk, store)
    copied.commit([Write("tenant", f"{at:04}", bytes(100)) for at in range(1_000)])
    kinds: list[str] = []
    disk.plan = lambda operation: kinds.append(operation.kind)
    copied.save()
    assert kinds.count("write") == 11
    rows = store.load()
    found = read_copy(fs, LOG, rows)
    assert found is not None
    assert all(found.rows[key] is rows[key] for key in rows)


def test_a_copy_that_is_begun_anew_leaves_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.app.metadata_copy.PIECE_BYTES", 10_000)
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    copied.commit([Write("tenant", f"{at:04}", bytes(100)) for at in range(1_000)])
    steps = copied.save_steps()
    for _ in range(4):
        next(steps)
    assert fs.list_directory(LOG) == [f"{METADATA_COPY_NAME}.tmp"]
    copied.commit([Write("tenant", "large", bytes(5 << 20))])
    assert list(steps) == []
    assert fs.list_directory(LOG) == []
    copied.save()
    assert copied_rows(fs) == store.load()
