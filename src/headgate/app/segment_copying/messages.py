"""What the broker and the process that copies segments say to each other, over two pipes.

The broker sends a :class:`CopyTask`, then lists of :class:`TopicPart`, then :data:`BEGIN`. From
then on each :class:`Step` is answered: by :class:`Moved`, or at the end by :class:`Failed` or
:class:`Finished`. Behind that come as many lists of :class:`NewIndex` as there were lists of parts.
The messages are pickled: both ends are the same code, and nothing else can reach the pipes.
"""

from __future__ import annotations

import os
import pickle
from array import array
from typing import Any, Final, NamedTuple

from headgate.app.pipe_frames import read_frame, write_frame
from headgate.base.errors import CorruptionError, StorageError
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.space.segment_copy import WINDOW_BYTES

READY: Final = "ready"
"""The first message of the process."""
BEGIN: Final = "begin"
STEP_S: Final = 1 / 4
"""How long a step lasts at most. For that long the broker's thread waits for the answer: it neither
takes the interpreter from the event loop, nor does it other maintenance."""
STEP_PIECES_MAX: Final = 64
PARTS_MAX: Final = 64
"""Topics in one message, which takes half a millisecond to pickle."""


class Step(NamedTuple):
    """Some pieces of the copy, with pauses between them."""

    pieces_max: int
    bytes_per_s: int
    """The pauses make this rate; 0: there are none."""

    @classmethod
    def at(cls, bytes_per_s: int) -> Step:
        """As many pieces as take up to :data:`STEP_S` at this rate."""
        pieces = int(bytes_per_s * STEP_S) // WINDOW_BYTES
        return cls(max(1, min(pieces, STEP_PIECES_MAX)), bytes_per_s)


class Moved(NamedTuple):
    """A step of the copy."""

    moved_bytes: int
    written_bytes: int
    """Bytes written so far."""


class Finished(NamedTuple):
    """The new file is durable."""

    data_end: int
    file_bytes: int


class NewIndex(NamedTuple):
    """Where the entries of one topic are in the new file."""

    offsets: array[int]
    stored: StoredRun | None


class Failed(NamedTuple):
    """Why the copy failed."""

    kind: str
    """``system``, ``corruption``, ``storage``, or else an internal error."""
    text: str
    errno: int = 0

    @classmethod
    def of(cls, error: Exception) -> Failed:
        """The message about an error."""
        if isinstance(error, OSError):
            return cls("system", os.strerror(error.errno or 0), error.errno or 0)
        if isinstance(error, CorruptionError):
            return cls("corruption", str(error))
        if isinstance(error, StorageError):
            return cls("storage", str(error))
        return cls("internal", f"{type(error).__name__}: {error}")

    def error(self) -> Exception:
        """The same error, for the broker to raise."""
        if self.kind == "system":
            return OSError(self.errno, self.text)
        if self.kind == "corruption":
            return CorruptionError(self.text)
        if self.kind == "storage":
            return StorageError(self.text, retryable=True)
        return RuntimeError(f"the process that copies segments: {self.text}")


def send(fd: int, message: object) -> None:
    """Write one message. Blocks. Raises :class:`BrokenPipeError` if nobody reads."""
    write_frame(fd, pickle.dumps(message, protocol=5))


def receive(fd: int) -> Any:
    """Read one message. Blocks. Raises :class:`EOFError` if the other end is closed."""
    data = read_frame(fd)
    if not data:
        raise EOFError("the other end is closed")
    return pickle.loads(data)
