"""A process that leaves a server no idle moment and needs little CPU itself: it sends PINGs."""

from __future__ import annotations

import sys

from bench.client import RECEIVE_BYTES, Client
from headgate.wire import client, encode

BLOCK_PINGS = 250
WINDOW_PINGS = 2_000


def main() -> None:
    """Argument: the port."""
    connection = Client(int(sys.argv[1]))
    print(f"ready at port {sys.argv[1]}", flush=True)
    block = client.ping() * BLOCK_PINGS
    pong_bytes = len(encode.pong())
    waiting_bytes = 0
    while True:
        while waiting_bytes + BLOCK_PINGS * pong_bytes <= WINDOW_PINGS * pong_bytes:
            connection.socket.sendall(block)
            waiting_bytes += BLOCK_PINGS * pong_bytes
        # Keep-alive PINGs of the server, a few bytes now and then, only make the window smaller.
        waiting_bytes -= len(connection.socket.recv(RECEIVE_BYTES))
