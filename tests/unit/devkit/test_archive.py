"""The environment archive holds what the pipeline imports, and works where it is unpacked."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from devkit import archive
from devkit.archive import LOCK, SCRIPT, build_archive, disagreements, locked_packages
from devkit.console import DevError


def test_the_lock_has_no_spark() -> None:
    names = locked_packages(LOCK.read_text())
    assert {"pyarrow", "deltalake", "pulsar-client"} <= set(names)
    assert not {"pyspark", "py4j"} & set(names)


TEXT = """\
rich==14.0 \\
    --hash=sha256:0
numpy==2.4 ; python_full_version < '3.12' \\
    --hash=sha256:1
numpy==2.5 ; python_full_version >= '3.12' \\
    --hash=sha256:2
uvloop==0.22 ; sys_platform != "win32" \\
    --hash=sha256:3
"""


def test_a_lock_names_packages_and_versions() -> None:
    locked = locked_packages(TEXT)
    assert {name: package.versions for name, package in locked.items()} == {
        "rich": ["14.0"],
        "numpy": ["2.4", "2.5"],
        "uvloop": ["0.22"],
    }
    assert [name for name, package in locked.items() if package.is_everywhere] == ["rich"]


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ({"rich": "14.0", "numpy": "2.5", "uvloop": None}, []),
        (
            {"rich": None, "numpy": "2.3", "uvloop": "0.22"},
            ["rich 14.0 is not there", "numpy is there in version 2.3 and not 2.4 or 2.5"],
        ),
    ],
)
def test_versions_must_be_those_of_the_lock(
    installed: dict[str, str | None], said: list[str]
) -> None:
    assert disagreements(locked_packages(TEXT), installed) == said


def test_nothing_is_packed_that_the_lock_does_not_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("click==0.0 \\\n    --hash=sha256:0\nnobody-has-this==1 \\\n")
    monkeypatch.setattr(archive, "LOCK", lock)
    with pytest.raises(DevError) as caught:
        build_archive(Path(sys.executable), [], tmp_path / "dist")
    assert f"click is there in version {version('click')} and not 0.0\n" in str(caught.value)
    assert "nobody-has-this 1 is not there\n" in str(caught.value)
    assert not (tmp_path / "dist").exists()


def test_it_runs_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(
        f"click=={version('click')} \\\n    --hash=sha256:0\n"
        "not-installed==1 ; sys_platform == 'win32' \\\n    --hash=sha256:0\n"
    )
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
    lock.write_text(f"click=={version('click')} \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(archive, "LOCK", lock)
    both = [build_archive(Path(sys.executable), [], tmp_path / name) for name in "ab"]
    assert both[0].read_bytes() == both[1].read_bytes()


def test_it_may_lack_packages_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(
        f"click=={version('click')} \\\n    --hash=sha256:0\n"
        "nobody-has-this==1 \\\n    --hash=sha256:0\n"
    )
    monkeypatch.setattr(archive, "LOCK", lock)
    path = build_archive(
        Path(sys.executable), [], tmp_path / "dist", without=("click", "nobody-has-this")
    )
    with tarfile.open(path) as tar:
        assert set(tar.getnames()) == {"pyvenv.cfg", "bin/python", "bin/python3", SCRIPT}
