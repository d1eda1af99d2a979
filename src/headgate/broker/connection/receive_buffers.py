"""Makes the receive buffers of connections."""

from __future__ import annotations

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import cast

from headgate.wire.limits import BUFFER_BYTES_STEADY


def receive_buffer(size: int) -> bytearray:
    """A receive buffer of ``size`` bytes.

    A large one has pages of its own: they exist once bytes arrive, and are the system's again as
    soon as the buffer is dropped. A heap would keep them between what it still holds.
    """
    if size > BUFFER_BYTES_STEADY:
        try:
            # It is read and written like a bytearray.
            return cast(bytearray, mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS))
        except OSError:  # the process may have no more mappings
            pass
    return bytearray(size)
