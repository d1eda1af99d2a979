"""The format and the destinations of log lines."""

from __future__ import annotations

import contextlib
import logging
import unicodedata
from logging.handlers import WatchedFileHandler

from headgate.base.errors import InputError
from headgate.broker.audit import logger as audit_logger

_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


class _LineFormatter(logging.Formatter):
    """Escapes the control characters of terminals: clients choose the names of topics, and logs are
    read in terminals. Only the first line of a message begins at the margin, so that no text of a
    client looks like another line of the log."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """The line of a record, or its lines: the text of an error may have several."""
        if not record.message.isprintable():
            record.message = "".join(map(_escaped, record.message))
        return super().formatMessage(record)


def _escaped(character: str) -> str:
    if character == "\n":
        return "\n    "
    is_control = unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")
    return repr(character)[1:-1] if is_control else character


def start_logging(level: str, file_path: str | None = None, audit_path: str | None = None) -> None:
    """Log from ``level`` (one of ``LOG_LEVELS``) on to the standard error, in local time.

    With ``file_path`` the same lines are appended to that file. With ``audit_path`` the audit log
    is appended to that file, whatever the level, and stands nowhere else.

    Raises:
        InputError: a file cannot be written to.
    """
    formatter = _LineFormatter(_FORMAT, _TIME_FORMAT)
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    _start_audit_file(level, audit_path, handlers[0])
    if file_path is not None:
        handlers.append(_opened("--log-file", file_path, handlers[0]))
    for handler in handlers:
        handler.setFormatter(formatter)
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = handlers
    root.setLevel(number)
    # The broker's ready line and log replace the web server's own lines. Its warnings are about
    # bytes that are no HTTP, one for each client without a bound: the broker has lines with one.
    logging.getLogger("uvicorn").setLevel(max(number, logging.ERROR))
    # Its lines have whole URLs, which may have a key, and one comes for each odd head that a server
    # sends. Whoever asks logs what failed.
    logging.getLogger("urllib3").setLevel(max(number, logging.ERROR))


def _start_audit_file(level: str, path: str | None, standard_error: logging.Handler) -> None:
    """Send the audit log to its own file; without one it goes where all lines go."""
    audit_logger.propagate = path is None
    audit_logger.setLevel(logging.NOTSET)
    for earlier in audit_logger.handlers[:]:
        audit_logger.removeHandler(earlier)
        with contextlib.suppress(OSError):  # of a full disk
            earlier.close()
    if path is not None:
        handler = _opened("--audit-log", path, standard_error, is_only_place=True)
        handler.setFormatter(logging.Formatter("%(message)s"))
        audit_logger.addHandler(handler)
        audit_logger.setLevel(logging.DEBUG if level == "debug" else logging.INFO)


def _opened(
    option: str, path: str, standard_error: logging.Handler, *, is_only_place: bool = False
) -> _LogFile:
    try:
        return _LogFile(path, standard_error, is_only_place=is_only_place)
    except OSError as error:
        raise InputError(f"{option} {path} cannot be written to: {error.strerror}") from error


class _LogFile(WatchedFileHandler):
    """A log file that may be moved away or removed; the next line begins a new one.

    If writing fails, as on a full disk, the broker continues. The standard error has all lines, and
    one about the failure.
    """

    def __init__(
        self, path: str, standard_error: logging.Handler, *, is_only_place: bool = False
    ) -> None:
        """``is_only_place``: a line that cannot be written goes to the standard error instead."""
        super().__init__(path, encoding="utf-8", errors="backslashreplace")
        self._standard_error = standard_error
        self._is_only_place = is_only_place
        self._fails = False
        self._failed_last = False

    def emit(self, record: logging.LogRecord) -> None:
        self._fails = False
        try:
            super().emit(record)
        except OSError:
            # The parent does not catch errors of opening the file again.
            self.handleError(record)
        if self._fails and self._is_only_place:
            self._standard_error.handle(record)
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
