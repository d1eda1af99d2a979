"""Who may connect: nobody takes the file descriptors that the broker needs for itself.

The kernel gives out the lowest free number. So the number of a connection's own descriptor tells
how many are in use, whoever has them, and one look at it is the whole bound. Clients' connections
end at a lower number than those of the web port: an operator gets in when clients fill the rest.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from headgate.base.units import NS_PER_S
from headgate.engine.engine import Engine
from headgate.storage.repeated_failures import QUIET_NS

logger = logging.getLogger("headgate.connection")

RESERVE_MAX: Final = 256
RESERVE_PART: Final = 4
"""The broker keeps :data:`RESERVE_MAX` of the descriptors, or this part of few."""


class ConnectionAdmission:
    """The bound on connections of one broker."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._limit: int | None = None
        self._clients_end = self._web_end = 0
        self.refused_count = 0
        """Connections that were refused since the start."""
        self._refused_ns: int | None = None
        """When the last one was, while that was told and its end was not."""
        self._told_count = 0

    def set_limit(self, descriptors_max: int | None) -> None:
        """The process may have so many; None for no limit."""
        self._limit = descriptors_max
        if descriptors_max is not None:
            reserve = min(RESERVE_MAX, descriptors_max // RESERVE_PART)
            self._clients_end = descriptors_max - reserve
            self._web_end = descriptors_max - reserve // 2

    @property
    def sentence(self) -> str:
        """What is to be said of it now; empty while nobody is refused."""
        if self._refused_ns is None:
            return ""
        return (
            f"connections are refused: all but {(self._limit or 0) - self._clients_end:,} of "
            f"{self._limit:,} file descriptors (ulimit -n) are in use, and these are the broker's "
            "own"
        )

    def refuses(self, transport: asyncio.BaseTransport, *, web: bool = False) -> bool:
        """Whether a new connection has to end at once, because it is one too many."""
        if self._limit is None:
            return False
        socket = transport.get_extra_info("socket")
        number = -1 if socket is None else socket.fileno()
        if number < (self._web_end if web else self._clients_end):
            return False
        self.refused_count += 1
        is_first, self._refused_ns = self._refused_ns is None, self._engine.now_ns
        if is_first:
            self._told_count = self.refused_count - 1
            logger.error("%s", self.sentence)
        return True

    def watch(self) -> None:
        """Call about once a second."""
        if self._refused_ns is not None and self._engine.now_ns - self._refused_ns >= QUIET_NS:
            self._refused_ns = None
            logger.warning(
                "connections are accepted again, after %d that were refused; none was for %d s",
                self.refused_count - self._told_count,
                QUIET_NS // NS_PER_S,
            )
