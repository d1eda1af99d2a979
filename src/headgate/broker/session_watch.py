"""The sessions of connections whose credentials lapse, and when each must be looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

SESSIONS_PER_UNIT: Final = 32
"""Sessions that add 1 unit to a walk over all of them, if nothing is to be done about them."""


class WatchedSession(Protocol):
    """A session of a connection."""

    due_s: float
    """When it must be looked at, in seconds since the epoch."""

    def look(self, now_s: float) -> int:
        """Ask the client for new credentials, or end its connection; returns the work units. It
        sets :attr:`due_s` again."""


class SessionWatch:
    """The sessions of one broker that end some day. A session adds and removes itself."""

    def __init__(self) -> None:
        self._all: dict[WatchedSession, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, session: WatchedSession) -> None:
        """Look at a session when it is due."""
        self._all[session] = None

    def discard(self, session: WatchedSession) -> None:
        """Look at a session no more."""
        self._all.pop(session, None)

    def steps(self, now_s: float) -> Iterator[int]:
        """Look at every session that is due, in steps that yield their work units. Ten thousand
        may be due at once, as when all clients got their tokens together."""
        passed = 0
        for session in list(self._all):
            if session.due_s <= now_s and session in self._all:
                yield session.look(now_s)
                continue
            passed += 1
            if passed == SESSIONS_PER_UNIT:
                passed = 0
                yield 1
