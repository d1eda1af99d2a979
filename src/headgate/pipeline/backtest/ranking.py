"""The ranking of grid points over all topics. Pure.

A score is a weighted sum of shares; lower is better. The weights are far apart, so that a share
decides before the next one: a reached quota stops all producers, lost messages are gone, parked
messages are late, and unused capacity is only wasted.
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
"""A result is censored above this share of the steps."""


@dataclass(frozen=True, slots=True)
class PointTotals:
    """The results of one point, summed over the replayed topics."""

    grid_point: int
    topics: int
    seconds: float
    """Replayed seconds of all topics, without unknown time between steps."""
    seconds_over_quota: float
    quota_seconds: float
    backlog_bytes_start: float
    """Backlog of the topics at the beginning, which a quota may evict, too."""
    wanted_bytes: float
    published_bytes: float
    evicted_bytes: float
    parked_seconds: float
    parked_bytes_max: float
    """Largest of any topic."""
    backlog_bytes_max: float
    activations: float
    unused_seconds: float
    """Parked seconds, times the unused share of the drain in them."""
    moved_bytes: float
    """Jitter times published bytes."""
    censored_seconds: float
    """Seconds times the censored share."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A point with its rank; shares are 0 to 1, and jitter is at least 0."""

    totals: PointTotals
    over_share: float
    """Share of the time under a quota in which it was reached."""
    lost_share: float
    """Share of the demand and the first backlog that was evicted, refused, or still parked at the
    end."""
    parked_share: float
    unused_share: float
    jitter: float
    censored_share: float
    score: float
    rank: int
    """From 1; equal scores share a rank."""
    is_pareto: bool
    """No other point is at least as good in every respect (over, lost, parked, jitter) and better
    in one."""

    @property
    def is_censored(self) -> bool:
        """Whether limits hid the demand for too long to trust settings that admit more."""
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
