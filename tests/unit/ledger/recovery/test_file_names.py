"""Segment files with the names of other segments."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger.format.records import RENAMED_SUFFIX, segment_header, segment_name
from headgate.ledger.recovery.file_names import (
    SegmentFile,
    refuse_misnamed,
    segment_files,
    segment_in,
)
from tests.unit.ledger.support import DIRECTORY, append, bodies_of, content, open_log, path

BODIES = [b"%d" % at * 3000 for at in range(9)]


def log_of_segments(*, closed: bool) -> MemFs:
    fs = MemFs()
    log = open_log(fs)
    for body in BODIES:
        append(log, 1, body)
    assert len(log._state.segments) > 3
    if closed:
        log.close()
    return fs.crash_clone()


def swap(fs: MemFs, first: int, second: int) -> None:
    fs.rename(path(first), f"{DIRECTORY}/between")
    fs.rename(path(second), path(first))
    fs.rename(f"{DIRECTORY}/between", path(second))
    fs.sync_directory(DIRECTORY)


def test_the_header_tells_the_segment_and_else_the_first_batch() -> None:
    fs = log_of_segments(closed=False)
    data = content(fs, path(2))
    assert segment_in(data) == 2
    assert segment_in(bytes(64) + data[64:]) == 2
    assert segment_in(data[:64]) == 2
    assert segment_in(bytes(64)) is None
    assert segment_in(b"") is None
    assert segment_in(segment_header(7, 1, is_reused=True)) == 7


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("segments", [(1, 2), (2, 3), (1, 3)])
def test_a_start_refuses_swapped_files_and_changes_nothing(
    segments: tuple[int, int], closed: bool
) -> None:
    """It took them for empty, and their messages for lost."""
    fs = log_of_segments(closed=closed)
    swap(fs, *segments)
    before = {name: content(fs, f"{DIRECTORY}/{name}") for name in fs.list_directory(DIRECTORY)}
    first, second = segments
    with pytest.raises(CorruptionError) as caught:
        open_log(fs)
    text = str(caught.value)
    assert text.startswith(f"{path(first)} is the file of segment {second:016x}, by its header, ")
    assert f"belongs under the name {segment_name(second)}, and 1 more file has a wrong" in text
    assert "`headgate ledger verify` names" in text
    assert "`headgate ledger repair` gives" in text
    after = {name: content(fs, f"{DIRECTORY}/{name}") for name in fs.list_directory(DIRECTORY)}
    assert after == before
    swap(fs, *segments)
    assert bodies_of(open_log(fs), 1) == BODIES


def test_a_start_refuses_between_the_steps_of_a_repair() -> None:
    fs = log_of_segments(closed=True)
    fs.rename(path(2), path(2) + RENAMED_SUFFIX)
    with pytest.raises(CorruptionError, match=r"2\.log\.renamed is the file of segment 0{15}2"):
        open_log(fs)


def test_files_without_a_readable_beginning_count_by_their_names() -> None:
    fs = MemFs()
    fs.make_directory(DIRECTORY)
    fs.create(path(5))
    assert segment_files(fs, DIRECTORY, [segment_name(5), "identity", "x.old"]) == [
        SegmentFile(segment_name(5), 5)
    ]
    refuse_misnamed(fs, DIRECTORY, [segment_name(5)])
