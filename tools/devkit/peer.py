"""``./dev test-peer``: clients of Java and Go, Spark with Apache Pulsar, tables in an S3.

It is no part of ``./dev test``: clients, broker and libraries, some 300 MB, come from wherever
Maven and Go are told to find them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError, Stage
from devkit.paths import CACHE, ROOT
from devkit.processes import TimedOutError, captured, shown
from devkit.s3_server import ensure_s3_server

PROJECT: Final = ROOT / "tests" / "peer" / "pom.xml"
BUILT: Final = CACHE / "peer"
GO_PROJECT: Final = PROJECT.parent / "go"
GO_PROGRAM: Final = CACHE / "peer-go"
PULSAR_PROJECT: Final = PROJECT.parent / "pulsar" / "pom.xml"
PULSAR_JARS: Final = CACHE / "apache-pulsar" / "lib"
BUILD_LIMIT_S: Final = 600
RUN_LIMIT_S: Final = 2_000


def play_peer(python: Path) -> int:
    """Build the program, fetch the broker, play both, and return 0 if all was right.

    Raises:
        DevError: it could not be built.
        TimedOutError: it hangs.
    """
    s3_python = ensure_s3_server(python)
    maven(PROJECT, "process-classes", "building the Java program with Maven")
    command = ["go", "build", "-C", str(GO_PROJECT), "-o", str(GO_PROGRAM), "."]
    _built(command, GO_PROJECT, "building the Go program")
    maven(PULSAR_PROJECT, "process-resources", "fetching Apache Pulsar with Maven")
    classpath = f"{BUILT / 'classes'}{os.pathsep}{BUILT / 'lib'}/*"
    command = [
        str(python), "-m", "tests.peer.run", java_program(), classpath, str(PULSAR_JARS),
        str(s3_python), str(GO_PROGRAM),
    ]  # fmt: skip
    return shown(command, RUN_LIMIT_S, ROOT)


def maven(project: Path, phase: str, title: str) -> None:
    """Carry a Maven project out up to a phase.

    Raises:
        DevError: Maven failed; the text is what it said.
    """
    _built(["mvn", "--batch-mode", "--quiet", "--file", str(project), phase], project, title)


def _built(command: Sequence[str], project: Path, title: str) -> None:
    stage = Stage(title)
    CACHE.mkdir(exist_ok=True)
    try:
        result = captured(command, BUILD_LIMIT_S, folder=ROOT)
    except TimedOutError:
        stage.leave()
        raise
    except FileNotFoundError as error:
        stage.leave()
        raise DevError(f"{command[0]} is needed, and is not on the PATH") from error
    if result.returncode != 0:
        stage.leave()
        raise DevError(f"{command[0]} failed on {project}:\n{result.stdout}{result.stderr}")
    stage.done()


def java_program() -> str:
    """The ``java`` of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    return found or shutil.which("java") or "java"
