"""Instants as Pulsar writes them: ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from headgate.base.units import MS_PER_S

EPOCH_TEXT = "1970-01-01T00:00:00Z"
LATEST_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999. A client may name any later one."""


def iso_time(wall_ms: int) -> str:
    """Milliseconds since the epoch as an ISO 8601 instant in UTC with ``Z``: the epoch for what is
    before it, :data:`LATEST_MS` for what is behind that."""
    if wall_ms <= 0:
        return EPOCH_TEXT
    wall_ms = min(wall_ms, LATEST_MS)
    when = datetime.fromtimestamp(wall_ms // MS_PER_S, UTC).replace(tzinfo=None)
    return f"{when.isoformat()}.{wall_ms % MS_PER_S:03d}Z"


def seconds_of(text: str) -> float:
    """Seconds since the epoch of ``2026-12-31T00:00:00Z``.

    Raises:
        ValueError: it is something else.
    """
    if not text.endswith("Z"):
        raise ValueError("an instant in UTC ends with Z")
    return datetime.fromisoformat(text).timestamp()
