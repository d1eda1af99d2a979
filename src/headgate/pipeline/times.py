"""``--since`` and ``--until``: an instant with its offset, or how long ago. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S, NS_PER_US

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)


def parse_time(text: str, now_ns: int) -> int:
    """Read ISO 8601 with an offset (``2026-11-21T10:00:00Z``) or an age (``30s 15m 2h 1d``).

    Returns nanoseconds since the epoch.

    Raises:
        InputError: it is neither, or the instant has no offset.
    """
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return now_ns - int(float(ago[1]) * _UNIT_S[ago[2]] * NS_PER_S)
    allowed = "a time with offset such as 2026-11-21T10:00:00Z, or an age such as 2h, is allowed"
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(f"Invalid time {text!r}: {allowed}") from error
    if instant.tzinfo is None:
        raise InputError(f"Invalid time {text!r}: it has no offset; {allowed}")
    return since_epoch_us(instant) * NS_PER_US


def since_epoch_us(at: datetime) -> int:
    """Microseconds from the epoch to an instant that has an offset.

    All integers: ``at.timestamp()`` is a float, and a whole millisecond may come out of it as the
    one before.
    """
    return (at - _EPOCH) // _US


def instant(time_ns: int) -> str:
    """An instant for people, to the second: ``2026-11-21 10:00:00 UTC``."""
    return f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S} UTC"


def minute_text(time_ns: int) -> str:
    """An instant for people, to the minute: ``2026-11-21 10:00 UTC``."""
    return f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M} UTC"
