"""A backup copies each sealed segment once, and leaves earlier generations alone if it fails."""

from __future__ import annotations

import dataclasses

import pytest

from headgate.app.backup.copying import sha256_of
from headgate.app.backup.folder import BackupFolder
from headgate.app.backup.manifest import BackupError
from headgate.app.backup.sources import stopped_source
from headgate.app.backup.take import take_backup
from headgate.base.errors import InputError
from headgate.fs import MemFs
from headgate.ledger.format.directory import read_file, write_file
from headgate.ledger.format.identity import Identity, write_identity
from tests.unit.app.backup.directories import (
    BACKUP,
    DATA,
    content,
    empty_disk,
    fill,
    free_pace,
    open_log,
    publish,
    take,
)


def generation(fs: MemFs, number: int) -> dict[str, bytes]:
    """The files of a generation, each checked."""
    folder = BackupFolder.open(fs, BACKUP)
    manifest = folder.manifest(number)
    folder.close()
    found = {}
    for file in manifest.files:
        place = f"{folder.files_path}/{file.stored}"
        assert sha256_of(fs, place, free_pace()) == file.sha256
        found[file.path] = read_file(fs, place)
        assert len(found[file.path]) == file.size_bytes
    return found


def test_a_generation_has_the_files_of_the_directory() -> None:
    fs = empty_disk()
    fill(fs)
    taken = take(fs)
    assert generation(fs, 1) == content(fs, DATA)
    assert taken.manifest.generation == 1
    assert taken.copied_bytes == taken.manifest.size_bytes


def test_the_next_backup_copies_no_segment_again() -> None:
    fs = empty_disk()
    fill(fs, 30)
    first = take(fs)
    sizes = {file.path: file.size_bytes for file in first.manifest.files}
    segments = sum(size for path, size in sizes.items() if path.endswith(".log"))
    second = take(fs)
    assert second.copied_bytes == first.copied_bytes - segments
    assert generation(fs, 2) == generation(fs, 1) == content(fs, DATA)


def test_both_generations_stay_as_they_were_taken() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    before = content(fs, DATA)
    fill(fs)
    take(fs)
    assert generation(fs, 1) == before
    assert generation(fs, 2) == content(fs, DATA) != before


def test_old_generations_go_with_their_files() -> None:
    fs = empty_disk()
    for _ in range(4):
        fill(fs, 3)
        taken = take(fs, keep=2)
    assert taken.removed == [2]
    assert generation(fs, 4) == content(fs, DATA)
    generation(fs, 3)
    used = {
        file.stored
        for number in (3, 4)
        for file in BackupFolder(fs, BACKUP, None).manifest(number).files
    }
    assert set(fs.list_directory(f"{BACKUP}/files")) == used


def test_another_content_under_the_same_name_and_size_is_copied() -> None:
    """As rewriting leaves it: same number, same length, other records."""
    fs = empty_disk()
    fill(fs)
    take(fs)
    name = "0000000000000001.log"
    data = bytearray(read_file(fs, f"{DATA}/log/{name}"))
    data[24] ^= 1  # another stamp
    write_file(fs, f"{DATA}/log", name, [bytes(data)])
    second = take(fs)
    assert generation(fs, 2)[f"log/{name}"] == bytes(data) != generation(fs, 1)[f"log/{name}"]
    assert second.copied_bytes >= len(data)


def test_an_open_segment_is_always_copied() -> None:
    fs = empty_disk()
    fill(fs)
    log = open_log(fs)
    publish(log, 1)
    running = fs.crash_clone()
    take(running)
    first = generation(running, 1)
    again = take(running)
    assert generation(running, 2) == first
    newest = max(path for path in first if path.endswith(".log"))
    assert again.copied_bytes >= len(first[newest])


def test_checking_replaces_a_stored_file_that_rotted() -> None:
    fs = empty_disk()
    fill(fs)
    first = take(fs)
    stored = next(f.stored for f in first.manifest.files if f.path.endswith("1.log"))
    file = fs.open(f"{BACKUP}/files/{stored}", writable=True)
    file.write_at(100, [b"rot"])
    take(fs)
    with pytest.raises(AssertionError):
        generation(fs, 2)
    take(fs, check=True)
    assert generation(fs, 3) == generation(fs, 2) == content(fs, DATA)


def test_a_source_that_was_not_held_makes_no_generation() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    folder = BackupFolder.create(fs, BACKUP)

    def refuse() -> None:
        raise BackupError("the disk became full")

    with stopped_source(fs, DATA) as source:
        source = dataclasses.replace(source, confirm=refuse)
        with pytest.raises(BackupError, match="the disk became full"):
            take_backup(source, folder, free_pace(), "now", keep=1)
        gone = dataclasses.replace(source.files[-1], place=f"{DATA}/log/gone")
        source = dataclasses.replace(source, files=[gone])
        with pytest.raises(BackupError, match="/data/log/gone went away"):
            take_backup(source, folder, free_pace(), "now", keep=1)
    folder.close()
    assert folder.generations() == [1]
    generation(fs, 1)


def test_no_generation_gets_a_name_under_which_it_is_not_found() -> None:
    fs = empty_disk()
    fill(fs)
    take(fs)
    last = read_file(fs, f"{BACKUP}/generations/00000001.json")
    write_file(fs, f"{BACKUP}/generations", "99999999.json", [last])
    with pytest.raises(InputError, match="generation 99999999, the last one possible"):
        take(fs)
    assert generation(fs, 99_999_999) == content(fs, DATA)


def test_a_folder_has_one_data_directory() -> None:
    fs = empty_disk()
    fill(fs)
    write_identity(fs, f"{DATA}/log", Identity("a" * 32, 1, 1, 1))
    take(fs)
    write_identity(fs, f"{DATA}/log", Identity("b" * 32, 1, 1, 1))
    with pytest.raises(InputError, match="choose another folder"):
        take(fs)
