"""The own suites of the Go and the Python client, for ``./dev test-peer``.

Go's module proxy has the Go client with its tests. No registry has those of the Python client: a
variable names a checkout of it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from devkit.console import DevError, LeftOutError, Stage
from devkit.paths import CACHE, ROOT
from devkit.processes import captured, shown

GO_CLIENT: Final = "github.com/apache/pulsar-client-go@v0.19.0"
"""The version whose tests are played: the one that the program of ``tests/peer/go`` uses."""
CHECKOUT_VARIABLE: Final = "HEADGATE_PULSAR_CLIENT_PYTHON"
SUITES: Final = ("go", "python")
SUITES_WORD: Final = "suites"
"""The argument of ``./dev test-peer`` that plays these alone."""
BUILD_LIMIT_S: Final = 900
SUITE_LIMIT_S: Final = 3_600


def play_suites(python: Path, words: Sequence[str]) -> int:
    """Play the suites that ``words`` begin with, or all; further words select tests by a part of
    their names. Returns 0 if all passed but those that need what is documented as absent.

    Raises:
        DevError: a suite cannot be fetched or built.
        TimedOutError: one hangs.
    """
    chosen = [word for word in words if word in SUITES] or list(SUITES)
    names = [word for word in words if word not in SUITES]
    status = 0
    for suite in chosen:
        try:
            command = suite_command(python, suite, names)
        except LeftOutError as error:
            print(f"The {suite} client's suite is left out: {error}")
            continue
        status = shown(command, SUITE_LIMIT_S, ROOT) or status
    return status


def suite_command(python: Path, suite: str, names: Sequence[str] = ()) -> list[str]:
    """Fetch or build a suite, print its version, and return the command that plays it; ``names``
    are parts of the names of tests.

    Raises:
        LeftOutError: it needs a checkout.
        DevError: it cannot be fetched or built.
    """
    source, program, version = _go() if suite == "go" else _python(python)
    print(f"{suite} client {version}", flush=True)
    return [
        "unshare", "--net", "--map-root-user", str(python), "-m", "tests.peer.suites.run",
        suite, str(source), str(program), *names,
    ]  # fmt: skip


def _go() -> tuple[Path, Path, str]:
    stage = Stage(f"building the tests of {GO_CLIENT}")
    module = json.loads(_output(["go", "mod", "download", "-json", GO_CLIENT], CACHE))
    source = CACHE / "go-client"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(module["Dir"], source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)  # Go's cache is read-only
    program = CACHE / "go-client-tests"
    _output(["go", "test", "-c", "-o", str(program), "./pulsar"], source)
    stage.done()
    return source, program, f"{module['Version']} ({module['Sum']})"


def _python(python: Path) -> tuple[Path, Path, str]:
    checkout = os.environ.get(CHECKOUT_VARIABLE)
    if not checkout:
        raise LeftOutError(f"{CHECKOUT_VARIABLE} names no checkout")
    commit = _output(["git", "rev-parse", "HEAD"], Path(checkout)).strip()
    return Path(checkout), python, commit


def _output(command: Sequence[str], folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    try:
        result = captured(command, BUILD_LIMIT_S, folder=folder)
    except FileNotFoundError as error:
        raise DevError(f"{command[0]} is needed, and is not on the PATH") from error
    if result.returncode != 0:
        raise DevError(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")
    return result.stdout
