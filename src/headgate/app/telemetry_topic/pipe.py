"""What the agent and the process that publishes its telemetry tell each other over pipes."""

from __future__ import annotations

from typing import IO, Final

import msgspec

from headgate.access.client_config import ClientConfig

_LENGTH_BYTES: Final = 4


class Begin(msgspec.Struct, frozen=True):
    """The first frame to the process."""

    config: ClientConfig
    topic: str


class Outcome(msgspec.Struct, frozen=True):
    """The answer to the first frame, and to the two of each message: properties and data."""

    problem: str
    """Why it is not done; empty if it is."""
    said: list[str]
    """Warnings about files of credentials."""


def write_frame(pipe: IO[bytes], data: bytes) -> None:
    """Send some bytes. Raises :class:`BrokenPipeError` if nobody reads them."""
    pipe.write(len(data).to_bytes(_LENGTH_BYTES, "big"))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    """The next bytes that were sent; empty at the end.

    Raises:
        EOFError: the end came amid a frame.
    """
    head = pipe.read(_LENGTH_BYTES)
    if not head:
        return b""
    size = int.from_bytes(head, "big")
    data = pipe.read(size) if len(head) == _LENGTH_BYTES else b""
    if len(head) < _LENGTH_BYTES or len(data) < size:
        raise EOFError("the other process has ended")
    return data
