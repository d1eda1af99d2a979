"""The limits on connections that apply before their protocol exists, of each port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from headgate.app.http_connections import HttpConnections
from headgate.broker.connection.connection_limits import ConnectionLimits
from headgate.broker.connection_admission import ConnectionAdmission
from headgate.broker.held_memory import TLS_UNITS


class ConnectionGate(Protocol):
    """Limits on the connections of a port. Addresses are ``/host:port``."""

    def admit(self, transport: asyncio.BaseTransport, /) -> bool:
        """Whether there are file descriptors for a new connection."""

    def refusal(self, address: str, /) -> str:
        """Why a new connection must end; empty if it may stay."""

    def added(self, address: str, /) -> None:
        """A connection was accepted."""

    def left(self, address: str, /) -> None:
        """It has ended, or its protocol counts it from now on."""


class BinaryGate:
    """That of the binary protocol: a new connection counts like one without a CONNECT."""

    def __init__(
        self,
        admission: ConnectionAdmission,
        limits: ConnectionLimits,
        memory_units: int = TLS_UNITS,
    ) -> None:
        """``memory_units`` as in :meth:`ConnectionLimits.added`."""
        self.admit: Callable[[asyncio.BaseTransport], bool] = admission.admit
        self.refusal = limits.refusal
        self._limits = limits
        self._memory_units = memory_units

    def added(self, address: str) -> None:
        """A connection was accepted."""
        self._limits.added(address, self._memory_units)

    def left(self, address: str) -> None:
        """It has ended, or its connection counts it from now on."""
        self._limits.removed(address, self._memory_units, is_authenticated=False)


class WebGate:
    """That of the web port."""

    def __init__(
        self, admit: Callable[[asyncio.BaseTransport], bool], connections: HttpConnections
    ) -> None:
        self.admit = admit
        self.refusal = connections.refusal
        self.added = connections.added
        self.left = connections.left
