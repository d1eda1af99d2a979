"""Instants, durations and time ranges, as options and messages write them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from headgate.base.errors import InputError
from headgate.base.input_errors import InputErrors
from headgate.base.units import INT64_MAX, NS_PER_S, NS_PER_US

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US: Final = timedelta(microseconds=1)
_TIME_ALLOWED: Final = (
    "a time with its offset, such as 2026-11-21T10:00:00Z, or an age, such as 30s, 15m, 2h or 1d, "
    "is allowed"
)


def parse_time(text: str, now_ns: int, option: str) -> int:
    """Read ISO 8601 with an offset (``2026-11-21T10:00:00Z``) or an age (``30s 15m 2h 1d``).

    Returns nanoseconds since the epoch. ``option`` is the option's name.

    Raises:
        InputError: it is neither, or the instant has no offset.
    """
    age = _DURATION.fullmatch(text.strip())
    if age:
        return _within(now_ns - _duration_ns(age), text, option)
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise InputError(f"{option} {text!r} is no time: {_TIME_ALLOWED}") from error
    if instant.tzinfo is None:
        raise InputError(f"{option} {text!r} has no offset: {_TIME_ALLOWED}")
    return _within(since_epoch_us(instant) * NS_PER_US, text, option)


def _within(time_ns: int, text: str, option: str) -> int:
    if not 0 <= time_ns <= INT64_MAX:
        raise InputError(f"{option} {text!r} lies outside 1970 to 2262: {_TIME_ALLOWED}")
    return time_ns


def parse_duration(text: str, option: str) -> int:
    """Read a duration (``30s 15m 2h 1d``) that was given as ``option``; returns nanoseconds.

    Raises:
        InputError: it is none.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise InputError(
            f"{option} {text!r} is no duration: one such as 30s, 15m, 2h or 1d is allowed"
        )
    return _duration_ns(found)


@dataclass(frozen=True, slots=True)
class Span:
    """A time range ``[since_ns, until_ns)`` since the epoch; None is open."""

    since_ns: int | None = None
    until_ns: int | None = None


EVERYTHING: Final = Span()


def parse_span(since: str | None, until: str | None, now_ns: int) -> Span:
    """Read ``--since`` and ``--until``; None is open, at the end it means now.

    Raises:
        InputError: one is malformed, or both, or the range is empty.
    """
    faults = InputErrors()
    since_ns = until_ns = None
    with faults.collecting():
        since_ns = None if since is None else parse_time(since, now_ns, "--since")
    with faults.collecting():
        until_ns = None if until is None else parse_time(until, now_ns, "--until")
    faults.raise_any()
    if since_ns is not None and since_ns >= (now_ns if until_ns is None else until_ns):
        raise InputError(
            f"--since {since!r} does not lie before "
            + ("now" if until_ns is None else f"--until {until!r}")
        )
    return Span(since_ns, until_ns)


def _duration_ns(found: re.Match[str]) -> int:
    return int(float(found[1]) * _UNIT_S[found[2]] * NS_PER_S)


def since_epoch_us(at: datetime) -> int:
    """Microseconds from the epoch to an instant that has an offset.

    All integers: ``at.timestamp()`` is a float, and a whole millisecond may come out of it as the
    one before.
    """
    return (at - EPOCH) // _US


def instant(time_ns: int) -> str:
    """An instant as text, to the second: ``2026-11-21 10:00:00 UTC``."""
    return f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso_text(time_ns: int) -> str:
    """An instant in ISO 8601 with its offset, which :func:`parse_time` reads; cut to
    microseconds."""
    return (EPOCH + timedelta(microseconds=time_ns // NS_PER_US)).isoformat()


def minute_text(time_ns: int) -> str:
    """An instant as text, to the minute: ``2026-11-21 10:00 UTC``."""
    return f"{datetime.fromtimestamp(time_ns // NS_PER_S, UTC):%Y-%m-%d %H:%M} UTC"
