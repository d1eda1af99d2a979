"""``./dev package``: builds both distributions into ``dist/`` and looks at what is in them, and the
environment archive that a Spark cluster runs the pipeline with."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from devkit.archive import build_archive
from devkit.console import DevError, Stage
from devkit.paths import DIST, PYSPARK_PULSAR, ROOT
from devkit.processes import captured

_LIMIT_S: Final = 300

DISTRIBUTIONS: Final = (("headgate", ROOT), ("pyspark_pulsar", PYSPARK_PULSAR))
"""The package each wheel holds, and the folder of its pyproject.toml."""


def package(python: Path) -> int:
    """Build a wheel and a source archive of each distribution and the environment archive, and
    print their paths."""
    wheels = []
    for name, folder in DISTRIBUTIONS:
        stage = Stage(f"building {name}")
        paths = build(python, folder, DIST)
        stage.done()
        for path in paths:
            if path.suffix == ".whl":
                check_wheel(path, name)
                wheels.append(path)
            print(path.relative_to(ROOT))
    stage = Stage("packing the environment for Spark clusters")
    archive = build_archive(python, wheels, DIST)
    stage.done(f"{archive.stat().st_size / 1e6:.0f} MB")
    print(archive.relative_to(ROOT))
    return 0


def build(python: Path, folder: Path, target: Path) -> list[Path]:
    """Build the wheel and the source archive of ``folder`` with the locked build tools.

    Returns:
        The two files in ``target``, the source archive first.

    Raises:
        DevError: the build failed, with what hatchling said, or hangs.
    """
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(python), "-m", "hatchling", "build", "-d", scratch]
        result = captured(command, _LIMIT_S, folder=folder)
        if result.returncode != 0:
            raise DevError(f"{folder.name} could not be built:\n{result.stdout}{result.stderr}")
        target.mkdir(exist_ok=True)
        built = sorted(Path(scratch).iterdir(), key=lambda path: path.suffix)
        return [Path(shutil.move(path, target / path.name)) for path in built]


def check_wheel(path: Path, name: str) -> None:
    """See that a wheel holds its own package, all that users need and nothing else.

    Raises:
        DevError: a file is missing, or one is there that has no business in it.
    """
    with zipfile.ZipFile(path) as wheel:
        files = wheel.namelist()
    strange = [
        file
        for file in files
        if not file.startswith((f"{name}/", f"{name}-")) or "__pycache__" in file
    ]
    if strange:
        raise DevError(f"{path.name} holds files that do not belong there: {strange[:5]}")
    for needed in (f"{name}/__init__.py", f"{name}/py.typed"):
        if needed not in files:
            raise DevError(f"{path.name} lacks {needed}")
    if not any(file.endswith("licenses/LICENSE") for file in files):
        raise DevError(f"{path.name} lacks the licence")
