"""Files of deleted segments are freed piece by piece, and never one that somebody still has."""

from __future__ import annotations

import errno

import pytest

from headgate.fs import FaultyFs, Fs, MemFs, Operation
from headgate.ledger.format.records import segment_name
from headgate.ledger.write.file_removal import FREE_SEGMENTS_MIN, FileRemoval, has_room

SEGMENT_BYTES = 8_192
PIECE_BYTES = 1_024


def written(fs: Fs, segment: int, size: int = SEGMENT_BYTES) -> str:
    """A segment's file; returns its path."""
    fs.make_directory("/d")
    path = f"/d/{segment_name(segment)}"
    file = fs.create(path)
    file.write_at(0, [b"x" * size])
    file.sync_data()
    fs.sync_directory("/d")
    return path


def removal(fs: Fs) -> FileRemoval:
    return FileRemoval(fs, "/d", SEGMENT_BYTES, PIECE_BYTES)


def put_aside(one: FileRemoval, segment: int) -> str:
    name = one.put_aside(segment)
    assert name
    one.add(name)
    return f"/d/{name}"


def test_a_file_goes_piece_by_piece() -> None:
    fs = MemFs()
    written(fs, 1)
    one = removal(fs)
    path = put_aside(one, 1)
    assert fs.list_directory("/d") == [path.removeprefix("/d/")]
    assert one.left_bytes == SEGMENT_BYTES
    for left in range(SEGMENT_BYTES - PIECE_BYTES, 0, -PIECE_BYTES):
        assert one.step() == PIECE_BYTES
        assert (one.left_bytes, fs.open(path).size()) == (left, left)
    assert one.step() == PIECE_BYTES
    assert (one.left_bytes, fs.list_directory("/d")) == (0, [])
    assert one.step() == 0


def test_files_go_one_after_the_other() -> None:
    fs = MemFs()
    one = removal(fs)
    for segment in (1, 2):
        written(fs, segment, 2 * PIECE_BYTES)
        put_aside(one, segment)
    assert [one.step() for _ in range(5)] == [PIECE_BYTES] * 4 + [0]


def test_a_small_file_and_a_full_disk_are_freed_at_once() -> None:
    fs = MemFs()
    one = removal(fs)
    written(fs, 1, PIECE_BYTES)
    assert one.put_aside(1) == ""
    written(fs, 2)
    fs.capacity_bytes = fs.used_bytes() + FREE_SEGMENTS_MIN * SEGMENT_BYTES - 1
    assert not has_room(fs, "/d", SEGMENT_BYTES)
    assert one.put_aside(2) == ""
    assert fs.list_directory("/d") == []


def test_without_a_pause_if_the_room_is_needed() -> None:
    fs = MemFs()
    one = removal(fs)
    for segment in (1, 2):
        written(fs, segment)
        put_aside(one, segment)
    one.step()
    assert one.finish()
    assert (one.left_bytes, fs.list_directory("/d")) == (0, [])
    assert not one.finish()
    assert one.step() == 0


def test_a_file_with_another_name_keeps_its_bytes() -> None:
    """Somebody has a copy of the data directory that is made of hard links."""
    fs = MemFs()
    one = removal(fs)
    fs.link(written(fs, 1), "/d/copy")
    assert one.put_aside(1) == ""
    path = written(fs, 2)
    aside = put_aside(one, 2)
    fs.link(aside, "/d/late copy")
    one.step()
    assert fs.list_directory("/d") == ["copy", "late copy"]
    assert {fs.open(f"/d/{name}").size() for name in ("copy", "late copy")} == {SEGMENT_BYTES}
    assert path not in fs.list_directory("/d")


def test_a_replaced_file_goes_by_its_second_name() -> None:
    fs = MemFs()
    one = removal(fs)
    path = written(fs, 1)
    name = one.second_name(1)
    fs.create("/d/new").write_at(0, [b"new"])
    fs.rename("/d/new", path)
    one.add(name)
    while one.step():
        pass
    assert fs.list_directory("/d") == [segment_name(1)]
    assert fs.open(path).read_at(0, 9) == b"new"


def test_a_second_name_is_taken_back() -> None:
    fs = MemFs()
    one = removal(fs)
    path = written(fs, 1)
    one.forget(one.second_name(1))
    assert fs.list_directory("/d") == [segment_name(1)]
    assert fs.open(path).size() == SEGMENT_BYTES
    one.forget("missing")


class _WithoutLinks(MemFs):
    def link(self, source: str, target: str) -> bool:
        return False


def test_a_file_system_without_hard_links_has_no_second_name() -> None:
    fs = _WithoutLinks()
    written(fs, 1)
    assert removal(fs).second_name(1) == ""
    assert fs.list_directory("/d") == [segment_name(1)]


@pytest.mark.parametrize("kind", ["open", "truncate"])
def test_a_file_that_cannot_be_shortened_is_removed(kind: str) -> None:
    broken = False

    def plan(operation: Operation) -> None:
        if broken and operation.kind == kind:
            raise OSError(errno.EIO, "broken")

    fs = MemFs()
    written(fs, 1)
    one = removal(FaultyFs(fs, plan))
    put_aside(one, 1)
    broken = True
    assert one.step() == SEGMENT_BYTES
    assert (one.left_bytes, fs.list_directory("/d")) == (0, [])


def test_a_file_that_cannot_be_removed_is_left_to_the_next_start() -> None:
    def plan(operation: Operation) -> None:
        if operation.kind in {"truncate", "remove"}:
            raise OSError(errno.EIO, "broken")

    fs = MemFs()
    written(fs, 1)
    one = removal(FaultyFs(fs, plan))
    path = put_aside(one, 1)
    one.step()
    assert one.step() == 0
    assert fs.list_directory("/d") == [path.removeprefix("/d/")]


def test_what_an_earlier_start_left_goes_in_pieces() -> None:
    fs = MemFs()
    earlier = removal(fs)
    for segment in (1, 2):
        written(fs, segment)
        put_aside(earlier, segment)
    small = fs.create("/d/small.old")
    small.write_at(0, [b"x" * PIECE_BYTES])
    shared = written(fs, 3)
    fs.link(shared, "/d/shared.old")  # the power went while its name was changed
    one = removal(fs)
    one.add_leftovers(fs.list_directory("/d"))
    assert one.left_bytes == 2 * SEGMENT_BYTES
    assert len(fs.list_directory("/d")) == 3
    while one.step():
        pass
    assert fs.list_directory("/d") == [segment_name(3)]
    assert fs.open(shared).size() == SEGMENT_BYTES


def test_a_rewritten_segment_that_an_earlier_start_left_takes_no_name_from_the_next() -> None:
    fs = MemFs()
    written(fs, 1)
    left = put_aside(removal(fs), 1)
    one = removal(fs)
    one.add_leftovers(fs.list_directory("/d"))
    written(fs, 1)
    second = one.second_name(1)
    one.forget(second)
    aside = put_aside(one, 1)
    assert len({left, f"/d/{second}", aside}) == 3
    assert one.left_bytes == 2 * SEGMENT_BYTES
    while one.step():
        pass
    assert (one.left_bytes, fs.list_directory("/d")) == (0, [])


def test_a_missing_file_is_the_callers() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    with pytest.raises(FileNotFoundError):
        removal(fs).put_aside(1)
