"""How much memory a Spark driver and its Python workers take, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path

_KIB_PER_MIB = 1_024


def peak_mib() -> dict[str, float]:
    """Peak resident memory of this process and its Java (``driver``), and of the largest of Java's
    Python workers (``worker``; 0 without one), in MiB."""
    parents = {pid: _status(pid, "PPid") for pid in _pids()}
    java = {pid for pid, parent in parents.items() if parent == os.getpid() and _is_java(pid)}
    below = set(java)
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            break
        below |= more
    workers = [_status(pid, "VmHWM") for pid in below - java]
    driver = sum(_status(pid, "VmHWM") for pid in (os.getpid(), *java))
    return {
        "driver": driver / _KIB_PER_MIB,
        "worker": max(workers, default=0) / _KIB_PER_MIB,
    }


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
