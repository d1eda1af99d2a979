"""A restored directory is the one that was backed up, or none that can be started."""

from __future__ import annotations

import pytest

from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.restore import newest_manifest, restore
from headgate.app.data_directory import DataDirectory
from headgate.base.errors import CorruptionError, InputError, StorageError
from headgate.fs import FaultyFs, Fs
from headgate.ledger.errors import DirectoryInUseError
from headgate.ledger.format.directory import write_file
from tests.unit.app.backup.directories import (
    BACKUP,
    DATA,
    NEW,
    bodies,
    content,
    empty_disk,
    fill,
    free_pace,
    take,
)


def restored(fs: Fs, generation: int | None = None, path: str = NEW) -> None:
    folder = BackupFolder.open(fs, BACKUP)
    try:
        restore(folder, newest_manifest(folder, generation), path, free_pace(), lambda _: None)
    finally:
        folder.close()


def test_each_generation_comes_back() -> None:
    fs = empty_disk()
    fill(fs)
    before = content(fs, DATA)
    take(fs)
    fill(fs)
    take(fs)
    restored(fs)
    assert content(fs, NEW) == content(fs, DATA)
    restored(fs, 1, "/old")
    assert content(fs, "/old") == before
    assert bodies(fs, "/old") == bodies(fs, DATA)[:12]
    assert fs.list_directory(NEW) == ["format", "lock", "metadata.sqlite3"]


def test_it_is_durable() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    restored(fs)
    assert content(fs.crash_clone(), NEW) == content(fs, DATA)


def test_a_directory_with_anything_in_it_is_refused_and_stays() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    before = content(fs, DATA)
    with pytest.raises(InputError, match="is not empty: it holds 'format'"):
        restored(fs, path=DATA)
    assert content(fs, DATA) == before
    lock = fs.lock(f"{DATA}/lock")
    with pytest.raises(DirectoryInUseError):
        restored(fs, path=DATA)
    lock.release()


def test_the_root_of_a_new_file_system_takes_a_restore() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    fs.make_directory(NEW)
    fs.create(f"{NEW}/lost+found").close()
    fs.capacity_bytes = fs.used_bytes() + 5_000
    with pytest.raises(OSError, match="space"):
        restored(fs)
    fs.capacity_bytes = None
    restored(fs)
    DataDirectory.open(fs, NEW).close()
    assert "lost+found" in fs.list_directory(NEW)


def test_a_damaged_file_is_named_and_nothing_starts() -> None:
    fs = empty_disk()
    fill(fs)
    stored = take(fs).manifest.files[-1].stored
    file = fs.open(f"{BACKUP}/files/{stored}", writable=True)
    file.write_at(10, [b"rot"])
    with pytest.raises(CorruptionError, match=f"{stored} is damaged"):
        restored(fs)
    with pytest.raises(StorageError, match="unfinished restore"):
        DataDirectory.open(fs, NEW)
    fs.remove(f"{BACKUP}/files/{stored}")
    with pytest.raises(CorruptionError, match="is missing"):
        restored(fs)


def test_an_unfinished_restore_leaves_nothing_to_the_next() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    for path in (NEW, f"{NEW}/log"):
        fs.make_directory(path)
    write_file(fs, NEW, "restore-unfinished", [b"generation 7"])
    write_file(fs, NEW, "metadata.sqlite3-wal", [b"of another"])
    write_file(fs, f"{NEW}/log", "00000000000000ff.log", [b"of another"])
    restored(fs)
    assert content(fs, NEW) == content(fs, DATA)
    assert "metadata.sqlite3-wal" not in fs.list_directory(NEW)


def test_what_an_unfinished_restore_left_goes_before_anything_is_written() -> None:
    """It may have filled the disk."""
    fs = empty_disk()
    fill(fs)
    take(fs)
    fs.capacity_bytes = fs.used_bytes() + 5_000
    with pytest.raises(OSError, match="space"):
        restored(fs)
    kinds: list[str] = []
    fs.capacity_bytes = None
    restored(FaultyFs(fs, lambda operation: kinds.append(operation.kind)))
    assert kinds.index("remove") < kinds.index("write")
    assert content(fs, NEW) == content(fs, DATA)


def test_a_generation_that_is_not_there() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    with pytest.raises(InputError, match="no such generation; it has 1"):
        restored(fs, 2)
    empty = empty_disk()
    BackupFolder.create(empty, BACKUP).close()
    with pytest.raises(InputError, match="it has none"):
        restored(empty)
