"""Owning a data directory and knowing its format."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from headgate.fs import FaultyFs, MemFs, Operation, OsFs
from headgate.ledger import DirectoryInUseError, UnknownFormatError
from headgate.ledger.format.directory import (
    adopt,
    file_size,
    is_adopted,
    lock_directory,
    read_file,
    write_file,
)


def test_a_new_directory_gets_its_format() -> None:
    fs = MemFs()
    lock_directory(fs, "/d").release()
    assert read_file(fs, "/d/format") == b"headgate-log 3\n"
    assert file_size(fs, "/d/format") == len(b"headgate-log 3\n")
    assert "format" in fs.crash_clone().list_directory("/d")
    lock_directory(fs, "/d")
    with pytest.raises(DirectoryInUseError, match="/d is in use by another process"):
        lock_directory(fs, "/d")


@pytest.mark.parametrize("version", [1, 9])
def test_an_unknown_format_is_named_and_the_lock_let_go(version: int) -> None:
    fs = MemFs()
    fs.make_directory("/d")
    write_file(fs, "/d", "format", [b"headgate-log %d\n" % version])
    named = f"'headgate-log {version}'; this release reads headgate-log 3 and 2"
    for _ in range(2):
        with pytest.raises(UnknownFormatError, match=named):
            lock_directory(fs, "/d")


def test_the_format_before_is_adopted_once(caplog: pytest.LogCaptureFixture) -> None:
    fs = MemFs()
    fs.make_directory("/d")
    write_file(fs, "/d", "format", [b"headgate-log 2\n"])
    lock_directory(fs, "/d").release()
    assert not is_adopted(fs, "/d")
    adopt(fs, "/d")
    assert read_file(fs.crash_clone(), "/d/format") == b"headgate-log 3\n"
    lock_directory(fs, "/d").release()
    assert is_adopted(fs, "/d")
    adopt(fs, "/d")
    (line,) = caplog.messages
    assert line.startswith("/d had format 2 of an older release")


def test_a_foreign_directory_is_refused() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    fs.create("/d/photos")
    with pytest.raises(UnknownFormatError, match="holds 'photos' but no file 'format'"):
        lock_directory(fs, "/d")


def test_an_interrupted_first_start_is_not_foreign() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    fs.create("/d/format.tmp")
    lock_directory(fs, "/d")


def test_a_log_that_lost_its_format_is_not_taken_for_a_foreign_directory() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    fs.create("/d/0000000000000001.log").close()
    with pytest.raises(
        UnknownFormatError, match="/d lacks its file 'format': put it back"
    ) as error:
        lock_directory(fs, "/d")
    assert "make it anew with the one line 'headgate-log 3'" in str(error.value)


@pytest.mark.parametrize("text", [b"", b"headgate-log", b"headgate-lo\xe7 3\n"])
def test_a_damaged_format_is_said_to_be_damaged(text: bytes) -> None:
    fs = MemFs()
    fs.make_directory("/d")
    write_file(fs, "/d", "format", [text])
    with pytest.raises(UnknownFormatError, match="of log directory /d is damaged: it says"):
        lock_directory(fs, "/d")


@pytest.mark.parametrize("kind", ["write", "sync", "rename", "sync_directory"])
def test_a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_beside_it(kind: str) -> None:
    fs = MemFs()
    fs.make_directory("/d")
    write_file(fs, "/d", "name", [b"old"])

    def plan(operation: Operation) -> None:
        if operation.kind == kind:
            raise OSError(errno.EIO, "as planned", operation.path)

    with pytest.raises(OSError, match="as planned"):
        write_file(FaultyFs(fs, plan), "/d", "name", [b"new"])
    assert fs.list_directory("/d") == ["name"]
    assert read_file(fs, "/d/name") == (b"new" if kind == "sync_directory" else b"old")


def test_a_file_for_which_there_is_no_room_leaves_none_taken() -> None:
    fs = MemFs(capacity_bytes=4_096)
    fs.make_directory("/d")
    before = fs.space("/d").free_bytes
    with pytest.raises(OSError, match="no space"):
        write_file(fs, "/d", "name", [bytes(8_192)])
    assert fs.list_directory("/d") == []
    assert fs.space("/d").free_bytes == before


def test_a_file_with_a_length_without_end_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(1 << 40)  # it takes no room
    with pytest.raises(OSError, match="bytes, where") as caught:
        read_file(OsFs(), str(tmp_path / "x"))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "x"))


def test_a_long_file_that_takes_its_room_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of many subscriptions may be longer than the bound: no start read it again."""
    fs = MemFs()
    fs.make_directory("/d")
    write_file(fs, "/d", "x", [b"1" * 20_000])
    monkeypatch.setattr("headgate.ledger.format.directory.READ_BYTES_MAX", 10_000)
    assert read_file(fs, "/d/x") == b"1" * 20_000
    file = fs.open("/d/x", writable=True)
    file.punch(0, 8_192)
    with pytest.raises(OSError, match="20,000 bytes, where 10,000 are the most"):
        read_file(fs, "/d/x")


def test_a_long_file_is_made_durable_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit waited until the disk had all of a checkpoint with hundreds of megabytes."""
    monkeypatch.setattr("headgate.ledger.format.directory.PIECE_BYTES", 100)
    seen: list[tuple[str, int]] = []

    def plan(operation: Operation) -> None:
        seen.append((operation.kind, operation.size))

    fs = FaultyFs(MemFs(), plan)
    fs.make_directory("/d")
    write_file(fs, "/d", "x", [b"1" * 60, b"2" * 60, b"3" * 60, b"4" * 60, b"5"])
    pieces = [("write", 120), ("sync", 0), ("write", 120), ("sync", 0), ("write", 1), ("sync", 0)]
    assert seen[1:-2] == pieces
    assert read_file(fs, "/d/x") == b"1" * 60 + b"2" * 60 + b"3" * 60 + b"4" * 60 + b"5"
    write_file(fs, "/d", "empty", [])
    assert read_file(fs, "/d/empty") == b""
