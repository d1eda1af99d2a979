"""Trailing windows of a level: its values in the hour that ends with each minute.

A window has a column for each minute. A minute without a row, or with an unknown level, is NaN. A
new window begins where the earlier values do not predict the later pace, as after an eviction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.array_types import Doubles, Flags, Longs
from headgate.pipeline.kernels.breach import WINDOW_MINUTES

FALL_SHARE: Final = 0.5
"""A level that falls below this part of the previous one was cleared, not drained. A window across
the fall would hide the pace of a sawtooth."""


@dataclass(frozen=True, slots=True)
class TopicMinutes:
    """Minutes of many topics, sorted by topic and minute, each once; parallel arrays."""

    topic: Longs
    """Number of the topic, which differs from that of its neighbours."""
    minute: Longs
    """Minutes since the epoch."""
    to_ns: Longs
    """Time at which the minute's levels were measured."""
    breaks: Flags
    """Rows from which on earlier levels predict nothing, because of an eviction or a restart."""

    def __len__(self) -> int:
        return len(self.topic)

    def follows(self) -> Flags:
        """Whether each row has the same topic as the previous one."""
        same = np.zeros(len(self), dtype=np.bool_)
        same[1:] = self.topic[1:] == self.topic[:-1]
        return same


def window_starts(minutes: TopicMinutes, levels: Doubles) -> Longs:
    """The first row of the window that ends with each row.

    The window has at most :data:`WINDOW_MINUTES` minutes, this one included. It begins no earlier
    than the topic's last row with a break, or whose level fell below half of the previous one.
    """
    if len(minutes) == 0:
        return np.zeros(0, dtype=np.int64)
    begins = ~minutes.follows() | minutes.breaks
    begins[1:] |= levels[1:] < FALL_SHARE * levels[:-1]
    rows = np.arange(len(minutes))
    last_begin = np.maximum.accumulate(np.where(begins, rows, 0))
    # One axis for all topics, with more space between them than a window is long.
    apart = int(np.ptp(minutes.minute)) + 2 * WINDOW_MINUTES
    line = np.cumsum(~minutes.follows()) * apart + (minutes.minute - minutes.minute.min())
    return np.maximum(np.searchsorted(line, line - WINDOW_MINUTES + 1), last_begin)


def sample_counts(levels: Doubles, starts: Longs) -> Longs:
    """Number of known levels in each row's window; 0 if the row's own level is unknown."""
    known = ~np.isnan(levels)
    total = np.append(0, np.cumsum(known))
    return np.where(known, total[1:] - total[starts], 0)


def trailing_windows(
    minutes: TopicMinutes, levels: Doubles, rows: Longs, starts: Longs
) -> tuple[Doubles, Doubles]:
    """Times and levels of the windows that end with some rows, (rows, :data:`WINDOW_MINUTES`) each.

    Times are in seconds, relative to the row's own, so at most 0. For a missing row it is that of
    the whole minute.
    """
    columns = np.arange(WINDOW_MINUTES)
    times_s = np.tile((columns - columns[-1]) * 60.0, (len(rows), 1))
    values = np.full((len(rows), WINDOW_MINUTES), np.nan)
    for back in range(WINDOW_MINUTES):
        there = np.flatnonzero(rows - back >= starts[rows])
        row = rows[there]
        column = WINDOW_MINUTES - 1 - (minutes.minute[row] - minutes.minute[row - back])
        values[there, column] = levels[row - back]
        times_s[there, column] = (minutes.to_ns[row - back] - minutes.to_ns[row]) / NS_PER_S
    return times_s, values
