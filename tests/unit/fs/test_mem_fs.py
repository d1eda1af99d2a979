"""MemFs: what a power cut leaves, and a full disk."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.fs import MemFs

CHANGES = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 40), st.binary(max_size=20)),
    st.tuples(st.just("punch"), st.integers(0, 40), st.integers(1, 20).map(bytes)),
    st.tuples(st.just("truncate"), st.integers(0, 60), st.just(b"")),
    st.tuples(st.just("allocate"), st.integers(0, 60), st.just(b"")),
    st.tuples(st.just("sync"), st.just(0), st.just(b"")),
)


def made(fs: MemFs, *, sync: bool = True) -> None:
    fs.make_directory("/d")
    file = fs.create("/d/x")
    file.write_at(0, [b"old"])
    if sync:
        file.sync_data()
        fs.sync_directory("/d")


def test_only_what_was_synced_survives() -> None:
    fs = MemFs()
    made(fs)
    fs.open("/d/x", writable=True).write_at(0, [b"NEW"])
    fs.create("/d/y").sync_data()
    fs.remove("/d/x")
    after = fs.crash_clone()
    assert after.list_directory("/d") == ["x"]
    assert after.open("/d/x").read_at(0, 9) == b"old"
    assert fs.list_directory("/d") == ["y"]


def test_a_name_without_its_directory_synced_is_lost() -> None:
    fs = MemFs()
    made(fs, sync=False)
    assert fs.crash_clone().list_directory("/d") == []
    fs.sync_directory("/d")
    assert fs.crash_clone().open("/d/x").read_at(0, 9) == b""


def test_a_rename_is_lost_as_a_whole() -> None:
    fs = MemFs()
    made(fs)
    fs.rename("/d/x", "/d/z")
    assert fs.crash_clone().list_directory("/d") == ["x"]


def test_seeds_keep_different_parts_of_the_rest_and_repeat() -> None:
    fs = MemFs()
    made(fs)
    file = fs.open("/d/x", writable=True)
    file.write_at(0, [b"N" * 512 * 8])
    file.truncate(512 * 6)
    fs.create("/d/y")
    outcomes = set()
    for seed in range(40):
        after = fs.crash_clone(seed)
        again = fs.crash_clone(seed)
        content = after.open("/d/x").read_at(0, 5000)
        assert content == again.open("/d/x").read_at(0, 5000)
        outcomes.add((content, tuple(after.list_directory("/d"))))
        assert all(
            page.strip(b"N") == b"" or page.strip(b"\0") == b"" or b"old" in page
            for page in (content[at : at + 512] for at in range(0, len(content), 512))
        )
    assert len(outcomes) > 20


def test_a_full_disk_takes_what_fits() -> None:
    fs = MemFs(capacity_bytes=10)
    fs.make_directory("/d")
    file = fs.create("/d/x")
    with pytest.raises(OSError, match="no space") as caught:
        file.write_at(0, [b"x" * 12])
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 10
    with pytest.raises(OSError, match="no space"):
        fs.create("/d/y").allocate(1)
    with pytest.raises(OSError, match="no space"):
        fs.create("/d/y").truncate(1)
    fs.remove("/d/x")
    assert fs.used_bytes() == 0
    fs.create("/d/y").allocate(10)


def test_locks_do_not_survive() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    fs.lock("/d/lock")
    fs.crash_clone().lock("/d/lock")


def test_a_hole_gives_its_room_back() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    file = fs.create("/d/x")
    file.write_at(0, [b"x" * 10_000])
    file.sync_data()
    fs.sync_directory("/d")
    before = fs.used_bytes()
    assert file.punch(4_096, 4_096)
    assert before - fs.used_bytes() == 4_096
    assert file.read_at(4_095, 3) == b"x\0\0"
    assert file.size() == 10_000
    left = fs.crash_clone().open("/d/x")
    assert (left.read_at(5_000, 1), left.allocated_bytes()) == (b"x", 10_000)  # it was not synced
    file.sync_data()
    assert fs.crash_clone().open("/d/x").allocated_bytes() == 10_000 - 4_096
    file.truncate(5_000)
    assert fs.used_bytes() == 5_000 - 1_024
    reading = fs.open("/d/x")
    with pytest.raises(OSError, match="reading"):
        reading.punch(0, 512)


@given(st.lists(CHANGES, max_size=20), st.integers(0, 70), st.integers(0, 70))
def test_a_file_and_what_a_power_cut_leaves_of_it_equal_plain_bytes(
    changes: list[tuple[str, int, bytes]], offset: int, size: int
) -> None:
    fs = MemFs()
    fs.make_directory("/d")
    file = fs.create("/d/x")
    fs.sync_directory("/d")
    plain, synced = b"", b""
    for kind, at, piece in changes:
        if kind == "sync":
            file.sync_data()
            synced = plain
        elif kind == "truncate":
            file.truncate(at)
            plain = plain[:at].ljust(at, b"\0")
        elif kind == "allocate":
            file.allocate(at)
            plain = plain.ljust(at, b"\0")
        else:
            file.write_at(at, [piece]) if kind == "write" else file.punch(at, len(piece))
            if piece:
                plain = plain.ljust(at, b"\0")[:at] + piece + plain[at + len(piece) :]
        assert file.size() == len(plain)
        assert file.read_at(offset, size) == plain[offset : offset + size]
        left = fs.crash_clone().open("/d/x")
        assert (left.size(), left.read_at(0, 100)) == (len(synced), synced)


def test_room_that_nothing_was_written_into_takes_no_memory() -> None:
    fs = MemFs()
    fs.make_directory("/d")
    file = fs.create("/d/x")
    file.allocate(1 << 60)
    file.write_at(0, [b"head"])
    file.sync_data()
    fs.sync_directory("/d")
    left = fs.crash_clone().open("/d/x")
    assert (left.size(), left.read_at(0, 6)) == (1 << 60, b"head\0\0")
    assert left.read_at((1 << 60) - 2, 9) == b"\0\0"
