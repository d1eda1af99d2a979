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
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from devkit.console import DevError
from devkit.paths import LOCKS

LOCK: Final = LOCKS / "spark.txt"
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
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==[^;\\]+(?:; (?P<marker>[^\\]+))?")
_LEVEL: Final = 1
"""Of compression: a fifth larger than the best, in a tenth of the time."""
_ASK: Final = """
import importlib.metadata as m, json, os, sys, sysconfig
site = sysconfig.get_paths()["purelib"]
files = []
for name in json.loads(sys.argv[1]):
    try:
        found = m.distribution(name)
    except m.PackageNotFoundError:
        continue
    base = os.path.realpath(str(found.locate_file("")))
    for file in found.files or ():
        path = os.path.realpath(str(found.locate_file(file)))
        if path.startswith(base + os.sep) and os.path.isfile(path):
            files.append([path, os.path.relpath(path, base)])
print(json.dumps({"python": os.path.realpath(sys.executable), "files": files,
                  "version": "%d.%d" % sys.version_info[:2]}))
"""
"""Asked of the environment's own Python: what is installed of some packages."""


def locked_names(text: str) -> list[str]:
    """The packages that a lock names."""
    return [match[1] for line in text.splitlines() if (match := _PIN.match(line))]


def build_archive(python: Path, wheels: Iterable[Path], target: Path) -> Path:
    """Write the archive into ``target`` and return its path.

    Raises:
        DevError: the environment could not be asked what is installed in it.
    """
    names = json.dumps(locked_names(LOCK.read_text()))
    asked = subprocess.run(
        [str(python), "-c", _ASK, names], capture_output=True, text=True, check=False
    )
    if asked.returncode != 0:
        raise DevError(f"{python} does not say what is installed:\n{asked.stderr}")
    found = json.loads(asked.stdout)
    site = PurePosixPath("lib", f"python{found['version']}", "site-packages")
    target.mkdir(exist_ok=True)
    path = target / f"headgate-environment-py{found['version'].replace('.', '')}.tar.gz"
    pending = path.with_suffix(".new")
    with (
        pending.open("wb") as raw,
        gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        _add_interpreter(tar, Path(found["python"]))
        for file, name in found["files"]:
            if "__pycache__" not in name:
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
