"""The environment archive for Spark clusters: what the pipeline imports, as one tar file.

It is a virtual environment without Spark, which a cluster has: the packages of ``locks/spark.txt``
as they are installed here, both of our wheels, and a link to the interpreter. Nothing in it names
the folder it was made in, so it works wherever it is unpacked, on every machine that has the same
Python at the same place.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from devkit.console import DevError
from devkit.paths import LOCKS
from devkit.processes import captured

LOCK: Final = LOCKS / "spark.txt"
_ASK_LIMIT_S: Final = 120
SCRIPT: Final = "headgate_pipeline.py"
"""What ``spark-submit`` is given: ``headgate pipeline`` by another door."""

_SCRIPT_TEXT: Final = '''\
"""``headgate pipeline`` for ``spark-submit``."""

import sys

from headgate.cli import main

sys.argv[0] = "headgate"
sys.argv.insert(1, "pipeline")
main()
'''
_PIN: Final = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+))?"
)
_LEFT_OUT: Final = frozenset({"__pycache__", "tests"})
"""Folders: what Python makes again by itself, and the packages' own tests, an eighth of all."""
_LEVEL: Final = 1
"""Of compression: a fifth larger than the best, in a tenth of the time."""
_ASK: Final = """
import importlib.metadata as m, json, os, sys, sysconfig
site = sysconfig.get_paths()["purelib"]
files, versions = [], {}
for name in json.loads(sys.argv[1]):
    try:
        found = m.distribution(name)
    except m.PackageNotFoundError:
        versions[name] = None
        continue
    versions[name] = found.version
    base = os.path.realpath(str(found.locate_file("")))
    for file in found.files or ():
        path = os.path.realpath(str(found.locate_file(file)))
        if path.startswith(base + os.sep) and os.path.isfile(path):
            files.append([path, os.path.relpath(path, base)])
print(json.dumps({"python": os.path.realpath(sys.executable), "files": files,
                  "versions": versions, "version": "%d.%d" % sys.version_info[:2]}))
"""
"""Asked of the environment's own Python: what is installed of some packages."""


@dataclass(slots=True)
class Locked:
    """What a lock says of one package."""

    versions: list[str] = field(default_factory=list)
    """Where they are several, each is for some Pythons or systems."""
    is_everywhere: bool = False
    """Whether every Python and system needs it."""


def locked_packages(text: str) -> dict[str, Locked]:
    """The packages that a lock names."""
    found: dict[str, Locked] = defaultdict(Locked)
    for line in text.splitlines():
        if match := _PIN.match(line):
            package = found[match["name"]]
            package.versions.append(match["version"])
            package.is_everywhere |= match["marker"] is None
    return dict(found)


def disagreements(locked: Mapping[str, Locked], installed: Mapping[str, str | None]) -> list[str]:
    """What an environment has otherwise than a lock says, by the versions that are installed."""
    found = []
    for name, package in locked.items():
        version, allowed = installed[name], " or ".join(package.versions)
        if version is None and package.is_everywhere:
            found.append(f"{name} {allowed} is not there")
        elif version is not None and version not in package.versions:
            found.append(f"{name} is there in version {version} and not {allowed}")
    return found


def build_archive(
    python: Path,
    wheels: Iterable[Path],
    target: Path,
    *,
    level: int = _LEVEL,
    without: Collection[str] = (),
) -> Path:
    """Write the archive into ``target`` and return its path.

    ``level``: of compression, 0 to 9; 0 stores the files as they are. ``without``: packages of the
    lock that the archive does not get.

    Raises:
        DevError: the environment could not be asked what is installed in it, or that is not what
            the lock says; the text names every package.
    """
    locked = {
        name: package
        for name, package in locked_packages(LOCK.read_text()).items()
        if name not in without
    }
    asked = captured([str(python), "-c", _ASK, json.dumps(list(locked))], _ASK_LIMIT_S)
    if asked.returncode != 0:
        raise DevError(f"{python} does not say what is installed:\n{asked.stderr}")
    found = json.loads(asked.stdout)
    wrong = disagreements(locked, found["versions"])
    if wrong:
        raise DevError(
            f"{python} is not as locks/{LOCK.name} says, so no archive is made of it:\n  "
            + "\n  ".join(wrong)
            + "\nRemove its folder: the next ./dev makes it anew."
        )
    site = PurePosixPath("lib", f"python{found['version']}", "site-packages")
    target.mkdir(exist_ok=True)
    path = target / f"headgate-environment-py{found['version'].replace('.', '')}.tar.gz"
    pending = path.with_suffix(".new")
    with (
        pending.open("wb") as raw,
        gzip.GzipFile("", "wb", level, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        _add_interpreter(tar, Path(found["python"]))
        for file, name in found["files"]:
            if _LEFT_OUT.isdisjoint(PurePosixPath(name).parts):
                tar.add(file, str(site / name), filter=_plain)
        for wheel in wheels:
            for name, content in _contents(wheel):
                _add_bytes(tar, str(site / name), content)
        _add_bytes(tar, SCRIPT, _SCRIPT_TEXT.encode())
    pending.replace(path)
    return path


def _add_interpreter(tar: tarfile.TarFile, python: Path) -> None:
    """A virtual environment is a link to its Python and a file that says where that lives."""
    _add_bytes(
        tar,
        "pyvenv.cfg",
        f"home = {python.parent}\ninclude-system-site-packages = false\n".encode(),
    )
    for name in ("python", "python3"):
        link = tarfile.TarInfo(f"bin/{name}")
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        tar.addfile(link)


def _contents(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith("/"):
                yield name, archive.read(name)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o644
    tar.addfile(member, io.BytesIO(content))


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without whose and from when it is."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member
