"""Why a SEND waits before its append (docs/telemetry.md 1)."""

from __future__ import annotations

from enum import IntEnum


class ParkCause(IntEnum):
    """What holds publishing. Indexes lists; the labels are those of telemetry and /metrics."""

    TOPIC_RATE = 0
    BROKER_RATE = 1
    ADAPTIVE = 2
    BACKLOG_QUOTA = 3
    PENDING_LIMIT = 4
    """Its connection has as many appended and unanswered SENDs as it may."""
    MEMORY = 5
    """Its connection is not read, because too much waits that is not its own: it has seconds only.
    Where its own is too much, the cause is what that waits for."""
    DISK_FULL = 6
    """The log has no room for it."""

    @property
    def label(self) -> str:
        """As telemetry names it."""
        return self.name.lower()
