"""The commit thread's side, by itself."""

from __future__ import annotations

import errno

import pytest

from headgate.base.errors import StorageError
from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger import LogFailedError, LogFullError
from headgate.ledger.format import segment_name
from headgate.ledger.writer import LogWriter


def writer(fs: MemFs | FaultyFs) -> LogWriter:
    fs.make_directory("/d")
    return LogWriter(fs, "/d", 4096, 5)


def failing(kind: str, code: int) -> FaultyFs:
    def plan(operation: Operation) -> None:
        if operation.kind == kind:
            raise OSError(code, "broken")

    return FaultyFs(MemFs(), plan)


def test_a_prepared_segment_survives_a_power_cut() -> None:
    fs = MemFs()
    one = writer(fs)
    one.prepare(1)
    one.prepare(1)
    assert one.has(1)
    assert fs.crash_clone().open(f"/d/{segment_name(1)}").size() == 4096
    one.discard(1)
    one.discard(1)
    assert not one.has(1)
    assert fs.crash_clone().list_directory("/d") == []


@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        ("create", errno.ENOSPC, LogFullError),
        ("allocate", errno.ENOSPC, LogFullError),
        ("allocate", errno.EDQUOT, LogFullError),
        ("allocate", errno.EFBIG, LogFullError),
        ("write", errno.ENOSPC, LogFullError),
        ("create", errno.EMFILE, StorageError),
        ("sync", errno.ENOSPC, LogFailedError),
        ("sync", errno.EIO, LogFailedError),
        ("sync_directory", errno.EIO, LogFailedError),
        ("create", errno.EROFS, LogFailedError),
    ],
)
def test_what_each_error_means(kind: str, code: int, error: type[StorageError]) -> None:
    fs = failing(kind, code)
    one = writer(fs)
    with pytest.raises(error) as caught:
        one.prepare(1)
    assert caught.value.retryable is (error is not LogFailedError)
    fs.plan = lambda _operation: None
    if error is LogFailedError:
        with pytest.raises(LogFailedError):
            one.prepare(2)
    else:
        one.prepare(1)


def test_sealing_cuts_the_file_and_closes_it() -> None:
    fs = MemFs()
    one = writer(fs)
    one.prepare(1)
    one.seal(1, 100, [b"foot", b"er"])
    assert not one.has(1)
    after = fs.crash_clone()
    assert after.open(f"/d/{segment_name(1)}").read_at(100, 99) == b"footer"
    one.sync(1)
    one.seal(1, 100, [b"x"])
    assert one.close() == []
