"""Programs that ``./dev`` runs: each has a time after which it is given up.

Whatever hangs (a registry that answers nothing, a lock that nobody lets go of) would otherwise hold
a terminal or all of CI until somebody looks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devkit.console import DevError
from devkit.paths import environment_variables


class GivenUpError(DevError):
    """A program took longer than it may; the text says which, and how long it had."""


def captured(
    command: Sequence[str], limit_s: float, *, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with nothing to read, and keep what it says.

    ``folder`` is where it runs; None: where this process does.

    Raises:
        GivenUpError: it did not end within ``limit_s``.
        OSError: it could not be started.
    """
    try:
        return subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment_variables(),
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise GivenUpError(_given_up(command, limit_s)) from error


def shown(command: Sequence[str], limit_s: float, folder: Path) -> int:
    """Run a program in ``folder``, its output ours, and return its exit status.

    It has a process group of its own, of which nothing is left behind.

    Raises:
        GivenUpError: it did not end within ``limit_s``.
    """
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, env=environment_variables(),
        process_group=0,
    )  # fmt: skip
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise GivenUpError(_given_up(command, limit_s)) from error
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End whatever the command started and left running, and the command if it still runs."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _given_up(command: Sequence[str], limit_s: float) -> str:
    name, *words = (str(word) for word in command)
    shortest = " ".join([Path(name).name, *words])
    return f"{shortest:.100} was given up after {limit_s:g} s"
