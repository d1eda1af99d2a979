"""Further handles of a listening socket, for loops that accept one connection at a time."""

from __future__ import annotations

import socket
from typing import Final

from headgate.base.units import KIB

KERNEL_UNSENT_BYTES: Final = 128 * KIB
"""Bytes that the kernel takes for a connection before it has sent them; its sockets inherit this.
The rest stays with the broker, which knows whose it is, and for how long. Without this bound the
kernel takes 4 MiB for each peer that does not read, also when its connection was closed since."""


def handles_of(listener: socket.socket, count: int) -> list[socket.socket]:
    """A listening socket, and further handles of it until there are ``count``: uvloop accepts one
    connection of each in an iteration of the loop, the one that waits longest. The kernel takes
    :data:`KERNEL_UNSENT_BYTES` for each connection."""
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, KERNEL_UNSENT_BYTES)
    return [listener, *(listener.dup() for _ in range(count - 1))]
