"""Instants as Pulsar writes them: ISO 8601 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from headgate.base.units import MS_PER_S

EPOCH_TEXT = "1970-01-01T00:00:00Z"


def iso_time(wall_ms: int) -> str:
    """Milliseconds since the epoch as an ISO 8601 instant in UTC with ``Z``."""
    if wall_ms <= 0:
        return EPOCH_TEXT
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
