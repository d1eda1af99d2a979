"""Whether the log takes entries: open, full or failed, as one state table.

========  ==============  ==============  =======
state     disk full       room found      failure
========  ==============  ==============  =======
open      full            open            failed
full      full            open            failed
failed    failed          failed          failed
========  ==============  ==============  =======

A full log takes no entries, while acknowledgements, cursors and trims go on as far as prepared
segments last. A failed log stores nothing until a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from headgate.ledger.errors import LogFailedError, LogFullError


class Condition(Enum):
    """The state of a log."""

    OPEN = auto()
    FULL = auto()
    FAILED = auto()


class _Event(Enum):
    DISK_FULL = auto()
    ROOM_FOUND = auto()
    FAILURE = auto()


_NEXT: Final = {
    (Condition.OPEN, _Event.DISK_FULL): Condition.FULL,
    (Condition.OPEN, _Event.FAILURE): Condition.FAILED,
    (Condition.FULL, _Event.ROOM_FOUND): Condition.OPEN,
    (Condition.FULL, _Event.FAILURE): Condition.FAILED,
}
"""The transitions; any other event changes nothing."""


class LogHealth:
    """The state of one log and the only code that changes it."""

    def __init__(self) -> None:
        self.condition = Condition.OPEN
        self.failure: LogFailedError | None = None
        """Why nothing is stored until a restart; None unless the log failed."""
        self._changed: Callable[[], None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the log takes entries."""
        return self.condition is Condition.OPEN

    @property
    def is_full(self) -> bool:
        """Whether the log takes no entries until there is room on the disk."""
        return self.condition is Condition.FULL

    def on_change(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` after every transition."""
        self._changed = changed

    def disk_full(self) -> None:
        """Take no entries: the disk has no room, or the room is left to another log."""
        self._handle(_Event.DISK_FULL)

    def room_found(self) -> None:
        """Take entries again, unless the log failed."""
        self._handle(_Event.ROOM_FOUND)

    def fail(self, error: Exception) -> None:
        """Store nothing until a restart."""
        if self.failure is None:
            self.failure = (
                error if isinstance(error, LogFailedError) else LogFailedError(str(error))
            )
        self._handle(_Event.FAILURE)

    def check_open(self) -> None:
        """Return if the log takes entries. Raises :class:`LogFailedError` and
        :class:`LogFullError`."""
        if self.failure is not None:
            raise self.failure
        if self.is_full:
            raise LogFullError("the disk is full: published messages wait until there is room")

    def _handle(self, event: _Event) -> None:
        following = _NEXT.get((self.condition, event))
        if following is not None:
            self.condition = following
            if self._changed is not None:
                self._changed()
