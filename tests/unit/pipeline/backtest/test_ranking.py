"""Scores, ranks and the Pareto front."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.backtest.ranking import PointTotals, pareto, rank

POINT = PointTotals(
    grid_point=0,
    topics=2,
    seconds=1_000.0,
    seconds_over_quota=0.0,
    quota_seconds=1_000.0,
    wanted_bytes=1e6,
    published_bytes=1e6,
    evicted_bytes=0.0,
    parked_seconds=0.0,
    parked_bytes_max=0.0,
    backlog_bytes_max=0.0,
    activations=0.0,
    unused_seconds=0.0,
    moved_bytes=0.0,
    censored_seconds=0.0,
)


def test_each_share_decides_before_the_next() -> None:
    points = [
        replace(POINT, grid_point=0, seconds_over_quota=20.0),
        replace(POINT, grid_point=1, evicted_bytes=2e4),
        replace(POINT, grid_point=2, parked_seconds=20.0),
        replace(POINT, grid_point=3, parked_seconds=1.0, unused_seconds=0.02),
        replace(POINT, grid_point=4, moved_bytes=2e4),
        replace(POINT, grid_point=5),
    ]
    assert [place.totals.grid_point for place in rank(points)] == [5, 4, 3, 2, 1, 0]


def test_shares_are_parts_of_what_there_was() -> None:
    (place,) = rank(
        [
            replace(
                POINT,
                seconds_over_quota=100.0,
                evicted_bytes=5e4,
                published_bytes=8e5,
                parked_seconds=200.0,
                unused_seconds=50.0,
                moved_bytes=4e5,
                censored_seconds=300.0,
            )
        ]
    )
    assert (place.over_share, place.lost_share, place.parked_share) == (0.1, 0.25, 0.2)
    assert (place.unused_share, place.jitter, place.censored_share) == (0.25, 0.5, 0.3)
    assert place.score == 100.0 + 25.0 + 2.0 + 0.25 + 0.05
    assert place.is_censored
    assert (place.rank, place.is_pareto) == (1, True)


def test_what_nothing_was_there_of_is_no_share() -> None:
    empty = replace(POINT, seconds=0.0, quota_seconds=0.0, wanted_bytes=0.0, published_bytes=0.0)
    (place,) = rank([empty])
    assert (place.score, place.is_censored) == (0.0, False)


def test_equal_scores_have_the_same_rank() -> None:
    points = [
        replace(POINT, grid_point=0, parked_seconds=5.0),
        replace(POINT, grid_point=1),
        replace(POINT, grid_point=2),
    ]
    assert [(p.totals.grid_point, p.rank) for p in rank(points)] == [(1, 1), (2, 1), (0, 3)]
    assert rank([]) == []


def test_the_front_keeps_what_nobody_beats() -> None:
    assert pareto([(1, 3), (3, 1), (2, 2), (3, 3), (2, 2)]) == [True, True, True, False, True]
    assert pareto([]) == []


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_the_front_is_what_it_says(rows: list[tuple[int, ...]]) -> None:
    front = pareto(rows)
    assert any(front)
    for own, is_front in zip(rows, front, strict=True):
        beaten = any(
            other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in rows
        )
        assert is_front is not beaten
