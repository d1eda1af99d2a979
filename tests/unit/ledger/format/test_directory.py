"""Owning a data directory and knowing its format."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
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
