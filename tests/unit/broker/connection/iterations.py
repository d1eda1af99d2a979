"""Counts in which iteration of the event loop something happens."""

from __future__ import annotations

import asyncio


class Iterations:
    """Begin with :meth:`begin`; :meth:`note` what happens, ``count`` times in all."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._iteration = 0
        self.noted: list[int] = []
        """The iteration of each."""

    def begin(self) -> None:
        """Count the iterations of the loop until all have happened."""
        self._iteration += 1
        if len(self.noted) < self._count:
            asyncio.get_running_loop().call_soon(self.begin)

    def note(self) -> None:
        """It happens now."""
        self.noted.append(self._iteration)

    def most(self) -> int:
        """How many happened in one iteration, at most."""
        return max(map(self.noted.count, set(self.noted)))
