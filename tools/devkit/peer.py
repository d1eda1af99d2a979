"""``./dev test-peer``: what the Java client sees, in a program of its own that Maven builds.

It is no part of ``./dev test``: it fetches the client and its libraries from wherever Maven is told
to find them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from devkit.console import DevError, Stage
from devkit.paths import CACHE, ROOT, environment_variables

PROJECT: Final = ROOT / "tests" / "peer" / "pom.xml"
BUILT: Final = CACHE / "peer"
BUILD_LIMIT_S: Final = 600
RUN_LIMIT_S: Final = 300


def play_peer(python: Path) -> int:
    """Build the program, run it against a broker of its own, and return its exit status.

    Raises:
        DevError: it could not be built, or hangs.
    """
    classpath = build()
    command = [str(python), "-m", "tests.peer.run", java_program(), classpath]
    try:
        return subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            env=environment_variables(),
            timeout=RUN_LIMIT_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired as error:
        raise DevError(f"The peer test was given up after {RUN_LIMIT_S} s") from error


def build() -> str:
    """Compile it, fetch what it needs, and return the class path.

    Raises:
        DevError: Maven failed; the text is what it said.
    """
    stage = Stage("building the Java program with Maven")
    CACHE.mkdir(exist_ok=True)
    try:
        result = subprocess.run(
            ["mvn", "--batch-mode", "--quiet", "--file", str(PROJECT), "process-classes"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment_variables(),
            timeout=BUILD_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        stage.leave()
        raise DevError(f"Maven was given up after {BUILD_LIMIT_S} s") from error
    if result.returncode != 0:
        stage.leave()
        raise DevError(f"Maven could not build the peer test:\n{result.stdout}{result.stderr}")
    stage.done()
    return f"{BUILT / 'classes'}{os.pathsep}{BUILT / 'lib'}/*"


def java_program() -> str:
    """The ``java`` of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    return found or shutil.which("java") or "java"
