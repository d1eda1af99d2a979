"""Which point did best over all topics: its score, its rank, and the Pareto front. Pure.

A score is a weighted sum of shares, lower being better. The weights are so far apart that each
share decides before the next one where it matters at all: a quota that is reached stops everybody,
what is lost is gone, what waits comes late, drain that is not used is only a pity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

WEIGHT_OVER: Final = 1_000.0
WEIGHT_LOST: Final = 100.0
WEIGHT_PARKED: Final = 10.0
WEIGHT_UNUSED: Final = 1.0
WEIGHT_JITTER: Final = 0.1

CENSORED_SHARE_MAX: Final = 0.1
"""From this part of the steps on a result is marked as censored."""


@dataclass(frozen=True, slots=True)
class PointTotals:
    """What one point did, summed over the replayed topics."""

    grid_point: int
    topics: int
    seconds: float
    """Topic seconds that were replayed: all steps, without the unknown time between them."""
    seconds_over_quota: float
    quota_seconds: float
    backlog_bytes_start: float
    """What waited in the topics at the beginning, which a quota may evict, too."""
    wanted_bytes: float
    published_bytes: float
    evicted_bytes: float
    parked_seconds: float
    parked_bytes_max: float
    """Of any topic."""
    backlog_bytes_max: float
    activations: float
    unused_seconds: float
    """Parked seconds times the part of the drain that was not used in them."""
    moved_bytes: float
    """Jitter times what was published."""
    censored_seconds: float
    """Seconds times the censored share."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A point with its place; shares are 0 to 1, the jitter is 0 and more."""

    totals: PointTotals
    over_share: float
    """Of the time under a quota."""
    lost_share: float
    """Of what was wanted and the first backlog: evicted, refused, or still waiting at the end."""
    parked_share: float
    unused_share: float
    jitter: float
    censored_share: float
    score: float
    rank: int
    """From 1; equal scores have the same one."""
    is_pareto: bool
    """No other point is at least as good in every respect (over, lost, parked, jitter) and better
    in one."""

    @property
    def is_censored(self) -> bool:
        """Whether the demand was hidden by limits for too long to trust what lets more through."""
        return self.censored_share > CENSORED_SHARE_MAX


def rank(points: Sequence[PointTotals]) -> list[Ranked]:
    """All points, the best first."""
    shares = [_shares(point) for point in points]
    scores = [
        WEIGHT_OVER * over
        + WEIGHT_LOST * lost
        + WEIGHT_PARKED * parked
        + WEIGHT_UNUSED * unused
        + WEIGHT_JITTER * jitter
        for over, lost, parked, unused, jitter in shares
    ]
    front = pareto([(over, lost, parked, jitter) for over, lost, parked, _, jitter in shares])
    ordered = sorted(scores)
    ranks = {score: place for place, score in reversed(list(enumerate(ordered, 1)))}
    ranked = [
        Ranked(
            point,
            *own,
            censored_share=_part(point.censored_seconds, point.seconds),
            score=score,
            rank=ranks[score],
            is_pareto=is_pareto,
        )
        for point, own, score, is_pareto in zip(points, shares, scores, front, strict=True)
    ]
    return sorted(ranked, key=lambda r: (r.rank, r.totals.grid_point))


def _shares(point: PointTotals) -> tuple[float, float, float, float, float]:
    missing = point.wanted_bytes - point.published_bytes
    had = point.wanted_bytes + point.backlog_bytes_start
    return (
        _part(point.seconds_over_quota, point.quota_seconds),
        _part(point.evicted_bytes + max(0.0, missing), had),
        _part(point.parked_seconds, point.seconds),
        _part(point.unused_seconds, point.parked_seconds),
        _part(point.moved_bytes, point.published_bytes),
    )


def _part(amount: float, whole: float) -> float:
    return amount / whole if whole > 0.0 else 0.0


def pareto(objectives: Sequence[Sequence[float]]) -> list[bool]:
    """Whether no other row is at most as large in every column and smaller in one."""
    values = np.array(objectives, dtype=np.float64)
    return [
        not bool(((values <= own).all(axis=1) & (values < own).any(axis=1)).any()) for own in values
    ]
