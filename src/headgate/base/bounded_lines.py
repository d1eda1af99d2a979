"""Log lines about clients, bounded over time.

Each client can cause a few lines, and a client may connect a thousand times a second.
:class:`BoundedLines` is for clients that have not authenticated, :class:`RoleLines` for all others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final, Protocol

from headgate.base.units import NS_PER_MINUTE

LINES_PER_MINUTE: Final = 20
"""Of each kind, so that one kind hides no other."""

ROLE_LINES_PER_MINUTE: Final = 60
ALL_ROLES_LINES_PER_MINUTE: Final = 600


class Logger(Protocol):
    """What lines are written to, as :class:`logging.Logger`."""

    def info(self, text: str, /, *values: object) -> None:
        """Write a line of the level INFO."""

    def error(self, text: str, /, *values: object) -> None:
        """Write a line of the level ERROR."""


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

    def __init__(self, logger: Logger, now_ns: Callable[[], int]) -> None:
        self._logger = logger
        self._now_ns = now_ns
        self._kinds: defaultdict[str, _Kind] = defaultdict(_Kind)

    def info(self, text: str, *values: object) -> None:
        """Log a line if there is room for one in this minute. ``text``, a constant with places for
        ``values``, is the kind."""
        self._write(self._logger.info, text, values)

    def error(self, text: str, *values: object) -> None:
        """As :meth:`info`, for an error."""
        self._write(self._logger.error, text, values)

    def _write(self, write: Callable[..., None], text: str, values: tuple[object, ...]) -> None:
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
        write(text, *values)


class RoleLines:
    """Logs at most :data:`ROLE_LINES_PER_MINUTE` lines about clients of one role, and
    :data:`ALL_ROLES_LINES_PER_MINUTE` about all, and how many it left out.

    So no role fills the log, and few roles do not hide what the log has about others.
    """

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._minute = -1
        self._lines: Counter[str] = Counter()
        """In that minute, by role."""
        self._count = 0
        """In that minute, of all roles."""
        self._left_out = 0
        """Since the last line of any role."""

    def log(self, write: Callable[[str, str], None], role: str, text: str) -> None:
        """Log a line by ``write("%s", line)`` if there is room for one in this minute. ``role`` is
        whom the line counts for: the client's role, or its network if the broker asks for no
        credentials."""
        minute = self._now_ns() // NS_PER_MINUTE
        if minute != self._minute:
            self._minute, self._count = minute, 0
            self._lines.clear()
        is_full = self._count >= ALL_ROLES_LINES_PER_MINUTE
        if is_full or self._lines[role] >= ROLE_LINES_PER_MINUTE:
            self._left_out += 1
            return
        self._lines[role] += 1
        self._count += 1
        if self._left_out:
            text = f"{text} ({self._left_out} lines about clients were left out before)"
            self._left_out = 0
        write("%s", text)
