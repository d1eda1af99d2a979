"""A power cut or a kill at any step of a backup or a restore.

After it every generation that is listed is whole, with the one before; the next backup completes
and leaves no file behind. A restore that was cut off is a directory on which nothing starts, or the
complete one; the same restore then completes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headgate.app.backup.copying import sha256_of
from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.restore import newest_manifest, restore
from headgate.app.data_directory import DataDirectory
from headgate.base.errors import HeadgateError
from headgate.fs import FaultyFs, Fs, MemFs, Operation
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


class PowerCutError(BaseException):
    """The power was cut: no code of the process runs any more."""


def cut_at(mem: MemFs, step: int, work: Callable[[Fs], object]) -> bool:
    """Do ``work`` until the operation ``step``; whether it came that far."""

    def plan(operation: Operation) -> None:
        if operation.index >= step:
            raise PowerCutError

    try:
        work(FaultyFs(mem, plan))
    except PowerCutError:
        return True
    return False


def disks_after(mem: MemFs, step: int) -> Iterator[MemFs]:
    """What a power cut may leave of the disk: without all that was not synced, and with parts.
    Last what a kill leaves: everything but the locks."""
    yield mem.crash_clone()
    for seed in (step, step + 100_000):
        yield mem.crash_clone(seed)
    mem._locks.clear()
    yield mem


def check_generations(fs: MemFs, before: dict[str, bytes]) -> list[int]:
    folder = BackupFolder.open(fs, BACKUP)
    found = folder.generations()
    for generation in found:
        for file in folder.manifest(generation).files:
            assert sha256_of(fs, f"{folder.files_path}/{file.stored}", free_pace()) == file.sha256
            if generation == 1:
                assert file.size_bytes == len(before[file.path])
    folder.close()
    return found


def with_one_generation() -> tuple[MemFs, dict[str, bytes]]:
    """A disk with a backup, and a data directory that went on since."""
    fs = empty_disk()
    fill(fs, 8)
    take(fs)
    before = content(fs, DATA)
    fill(fs, 8)
    return fs, before


@pytest.mark.parametrize("keep", [1, 2])
def test_a_backup_is_cut_off(keep: int) -> None:
    start, before = with_one_generation()
    step = 0
    while True:
        mem = start.crash_clone()
        if not cut_at(mem, step, lambda fs: take(fs, keep)):
            break
        for fs in disks_after(mem, step):
            found = check_generations(fs, before)
            assert found in ([1], [2], [1, 2])
            assert 1 in found or keep == 1
            taken = take(fs, keep)
            assert content(fs, DATA) == content(start, DATA)
            last = taken.manifest.generation
            assert check_generations(fs, before)[-1] == last
            folder = BackupFolder.open(fs, BACKUP)
            kept = [folder.manifest(generation) for generation in folder.generations()]
            used = {file.stored for manifest in kept for file in manifest.files}
            assert set(fs.list_directory(folder.files_path)) == used
        step += 1
    assert step > 50


def test_the_first_backup_is_cut_off() -> None:
    start = empty_disk()
    fill(start, 8)
    step = 0
    while True:
        mem = start.crash_clone()
        if not cut_at(mem, step, take):
            break
        for fs in disks_after(mem, step):
            assert take(fs).manifest.files
            assert check_generations(fs, content(fs, DATA))
        step += 1
    assert step > 30


def restore_newest(fs: Fs) -> None:
    folder = BackupFolder.open(fs, BACKUP)
    restore(folder, newest_manifest(folder, None), NEW, free_pace(), lambda _: None)
    folder.close()


def test_a_restore_is_cut_off() -> None:
    start, _ = with_one_generation()
    take(start)
    expected, step, refused, complete = bodies(start.crash_clone(), DATA), 0, 0, 0
    while True:
        mem = start.crash_clone()
        if not cut_at(mem, step, restore_newest):
            break
        for fs in disks_after(mem, step):
            try:
                fs.list_directory(NEW)
                DataDirectory.open(fs, NEW).close()
            except (FileNotFoundError, HeadgateError):
                refused += 1
            else:
                if has_log(fs):
                    assert content(fs, NEW) == content(fs, DATA)
                    complete += 1
                continue  # or nothing was there yet: the start made a directory of its own
            restore_newest(fs)
            assert content(fs, NEW) == content(fs, DATA)
            assert bodies(fs, NEW) == expected
        step += 1
    assert refused > 100
    assert complete > 0


def has_log(fs: MemFs) -> bool:
    """Whether the new directory has any file of the log."""
    try:
        return bool(fs.list_directory(f"{NEW}/log"))
    except FileNotFoundError:
        return False
