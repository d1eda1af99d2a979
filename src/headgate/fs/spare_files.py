"""File descriptors that are set apart, so that the log gets its next file when clients have all
others.

The kernel gives a process so many (``ulimit -n``) and asks nobody what they are for. Some are held
here, open on nothing; one is let go when opening a file finds none, and taken again as soon as
there is one.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Final

SPARE_FILES: Final = 16
"""More than a log opens before it closes one: a segment, a checkpoint, a directory, a small file.
Some more, because who accepts connections may be faster."""


class SpareFiles:
    """Descriptors of one process for one data directory; may be used by several threads."""

    def __init__(self, count: int = SPARE_FILES) -> None:
        self._count = count
        self._held: list[int] = []
        self._lock = threading.Lock()
        self.keep()

    @property
    def held_count(self) -> int:
        """How many are set apart now."""
        return len(self._held)

    def keep(self) -> None:
        """Take what is missing, as far as there is any."""
        with self._lock, contextlib.suppress(OSError):
            while len(self._held) < self._count:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def give(self) -> bool:
        """Let one go; False when none is left."""
        with self._lock:
            if not self._held:
                return False
            os.close(self._held.pop())
            return True

    def close(self) -> None:
        """Let all go, and take none again."""
        self._count = 0
        while self.give():
            pass
