"""A file system that cannot hold a log is refused at the start, with what is needed."""

from __future__ import annotations

import pytest

from headgate.base.errors import StorageError
from headgate.fs import MemFs
from headgate.ledger import LedgerSettings
from headgate.ledger.space.capacity import capacity_needed_bytes, check_capacity, no_space_to_begin
from tests.unit.ledger.support import open_log

SETTINGS = LedgerSettings(segment_bytes=64 * 1024)


def test_two_segments_and_a_checkpoint_are_needed() -> None:
    assert capacity_needed_bytes(SETTINGS) == 144 * 1024
    fs = MemFs(144 * 1024)
    fs.make_directory("/log")
    check_capacity(fs, "/log", SETTINGS)
    fs.capacity_bytes = 144 * 1024 - 1
    with pytest.raises(StorageError, match=r"has 147,455 bytes and the log needs at least 147,456"):
        check_capacity(fs, "/log", SETTINGS)


@pytest.mark.parametrize(
    ("capacity_bytes", "filled_bytes", "reason"),
    [
        (100_000, 0, "has 100,000 bytes and the log needs at least 147,456: two segments"),
        (300_000, 290_000, "no room for the first segment of a log: "),
    ],
)
def test_such_a_start_is_refused_and_lets_go_of_the_directory(
    capacity_bytes: int, filled_bytes: int, reason: str
) -> None:
    fs = MemFs(capacity_bytes)
    fs.make_directory("/others")
    fs.create("/others/file").allocate(filled_bytes)
    with pytest.raises(StorageError, match=reason):
        open_log(fs, (), SETTINGS)
    fs.capacity_bytes = None
    open_log(fs, (), SETTINGS).close()


def test_what_is_needed_to_begin() -> None:
    fs = MemFs(1_000)
    fs.make_directory("/log")
    assert "1,000 bytes are free, 147,456 are needed" in str(
        no_space_to_begin(fs, "/log", SETTINGS)
    )
