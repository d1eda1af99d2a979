"""Memory and CPU time of a Spark driver and its Python workers, as the kernel counts them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.report import Table

DRIVER_MIB_MAX: Final = 2_560.0
WORKER_MIB_MAX: Final = 500.0
LOOK_S: Final = 0.2
_KIB_PER_MIB = 1_024


@contextmanager
def watched_memory() -> Iterator[dict[str, float]]:
    """While it lasts, the largest :func:`peak_mib` of each kind; workers that end count, too."""
    peaks: dict[str, float] = {}
    done = threading.Event()

    def look() -> None:
        while True:
            for name, mib in peak_mib().items():
                peaks[name] = max(peaks.get(name, 0.0), mib)
            if done.wait(LOOK_S):
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def check_memory(table: Table, peaks: dict[str, float]) -> None:
    """Two rows for what :func:`watched_memory` saw."""
    table.check("driver (Java and Python)", peaks["driver"], "MiB", DRIVER_MIB_MAX)
    table.check("largest Python worker", peaks["worker"], "MiB", WORKER_MIB_MAX)


def peak_mib() -> dict[str, float]:
    """Peak resident memory in MiB of this process and its Java (``driver``), of this process alone
    (``python``), of the largest Python worker (``worker``) and the largest Java process of an
    executor (``executor``); 0 without one."""
    java, below = _spark()
    executors = {pid for pid in below if _is_java(pid)}
    kib = {
        "driver": sum(_status(pid, "VmHWM") for pid in (os.getpid(), *java)),
        "python": _status(os.getpid(), "VmHWM"),
        "worker": max((_status(pid, "VmHWM") for pid in below - executors), default=0),
        "executor": max((_status(pid, "VmHWM") for pid in executors), default=0),
    }
    return {name: value / _KIB_PER_MIB for name, value in kib.items()}


def cpu_s() -> float:
    """CPU seconds of Java and its Python workers so far, ended ones included."""
    return sum(cpu_parts_s())


def cpu_parts_s() -> tuple[float, float]:
    """CPU seconds of Java, and of its Python workers, so far."""
    java, below = _spark()
    java_ticks, ticks = (sum(sum(_times(pid)) for pid in pids) for pids in (java, below - java))
    return java_ticks / os.sysconf("SC_CLK_TCK"), ticks / os.sysconf("SC_CLK_TCK")


def _spark() -> tuple[set[int], set[int]]:
    """This process's Java, and all processes below it."""
    parents = {pid: _status(pid, "PPid") for pid in _pids()}
    java = {pid for pid, parent in parents.items() if parent == os.getpid() and _is_java(pid)}
    below: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in java | below} - below:
        below |= more
    return java, below


def _times(pid: int) -> list[int]:
    """User and system time of a process and of its children that have ended, in ticks."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
    return [int(field) for field in fields[11:15]]


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_java(pid: int) -> bool:
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:
        return False


def _status(pid: int, name: str) -> int:
    """A number of a process's status; 0 where it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0
