"""Why a SEND waits before its append (docs/telemetry.md 1)."""

from __future__ import annotations

from enum import IntEnum


class ParkCause(IntEnum):
    """What a parked SEND waits for. Values index lists; the labels are those of telemetry."""

    TOPIC_RATE = 0
    BROKER_RATE = 1
    ADAPTIVE = 2
    BACKLOG_QUOTA = 3
    PENDING_LIMIT = 4
    """Its connection has the most SENDs that may be without a receipt."""
    MEMORY = 5
    """The broker does not read its connection, because the waiting SENDs of all connections take
    too much memory. This cause counts seconds only. If the connection's own SENDs take too much,
    the cause is what they wait for."""
    DISK_FULL = 6
    """The disk has no room for it."""

    @property
    def label(self) -> str:
        """Its name in telemetry and /metrics."""
        return self.name.lower()
