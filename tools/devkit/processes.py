"""Programs that ``./dev`` runs, each within a time limit.

Without one, a program that hangs (on a registry that does not answer, on a lock that nobody
releases) would hold a terminal or all of CI until somebody looks.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from devkit.console import DevError
from devkit.paths import environment_variables

_POLL_S: Final = 0.02
_NICE_MOST: Final = 19


class TimedOutError(DevError):
    """A program ran past its time limit; the text names both."""


class CancelledError(DevError):
    """A program was ended because its run was cancelled."""


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    status: int
    """Its exit status; negative: the signal that ended it."""
    processor_s: float
    """User and system time of the program, its children, their children and so on, as far as their
    parents waited for their end."""


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
    return ended(command, limit_s, folder).status


def ended(
    command: Sequence[str],
    limit_s: float,
    folder: Path,
    *,
    output: BinaryIO | None = None,
    gives_way: bool = False,
    cancelled: threading.Event | None = None,
) -> Ended:
    """Run a program as :func:`shown` does, and measure it.

    ``output``: a file for what it writes. ``gives_way``: it runs only while other programs leave a
    processor unused. ``cancelled``: ends the program when it is set.

    Raises:
        TimedOutError: it did not end within ``limit_s``.
        CancelledError: ``cancelled`` was set.
    """
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, env=environment_variables(),
        stdout=output, stderr=output,
        start_new_session=gives_way, process_group=None if gives_way else 0,
    )  # fmt: skip
    deadline_s = time.monotonic() + limit_s
    stop = cancelled or threading.Event()
    try:
        if gives_way:
            _give_way(process.pid)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return Ended(process.returncode, usage.ru_utime + usage.ru_stime)
            if time.monotonic() > deadline_s:
                raise TimedOutError(_timed_out(command, limit_s))
            if stop.wait(_POLL_S):
                raise CancelledError("cancelled")
    finally:
        _end_group(process)


def _give_way(pid: int) -> None:
    """Let a program that has just begun in a session of its own run behind all others.

    Where Linux groups processes by session, the classes of two sessions do not count against each
    other: the brokers of tests, which have sessions of their own, would get no more than all that
    gives way. So the session has the least weight, too.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or may not
        if hasattr(os, "SCHED_IDLE"):
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
        else:
            os.setpriority(os.PRIO_PROCESS, pid, _NICE_MOST)
    with contextlib.suppress(OSError):  # not on every system
        Path(f"/proc/{pid}/autogroup").write_text(str(_NICE_MOST))


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
