"""The ports of a broker: their listening sockets, and what serves each."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from starlette.types import ASGIApp

from headgate.app.entry_turns import ACCEPTED_PER_TURN, Entrance, EntryTurns
from headgate.app.http_connections import HttpConnections
from headgate.app.http_refusal import refusal_answer
from headgate.app.http_turns import HttpTurns
from headgate.app.listeners import (
    BACKLOG_CONNECTIONS_MAX,
    advertised_host,
    listen,
    port_of,
)
from headgate.app.plain_entry import BEGUN_PER_TURN, PlainPort
from headgate.app.tls.current import CurrentTls
from headgate.app.tls.entry import HandshakePace, TlsPort
from headgate.app.tls.gates import BinaryGate, WebGate
from headgate.app.web import WebServer
from headgate.base.web_hosts import is_loopback
from headgate.broker.connection.connection import Connection
from headgate.broker.connection.refusals import unrequested_error
from headgate.broker.server import connection_factory, serve_binary
from headgate.broker.service import Broker
from headgate.policy.settings import Settings

_SCHEMES: Final = {
    "brokerServicePort": "pulsar",
    "webServicePort": "http",
    "brokerServicePortTls": "pulsar+ssl",
    "webServicePortTls": "https",
}
"""The URL's scheme of each port, by its setting."""


@dataclass(frozen=True, slots=True)
class Urls:
    """Where a running broker is reached. A port that is off has an empty URL."""

    broker: str
    """``pulsar://host:port``."""
    web: str
    """``http://host:port``."""
    broker_tls: str = ""
    """``pulsar+ssl://host:port``."""
    web_tls: str = ""
    """``https://host:port``."""

    def all(self) -> list[str]:
        """Those that are open."""
        return [url for url in (self.broker, self.web, self.broker_tls, self.web_tls) if url]


def plain_ports_warning(settings: Settings) -> str:
    """A warning if clients may send credentials without TLS from other machines; empty if not."""
    if not settings.authenticationEnabled or is_loopback(settings.bindAddress):
        return ""
    open_ports = [
        key for key in ("brokerServicePort", "webServicePort") if getattr(settings, key) >= 0
    ]
    if not open_ports:
        return ""
    return (
        f"bindAddress={settings.bindAddress}: clients may send credentials without TLS to "
        f"{' and '.join(open_ports)}, where the network can read them: set -1 and use the ports "
        "of TLS"
    )


class Ports:
    """The listening sockets, by their settings."""

    def __init__(self, host: str, listeners: dict[str, socket.socket]) -> None:
        """For :meth:`open`."""
        self._host = host
        self._listeners = listeners
        self._turns: EntryTurns | None = None

    @classmethod
    def open(cls, settings: Settings, stack: AsyncExitStack) -> Ports:
        """Listen on every port that is on; ``stack`` closes the sockets.

        Raises:
            ListenError: one cannot be listened on.
        """
        listeners = {}
        for key in _SCHEMES:
            number = getattr(settings, key)
            if number >= 0:
                listeners[key] = listen(settings.bindAddress, number, key=key)
                stack.callback(listeners[key].close)
        return cls(advertised_host(settings), listeners)

    @property
    def urls(self) -> Urls:
        """The URLs of the open ports."""
        found = {
            key: f"{_SCHEMES[key]}://{self._host}:{port_of(listener)}"
            for key, listener in self._listeners.items()
        }
        return Urls(*(found.get(key, "") for key in _SCHEMES))

    @property
    def broker_id(self) -> str:
        """``host:web port``; that of TLS if it is the only one, as in Pulsar."""
        listener = self._listeners.get("webServicePort") or self._listeners["webServicePortTls"]
        return f"{self._host}:{port_of(listener)}"

    def _plain_turns(self, loop: asyncio.AbstractEventLoop) -> EntryTurns:
        """Those of the ports without TLS, which share them."""
        self._turns = self._turns or EntryTurns(loop, BEGUN_PER_TURN)
        return self._turns

    async def serve_binary(
        self,
        broker: Broker,
        tls: CurrentTls | None,
        pace: HandshakePace,
        connection_class: type[Connection],
        stack: AsyncExitStack,
    ) -> None:
        """Serve the binary protocol on its ports; ``stack`` ends that."""
        make = connection_factory(broker, connection_class)
        admission, limits = broker.connection_admission, broker.connection_limits
        plain = self._listeners.get("brokerServicePort")
        if plain is not None:
            # While a connection waits for its turn it takes far less than one that has begun.
            gate = BinaryGate(admission, limits, memory_units=0)
            entrance: Entrance = PlainPort(
                broker.loop, gate, self._plain_turns(broker.loop), unrequested_error
            )
            await _serve_binary(broker, plain, entrance, make, stack)
        listener = self._listeners.get("brokerServicePortTls")
        if listener is not None and tls is not None:
            gate = BinaryGate(admission, limits)
            entrance = TlsPort(broker.loop, tls.binary, gate, pace, broker.tls, limits.lines)
            await _serve_binary(broker, listener, entrance, make, stack)

    async def serve_web(
        self,
        app: ASGIApp,
        broker: Broker,
        tls: CurrentTls | None,
        pace: HandshakePace,
        stack: AsyncExitStack,
    ) -> None:
        """Serve ``app`` on the web ports; ``stack`` ends that."""
        admit: Callable[[asyncio.BaseTransport], bool] = partial(
            broker.connection_admission.admit, web=True
        )
        connections = HttpConnections(
            broker.settings, lambda: broker.engine.now_ns, broker.audit.note_refused_request
        )
        start = partial(
            WebServer.start,
            app,
            admit=admit,
            memory=broker.http_memory,
            connections=connections,
            turns=HttpTurns(broker.loop, time.perf_counter),
            accepted_per_turn=broker.connection_admission.accepted_per_turn(ACCEPTED_PER_TURN),
        )
        gate = WebGate(admit, connections)
        plain = self._listeners.get("webServicePort")
        if plain is not None:
            turns = self._plain_turns(broker.loop)
            entrance = PlainPort(broker.loop, gate, turns, partial(refusal_answer, 503))
            stack.push_async_callback((await start(listener=plain, entrance=entrance)).close)
        listener = self._listeners.get("webServicePortTls")
        if listener is not None and tls is not None:
            lines = broker.connection_limits.lines
            port = TlsPort(broker.loop, tls.web, gate, pace, broker.tls, lines)
            stack.push_async_callback((await start(listener=listener, entrance=port)).close)


async def _serve_binary(
    broker: Broker,
    listener: socket.socket,
    entrance: Entrance,
    make: Callable[[], asyncio.BaseProtocol],
    stack: AsyncExitStack,
) -> None:
    make = partial(entrance.entry, make)
    accepted = broker.connection_admission.accepted_per_turn(ACCEPTED_PER_TURN)
    server = await serve_binary(broker, listener, BACKLOG_CONNECTIONS_MAX, make, accepted)
    stack.push_async_callback(server.close)
    stack.callback(entrance.close)
