"""OsFs: the parts that the shared suite cannot reach."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.fs import OsFs, os_fs


def test_short_reads_and_writes_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pread, pwrite = os.pread, os.pwrite
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:2], at))
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, at: pwrite(fd, parts[0][:1], at))
    file = OsFs().create(str(tmp_path / "x"))
    file.write_at(0, [b"0123", b"456"])
    big = b"a" * 20 * 1024
    monkeypatch.setattr(os, "pwrite", pwrite)
    file.write_at(7, [big])
    assert file.read_at(0, 7) == b"0123456"
    monkeypatch.setattr(os, "pread", pread)
    assert file.read_at(7, 1 << 20) == big
    file.close()


def test_a_disk_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFs().create(str(tmp_path / "x"))
    monkeypatch.setattr(os, "pwrite", lambda _fd, _data, _at: 0)
    with pytest.raises(OSError, match="accepts no bytes"):
        file.write_at(0, [b"abc"])
    file.close()


@pytest.mark.parametrize(("code", "falls_back"), [(errno.EOPNOTSUPP, True), (errno.ENOSPC, False)])
def test_allocate_falls_back_only_where_it_is_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, falls_back: bool
) -> None:
    def refuse(_fd: int, _at: int, _size: int) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    file = OsFs().create(str(tmp_path / "x"))
    if falls_back:
        file.allocate(100)
        assert file.size() == 100
    else:
        with pytest.raises(OSError, match="no"):
            file.allocate(100)
    file.close()


def test_a_file_that_nobody_holds_is_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    file = OsFs().create(str(tmp_path / "x"))
    del file
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_hole_gives_its_room_back(tmp_path: Path) -> None:
    file = OsFs().create(str(tmp_path / "x"))
    file.write_at(0, [b"x" * 400_000])
    file.sync_data()
    before = os.stat(tmp_path / "x").st_blocks
    if file.punch(65_536, 262_144):  # most file systems can
        assert os.stat(tmp_path / "x").st_blocks < before
        assert file.read_at(65_535, 3) == b"x\0\0"
        assert file.read_at(65_536 + 262_144, 1) == b"x"
    assert file.size() == 400_000
    file.close()


@pytest.mark.parametrize(
    ("code", "is_refused"), [(errno.EOPNOTSUPP, True), (errno.ENOSYS, True), (errno.EIO, False)]
)
def test_where_no_hole_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_refused: bool
) -> None:
    def fail(_fd: int, _mode: int, _offset: int, _size: int) -> int:
        ctypes.set_errno(code)
        return -1

    file = OsFs().create(str(tmp_path / "x"))
    monkeypatch.setattr(os_fs, "_fallocate", fail)
    if is_refused:
        assert not file.punch(0, 4096)
    else:
        with pytest.raises(OSError, match=os.strerror(code)):
            file.punch(0, 4096)
    monkeypatch.setattr(os_fs, "_fallocate", None)
    assert not file.punch(0, 4096)
    file.close()


def test_other_users_may_not_read_what_it_makes(tmp_path: Path) -> None:
    fs, before = OsFs(), os.umask(0)
    try:
        fs.make_directory(f"{tmp_path}/a/b")
        fs.create(f"{tmp_path}/a/b/file").close()
        fs.lock(f"{tmp_path}/a/b/lock").release()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
    assert modes == {"b": 0o700, "file": 0o600, "lock": 0o600}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file beside the directory, to which a link in it leads."""
    made = tmp_path / "victim"
    made.write_bytes(b"of somebody else")
    return made


@pytest.mark.parametrize(
    "write",
    [
        lambda fs, path: fs.create(path),
        lambda fs, path: fs.create(path, exclusive=True),
        lambda fs, path: fs.open(path, writable=True),
        lambda fs, path: fs.lock(path),
    ],
    ids=["create", "create new", "open", "lock"],
)
def test_a_link_is_not_written_through(
    tmp_path: Path, victim: Path, write: Callable[[OsFs, str], object]
) -> None:
    link = tmp_path / "x"
    link.symlink_to(victim)
    with pytest.raises(OSError, match=r"link|exists"):
        write(OsFs(), str(link))
    assert victim.read_bytes() == b"of somebody else"
    victim.unlink()
    with pytest.raises(OSError, match=r"link|exists"):
        write(OsFs(), str(link))
    assert not victim.exists()


def test_a_link_of_a_whole_directory_is_followed(tmp_path: Path) -> None:
    """An operator puts the log onto another disk so."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "log").symlink_to(tmp_path / "disk")
    assert OsFs().is_link(str(tmp_path / "log"))
    OsFs().create(str(tmp_path / "log" / "x")).close()
    assert (tmp_path / "disk" / "x").exists()


@pytest.mark.parametrize("writable", [False, True])
def test_nobody_waits_for_the_writer_of_a_pipe(tmp_path: Path, writable: bool) -> None:
    os.mkfifo(tmp_path / "x")
    with pytest.raises(OSError, match="in the place of a file is none"):
        OsFs().open(str(tmp_path / "x"), writable=writable)
    with pytest.raises(OSError, match="in the place of a file is none"):
        OsFs().open("/dev/zero", writable=writable)
