"""Files of deleted segments become new ones, and nothing of what was in them counts."""

from __future__ import annotations

import errno
import random

import pytest

from headgate.fs import FaultyFs, MemFs, Operation
from headgate.ledger.format.records import (
    PREFIX_BYTES,
    SEGMENT_HEADER_BYTES,
    has_bytes,
    segment_header,
    segment_name,
    segment_stamp,
)
from headgate.ledger.write.file_removal import FREE_SEGMENTS_MIN
from headgate.ledger.write.old_files import OLD_FILES_MAX, OldFiles

SEGMENT_BYTES = 8192
OLD = b"\xa5"


def written(fs: MemFs | FaultyFs, segment: int, size: int = SEGMENT_BYTES) -> None:
    """A segment's file, all of it written."""
    fs.make_directory("/d")
    file = fs.create(f"/d/{segment_name(segment)}")
    file.write_at(0, [OLD * size])
    file.sync_data()
    fs.sync_directory("/d")


def filled(fs: MemFs | FaultyFs, *segments: int) -> OldFiles:
    old_files = OldFiles(fs, "/d", SEGMENT_BYTES)
    for segment in segments:
        written(fs, segment)
        assert old_files.keep(segment)
        fs.sync_directory("/d")
        old_files.add(segment)
    return old_files


def names(fs: MemFs) -> list[str]:
    return fs.list_directory("/d")


@pytest.mark.parametrize("size", [SEGMENT_BYTES * 8 // 9, SEGMENT_BYTES, SEGMENT_BYTES * 2])
def test_a_kept_file_becomes_a_segment_without_a_first_record_and_without_a_footer(
    size: int,
) -> None:
    fs = MemFs()
    written(fs, 1, size)
    old_files = OldFiles(fs, "/d", SEGMENT_BYTES)
    assert old_files.keep(1)
    old_files.add(1)
    file = old_files.become(9, 5)
    assert file is not None
    assert names(fs) == [segment_name(9)]
    data = file.read_at(0, 1 << 20)
    assert len(data) == SEGMENT_BYTES
    assert data.startswith(segment_header(9, 5, is_reused=True))
    assert segment_stamp(data, 9) == 5
    assert segment_stamp(data, 1) is None
    assert not has_bytes(data, SEGMENT_HEADER_BYTES)
    assert data[-100:] == bytes(100)
    assert OLD * 1000 in data
    assert fs._names["/d"][segment_name(9)].synced.read(0, 1 << 20) == data
    assert old_files.become(10, 5) is None


def test_so_many_are_kept_and_no_more() -> None:
    fs = MemFs()
    old_files = filled(fs, *range(OLD_FILES_MAX))
    written(fs, 7)
    assert not old_files.keep(7)
    assert old_files.count == OLD_FILES_MAX
    assert old_files.give_back()
    assert not old_files.give_back()
    assert names(fs) == [segment_name(7)]


def test_a_file_with_holes_or_much_shorter_than_a_segment_is_removed() -> None:
    fs = MemFs()
    written(fs, 1)
    fs.open(f"/d/{segment_name(1)}", writable=True).punch(1024, 4096)
    written(fs, 2, SEGMENT_BYTES // 2)
    old_files = OldFiles(fs, "/d", SEGMENT_BYTES)
    assert not old_files.keep(1)
    assert not old_files.keep(2)
    with pytest.raises(FileNotFoundError):
        old_files.keep(3)


def test_a_file_that_somebody_linked_is_not_kept() -> None:
    """A copy of the data directory made of hard links would change with the segment."""
    fs = MemFs()
    written(fs, 1)
    assert fs.link(f"/d/{segment_name(1)}", "/d/copy")
    assert not OldFiles(fs, "/d", SEGMENT_BYTES).keep(1)


def test_a_disk_without_room_takes_all_of_them() -> None:
    fs = MemFs()
    old_files = filled(fs, 1)
    written(fs, 2)
    fs.capacity_bytes = fs.used_bytes() + FREE_SEGMENTS_MIN * SEGMENT_BYTES - 1
    assert not old_files.keep(2)
    assert names(fs) == [segment_name(2)]
    assert old_files.count == 0


@pytest.mark.parametrize("kind", ["open", "allocate", "write", "sync", "rename"])
def test_a_file_that_fails_is_not_used_again(kind: str) -> None:
    broken = False

    def plan(operation: Operation) -> None:
        if broken and operation.kind == kind:
            raise OSError(errno.EIO, "broken")

    inner = MemFs()
    old_files = filled(FaultyFs(inner, plan), 1)
    broken = True
    if kind == "open":
        assert old_files.become(9, 5) is None
    else:
        with pytest.raises(OSError, match="broken"):
            old_files.become(9, 5)
    assert old_files.count == 0
    assert names(inner) == []


def test_a_file_that_cannot_be_looked_at_is_not_kept() -> None:
    def plan(operation: Operation) -> None:
        if operation.kind == "open":
            raise OSError(errno.EIO, "broken")

    fs = FaultyFs(MemFs(), plan)
    written(fs, 1)
    assert not OldFiles(fs, "/d", SEGMENT_BYTES).keep(1)


def test_a_batch_ends_with_a_whole_page_and_room_for_a_prefix() -> None:
    old_files = OldFiles(MemFs(), "/d", 1 << 20)
    for end in (*random.Random(1).sample(range(64, 900_000), 200), 4096, 8192 - 3):
        filler = old_files.filler(end)
        assert (end + len(filler)) % 4096 == 0
        assert PREFIX_BYTES <= len(filler) < 4096 + PREFIX_BYTES
        assert not filler.strip(b"\0")
    assert old_files.filler((1 << 20) - 5) == bytes(5)
    assert old_files.filler((1 << 20) + 5) == b""


def test_zeros_before_the_end_of_a_cut_file() -> None:
    fs = MemFs()
    written(fs, 1)
    old_files = OldFiles(fs, "/d", SEGMENT_BYTES)
    file = fs.open(f"/d/{segment_name(1)}", writable=True)
    old_files.clear_end(file, 100, 4096)
    page_bytes = 4096 - len(file.read_at(0, 4096).rstrip(b"\0"))
    assert page_bytes == SEGMENT_BYTES // 32
    old_files.clear_end(file, 4090, 4096)
    assert file.read_at(4096, 10) == OLD * 10
