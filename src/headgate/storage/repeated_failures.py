"""Failures that repeat, told as one: when they begin and when they are over."""

from __future__ import annotations

import logging
from typing import Final

from headgate.base.errors import HeadgateError
from headgate.base.units import NS_PER_S

QUIET_NS: Final = 10 * NS_PER_S
"""Failures are over at the first success so long after the last of them: on a full disk small
writes may succeed between large ones that fail."""


class RepeatedFailureLog:
    """One kind of failure, of what ``what`` names."""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        self._logger = logger
        self._what = what
        self._count = 0
        self._last_ns = 0
        self._said = ""
        self.bug = ""
        """What fails by an error of ours, in words; empty when nothing does, or by what may be
        expected. Until the first success."""

    def failed(self, error: BaseException, now_ns: int) -> None:
        """Tell of ``error``, unless the failure before it said the same. One that nobody expected
        is told with its traceback."""
        self._count += 1
        self._last_ns = now_ns
        is_expected = isinstance(error, HeadgateError)
        kind = "" if is_expected else f"an error of ours, {type(error).__name__}: "
        said = f"{kind}{error}"
        self.bug = "" if is_expected else f"{self._what} fails: {said}"
        if said != self._said:
            self._said = said
            trace = None if is_expected else error
            self._logger.error("%s fails: %s", self._what, said, exc_info=trace)

    def succeeded(self, now_ns: int) -> None:
        """Tell that failures are over, with their number, if there were any."""
        self.bug = ""
        if self._count and now_ns - self._last_ns >= QUIET_NS:
            self._logger.warning("%s works again, after %d failures", self._what, self._count)
            self._count, self._said = 0, ""
