"""``./dev lock``: writes ``locks/`` from what pyproject.toml asks for.

Each lane is one file, valid for every Python from the oldest supported on, with the hash of
every archive. A lane is resolved within the versions of the lanes below it, so that one
environment can hold them all. No file names a registry: pip asks whichever it is set up for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError, Stage
from devkit.paths import ROOT
from devkit.processes import captured

_OLDEST_PYTHON: Final = "3.11"
_LIMIT_S: Final = 900
"""Of one lane; with nothing kept from before, all its packages are asked for."""

_NOT_EMITTED: Final = ("--no-emit-package", "pyspark", "--no-emit-package", "py4j")

_EXTRAS: Final = ("--extra", "s3", "--extra", "lineage")

_LANES: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("build", ("--group", "pyproject.toml:build"), ()),
    ("broker", ("pyproject.toml",), ()),
    ("lint", ("pyproject.toml", "--group", "lint"), ("broker", "build")),
    (
        "dev",
        ("pyproject.toml", *_EXTRAS, "--group", "lint", "--group", "test"),
        ("lint", "build"),
    ),
    # A program of its own, in an environment of its own: it shares no version with ours.
    ("peer", ("--group", "pyproject.toml:peer"), ()),
    # Programs that look at the locks and share no version with them, either.
    ("audit", ("--group", "pyproject.toml:audit"), ()),
    # What a Spark cluster needs beside its own Spark.
    (
        "spark",
        ("pyproject.toml", *_EXTRAS, *_NOT_EMITTED),
        ("dev",),
    ),
)
"""Name, what goes in, and the lanes whose versions it keeps to."""


def write_locks(python: Path, arguments: Sequence[str]) -> int:
    """Resolve every lane; versions stay as they are unless ``--upgrade`` is given.

    Raises:
        DevError: an unknown argument, or the resolver found no answer.
    """
    if any(argument != "--upgrade" for argument in arguments):
        raise DevError(f"./dev lock takes --upgrade and nothing else, not {' '.join(arguments)}")
    for name, inputs, kept in _LANES:
        target = f"locks/{name}.txt"
        stage = Stage(f"resolving {target}")
        command = [
            str(python), "-m", "uv", "pip", "compile", "--quiet", "--universal",
            "--python-version", _OLDEST_PYTHON, "--generate-hashes", "--no-header",
            "--no-annotate", "--no-emit-index-url", "--no-emit-package", "pyspark-pulsar",
            *arguments, *inputs, "--output-file", target,
        ]  # fmt: skip
        for lane in kept:
            command += ["--constraints", f"locks/{lane}.txt"]
        result = captured(command, _LIMIT_S, folder=ROOT)
        if result.returncode != 0:
            stage.leave()
            raise DevError(f"{target} could not be resolved:\n{result.stderr}")
        lines = (ROOT / target).read_text().splitlines()
        stage.done(f"{sum(line[:1] not in ' #' for line in lines if line)} packages")
    return 0
