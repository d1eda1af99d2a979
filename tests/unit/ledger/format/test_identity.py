"""The file that says whose a log is: durable, whole, and readable with a flipped bit."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger.errors import UnknownFormatError
from headgate.ledger.format.identity import (
    IDENTITY_NAME,
    Identity,
    LogFound,
    look_at_log,
    write_identity,
)
from headgate.ledger.format.records import crc32c
from tests.unit.ledger.support import DIRECTORY, append, content, open_log, overwrite

FILE = f"{DIRECTORY}/{IDENTITY_NAME}"
IDENTITY = Identity("0123456789abcdef" * 2, starts=3, topic_number=17, revision=42)


def with_identity(identity: Identity = IDENTITY) -> MemFs:
    fs = MemFs()
    fs.make_directory(DIRECTORY)
    write_identity(fs, DIRECTORY, identity)
    return fs


def test_a_directory_that_is_not_there_holds_nothing() -> None:
    assert look_at_log(MemFs(), DIRECTORY) == LogFound(None, holds_records=False)


def test_a_log_of_the_release_before_has_no_identity() -> None:
    fs = MemFs()
    append(open_log(fs), 1, b"x")
    assert look_at_log(fs, DIRECTORY) == LogFound(None, holds_records=True)


def test_what_was_written_survives_a_power_cut() -> None:
    fs = with_identity()
    write_identity(fs, DIRECTORY, Identity(IDENTITY.data_id, 4, 18, 43))
    found = look_at_log(fs.crash_clone(None), DIRECTORY)
    assert found.identity == Identity(IDENTITY.data_id, 4, 18, 43)


def test_a_batch_is_kept_and_its_absence_is_the_version_before() -> None:
    with_batch = replace(IDENTITY, batch=1 << 40)
    assert look_at_log(with_identity(with_batch), DIRECTORY).identity == with_batch
    assert with_batch.text().startswith(b"headgate-identity 2 ")
    assert IDENTITY.text().startswith(b"headgate-identity 1 ")
    assert b"batch" not in IDENTITY.text()


def test_a_log_notes_what_it_is_reported() -> None:
    fs = MemFs()
    log = open_log(fs)
    log.identify(IDENTITY)
    log.close()
    assert look_at_log(fs, DIRECTORY) == LogFound(IDENTITY, holds_records=True)


def test_one_flipped_bit_anywhere_does_no_harm() -> None:
    size = len(content(with_identity(), FILE))
    for at in range(size):
        for bit in range(8):
            fs = with_identity()
            before = content(fs, FILE)
            overwrite(fs, FILE, at, bytes([before[at] ^ 1 << bit]))
            assert look_at_log(fs, DIRECTORY).identity == IDENTITY, (at, bit)


def test_damage_in_both_lines_is_reported() -> None:
    fs = with_identity()
    overwrite(fs, FILE, 40, b"??")
    overwrite(fs, FILE, len(IDENTITY.text()) // 2 + 40, b"??")
    found = look_at_log(fs, DIRECTORY)
    assert found.identity is None
    assert found.damage == f"{FILE} is damaged: neither of its lines is whole"


def test_a_later_format_is_refused() -> None:
    fs = with_identity()
    for line in (b"headgate-identity 3 what=ever\n", _with_version(9)):
        overwrite(fs, FILE, 0, line.ljust(len(IDENTITY.text()), b"\n"))
        with pytest.raises(UnknownFormatError, match=r"has format [39]; this release reads"):
            look_at_log(fs, DIRECTORY)


def _with_version(version: int) -> bytes:
    line = IDENTITY.text().split(b" crc32c=")[0].replace(b"identity 1", b"identity %d" % version)
    return line + b" crc32c=%08x\n" % crc32c(line)


def test_a_disk_that_refuses_may_be_asked_again() -> None:
    inner = with_identity()
    fs = FaultyFs(inner)

    def plan(operation: Operation) -> int | None:
        raise OSError(errno.ENOSPC, "no space")

    fs.plan = plan
    with pytest.raises(StorageError, match="writing /data/identity failed") as caught:
        write_identity(fs, DIRECTORY, IDENTITY)
    assert caught.value.retryable
    assert look_at_log(inner, DIRECTORY).identity == IDENTITY
