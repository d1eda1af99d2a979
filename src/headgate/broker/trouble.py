"""Failures that repeat, told as one: when they begin and when they are over."""

from __future__ import annotations

import logging
from typing import Final

from headgate.base.units import NS_PER_S

QUIET_NS: Final = 10 * NS_PER_S
"""Failures are over at the first success so long after the last of them: on a full disk small
writes may succeed between large ones that fail."""


class Trouble:
    """One kind of failure, of what ``what`` names."""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        self._logger = logger
        self._what = what
        self._count = 0
        self._last_ns = 0
        self._said = ""

    def failed(self, error: BaseException, now_ns: int) -> None:
        """Tell of ``error``, unless the failure before it said the same."""
        self._count += 1
        self._last_ns = now_ns
        if str(error) != self._said:
            self._said = str(error)
            self._logger.error("%s fails: %s", self._what, error)

    def succeeded(self, now_ns: int) -> None:
        """Tell that failures are over, with their number, if there were any."""
        if self._count and now_ns - self._last_ns >= QUIET_NS:
            self._logger.warning("%s works again, after %d failures", self._what, self._count)
            self._count, self._said = 0, ""
