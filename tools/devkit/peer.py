"""``./dev test-peer``: official clients, their own suites, Pulsar's tools, a Pulsar, an S3.

It is no part of ``./dev test``: clients, broker and libraries, some 300 MB, come from wherever
Maven, Go and npm are told to find them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.client_suites import SUITE_LIMIT_S, suite_command
from devkit.console import DevError, Stage
from devkit.node_client import ensure_node_client
from devkit.parts import Part, play_parts
from devkit.paths import CACHE, ROOT
from devkit.processes import TimedOutError, captured
from devkit.s3_server import ensure_s3_server

PROJECT: Final = ROOT / "tests" / "peer" / "pom.xml"
BUILT: Final = CACHE / "peer"
PROJECT_5: Final = PROJECT.parent / "v5" / "pom.xml"
BUILT_5: Final = CACHE / "peer-v5"
GO_PROJECT: Final = PROJECT.parent / "go"
GO_PROGRAM: Final = CACHE / "peer-go"
PULSAR_PROJECT: Final = PROJECT.parent / "pulsar" / "pom.xml"
PULSAR_JARS: Final = CACHE / "apache-pulsar" / "lib"
BUILD_LIMIT_S: Final = 600
AGENT_LIMIT_S: Final = 3_600
"""Four runs of five minutes each, and the starts."""


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


def _run(python: Path, name: str, *words: str) -> list[str]:
    return [str(python), "-m", "tests.peer.run", name, *words]


def _s3(python: Path) -> list[str]:
    return _run(python, "s3", str(ensure_s3_server(python)))


def _junit(project: Path, built: Path, title: str) -> None:
    """Build the tests of a project; Maven would leave classes and libraries of earlier builds."""
    shutil.rmtree(built, ignore_errors=True)
    maven(project, "process-test-classes", f"building the tests of {title} with Maven")


def _java(python: Path) -> list[str]:
    _junit(PROJECT, BUILT, "the Java client")
    return _run(python, "java", java_program(), str(BUILT / "test-classes"), str(BUILT / "lib"))


def _java_5(python: Path) -> list[str]:
    _java(python)
    _junit(PROJECT_5, BUILT_5, "the Java client of Pulsar 5")
    folders = [BUILT / "test-classes", BUILT_5 / "test-classes", BUILT_5 / "lib"]
    return _run(python, "java-5", java_program(), *map(str, folders))


def _go(python: Path) -> list[str]:
    command = ["go", "build", "-C", str(GO_PROJECT), "-o", str(GO_PROGRAM), "."]
    _built(command, GO_PROJECT, "building the program of the Go client")
    return _run(python, "go", str(GO_PROGRAM))


def _node(python: Path) -> list[str]:
    return _run(python, "node", str(ensure_node_client(python)))


def _pulsar(python: Path, name: str) -> list[str]:
    maven(PULSAR_PROJECT, "process-resources", "fetching Apache Pulsar with Maven")
    return _run(python, name, java_program(), str(PULSAR_JARS))


PARTS: Final = (
    Part("java", "the Java client", _java),
    Part("java-5", "the Java client of Pulsar 5, and its V5 API", _java_5),
    Part("node", "the Node.js client", _node),
    Part("go", "the Go client", _go),
    Part(
        "tools",
        "pulsar-admin, pulsar-client and pulsar-perf",
        lambda python: _pulsar(python, "tools"),
    ),
    Part("s3", "tables in an S3", _s3),
    Part("spark", "Spark with an Apache Pulsar", lambda python: _pulsar(python, "spark")),
    Part(
        "agent",
        "the agent's verdicts about an Apache Pulsar",
        lambda python: _pulsar(python, "agent"),
        AGENT_LIMIT_S,
    ),
    Part(
        "go-suite",
        "the Go client's own suite",
        lambda python: suite_command(python, "go"),
        SUITE_LIMIT_S,
    ),
    Part(
        "python-suite",
        "the Python client's own suite",
        lambda python: suite_command(python, "python"),
        SUITE_LIMIT_S,
    ),
)


def play_peer(python: Path, names: Sequence[str]) -> int:
    """Play the parts of these names, or all, and return 0 if none failed.

    Raises:
        DevError: a name is that of no part.
    """
    known = [part.name for part in PARTS]
    if unknown := [name for name in names if name not in known]:
        raise DevError(f"There is no {unknown[0]}: {', '.join(known)} are what can be played")
    chosen = [part for part in PARTS if not names or part.name in names]
    return play_parts("./dev test-peer", python, chosen)
