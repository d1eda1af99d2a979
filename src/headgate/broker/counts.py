"""What a broker has counted since its start and no topic can know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class BrokerCounts:
    """Connections and lookups."""

    connections_accepted: int = 0
    connections_established: int = 0
    """Of them, those that sent a CONNECT."""
    connections_failed: int = 0
    """Ended without one."""
    connections_closed: int = 0
    """Ended, for whatever reason."""
    lookups_answered: int = 0
    lookups_failed: int = 0
    """LOOKUPs that were refused."""
