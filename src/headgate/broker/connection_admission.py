"""Refuses connections that would take the file descriptors that the broker needs for itself.

The kernel hands out the lowest free descriptor. The number of a connection's descriptor therefore
shows how many are in use, and the check is one comparison. Clients have a lower bound than the web
port, so an operator can connect when clients have taken all of theirs.
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
"""The broker reserves a fourth of the descriptors, at most :data:`RESERVE_MAX`."""

ACCEPTED_PART: Final = 16
"""A port accepts this part of the reserve in an iteration of the loop at most: what is refused has
its descriptor until the next one."""


class ConnectionAdmission:
    """The admission of connections to one broker, by free file descriptors."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._limit: int | None = None
        self._clients_end = self._web_end = 0
        self.refused_count = 0
        """Connections refused since the start."""
        self._refused_ns: int | None = None
        """When the last connection was refused; None once the broker has logged that refusals
        are over."""
        self._refused_before = 0

    def set_limit(self, descriptors_max: int | None) -> None:
        """Set how many descriptors the process may have; None for no limit."""
        self._limit = descriptors_max
        if descriptors_max is not None:
            reserve = min(RESERVE_MAX, descriptors_max // RESERVE_PART)
            self._clients_end = descriptors_max - reserve
            self._web_end = descriptors_max - reserve // 2

    def accepted_per_turn(self, most: int) -> int:
        """How many connections a port accepts in an iteration of the loop, ``most`` at most."""
        if self._limit is None:
            return most
        return max(1, min(most, (self._limit - self._clients_end) // ACCEPTED_PART))

    @property
    def clients_max(self) -> int | None:
        """The descriptors that clients may have; None without a limit."""
        return None if self._limit is None else self._clients_end

    @property
    def sentence(self) -> str:
        """A sentence which says that the broker refuses connections; empty if it refuses none."""
        if self._refused_ns is None:
            return ""
        return (
            f"connections are refused: all but {(self._limit or 0) - self._clients_end:,} of "
            f"{self._limit:,} file descriptors (ulimit -n) are in use, and the broker needs those"
        )

    def admit(self, transport: asyncio.BaseTransport, *, web: bool = False) -> bool:
        """Admit a new connection, or count and log the refusal; ``web`` for the web port."""
        if self._limit is None:
            return True
        socket = transport.get_extra_info("socket")
        number = -1 if socket is None else socket.fileno()
        if number < (self._web_end if web else self._clients_end):
            return True
        self.refused_count += 1
        is_first, self._refused_ns = self._refused_ns is None, self._engine.now_ns
        if is_first:
            self._refused_before = self.refused_count - 1
            logger.error("%s", self.sentence)
        return False

    def log_if_due(self) -> None:
        """Log when refusals have ended. Call about once a second."""
        if self._refused_ns is not None and self._engine.now_ns - self._refused_ns >= QUIET_NS:
            self._refused_ns = None
            logger.warning(
                "connections are accepted again: %d were refused, none of them in the last %d s",
                self.refused_count - self._refused_before,
                QUIET_NS // NS_PER_S,
            )
