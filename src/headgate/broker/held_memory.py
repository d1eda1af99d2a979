"""Bytes that clients make the broker hold, by kind."""

from __future__ import annotations

from typing import Final, NamedTuple

from headgate.base.units import KIB, MIB

CONNECTION_BYTES: Final = 24 * KIB
"""What an idle connection takes: its objects, its transport and its first receive buffer."""

TLS_UNITS: Final = 4
"""A connection over TLS takes so many times :data:`CONNECTION_BYTES`: the state of its ciphers, and
buffers of encrypted bytes."""

DESCRIPTION_FACTOR: Final = 2
OBJECT_BYTES: Final = KIB
"""A producer or consumer takes this, and :data:`DESCRIPTION_FACTOR` times the bytes of its names,
metadata and properties: they are kept decoded."""

PROPERTY_BYTES: Final = 180
"""What a property of a producer or consumer takes beside its bytes, at most: its texts, its place
in a table, and its message while the client waits."""

READER_BYTES: Final = 5 * KIB
"""What the subscription of a reader takes beside its consumer: it ends with it."""

WAITING_BYTES: Final = 6 * KIB
"""What a command takes beside its bytes while it waits: its message, its task, and the calls of its
handler."""

WAITING_ID_BYTES: Final = 80
"""What an id of an entry takes in a command that waits, which has few bytes on the wire."""

WAITING_WORD_BYTES: Final = 24
"""What a word of a set of messages takes in an ACK that waits: it may have one byte on the wire."""

PENDING_ENTRY_BYTES: Final = 120
"""What the broker remembers of an entry that a consumer has and did not acknowledge."""


class HeldMemory(NamedTuple):
    """Bytes that the broker holds for one connection, or for all."""

    connections: int = 0
    """The connections themselves."""
    received: int = 0
    """Receive buffers: frames of which only a part has arrived."""
    unsent: int = 0
    """Answers and messages that the peer has not read."""
    descriptions: int = 0
    """Producers and consumers, with their names, metadata and properties."""
    commands: int = 0
    """Commands that wait, with the tasks of their handlers."""
    pending: int = 0
    """Positions of messages that consumers have and did not acknowledge, and which messages of
    batches are acknowledged."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)

    @property
    def beyond_idle(self) -> int:
        """All but what an idle connection takes."""
        return sum(self) - self.connections

    @property
    def is_mostly_pending(self) -> bool:
        """Whether acknowledgements would free most of it."""
        return 2 * self.pending > self.beyond_idle

    def described(self) -> str:
        """The kinds that are not 0, with their bytes."""
        found = zip(self._fields, self, strict=True)
        return ", ".join(f"{kind} {size:,}" for kind, size in found if size)


def share_text(held_bytes: int, bytes_max: int) -> str:
    """``95.1 MiB of the 100.0 MiB that they may hold``."""
    return f"{held_bytes / MIB:.1f} MiB of the {bytes_max / MIB:.1f} MiB that they may hold"
