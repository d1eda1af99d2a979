"""Log lines about a failure that repeats: one when it begins and one when it is over."""

from __future__ import annotations

import logging
from typing import Final

from headgate.base.errors import HeadgateError
from headgate.base.units import NS_PER_S

QUIET_NS: Final = 10 * NS_PER_S
"""Failures are over at the first success after so long without a failure: on a full disk, small
writes may succeed between large ones that fail."""


class RepeatedFailureLogger:
    """The lines about failures of one job, which ``what`` names."""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        self._logger = logger
        self._what = what
        self._count = 0
        self._last_ns = 0
        self._logged = ""
        self.internal_error = ""
        """The internal error that the job fails with, until its next success. Empty if there is no
        error or an expected one."""

    def failed(self, error: BaseException, now_ns: int) -> None:
        """Log ``error`` unless the last line has the same text; an internal error with its
        traceback."""
        self._count += 1
        self._last_ns = now_ns
        is_expected = isinstance(error, HeadgateError)
        kind = "" if is_expected else f"internal error, {type(error).__name__}: "
        text = f"{kind}{error}"
        self.internal_error = "" if is_expected else f"{self._what} fails: {text}"
        if text != self._logged:
            self._logged = text
            trace = None if is_expected else error
            self._logger.error("%s fails: %s", self._what, text, exc_info=trace)

    def succeeded(self, now_ns: int) -> None:
        """If there were failures and they are over, log that with their number."""
        self.internal_error = ""
        if self._count and now_ns - self._last_ns >= QUIET_NS:
            failures = "1 failure" if self._count == 1 else f"{self._count:,} failures"
            self._logger.warning("%s works again, after %s", self._what, failures)
            self._count, self._logged = 0, ""

    def nothing_due(self, now_ns: int) -> None:
        """Nothing of the job is left to do, though it may never have succeeded. Its failures are
        over once they are :data:`QUIET_NS` old."""
        if self._count and now_ns - self._last_ns >= QUIET_NS:
            self.succeeded(now_ns)
