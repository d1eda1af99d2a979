"""The limits on connections that apply before a handshake, of each port."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.app.http_connections import HttpConnections
from headgate.broker.connection.connection_limits import ConnectionLimits
from headgate.broker.connection_admission import ConnectionAdmission
from headgate.broker.held_memory import TLS_UNITS


class BinaryGate:
    """That of the binary protocol: a half-open connection counts like one without a CONNECT."""

    def __init__(self, admission: ConnectionAdmission, limits: ConnectionLimits) -> None:
        self.admit: Callable[[asyncio.BaseTransport], bool] = admission.admit
        self.refusal = limits.refusal
        self._limits = limits

    def added(self, address: str) -> None:
        """A connection begins its handshake."""
        self._limits.added(address, TLS_UNITS)

    def left(self, address: str) -> None:
        """It has ended, or its connection counts it from now on."""
        self._limits.removed(address, TLS_UNITS, is_authenticated=False)


class WebGate:
    """That of the web port."""

    def __init__(
        self, admit: Callable[[asyncio.BaseTransport], bool], connections: HttpConnections
    ) -> None:
        self.admit = admit
        self.refusal = connections.refusal
        self.added = connections.added
        self.left = connections.left
