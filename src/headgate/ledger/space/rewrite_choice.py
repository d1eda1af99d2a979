"""The law that chooses the segments to rewrite, by cost and benefit.

A segment that holds little retained data costs the disk its whole file, so what it retains is
copied into a new file. The law follows log-structured file systems: the benefit is the bytes freed,
the cost is the bytes copied, and an old segment counts more than a young one, because what is left
of it has proved to stay, while a young one may soon die without a copy.

* Nothing is copied while all that rewriting could free is at most :data:`SLACK_PART` of the
  retained bytes, and :data:`SLACK_SEGMENTS` of a segment.
* A segment is copied only if that frees at least :data:`GAIN_PART` of what is copied. Each byte
  dies once, so in the long run at most ``1 / GAIN_PART`` bytes are copied for each byte stored.
* Neighbours that pay as well join, up to one segment. Only neighbours: then the entries of a topic
  stay in the order of the segments.
* :data:`FEW_MIN` or more small neighbours are joined in any case, so that files stay few. Each time
  that many join, so a byte takes part only as often as the logarithm of the number of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.base.sliced import Sliced
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    RUN_RECORD_BYTES,
    SEGMENT_HEADER_BYTES,
)
from headgate.ledger.index.footer import TRAILER_BYTES

SLACK_PART: Final = 0.07
SLACK_SEGMENTS: Final = 0.5
GAIN_PART: Final = 1 / 3
FEW_MIN: Final = 8
"""How many small neighbours are joined although little is freed."""
SMALL_PART: Final = 8
"""A small segment retains less than this fraction of a segment."""
SLICE_SEGMENTS: Final = 512
"""Segments that are looked at between two pauses: less than half a millisecond."""

_FILE_BYTES = SEGMENT_HEADER_BYTES + BATCH_RECORD_BYTES + TRAILER_BYTES
_RUN_BYTES = RUN_RECORD_BYTES + 96
"""About what each topic in a file needs besides its entries: the RUN record, rows of the footer."""


class SegmentUse(NamedTuple):
    """A sealed segment as the law sees it."""

    segment: int
    disk_bytes: int
    """Its file without holes."""
    kept_bytes: int
    """What a new file of its retained entries would have, about."""
    is_fit: bool = True
    """Whether it may be rewritten now."""

    @property
    def gain_bytes(self) -> int:
        """What rewriting it frees; less than 0 if the new file would be larger."""
        return self.disk_bytes - self.kept_bytes

    @property
    def pays(self) -> bool:
        """Whether rewriting it frees enough for what is copied."""
        return self.is_fit and self.gain_bytes >= GAIN_PART * self.kept_bytes


def kept_bytes(live_bytes: int, live_runs: int, data_bytes: int, index_bytes: int) -> int:
    """The size of a file with the retained entries of a segment, about.

    ``data_bytes`` are those of its records now, ``index_bytes`` those of its footer, of which the
    retained entries have their share.
    """
    share = min(live_bytes / data_bytes, 1.0) if data_bytes > 0 else 1.0
    return _FILE_BYTES + live_bytes + live_runs * _RUN_BYTES + int(index_bytes * share)


def choose_segments(
    uses: Sequence[SegmentUse], live_bytes: int, segment_bytes: int
) -> Sliced[tuple[int, ...]]:
    """The neighbours to rewrite into one file, ascending; none if it is not worth it.

    ``uses`` are all sealed segments with retained entries that no start replays, ascending;
    ``live_bytes`` is what the whole log retains. Yields after each :data:`SLICE_SEGMENTS`.
    """
    freeable_bytes, best, best_score = 0, -1, 0.0
    for at, use in enumerate(uses, 1):
        if use.pays:
            freeable_bytes += use.gain_bytes
            score = _score(use, uses[-1].segment)
            if best < 0 or score > best_score:
                best, best_score = at - 1, score
        if at % SLICE_SEGMENTS == 0:
            yield
    if freeable_bytes > SLACK_PART * live_bytes + SLACK_SEGMENTS * segment_bytes:
        return _with_neighbours(uses, best, segment_bytes)
    return (yield from _many_small(uses, segment_bytes))


def _with_neighbours(uses: Sequence[SegmentUse], at: int, segment_bytes: int) -> tuple[int, ...]:
    """The segment with the greatest benefit for its cost, and neighbours that pay as well."""
    low = high = at
    size_bytes = uses[at].kept_bytes
    is_growing = True
    while is_growing:
        is_growing = False
        for at in (low - 1, high + 1):
            if not 0 <= at < len(uses):
                continue
            if uses[at].pays and size_bytes + uses[at].kept_bytes <= segment_bytes:
                size_bytes += uses[at].kept_bytes
                low, high = min(low, at), max(high, at)
                is_growing = True
    return tuple(use.segment for use in uses[low : high + 1])


def _score(use: SegmentUse, newest: int) -> float:
    age = newest - use.segment + 1
    return use.gain_bytes * age / use.kept_bytes


def _many_small(uses: Sequence[SegmentUse], segment_bytes: int) -> Sliced[tuple[int, ...]]:
    """The longest row of small neighbours that fit into one file, if it is long enough."""
    best: tuple[int, ...] = ()
    row: list[int] = []
    size_bytes = 0
    for at, use in enumerate(uses, 1):
        is_small = use.is_fit and use.kept_bytes * SMALL_PART < segment_bytes
        if not is_small or size_bytes + use.kept_bytes > segment_bytes:
            row, size_bytes = [], 0
        if is_small:
            row.append(use.segment)
            size_bytes += use.kept_bytes
            if len(row) > len(best):
                best = tuple(row)
        if at % SLICE_SEGMENTS == 0:
            yield
    return best if len(best) >= FEW_MIN else ()
