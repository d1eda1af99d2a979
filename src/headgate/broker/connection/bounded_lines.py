"""Log lines about clients that have not authenticated, bounded over time.

Each such client can cause a line, and a client may connect a thousand times a second.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from headgate.base.units import NS_PER_MINUTE

LINES_PER_MINUTE: Final = 20
"""Of each kind, so that one kind hides no other."""


class _Kind:
    """The lines of one text."""

    __slots__ = ("left_out", "lines", "minute")

    def __init__(self) -> None:
        self.minute = -1
        self.lines = 0
        """In that minute."""
        self.left_out = 0
        """Since the last line."""


class BoundedLines:
    """Logs at most :data:`LINES_PER_MINUTE` lines of each kind, and how many it left out."""

    def __init__(self, logger: logging.Logger, now_ns: Callable[[], int]) -> None:
        self._logger = logger
        self._now_ns = now_ns
        self._kinds: defaultdict[str, _Kind] = defaultdict(_Kind)

    def info(self, text: str, *values: object) -> None:
        """Log a line if there is room for one in this minute. ``text``, a constant with places for
        ``values``, is the kind."""
        kind, minute = self._kinds[text], self._now_ns() // NS_PER_MINUTE
        if minute != kind.minute:
            kind.minute, kind.lines = minute, 0
        if kind.lines >= LINES_PER_MINUTE:
            kind.left_out += 1
            return
        kind.lines += 1
        if kind.left_out:
            text, values = (
                f"{text} (%d lines like this were left out before)",
                (*values, kind.left_out),
            )
            kind.left_out = 0
        self._logger.info(text, *values)
