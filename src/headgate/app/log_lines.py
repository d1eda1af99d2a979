"""The format and the destinations of log lines."""

from __future__ import annotations

import logging
from logging.handlers import WatchedFileHandler

from headgate.base.errors import InputError

_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


def start_logging(level: str, file_path: str | None = None) -> None:
    """Log from ``level`` (one of ``LOG_LEVELS``) on to the standard error, in local time.

    With ``file_path`` the same lines are appended to that file.

    Raises:
        InputError: the file cannot be written to.
    """
    formatter = logging.Formatter(_FORMAT, _TIME_FORMAT)
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if file_path is not None:
        try:
            handlers.append(_LogFile(file_path, handlers[0]))
        except OSError as error:
            raise InputError(
                f"--log-file {file_path} cannot be written to: {error.strerror}"
            ) from error
    for handler in handlers:
        handler.setFormatter(formatter)
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(number)
    # The broker's ready line and log replace the web server's own lines. Its warnings are about
    # bytes that are no HTTP, one for each client without a bound: the broker has lines with one.
    logging.getLogger("uvicorn").setLevel(max(number, logging.ERROR))


class _LogFile(WatchedFileHandler):
    """A log file that may be moved away or removed; the next line begins a new one.

    If writing fails, as on a full disk, the broker continues. The standard error has all lines, and
    one about the failure.
    """

    def __init__(self, path: str, standard_error: logging.Handler) -> None:
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._standard_error = standard_error
        self._fails = False
        self._failed_last = False

    def emit(self, record: logging.LogRecord) -> None:
        self._fails = False
        try:
            super().emit(record)
        except OSError:
            # The parent does not catch errors of opening the file again.
            self.handleError(record)
        self._failed_last = self._fails

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802
        self._fails = True
        if not self._failed_last:
            number, text = (
                logging.WARNING,
                "log file %s cannot be written; see standard error",
            )
            warning = logging.LogRecord(
                "headgate.app", number, "", 0, text, (self.baseFilename,), None
            )
            self._standard_error.handle(warning)
