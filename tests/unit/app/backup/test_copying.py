"""A copy is whole, keeps to its rate, and has holes where the source has zeros."""

from __future__ import annotations

import errno
import hashlib
import random
from collections import Counter
from pathlib import Path

import pytest

from headgate.app.backup.copying import (
    CHUNK_BYTES,
    HOLE_BYTES,
    SYNC_BYTES,
    Pace,
    copy_file,
    set_ranges,
    sha256_of,
)
from headgate.app.backup.manifest import BackupError
from headgate.fs import FaultyFs, Fs, Operation, OsFs
from headgate.ledger.format.directory import read_file, write_file
from tests.unit.app.backup.directories import TMP, empty_disk, free_pace


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.ticks: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def pace(self, bytes_per_s: float) -> Pace:
        return Pace(
            bytes_per_s, lambda: self.now_s, self.sleep, lambda: self.ticks.append(self.now_s)
        )


def test_a_copy_is_kept_to_its_rate_and_ticks_meanwhile() -> None:
    fs, clock = empty_disk(), Clock()
    size = 4 * CHUNK_BYTES
    write_file(fs, TMP, "a", [b"x" * size])
    copy_file(fs, f"{TMP}/a", f"{TMP}/b", size, clock.pace(size / 100))
    assert clock.now_s == pytest.approx(100)
    pauses = [after - before for before, after in zip(clock.ticks, clock.ticks[1:], strict=False)]
    assert max(pauses) <= 0.5


def test_an_idle_time_gives_no_burst() -> None:
    clock = Clock()
    pace = clock.pace(1_000)
    clock.now_s = 3_600
    pace.spent(1_000)
    pace.spent(1_000)
    assert clock.now_s == pytest.approx(3_602)


def test_without_a_rate_it_never_pauses() -> None:
    clock = Clock()
    clock.pace(0).spent(1 << 40)
    assert clock.now_s == 0
    assert clock.ticks == [0]


@pytest.mark.parametrize("size", [0, 1, HOLE_BYTES, CHUNK_BYTES + 17])
def test_the_checksum_is_that_of_what_was_copied(size: int) -> None:
    fs = empty_disk()
    data = random.Random(size).randbytes(size + 100)
    write_file(fs, TMP, "a", [data])
    steps: list[int] = []
    found = copy_file(fs, f"{TMP}/a", f"{TMP}/b", size, free_pace(), steps.append)
    assert read_file(fs, f"{TMP}/b") == data[:size]
    assert (
        found == hashlib.sha256(data[:size]).hexdigest() == sha256_of(fs, f"{TMP}/b", free_pace())
    )
    assert sum(steps) == size


def test_a_copy_is_durable_once_its_directory_is() -> None:
    fs = empty_disk()
    write_file(fs, TMP, "a", [b"x" * 10_000])
    copy_file(fs, f"{TMP}/a", f"{TMP}/b", 10_000, free_pace())
    fs.sync_directory(TMP)
    assert read_file(fs.crash_clone(), f"{TMP}/b") == b"x" * 10_000


def test_zeros_at_the_end_belong_to_the_copy() -> None:
    fs = empty_disk()
    write_file(fs, TMP, "a", [b"x" + bytes(50_000)])
    copy_file(fs, f"{TMP}/a", f"{TMP}/b", 50_001, free_pace())
    assert read_file(fs, f"{TMP}/b") == b"x" + bytes(50_000)


def test_zeros_become_holes(tmp_path: Path) -> None:
    fs: Fs = OsFs()
    (tmp_path / "a").write_bytes(b"x" + bytes(1 << 20) + b"y")
    copy_file(fs, f"{tmp_path}/a", f"{tmp_path}/b", (1 << 20) + 2, free_pace())
    assert (tmp_path / "b").read_bytes() == (tmp_path / "a").read_bytes()
    assert (tmp_path / "b").stat().st_blocks * 512 < 1 << 19


def test_the_ranges_between_zeros() -> None:
    block, zeros = b"x" * HOLE_BYTES, bytes(HOLE_BYTES)
    assert set_ranges(b"") == []
    assert set_ranges(zeros + bytes(10)) == []
    assert set_ranges(block + block + zeros + b"y") == [
        (0, 2 * HOLE_BYTES),
        (3 * HOLE_BYTES, 3 * HOLE_BYTES + 1),
    ]


def test_a_source_that_is_too_short_is_no_backup() -> None:
    fs = empty_disk()
    write_file(fs, TMP, "a", [b"x" * 10])
    with pytest.raises(BackupError, match="/tmp/a ends at 10 of 11 bytes"):
        copy_file(fs, f"{TMP}/a", f"{TMP}/b", 11, free_pace())


def test_it_syncs_again_and_again() -> None:
    kinds = Counter[str]()
    inner = empty_disk()
    write_file(inner, TMP, "a", [b"x" * 4 * SYNC_BYTES])
    fs = FaultyFs(inner, lambda operation: kinds.update([operation.kind]))
    copy_file(fs, f"{TMP}/a", f"{TMP}/b", 4 * SYNC_BYTES, free_pace())
    assert kinds["sync"] >= 4


@pytest.mark.parametrize("kind", ["read", "write", "sync", "truncate"])
def test_an_error_of_the_disk_names_the_file(kind: str) -> None:
    def plan(operation: Operation) -> None:
        if operation.kind == kind:
            raise OSError(errno.EIO, "as planned")

    inner = empty_disk()
    write_file(inner, TMP, "a", [b"x"])
    with pytest.raises(OSError, match="as planned") as caught:
        copy_file(FaultyFs(inner, plan), f"{TMP}/a", f"{TMP}/b", 1, free_pace())
    assert caught.value.filename == (f"{TMP}/a" if kind == "read" else f"{TMP}/b")


def test_an_error_while_a_checksum_is_made_names_the_file() -> None:
    def plan(operation: Operation) -> None:
        if operation.kind == "read":
            raise OSError(errno.EIO, "as planned")

    inner = empty_disk()
    write_file(inner, TMP, "a", [b"x"])
    with pytest.raises(OSError, match="as planned") as caught:
        sha256_of(FaultyFs(inner, plan), f"{TMP}/a", free_pace())
    assert caught.value.filename == f"{TMP}/a"
