"""The agent's port: TLS by a broker's settings, and bounds on its connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from typing import Final

from starlette.types import ASGIApp

from headgate.agent.configuration import PortSettings
from headgate.agent.metrics import PortCertificate
from headgate.app.http_connections import HttpConnections
from headgate.app.tls.current import CurrentTls
from headgate.app.tls.entry import HandshakePace, TlsPort
from headgate.app.tls.gates import WebGate
from headgate.app.tls.refresh import TlsRefresh
from headgate.app.web import WebServer
from headgate.base.clock import Clock
from headgate.base.units import MIB, NS_PER_S
from headgate.broker.http_memory import HttpMemory
from headgate.broker.tls_status import TlsStatus
from headgate.policy.setting_info import NO_PORT
from headgate.policy.settings import Settings
from headgate.storage.lanes import ThreadLane

CONNECTIONS_MAX: Final = 256
"""Clients at the same time: the agent needs its file descriptors for the clusters."""

MEMORY_BYTES_MAX: Final = 32 * MIB
"""What all requests at the port may make the agent hold; answers about all clusters have a few
hundred kilobytes."""


class AgentPort:
    """Serves an application where the agent's settings say."""

    def __init__(self, settings: Settings, tls: CurrentTls | None, clock: Clock) -> None:
        """For :meth:`open`."""
        self._settings = settings
        self._tls = tls
        self._clock = clock
        self._status = TlsStatus()

    @classmethod
    def open(cls, port: PortSettings, clock: Clock) -> AgentPort:
        """Load the certificates. Blocks.

        Raises:
            InputError: a setting or a file cannot be used.
        """
        settings = Settings(
            brokerServicePort=NO_PORT,
            webServicePort=NO_PORT,
            webServicePortTls=port.port if port.tls else NO_PORT,
            maxHttpServerConnections=CONNECTIONS_MAX,
        )
        for key, text in port.tls.items():
            settings.set(key, text)
        return cls(settings, CurrentTls.open(settings), clock)

    @property
    def scheme(self) -> str:
        """Of the URLs at the port."""
        return "http" if self._tls is None else "https"

    def certificate(self) -> PortCertificate | None:
        """What there is to say about the certificate in force; None without TLS."""
        status = self._status
        if status.expires_at_s is None:
            return None
        return PortCertificate(status.expires_at_s, status.reload_failures, status.problem)

    async def serve(self, app: ASGIApp, listener: socket.socket, stack: AsyncExitStack) -> None:
        """Serve ``app`` from now on; ``stack`` ends that, and closes ``listener``."""
        connections = HttpConnections(self._settings, self._clock.monotonic_ns, bound="the agent")
        tls = None if self._tls is None else self._tls_port(self._tls, connections, stack)
        memory = HttpMemory(
            lambda: MEMORY_BYTES_MAX,
            lambda: CONNECTIONS_MAX,
            bytes_key="the agent's bound",
            requests_key="the agent's bound",
        )
        server = await WebServer.start(
            app, listener, memory=memory, connections=connections, entrance=tls
        )
        stack.push_async_callback(server.close)

    def _tls_port(
        self, current: CurrentTls, connections: HttpConnections, stack: AsyncExitStack
    ) -> TlsPort:
        loop = asyncio.get_running_loop()
        refresh = TlsRefresh(
            current,
            self._status,
            ThreadLane(loop, "headgate-tls"),
            self._settings.tlsCertRefreshCheckDurationSec,
            lambda: self._clock.wall_ns() / NS_PER_S,
        )
        refresh.start()
        stack.callback(refresh.stop)
        gate = WebGate(lambda _: True, connections)
        pace = HandshakePace(loop)
        stack.callback(pace.records.steps.close)
        return TlsPort(loop, current.web, gate, pace, self._status, connections.lines)
