"""What connections that have ended still take, and who waits for it.

Their commands are cancelled, and their producers and consumers freed, in slices. A client that
connects, sends and leaves again and again would be faster than that, and there is nobody left whom
a bound could slow or close. So while that is too much, connections of the same client begin no more
commands that wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from headgate.base.owner_shares import OwnerShares

LEFT_PART: Final = 16
"""Ended connections may take this part of what clients may hold, before those that have the most of
it wait."""

RESUMED_AT_ONCE: Final = 2
"""Connections that go on when one thing of those that have ended is freed."""


class WaitsForRoom(Protocol):
    """A connection."""

    def resume_soon(self) -> None:
        """Go on with the commands that arrived."""


class LeftMemory:
    """The bytes that ended connections take, by their roles."""

    def __init__(self, client_bytes_max: Callable[[], int]) -> None:
        """``client_bytes_max`` gives what clients may hold now."""
        self._client_bytes_max = client_bytes_max
        self._shares = OwnerShares()
        self._waiting: dict[str, dict[WaitsForRoom, None]] = {}
        """Connections that go on when there is room, by owner."""

    @property
    def total(self) -> int:
        """Bytes of all."""
        return self._shares.total

    def leave(self, owner: str, size_bytes: int) -> None:
        """Ended connections of an owner take so much more, or less if it is negative."""
        self._shares.count(owner, size_bytes)
        if size_bytes < 0 and owner in self._waiting:
            self._resume(owner)

    def makes_wait(self, owner: str, connection: WaitsForRoom) -> bool:
        """Whether a connection must not begin more that waits. Then it is resumed when there is
        room."""
        if not self._is_crowded(owner):
            return False
        self._waiting.setdefault(owner, {})[connection] = None
        return True

    def forget(self, owner: str, connection: WaitsForRoom) -> None:
        """A connection has ended."""
        waiting = self._waiting.get(owner, {})
        waiting.pop(connection, None)
        if not waiting:
            self._waiting.pop(owner, None)

    def _is_crowded(self, owner: str) -> bool:
        shares = self._shares
        bytes_max = self._client_bytes_max() // LEFT_PART
        return shares.total > bytes_max and shares.makes_room(owner)

    def _resume(self, owner: str) -> None:
        """Let a few go on; all of them when there is nothing more whose end would."""
        waiting = self._waiting[owner]
        left = RESUMED_AT_ONCE if self._shares.of(owner) else len(waiting)
        while waiting and left and not self._is_crowded(owner):
            connection = next(iter(waiting))
            del waiting[connection]
            connection.resume_soon()
            left -= 1
        if not waiting:
            del self._waiting[owner]
