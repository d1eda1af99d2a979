"""Descriptors that are set apart: given one by one, taken again when there are some."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headgate.fs import OsFs, SpareFiles


class Kernel:
    """Opens files as long as it has descriptors to give."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 1_000
        self._open, self._close = os.open, os.close
        monkeypatch.setattr(os, "open", self.open)
        monkeypatch.setattr(os, "close", self.close)

    def open(self, *arguments: object) -> int:
        if not self.left:
            raise OSError(errno.EMFILE, "too many open files")
        self.left -= 1
        return self._open(*arguments)  # type: ignore[arg-type]

    def close(self, fd: int) -> None:
        self.left += 1
        self._close(fd)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def test_they_are_held_given_and_taken_again(kernel: Kernel) -> None:
    spare = SpareFiles(3)
    assert (spare.held_count, kernel.left) == (3, 997)
    assert spare.give()
    kernel.left = 0
    spare.keep()
    assert spare.held_count == 2
    kernel.left = 10
    spare.keep()
    assert spare.held_count == 3
    spare.close()
    spare.keep()
    assert spare.held_count == 0
    assert not spare.give()


def test_what_is_written_gets_one_when_there_are_no_others(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"x")
    spare = SpareFiles(2)
    fs, plain = OsFs(spare), OsFs()
    kernel.left = 0
    with pytest.raises(OSError, match="too many open files"):
        plain.create(str(tmp_path / "new"))
    with pytest.raises(OSError, match="too many open files"):
        fs.open(str(tmp_path / "there"))  # reads can wait
    file = fs.create(str(tmp_path / "new"))
    again = fs.open(str(tmp_path / "there"), writable=True)
    assert spare.held_count == 0
    with pytest.raises(OSError, match="too many open files"):
        fs.sync_directory(str(tmp_path))
    file.close()
    fs.sync_directory(str(tmp_path))
    again.close()
    fs.sync_directory(str(tmp_path))
    assert spare.held_count >= 1
    kernel.left = 10
    fs.sync_directory(str(tmp_path))
    assert spare.held_count == 2
    with pytest.raises(FileNotFoundError):
        fs.open(str(tmp_path / "none"), writable=True)
    spare.close()
