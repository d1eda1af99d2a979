"""What every filesystem behind the log must do: one suite, three implementations."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.fs import FaultyFs, Fs, MemFs, OsFs


@pytest.fixture(params=["os", "mem", "faulty"])
def fs(request: pytest.FixtureRequest) -> Fs:
    return {"os": OsFs, "mem": MemFs, "faulty": lambda: FaultyFs(MemFs())}[request.param]()


@pytest.fixture
def root(fs: Fs, tmp_path: Path) -> str:
    path = str(tmp_path / "a" / "b")
    fs.make_directory(path)
    fs.make_directory(path)
    return path


def test_parts_are_written_one_after_the_other(fs: Fs, root: str) -> None:
    file = fs.create(f"{root}/x")
    file.write_at(0, [b"abc", b"", b"de"])
    file.write_at(2, [b"ZZ"])
    assert file.read_at(0, 100) == b"abZZe"
    assert file.read_at(1, 2) == b"bZ"
    assert file.read_at(5, 10) == b""
    assert file.size() == 5
    file.sync_data()
    file.close()
    file.close()


@pytest.mark.parametrize("size", [1, 40_000])
def test_more_parts_than_one_system_call_takes(fs: Fs, root: str, size: int) -> None:
    count = 2500 if size == 1 else 1100
    parts = [bytes([at % 251]) * size for at in range(count)]
    file = fs.create(f"{root}/x")
    file.write_at(3, parts)
    assert file.size() == 3 + count * size
    assert file.read_at(3, count * size) == b"".join(parts)
    file.close()


def test_a_gap_reads_as_zeros(fs: Fs, root: str) -> None:
    file = fs.create(f"{root}/x")
    file.write_at(10, [b"a"])
    assert file.read_at(0, 11) == bytes(10) + b"a"
    file.close()


def test_allocate_makes_room_and_keeps_what_is_there(fs: Fs, root: str) -> None:
    file = fs.create(f"{root}/x")
    file.write_at(0, [b"abc"])
    file.allocate(4096)
    assert file.size() == 4096
    assert file.read_at(0, 5) == b"abc\0\0"
    file.allocate(10)
    assert file.size() == 4096
    file.truncate(2)
    assert file.read_at(0, 9) == b"ab"
    file.close()


def test_create_empties_and_open_does_not(fs: Fs, root: str) -> None:
    file = fs.create(f"{root}/x")
    file.write_at(0, [b"abc"])
    file.close()
    again = fs.open(f"{root}/x")
    assert again.read_at(0, 9) == b"abc"
    with pytest.raises(OSError, match=r".*"):
        again.write_at(0, [b"x"])
    again.close()
    writable = fs.open(f"{root}/x", writable=True)
    writable.write_at(1, [b"X"])
    assert writable.read_at(0, 9) == b"aXc"
    writable.close()
    empty = fs.create(f"{root}/x")
    assert empty.size() == 0
    empty.close()


def test_names(fs: Fs, root: str) -> None:
    for name in ("b", "a", "c"):
        fs.create(f"{root}/{name}").close()
    file = fs.open(f"{root}/c", writable=True)
    file.write_at(0, [b"c"])
    fs.rename(f"{root}/c", f"{root}/a")
    assert fs.list_directory(root) == ["a", "b"]
    fs.remove(f"{root}/a")
    assert file.read_at(0, 9) == b"c"
    file.close()
    fs.sync_directory(root)
    assert fs.list_directory(root) == ["b"]


def test_a_file_with_two_names_lasts_until_both_are_gone(fs: Fs, root: str) -> None:
    file = fs.create(f"{root}/x")
    file.write_at(0, [b"one"])
    assert file.names_count() == 1
    assert fs.link(f"{root}/x", f"{root}/y")
    assert file.names_count() == 2
    with pytest.raises(FileExistsError):
        fs.link(f"{root}/x", f"{root}/y")
    with pytest.raises(FileNotFoundError):
        fs.link(f"{root}/missing", f"{root}/z")
    other = fs.create(f"{root}/new")
    other.write_at(0, [b"two"])
    fs.rename(f"{root}/new", f"{root}/x")
    assert fs.open(f"{root}/x").read_at(0, 9) == b"two"
    assert fs.open(f"{root}/y").read_at(0, 9) == b"one"
    assert file.names_count() == 1
    fs.remove(f"{root}/y")
    assert file.read_at(0, 9) == b"one"
    file.close()
    other.close()


def test_what_is_missing_is_not_found(fs: Fs, root: str) -> None:
    with pytest.raises(FileNotFoundError):
        fs.open(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        fs.remove(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        fs.rename(f"{root}/none", f"{root}/other")
    with pytest.raises(FileNotFoundError):
        fs.list_directory(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        fs.create(f"{root}/none/x")


def test_room_on_the_file_system(fs: Fs, root: str) -> None:
    space = fs.space(root)
    assert 0 < space.free_bytes <= space.size_bytes
    with pytest.raises(FileNotFoundError):
        fs.space(f"{root}/none")


def test_a_lock_has_one_holder(fs: Fs, root: str) -> None:
    lock = fs.lock(f"{root}/lock")
    with pytest.raises(BlockingIOError):
        fs.lock(f"{root}/lock")
    lock.release()
    lock.release()
    fs.lock(f"{root}/lock").release()


def test_what_is_made_is_no_link(fs: Fs, root: str) -> None:
    fs.create(f"{root}/x").close()
    assert not any(fs.is_link(path) for path in (root, f"{root}/x", f"{root}/none"))
