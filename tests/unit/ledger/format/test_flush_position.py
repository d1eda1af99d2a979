"""The file that says how far the log is durable."""

from __future__ import annotations

import errno

import pytest

from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger.format.flush_position import (
    FLUSH_POSITION_NAME,
    SYNC_COMMITS,
    FlushPosition,
    FlushPositionFile,
    read_flush_position,
)

PATH = f"/d/{FLUSH_POSITION_NAME}"


def begun(fs: MemFs | FaultyFs) -> FlushPositionFile:
    fs.make_directory("/d")
    file = FlushPositionFile(fs, "/d")
    file.begin(FlushPosition(3, 1, 100))
    return file


def flip(fs: MemFs, at: int) -> None:
    file = fs.open(PATH, writable=True)
    (byte,) = file.read_at(at, 1)
    file.write_at(at, [bytes([byte ^ 1])])


def test_it_says_what_was_noted_last() -> None:
    fs = MemFs()
    file = begun(fs)
    assert read_flush_position(fs, "/d") == (3, 1, 100)
    for batch in (5, 7, 8):
        file.note(FlushPosition(batch, 1, 100 * batch))
        assert read_flush_position(fs, "/d") == (batch, 1, 100 * batch)
    file.close()
    assert read_flush_position(fs.crash_clone(), "/d") == (8, 1, 800)


def test_a_commit_does_not_wait_for_it_but_the_first_in_a_segment_and_each_so_many_do() -> None:
    fs = FaultyFs(MemFs())
    file = begun(fs)
    synced: list[int] = []
    for batch in range(4, 4 + SYNC_COMMITS):
        fs.plan = lambda o, batch=batch: synced.append(batch) if o.kind == "sync" else None
        file.note(FlushPosition(batch, 1, 100))
    assert synced == [3 + SYNC_COMMITS]
    file.note(FlushPosition(300, 2, 100))
    assert synced[1:] == [3 + SYNC_COMMITS]
    file.sync()
    assert len(synced) == 2


def test_one_damaged_slot_leaves_the_other() -> None:
    fs = MemFs()
    file = begun(fs)
    file.note(FlushPosition(5, 1, 500))
    for at in range(44):
        torn = fs.crash_clone(1)
        file.sync()
        torn = fs.crash_clone()
        flip(torn, 4096 + at)
        assert read_flush_position(torn, "/d") == (3, 1, 100)
        flip(torn, at)
        assert read_flush_position(torn, "/d") is None


def test_a_missing_or_short_file_says_nothing() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    assert read_flush_position(fs, "/d") is None
    fs.create(PATH).write_at(0, [b"HGDUREN\0"])
    assert read_flush_position(fs, "/d") is None


@pytest.mark.parametrize("kind", ["create", "write", "sync", "rename"])
def test_an_error_ends_the_writing_and_nothing_else(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    fs = FaultyFs(MemFs())
    file = begun(fs)

    def fail(operation: Operation) -> None:
        if operation.kind == kind:
            raise OSError(errno.EIO, "as planned")

    fs.plan = fail
    if kind in {"create", "rename"}:
        file.begin(FlushPosition(9, 9, 9))
    file.note(FlushPosition(4, 2, 64))
    file.note(FlushPosition(5, 2, 65))
    file.close()
    (line,) = caplog.messages
    assert line.startswith("/d/durable_end is not written until the next start")
    fs.plan = lambda _: None
    found = read_flush_position(fs, "/d")
    assert found is not None
    assert found <= (5, 2, 65)
