"""A loop accepts several connections in an iteration."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import pytest
import uvloop

from headgate.base.units import KIB
from headgate.broker.connection.listener_handles import KERNEL_UNSENT_BYTES, handles_of

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


def test_the_kernel_takes_little_for_who_does_not_read() -> None:
    """At the web ports it took whole answers, with which nobody was charged then."""
    listener = socket.create_server(("127.0.0.1", 0))
    handles = handles_of(listener, 2)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(listener.getsockname())
        accepted, _ = handles[1].accept()
        with accepted:
            accepted.setblocking(False)
            taken_bytes = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    taken_bytes += accepted.send(bytes(16 * KIB))
    for each in handles:
        each.close()
    assert taken_bytes < 3 * KERNEL_UNSENT_BYTES
