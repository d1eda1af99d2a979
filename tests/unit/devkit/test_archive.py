"""The environment archive holds what the pipeline imports, and works where it is unpacked."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from devkit import archive
from devkit.archive import LOCK, SCRIPT, build_archive, locked_names


def test_the_lock_has_no_spark() -> None:
    names = locked_names(LOCK.read_text())
    assert {"pyarrow", "deltalake", "pulsar-client"} <= set(names)
    assert not {"pyspark", "py4j"} & set(names)


def test_names_are_those_of_a_lock() -> None:
    text = "rich==14.0 \\\n    --hash=sha256:0\n"
    text += 'uvloop==0.22 ; sys_platform != "win32" \\\n    --hash=sha256:1\n'
    assert locked_names(text) == ["rich", "uvloop"]


def test_it_runs_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("click==8 \\\n    --hash=sha256:0\nnot-installed==1 \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(archive, "LOCK", lock)
    wheel = tmp_path / "ours-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("ours.py", "import click\nprint(click.__name__)\n")
    path = build_archive(Path(sys.executable), [wheel], tmp_path)
    assert path.name.startswith("headgate-environment-py3")
    with tarfile.open(path) as tar:
        assert SCRIPT in tar.getnames()
        tar.extractall(tmp_path / "elsewhere", filter="fully_trusted")
    done = subprocess.run(
        [str(tmp_path / "elsewhere/bin/python"), "-c", "import ours, sys; print(sys.prefix)"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == f"click\n{tmp_path / 'elsewhere'}\n"


def test_it_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("click==8 \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(archive, "LOCK", lock)
    both = [build_archive(Path(sys.executable), [], tmp_path / name) for name in "ab"]
    assert both[0].read_bytes() == both[1].read_bytes()
