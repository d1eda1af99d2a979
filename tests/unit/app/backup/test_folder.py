"""A backup folder takes nothing foreign, and removes only what no generation has."""

from __future__ import annotations

import errno

import pytest

from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.manifest import BackupError, Manifest, StoredFile
from headgate.app.backup.plan import INCOMING, stored_name
from headgate.base.errors import InputError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger.format.directory import write_file
from tests.unit.app.backup.directories import BACKUP, empty_disk


def generation(number: int, *stored: str) -> Manifest:
    files = tuple(StoredFile(f"log/{name}", 1, "0" * 64, name) for name in stored)
    return Manifest(1, number, "", "", "", False, {}, files)


def folder_with(fs: MemFs, *generations: Manifest) -> BackupFolder:
    folder = BackupFolder.create(fs, BACKUP)
    for manifest in generations:
        for file in manifest.files:
            write_file(fs, folder.files_path, file.stored, [b"x"])
        folder.add_manifest(manifest)
    return folder


def test_a_folder_with_anything_else_is_refused() -> None:
    fs = empty_disk()
    fs.make_directory(BACKUP)
    write_file(fs, BACKUP, "letters", [b""])
    with pytest.raises(InputError, match="holds 'letters'"):
        BackupFolder.create(fs, BACKUP)
    with pytest.raises(InputError, match="is no backup folder"):
        BackupFolder.open(fs, BACKUP)
    with pytest.raises(InputError, match="is no backup folder"):
        BackupFolder.open(fs, "/missing")


def test_the_root_of_a_new_file_system_becomes_a_backup_folder() -> None:
    fs = empty_disk()
    fs.make_directory(BACKUP)
    fs.create(f"{BACKUP}/lost+found").close()
    BackupFolder.create(fs, BACKUP).close()
    BackupFolder.open(fs, BACKUP).close()


def test_one_backup_or_restore_at_a_time() -> None:
    fs = empty_disk()
    folder = BackupFolder.create(fs, BACKUP)
    for again in (BackupFolder.create, BackupFolder.open):
        with pytest.raises(BackupError, match="another backup or restore uses"):
            again(fs, BACKUP)
    folder.close()
    BackupFolder.open(fs, BACKUP).close()


def test_a_later_format_is_refused() -> None:
    fs = empty_disk()
    BackupFolder.create(fs, BACKUP).close()
    write_file(fs, BACKUP, "format", [b"headgate-backup 2\n"])
    for again in (BackupFolder.create, BackupFolder.open, BackupFolder.create):
        with pytest.raises(BackupError, match="knows 'headgate-backup 1'"):
            again(fs, BACKUP)


def test_a_folder_on_a_read_only_file_system_can_be_restored_from() -> None:
    fs = empty_disk()
    folder_with(fs, generation(1, "a")).close()

    def read_only(operation: Operation) -> None:
        if operation.kind == "lock":
            raise OSError(errno.EROFS, "read-only file system")

    folder = BackupFolder.open(FaultyFs(fs, read_only), BACKUP)
    assert folder.generations() == [1]
    folder.close()


def test_what_no_kept_generation_has_is_removed() -> None:
    fs = empty_disk()
    a, b, c, left = (stored_name(key, "0" * 64) for key in ("a", "b", "c", "left"))
    folder = folder_with(fs, generation(1, a, b), generation(2, b, c), generation(3, c))
    write_file(fs, folder.files_path, left, [b"x"])
    write_file(fs, folder.files_path, INCOMING, [b"x"])
    assert folder.stored_names() == [a, b, c, left]
    assert folder.prune(2) == [1]
    assert folder.generations() == [2, 3]
    assert fs.list_directory(folder.files_path) == [b, c]


def test_beside_a_damaged_manifest_no_file_is_removed() -> None:
    fs = empty_disk()
    folder = folder_with(fs, generation(1, "a"), generation(2, "b"))
    write_file(fs, f"{BACKUP}/generations", "00000002.json", [b"{}"])
    assert folder.prune(1) == [1]
    assert folder.stored_names() == ["a", "b"]


def test_a_generation_is_durable_with_its_files() -> None:
    fs = empty_disk()
    folder_with(fs, generation(1, "a"))
    after = BackupFolder.open(fs.crash_clone(), BACKUP)
    assert after.manifest(1) == generation(1, "a")
    assert after.stored_names() == ["a"]


def test_removing_what_is_not_there_is_no_error() -> None:
    BackupFolder.create(empty_disk(), BACKUP).remove_incoming()
