"""Programs that ``./dev`` runs, each within a time limit.

Without one, a program that hangs (on a registry that does not answer, on a lock that nobody
releases) would hold a terminal or all of CI until somebody looks.
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


class TimedOutError(DevError):
    """A program ran past its time limit; the text names both."""


def captured(
    command: Sequence[str], limit_s: float, *, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end without input, and capture its output.

    ``folder``: its working directory; None: that of this process.

    Raises:
        TimedOutError: it did not end within ``limit_s``.
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
        raise TimedOutError(_timed_out(command, limit_s)) from error


def shown(command: Sequence[str], limit_s: float, folder: Path) -> int:
    """Run a program in ``folder`` with the output of this process, and return its exit status.

    It gets its own process group, and no process of that group outlives the call.

    Raises:
        TimedOutError: it did not end within ``limit_s``.
    """
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, env=environment_variables(),
        process_group=0,
    )  # fmt: skip
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired as error:
        raise TimedOutError(_timed_out(command, limit_s)) from error
    finally:
        _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End the command if it still runs, and every process that it left running."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _timed_out(command: Sequence[str], limit_s: float) -> str:
    name, *words = (str(word) for word in command)
    shortest = " ".join([Path(name).name, *words])
    return f"{shortest:.100} timed out after {limit_s:g} s"
