"""Message ids as Pulsar shows them.

Inside Headgate an entry is known by its *ordinal*: its place in its topic, counted from the
topic's creation, without gaps. Clients and admin tools see positions ``(ledger id, entry id)``;
the ledger package translates.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.base.units import INT64_MAX


class Position(NamedTuple):
    """One entry of a topic, in Pulsar's numbering. Both are signed 64-bit."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


EARLIEST = Position(-1, -1)
"""Before the first entry that the topic still holds."""

LATEST = Position(INT64_MAX, INT64_MAX)
"""After the last entry that the topic holds when the request is carried out."""
