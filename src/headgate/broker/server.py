"""The listener of the binary protocol."""

from __future__ import annotations

import asyncio
from functools import partial

from headgate.broker.connection import Connection
from headgate.broker.handlers import HANDLERS
from headgate.broker.service import Broker

BACKLOG_CONNECTIONS_MAX = 1_024
"""Connections that may wait to be accepted."""


def connection_factory(broker: Broker) -> partial[Connection]:
    """What makes a connection for each client, on a socket or in memory."""
    return partial(Connection, broker, HANDLERS)


class BinaryServer:
    """An open port of the binary protocol."""

    def __init__(self, broker: Broker, server: asyncio.Server) -> None:
        self._broker = broker
        self._server = server
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Accept nobody any more and end every connection."""
        self._server.close()
        for connection in list(self._broker.connections):
            connection.close()
        await asyncio.sleep(0)


async def serve_binary(broker: Broker, host: str, port: int) -> BinaryServer:
    """Listen for clients; port 0 picks a free one.

    Raises:
        OSError: the port is busy or the address is not this machine's.
    """
    server = await broker.loop.create_server(
        connection_factory(broker), host, port, backlog=BACKLOG_CONNECTIONS_MAX
    )
    return BinaryServer(broker, server)
