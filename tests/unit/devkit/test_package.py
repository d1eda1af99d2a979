"""Both wheels build with the locked tools and hold what users need, and nothing else."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from devkit.console import DevError
from devkit.package import DISTRIBUTIONS, build, check_wheel


def contents(wheel: Path) -> list[str]:
    """The names of its files."""
    with zipfile.ZipFile(wheel) as files:
        return sorted(files.namelist())


def test_a_wheel_with_foreign_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "headgate-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file in ("headgate/__init__.py", "headgate/py.typed", "tests/test_it.py"):
            wheel.writestr(file, "")
    with pytest.raises(DevError, match=r"do not belong there: \['tests/test_it.py'\]"):
        check_wheel(path, "headgate")


def test_a_wheel_that_lacks_its_types_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "headgate-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("headgate/__init__.py", "")
    with pytest.raises(DevError, match=r"lacks headgate/py.typed"):
        check_wheel(path, "headgate")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "folder"), DISTRIBUTIONS)
def test_builds_from_the_tree_and_from_its_own_archive_give_the_same_bytes(
    name: str, folder: Path, tmp_path: Path
) -> None:
    """Whenever and wherever it is built: a wheel can be checked against the tree by its hash."""
    python = Path(sys.executable)
    archive, wheel = build(python, folder, tmp_path / "first")
    check_wheel(wheel, name)
    assert f"{name}/__init__.py" in contents(wheel)
    again = build(python, folder, tmp_path / "again")[0]
    copy = tmp_path / "elsewhere"
    with tarfile.open(again) as files:
        # Not an argument: Debian 12's Python is older than the argument is.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(copy)
    (unpacked,) = copy.iterdir()
    assert unpacked.name == archive.name.removesuffix(".tar.gz")
    for path in unpacked.rglob("*"):
        os.utime(path, (1_900_000_000, 1_900_000_000))
    second = build(python, unpacked, tmp_path / "second")
    assert second[1].read_bytes() == wheel.read_bytes(), "the wheel"
    assert again.read_bytes() == archive.read_bytes(), "the source archive"
