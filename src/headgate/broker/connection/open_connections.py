"""The open connections of one broker, and those of them that the broker does not read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.connection_limits import ConnectionLimits
from headgate.broker.connection.left_acknowledgements import LeftAcknowledgements
from headgate.broker.connection_admission import ConnectionAdmission
from headgate.broker.held_memory import CONNECTION_BYTES
from headgate.broker.info import BrokerCounts

if TYPE_CHECKING:
    from headgate.broker.connection.connection import Connection


RESUMED_MAX: Final = 256
"""Paused connections that are looked at in one turn."""


class OpenConnections(Collection["Connection"]):
    """The open connections of one broker. A connection adds and removes itself."""

    def __init__(
        self,
        admission: ConnectionAdmission,
        limits: ConnectionLimits,
        memory: ClientMemory,
        counts: BrokerCounts,
        call_soon: Callable[[Callable[[], None]], object],
    ) -> None:
        """``call_soon`` calls a function in the next iteration of the loop."""
        self._admission = admission
        self._limits = limits
        self.memory = memory
        self.counts = counts
        self.lines = limits.lines
        """Log lines about clients that have not authenticated."""
        self.role_lines = limits.role_lines
        """Log lines about all others."""
        self._all: set[Connection] = set()
        self._unauthenticated: set[Connection] = set()
        self._call_soon = call_soon
        self.paused: dict[Connection, None] = {}
        """Connections whose commands wait, and whose sockets the broker does not read meanwhile,
        the one that was looked at last at the end."""
        self._unseen_count = 0
        """Paused connections that :meth:`resume_reading` has yet to look at."""
        self._is_resuming = False
        self.left_acknowledgements = LeftAcknowledgements()
        self.closing: set[Connection] = set()
        """Connections that have ended, but whose peers have not read the last frames."""

    def __contains__(self, connection: object) -> bool:
        return connection in self._all

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def admit(self, transport: asyncio.BaseTransport) -> bool:
        """Admit a new connection, or count it as refused (False) if file descriptors run out."""
        return self._admission.admit(transport)

    def refusal(self, address: str) -> str:
        """The answer to a new connection that must end because there are too many; empty if it may
        stay."""
        return self._limits.refusal(address)

    def add(self, connection: Connection) -> None:
        """A connection was accepted."""
        self._all.add(connection)
        self._unauthenticated.add(connection)
        self.memory.charge(CONNECTION_BYTES * connection.memory_units)
        self._limits.added(connection.address, connection.memory_units)
        self.counts.connections_accepted += 1

    def authenticated(self, connection: Connection) -> None:
        """The CONNECT of a connection has succeeded. A second call does nothing."""
        if connection in self._unauthenticated:
            self._unauthenticated.remove(connection)
            self._limits.authenticated(connection.address, connection.memory_units)
            self.counts.connections_established += 1

    def discard(self, connection: Connection) -> None:
        """A connection has ended."""
        self._all.discard(connection)
        is_authenticated = connection not in self._unauthenticated
        self._unauthenticated.discard(connection)
        self._limits.removed(
            connection.address, connection.memory_units, is_authenticated=is_authenticated
        )
        self.paused.pop(connection, None)
        self.counts.connections_closed += 1
        if not is_authenticated:
            self.counts.connections_failed += 1

    def resume_reading(self) -> None:
        """Resume every paused connection that has room again: :data:`RESUMED_MAX` now, and as many
        in each later iteration of the loop."""
        self._unseen_count = len(self.paused)
        if self._unseen_count and not self._is_resuming:
            self._resume_some()

    def _resume_some(self) -> None:
        seen = list(islice(self.paused, min(self._unseen_count, RESUMED_MAX)))
        self._unseen_count -= len(seen)
        for connection in seen:
            del self.paused[connection]
            self.paused[connection] = None
        self._is_resuming = bool(seen) and self._unseen_count > 0
        if self._is_resuming:
            self._call_soon(self._resume_some)
        for connection in seen:
            connection.resume_reading()
