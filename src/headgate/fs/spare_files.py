"""Reserved file descriptors, so that the log can open files when clients use all others.

The kernel gives a process a fixed number of descriptors (``ulimit -n``), whatever they are for.
This module holds some of them, open on ``/dev/null``. If opening a file finds no free descriptor,
one of them is closed, and opened again as soon as there is a free one.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Final

SPARE_FILES: Final = 16
"""More than a log opens at once (a segment, a checkpoint, a directory, a small file), because new
connections may take a freed descriptor first."""


class SpareFiles:
    """Reserved descriptors of one process for one data directory. Thread-safe."""

    def __init__(self, count: int = SPARE_FILES) -> None:
        self._count = count
        self._held: list[int] = []
        self._lock = threading.Lock()
        self.keep()

    @property
    def held_count(self) -> int:
        """Descriptors reserved now."""
        return len(self._held)

    def keep(self) -> None:
        """Reserve the missing descriptors, as far as the process has free ones."""
        with self._lock, contextlib.suppress(OSError):
            while len(self._held) < self._count:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def give(self) -> bool:
        """Free one descriptor; False if none is left."""
        with self._lock:
            if not self._held:
                return False
            os.close(self._held.pop())
            return True

    def close(self) -> None:
        """Free all descriptors for good."""
        self._count = 0
        while self.give():
            pass
