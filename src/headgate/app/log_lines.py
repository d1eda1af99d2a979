"""Log lines: one format for everybody, to the standard error."""

from __future__ import annotations

import logging

_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


def start_logging(level: str) -> None:
    """Log from ``level`` (one of ``LOG_LEVELS``) on, to the standard error, in local time."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT, _TIME_FORMAT))
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    # What the web server says of its own life is said by the ready line and the log of the broker.
    logging.getLogger("uvicorn").setLevel(max(number, logging.WARNING))
