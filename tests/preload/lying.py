"""A layer between a broker and its system that delays or fails syncs, and shifts the wall clock.

``disk_and_clock.c`` beside this file, compiled with gcc, stands before the C library of a real
process. Orders go to it through a shared file.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("disk_and_clock.c")
_FIELDS: Final = (
    "sync_delay_ms", "sync_error", "sync_errors", "write_error", "clock_shift_s",
    "syncs", "syncs_delayed", "syncs_failed", "writes_failed",
)  # fmt: skip
_NUMBER: Final = struct.Struct("=q")


def compiled(folder: Path) -> Path:
    """The layer as a shared library in ``folder``."""
    compiler = shutil.which("gcc")
    assert compiler is not None, "./dev soak faults compiles tests/preload: install gcc"
    library = folder / "disk_and_clock.so"
    command = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", library, SOURCE, "-ldl"], check=True, timeout=120)
    return library


class LyingSystem:
    """The orders to one process, and what the layer did."""

    def __init__(self, library: Path, folder: Path, directory: str) -> None:
        """``directory`` is a part of the path of the files that delays and errors concern."""
        path = folder / "orders"
        path.write_bytes(bytes(_NUMBER.size * len(_FIELDS)))
        with path.open("r+b") as file:
            self._orders = mmap.mmap(file.fileno(), 0)
        self.wrapper: Final = [
            shutil.which("env") or "env",
            f"LD_PRELOAD={library}",
            f"HEADGATE_PRELOAD={path}",
            f"HEADGATE_PRELOAD_DIRECTORY={directory}",
        ]
        """The words before the command of a broker that this system lies to."""

    def order(self, **orders: int) -> None:
        """Give orders by their names in ``disk_and_clock.c``."""
        for name, value in orders.items():
            _NUMBER.pack_into(self._orders, self._at(name), value)

    def count(self, name: str) -> int:
        """A number that the layer counts, by its name there."""
        (value,) = _NUMBER.unpack_from(self._orders, self._at(name))
        return int(value)

    def close(self) -> None:
        """Unmap the orders."""
        self._orders.close()

    @staticmethod
    def _at(name: str) -> int:
        return _NUMBER.size * _FIELDS.index(name)


def resident_mib(pid: int) -> float:
    """The resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
