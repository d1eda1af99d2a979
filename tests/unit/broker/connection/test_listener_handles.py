"""A loop accepts several connections in an iteration."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from headgate.broker.connection.listener_handles import handles_of

HANDLES = 4


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_each_handle_accepts_in_an_iteration(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """uvloop accepted one alone: who came behind a thousand others waited for 3 s."""
    accepted = list[int]()
    turn = 0

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            accepted.append(turn)
            transport.close()

    async def story() -> None:
        nonlocal turn
        loop = asyncio.get_running_loop()
        listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        address = listener.getsockname()
        servers = [
            await loop.create_server(Protocol, sock=each) for each in handles_of(listener, HANDLES)
        ]
        clients = [socket.create_connection(address) for _ in range(10 * HANDLES)]
        while len(accepted) < len(clients):
            turn += 1
            await asyncio.sleep(0)
        for each in (*servers, *clients):
            each.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(story())
    assert max(map(accepted.count, accepted)) >= HANDLES
