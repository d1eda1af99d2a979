"""Bounds the connections to the web ports, in all and from one address."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headgate.app.web_guard import NoteRefusal
from headgate.base.bounded_lines import BoundedLines
from headgate.broker.connection.address_counts import AddressCounts, CountBounds
from headgate.broker.http_memory import ADDRESS_PART
from headgate.policy.settings import Settings

logger = logging.getLogger("headgate.web")


class HttpConnections:
    """The open connections to all web ports of a broker."""

    def __init__(
        self,
        settings: Settings,
        now_ns: Callable[[], int],
        note: NoteRefusal = lambda _, __, ___, ____: None,
        *,
        bound: str = "maxHttpServerConnections",
    ) -> None:
        """``note`` receives each request that is refused before it is whole. ``bound`` is what
        allows so many connections, as refusals name it."""
        self._bound = bound
        self._settings = settings
        self.note_refusal = note
        self._counts = AddressCounts(by_network=True, leaves_room=True)
        self.lines = BoundedLines(logger, now_ns)
        """Log lines about clients that have sent no valid request."""
        self.refused_count = 0
        """Connections refused since the start."""

    def refusal(self, address: str) -> str:
        """Why a new connection from ``address`` must end; empty if it may stay."""
        total = self._settings.maxHttpServerConnections
        bounds = CountBounds(total, max(1, total // ADDRESS_PART))
        exceeded = self._counts.exceeded(address, bounds)
        if not exceeded:
            return ""
        self.refused_count += 1
        self.lines.info(
            "a connection from %s to the web port is refused: %s allows %s",
            address,
            self._bound,
            exceeded,
        )
        return f"Too many connections: {self._bound} allows {exceeded}"

    def added(self, address: str) -> None:
        """A connection was accepted."""
        self._counts.add(address)

    def left(self, address: str) -> None:
        """One has ended."""
        self._counts.remove(address)
