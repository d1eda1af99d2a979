"""Further handles of a listening socket, for loops that accept one connection at a time."""

from __future__ import annotations

import socket


def handles_of(listener: socket.socket, count: int) -> list[socket.socket]:
    """A listening socket, and further handles of it until there are ``count``: uvloop accepts one
    connection of each in an iteration of the loop, the one that waits longest."""
    return [listener, *(listener.dup() for _ in range(count - 1))]
