"""Facts about one broker that its clients and its operator see."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """The identity of a broker. It is fixed once the broker's sockets listen."""

    broker_id: str
    """``host:web port``, as in ``GET /admin/v2/brokers``."""
    broker_url: str
    """``pulsar://host:port``; empty if only the port of TLS is open."""
    web_url: str
    """``http://host:port``; empty if only the port of TLS is open."""
    version: str
    metadata_url: str
    """Where the metadata is, as ``internal-configuration`` shows it."""
    broker_url_tls: str = ""
    """``pulsar+ssl://host:port``; empty without TLS."""
    web_url_tls: str = ""
    """``https://host:port``; empty without TLS."""


@dataclass(slots=True)
class BrokerCounts:
    """Counters since the start of the broker that belong to no topic."""

    connections_accepted: int = 0
    connections_established: int = 0
    """Connections that sent a CONNECT."""
    connections_failed: int = 0
    """Connections that ended without a CONNECT."""
    connections_closed: int = 0
    """Connections that ended, for any reason."""
    throttles_begun: int = 0
    """Times the broker began to throttle a connection, for any reason."""
    throttles_ended: int = 0
    """Times the broker stopped throttling a connection."""
    pending_limits_reached: int = 0
    """Times a connection reached its maximum of unanswered SENDs."""
    pending_limits_left: int = 0
    """Times a connection fell below that maximum again."""
    lookups_answered: int = 0
    lookups_failed: int = 0
    """LOOKUPs that were refused."""
    lookups_pending: int = 0
    """Now, not since the start: lookups that wait for their topic to be created."""
    unauthorized: int = 0
    """Commands and requests that a client was not allowed to send."""
    delays_ignored: int = 0
    """Messages that asked for delayed delivery and were delivered at once."""
    delays_refused: int = 0
    """Messages that asked for a longer delay than is allowed."""
