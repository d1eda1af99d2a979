"""What the disk does not read is named with its cost, and nothing of such a file is changed."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import StorageError
from headgate.fs import MemFs, OsFs
from headgate.ledger.format.directory import READ_BYTES_MAX, read_file
from headgate.ledger.format.records import segment_of_name
from headgate.ledger.tools import unreadable
from headgate.ledger.tools.findings import Cost, Finding, Report
from headgate.ledger.tools.repair import plan_repairs
from headgate.ledger.tools.unreadable import FILLER, NOT_READ, ReadAroundFs, report_unread
from headgate.ledger.tools.verify import verify_log
from tests.unit.ledger.support import DIRECTORY, open_log, overwrite
from tests.unit.ledger.tools.test_verify import NAMES, TINY, log_in_use, used, verify

BLOCK = 512


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable, "BLOCK_BYTES", BLOCK)


class BadFile:
    """A file with bad sectors."""

    def __init__(self, inner: Any, start: int, stop: int, number: int) -> None:
        self._inner, self._start, self._stop, self._number = inner, start, stop, number

    def read_at(self, offset: int, size: int) -> bytes:
        if offset < self._stop and self._start < min(offset + size, self._inner.size()):
            raise OSError(self._number, "as planned")
        found: bytes = self._inner.read_at(offset, size)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def with_bad_sectors(fs: MemFs, name: str, start: int, stop: int, number: int = errno.EIO) -> MemFs:
    """The same disk, which does not read these bytes of a file."""
    copy = fs.crash_clone()
    opened = copy.open

    def open_file(path: str, *, writable: bool = False) -> Any:
        file = opened(path, writable=writable)
        return BadFile(file, start, stop, number) if path == f"{DIRECTORY}/{name}" else file

    copy.open = open_file  # type: ignore[method-assign]
    return copy


def costs(report: Report) -> set[Cost]:
    return {cost for finding in report.damage for cost in finding.costs}


def test_each_unreadable_block_costs_what_damaged_bytes_cost() -> None:
    fs, starts = log_in_use(), 0
    for name in fs.list_directory(DIRECTORY):
        if segment_of_name(name) is None:
            continue
        end = used(fs, name).stop
        for start in range(0, end, BLOCK):
            size = min(BLOCK, end - start)
            bad = with_bad_sectors(fs, name, start, start + size)
            spoilt = fs.crash_clone()
            overwrite(spoilt, f"{DIRECTORY}/{name}", start, FILLER * size)
            report = verify(bad)
            assert costs(report) == costs(verify(spoilt))
            named = [finding for finding in report.damage if NOT_READ in finding.what]
            assert {finding.file for finding in named} == {name}
            repairs = plan_repairs(bad, DIRECTORY, report)
            assert not any(repair.mend.file == name for repair in repairs)
            if any(finding.refuses_start for finding in named):
                starts += 1
                with pytest.raises(StorageError):
                    open_log(bad, settings=TINY)
    assert starts == 3


def test_files_beside_segments_are_read_around_too() -> None:
    fs = log_in_use()
    for name in fs.list_directory(DIRECTORY):
        if segment_of_name(name) is None and used(fs, name):
            report = verify(with_bad_sectors(fs, name, 0, 8))
            assert any(NOT_READ in finding.what for finding in report.damage), name


def test_another_error_is_no_damage() -> None:
    bad = with_bad_sectors(log_in_use(), "0000000000000001.log", 0, 8, errno.EACCES)
    with pytest.raises(OSError, match="as planned"):
        verify_log(bad, DIRECTORY, NAMES)


def test_bytes_are_noted_once_and_in_order() -> None:
    fs = MemFs()
    fs.make_directory(DIRECTORY)
    file = fs.create(f"{DIRECTORY}/a")
    file.write_at(0, [bytes(5 * BLOCK)])
    file.sync_data()
    fs.sync_directory(DIRECTORY)
    around = ReadAroundFs(with_bad_sectors(fs, "a", BLOCK, 3 * BLOCK))
    data = around.open(f"{DIRECTORY}/a").read_at(0, 5 * BLOCK)
    assert data == bytes(BLOCK) + FILLER * 2 * BLOCK + bytes(2 * BLOCK)
    assert around.open(f"{DIRECTORY}/a").read_at(2 * BLOCK, 10) == FILLER * 10
    report = Report(findings=[Finding("a", 0, 10, "sound")])
    report_unread(report, DIRECTORY, around.unread, ())
    assert [(f.offset, f.size_bytes) for f in report.findings] == [(0, 10), (BLOCK, 2 * BLOCK)]


def test_a_file_of_holes_is_refused_as_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "0000000000000001.log"
    with path.open("wb") as file:
        file.truncate(READ_BYTES_MAX + 1)
    with pytest.raises(OSError, match="are the most"):
        read_file(ReadAroundFs(OsFs()).as_fs(), str(path))
