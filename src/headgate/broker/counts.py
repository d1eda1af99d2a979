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
    connections_paused: int = 0
    """Times that a connection began to be throttled, whatever for."""
    connections_resumed: int = 0
    """Times that one ended to be."""
    connections_throttled: int = 0
    """Times that one reached its maximum of unanswered SENDs."""
    connections_unthrottled: int = 0
    """Times that one had room again."""
    lookups_answered: int = 0
    lookups_failed: int = 0
    """LOOKUPs that were refused."""
    delays_ignored: int = 0
    """Messages that asked to be delivered later, and were delivered at once."""
