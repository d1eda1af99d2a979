"""Lets Spark's Python processes import PySpark from its package instead of its zip file.

Spark puts ``pyspark.zip`` first on their path. A zip file holds no compiled modules, so each
process compiles them: 1.0 s of CPU until it connects, and 0.3 s from the package. Spark ends a job
whose process does not connect within 10 s.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from typing import Final

_NAME: Final = "sitecustomize"
_LIBRARIES: Final = ("pyspark", "python", "lib")
"""Where the package has the zip files."""


def packages_first(path: Sequence[str]) -> list[str]:
    """The entries of ``sys.path``, with PySpark's zip files last if its package is on the path.

    A Spark in another folder than the package keeps its order, because its version may differ.
    """
    return sorted(path, key=lambda entry: _is_doubled(entry, path))


def _is_doubled(entry: str, path: Sequence[str]) -> bool:
    place = Path(entry)
    if place.suffix != ".zip" or place.parts[-4:-1] != _LIBRARIES:
        return False
    return str(place.parents[3]) in path


def run_hidden(path: Sequence[str]) -> None:
    """Run the module of the same name that this one hides, if the path has one."""
    own = Path(__file__).parent
    spec = PathFinder.find_spec(_NAME, [entry for entry in path if Path(entry) != own])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if __name__ == _NAME:
    sys.path[:] = packages_first(sys.path)
    run_hidden(sys.path)
