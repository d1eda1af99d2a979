"""Leaves the index of sealed segments to their footers, in slices of the event loop."""

from __future__ import annotations

from typing import Final

from headgate.ledger.index.state import LogState

SLICE_ENTRIES: Final = 200_000
"""Entries of one slice beyond which no other run joins it: taking them from the arrays moves the
bytes behind them, and reads their rows, about half a millisecond."""


class Spilling:
    """Takes runs that a footer has from the memory of their topics, oldest segment first.

    The newest sealed segment stays in memory, for consumers that are a little behind. A segment
    waits while an older one has no footer: the index in memory has no gaps.
    """

    def __init__(self, state: LogState, slice_items: int) -> None:
        """``slice_items`` are the most runs of one step."""
        self._state = state
        self._slice_items = slice_items

    def is_due(self) -> bool:
        """Whether :meth:`step` has work now."""
        return len(self._state.stored) > 1 and self._next() is not None

    def step(self) -> bool:
        """Spill some runs; False if there are none."""
        segment = self._next()
        if segment is None:
            return False
        state = self._state
        runs = state.stored[segment]
        entries = 0
        for _ in range(self._slice_items):
            if not runs or entries >= SLICE_ENTRIES:
                break
            run = runs.pop()
            topic = state.topics.get(run.topic_number)
            if topic is not None and topic.spill(run, state.blocks):
                entries += run.entries
        if not runs:
            del state.stored[segment]
        return True

    def _next(self) -> int | None:
        stored = self._state.stored
        if len(stored) < 2:
            return None
        segment = min(stored)
        oldest = next(iter(self._state.unsealed), segment)
        return segment if segment <= oldest else None
