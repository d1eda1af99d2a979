"""Log lines about clients that have not authenticated, bounded over time.

Each such client can cause a line, and a client may connect a thousand times a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from headgate.base.units import NS_PER_MINUTE

LINES_PER_MINUTE: Final = 20


class BoundedLines:
    """Logs at most :data:`LINES_PER_MINUTE` lines, and how many it left out."""

    def __init__(self, logger: logging.Logger, now_ns: Callable[[], int]) -> None:
        self._logger = logger
        self._now_ns = now_ns
        self._minute: int | None = None
        self._lines = 0
        self._left_out = 0

    def info(self, text: str, *values: object) -> None:
        """Log a line if there is room for one in this minute."""
        minute = self._now_ns() // NS_PER_MINUTE
        if minute != self._minute:
            self._minute, self._lines = minute, 0
        if self._lines >= LINES_PER_MINUTE:
            self._left_out += 1
            return
        self._lines += 1
        if self._left_out:
            text, values = f"{text} (%d lines like this were left out before)", (
                *values, self._left_out,
            )  # fmt: skip
            self._left_out = 0
        self._logger.info(text, *values)
