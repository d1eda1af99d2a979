"""Message ids as Pulsar shows them.

Inside Headgate an entry has an *ordinal*: its index in its topic, counted from the topic's creation
without gaps. Clients and admin tools see positions ``(ledger id, entry id)``; the ledger package
translates.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.base.units import INT64_MAX


class Position(NamedTuple):
    """The position of one entry, in Pulsar's numbering. Both numbers are signed, of 64 bits."""

    ledger_id: int
    entry_id: int

    def __str__(self) -> str:
        return f"{self.ledger_id}:{self.entry_id}"


EARLIEST = Position(-1, -1)
"""Before the first retained entry of a topic."""

LATEST = Position(INT64_MAX, INT64_MAX)
"""After the last entry of a topic at the time of the request."""
