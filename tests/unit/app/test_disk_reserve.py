"""Disk space reserved for the metadata, released piece by piece."""

from __future__ import annotations

import errno

from headgate.app.disk_reserve import PIECE_BYTES, RESERVE_BYTES, DiskReserve
from headgate.fs import FaultyFs, MemFs, Operation

PATH = "/data/reserve"


def disk(capacity_bytes: int | None = None) -> MemFs:
    fs = MemFs(capacity_bytes)
    fs.make_directory("/data")
    return fs


def test_it_is_given_up_piece_by_piece_and_taken_again() -> None:
    fs = disk()
    reserve = DiskReserve(fs, PATH)
    assert not reserve.release()
    reserve.keep()
    assert fs.used_bytes() == reserve.kept_bytes == RESERVE_BYTES
    pieces = 0
    while reserve.release():
        pieces += 1
        assert fs.used_bytes() == reserve.kept_bytes == RESERVE_BYTES - pieces * PIECE_BYTES
    assert pieces == RESERVE_BYTES // PIECE_BYTES
    reserve.keep()
    assert fs.used_bytes() == RESERVE_BYTES


def test_without_room_nothing_of_it_is_kept() -> None:
    fs = disk(RESERVE_BYTES - 1)
    reserve = DiskReserve(fs, PATH)
    reserve.keep()
    assert (fs.used_bytes(), reserve.kept_bytes) == (0, 0)
    assert not reserve.release()


def test_what_an_earlier_run_left_counts_and_is_looked_at_once() -> None:
    fs = disk()
    fs.create(PATH).truncate(RESERVE_BYTES)  # a copy, all of it a hole
    reserve = DiskReserve(fs, PATH)
    assert reserve.kept_bytes == RESERVE_BYTES
    before = fs.used_bytes()
    reserve.keep()
    assert fs.used_bytes() == RESERVE_BYTES >= before
    assert DiskReserve(fs, PATH).release()


def test_a_disk_that_fails_means_no_reserve() -> None:
    fs = FaultyFs(disk())
    reserve = DiskReserve(fs, PATH)
    reserve.keep()

    def plan(operation: Operation) -> None:
        raise OSError(errno.EIO, "broken")

    fs.plan = plan
    assert not reserve.release()
    assert reserve.kept_bytes == 0
    reserve.keep()
    assert reserve.kept_bytes == 0
