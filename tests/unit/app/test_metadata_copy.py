"""The copy of the metadata beside the log follows the store, and is never ahead of it."""

from __future__ import annotations

import contextlib
import errno
import random

import pytest

from headgate.app.metadata_copy import CopiedStore, read_copy
from headgate.base.errors import CorruptionError, StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger.format.directory import METADATA_COPY_NAME
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


def test_every_failing_operation_is_repaired_by_the_next_save() -> None:
    for failing in range(12):
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


def test_a_power_cut_leaves_a_copy_that_is_a_moment_of_the_store() -> None:
    for seed in range(150):
        fs, store = MemFs(), MemoryStore()
        disk = FaultyFs(fs)
        copied = made(disk, store)
        moments = [{}]
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


def test_a_small_disk_keeps_its_room_for_messages() -> None:
    fs = MemFs(8 << 20)
    copied = made(fs, MemoryStore())
    with pytest.raises(StorageError, match="which messages may need"):
        copied.save()
    assert fs.list_directory(LOG) == []


def test_damage_of_the_store_never_replaces_the_copy() -> None:
    fs, store = MemFs(), MemoryStore()
    copied = made(fs, store)
    put(copied, "a")
    copied.save()
    copied._begin_anew()

    def damaged() -> dict[tuple[str, str], bytes]:
        raise CorruptionError("damaged")

    store.load = damaged  # type: ignore[method-assign]
    with pytest.raises(CorruptionError):
        copied.save()
    assert copied_rows(fs) == {("tenant", "a"): b"a"}
