"""Between which instants a level reaches its limit, by how much its pace has changed lately."""

from __future__ import annotations

from math import exp
from typing import Final, NamedTuple

from headgate.base.units import NS_PER_MINUTE, NS_PER_S

PACES_NS: Final = (5 * NS_PER_MINUTE, 60 * NS_PER_MINUTE)
"""The time constants of the smoothed paces."""

DOUBT_NS: Final = 20 * NS_PER_MINUTE
"""The time constant of the doubt."""

DOUBT_SHARE: Final = 0.3
"""What of the doubt the band is wider on both sides. See decision 0097 for how it was chosen."""


STEADY_SHARE: Final = 0.95
"""Least part of the mean pace over minutes with which a level goes on to rise as fast."""


class Band(NamedTuple):
    """From when to when a limit may be reached, in seconds from now."""

    earliest_s: float
    latest_s: float | None
    """None: it may never be reached."""


class PaceBand:
    """How fast a level moves, as a mean over minutes and over an hour, and how much the pace of
    single minutes differs from that.

    The fastest of these paces and of the present one, and more by a part of the mean difference,
    gives the earliest instant; the slowest, and less by as much, the latest.
    """

    __slots__ = ("_at_ns", "_doubt", "_known_ns", "_level", "_paces")

    def __init__(self, level: float, now_ns: int) -> None:
        """Begin at ``level``, in any unit."""
        self._level = level
        self._at_ns = now_ns
        self._known_ns = 0
        self._paces = [0.0] * len(PACES_NS)
        self._doubt = 0.0

    def observe(self, level: float, now_ns: int) -> None:
        """Take a sample of the level; those within a minute of the last that counted do not
        count."""
        elapsed_ns = now_ns - self._at_ns
        if elapsed_ns < NS_PER_MINUTE:
            return
        speed = (level - self._level) * NS_PER_S / elapsed_ns
        self._known_ns += elapsed_ns
        # At first each is the mean over all minutes.
        known = elapsed_ns / self._known_ns
        for index, constant_ns in enumerate(PACES_NS):
            weight = max(known, 1.0 - exp(-elapsed_ns / constant_ns))
            self._paces[index] += weight * (speed - self._paces[index])
        weight = max(known, 1.0 - exp(-elapsed_ns / DOUBT_NS))
        self._doubt += weight * (abs(speed - self._paces[-1]) - self._doubt)
        self._level, self._at_ns = level, now_ns

    def keeps_rising(self, speed: float, *, is_controlled: bool) -> bool:
        """Whether a level that moves at ``speed`` a second rises by more than its pace differs from
        minute to minute, so that noise around a standstill is no rise.

        With ``is_controlled`` a controller slows it more and more as it rises. Then its pace must
        not have fallen either, and must be known: for longer than a minute.
        """
        if not self._known_ns:
            return not is_controlled
        slowest = min(speed, *self._paces) - DOUBT_SHARE * self._doubt
        return slowest > 0 and (not is_controlled or speed >= STEADY_SHARE * self._paces[0])

    def around(self, left: float, speed: float) -> Band | None:
        """The band for a level that moves at ``speed`` a second, above 0, with ``left`` to go.

        None in the first minute.
        """
        if not self._known_ns:
            return None
        doubt = DOUBT_SHARE * self._doubt
        fastest = max(speed, *self._paces) + doubt
        slowest = min(speed, *self._paces) - doubt
        return Band(left / fastest, left / slowest if slowest > 0 else None)
