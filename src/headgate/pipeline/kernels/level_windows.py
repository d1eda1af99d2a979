"""The hour of a level that led to each minute: rows of topics in, windows of numbers out.

A window holds a column for each of its minutes; a minute that has no row, or whose level is not
known, is NaN. It begins anew where what came before says nothing of the pace from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from headgate.base.units import NS_PER_S
from headgate.pipeline.kernels.breach import WINDOW_MINUTES
from headgate.pipeline.kernels.theil_sen import Doubles

Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

FALL_SHARE: Final = 0.5
"""A level that falls below this part of the one before was cleared, not worked off: a window
across that would hide the pace of a sawtooth."""


@dataclass(frozen=True, slots=True)
class TopicMinutes:
    """Minutes of many topics, sorted by topic and minute, each once; parallel arrays."""

    topic: Longs
    """Number of the topic; any that tells it from its neighbours."""
    minute: Longs
    """Minutes since the epoch."""
    to_ns: Longs
    """When the minute's levels were taken."""
    anew: Flags
    """What came before says nothing of the levels from here on: eviction, restart."""

    def __len__(self) -> int:
        return len(self.topic)

    def follows(self) -> Flags:
        """Whether each row is of the same topic as the one before."""
        same = np.zeros(len(self), dtype=np.bool_)
        same[1:] = self.topic[1:] == self.topic[:-1]
        return same


def window_starts(minutes: TopicMinutes, levels: Doubles) -> Longs:
    """The first row of the window that each row ends.

    It reaches back for :data:`WINDOW_MINUTES` minutes, this one included, and no further than to
    the topic's last row that is ``anew``, or whose level fell below half of the one before.
    """
    if len(minutes) == 0:
        return np.zeros(0, dtype=np.int64)
    begins = ~minutes.follows() | minutes.anew
    begins[1:] |= levels[1:] < FALL_SHARE * levels[:-1]
    rows = np.arange(len(minutes))
    last_begin = np.maximum.accumulate(np.where(begins, rows, 0))
    # Topics one after the other on one line, further apart than any window is long.
    apart = int(np.ptp(minutes.minute)) + 2 * WINDOW_MINUTES
    line = np.cumsum(~minutes.follows()) * apart + (minutes.minute - minutes.minute.min())
    return np.maximum(np.searchsorted(line, line - WINDOW_MINUTES + 1), last_begin)


def sample_counts(levels: Doubles, starts: Longs) -> Longs:
    """How many levels each row's window knows; 0 where its own is not known."""
    known = ~np.isnan(levels)
    total = np.append(0, np.cumsum(known))
    return np.where(known, total[1:] - total[starts], 0)


def trailing_windows(
    minutes: TopicMinutes, levels: Doubles, rows: Longs, starts: Longs
) -> tuple[Doubles, Doubles]:
    """The windows that some rows end: times and levels, (rows, :data:`WINDOW_MINUTES`) each.

    Times are seconds before the row's own; where there is no row they are those of whole minutes.
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
