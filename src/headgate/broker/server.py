"""The listener of the binary protocol."""

from __future__ import annotations

import asyncio
import socket
from functools import partial

from headgate.broker.commands.table import HANDLERS
from headgate.broker.connection import Connection
from headgate.broker.service import Broker


def connection_factory(broker: Broker) -> partial[Connection]:
    """What makes a connection for each client, on a socket or in memory."""
    return partial(Connection, broker, HANDLERS)


class BinaryServer:
    """An open port of the binary protocol."""

    def __init__(self, broker: Broker, server: asyncio.Server) -> None:
        self._broker = broker
        self._server = server

    async def close(self) -> None:
        """Accept nobody any more and end every connection."""
        self._server.close()
        for connection in list(self._broker.connections):
            connection.close()
        await asyncio.sleep(0)


async def serve_binary(broker: Broker, listener: socket.socket) -> BinaryServer:
    """Serve clients on a listening socket, which is closed with the server."""
    make = connection_factory(broker)
    return BinaryServer(broker, await broker.loop.create_server(make, sock=listener))
