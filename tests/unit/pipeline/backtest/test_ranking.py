"""Scores, ranks and the Pareto front."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.base.units import NS_PER_S
from headgate.pipeline.backtest.kernel import replay_points
from headgate.pipeline.backtest.kernel_points import point_rows
from headgate.pipeline.backtest.load import OUTCOME_COLUMNS, Load
from headgate.pipeline.backtest.policy import Policy
from headgate.pipeline.backtest.ranking import PointTotals, pareto, rank
from tests.unit.pipeline.backtest.loads import loads, policies

POINT = PointTotals(
    grid_point=0,
    topics=2,
    seconds=1_000.0,
    seconds_over_quota=0.0,
    quota_seconds=1_000.0,
    backlog_bytes_start=0.0,
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


def test_shares_are_parts_of_the_totals() -> None:
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


def test_a_share_of_zero_is_zero() -> None:
    empty = replace(POINT, seconds=0.0, quota_seconds=0.0, wanted_bytes=0.0, published_bytes=0.0)
    (place,) = rank([empty])
    assert (place.score, place.is_censored) == (0.0, False)


def test_evictions_from_the_first_backlog_count_as_lost() -> None:
    flooded = replace(POINT, backlog_bytes_start=3e6, evicted_bytes=4e6)
    half = replace(POINT, backlog_bytes_start=3e6, evicted_bytes=1e6, published_bytes=0.0)
    refused = replace(POINT, wanted_bytes=0.0, published_bytes=0.0, evicted_bytes=1e6)
    shares = [place.lost_share for place in rank([flooded, half])]
    assert shares == [0.5, 1.0]
    (place,) = rank([replace(refused, backlog_bytes_start=4e6)])
    assert place.lost_share == 0.25


@settings(max_examples=100, deadline=None)
@given(loads(), policies)
def test_shares_of_any_replay_lie_between_0_and_1(load: Load, policy: Policy) -> None:
    found = replay_points(load, point_rows([policy], load.step_ns))[0]
    outcome = dict(zip(OUTCOME_COLUMNS, found.tolist(), strict=True))
    used, jitter = outcome.pop("drain_used"), outcome.pop("jitter")
    (place,) = rank(
        [
            replace(
                POINT,
                seconds=len(load.steps) * load.step_ns / NS_PER_S,
                backlog_bytes_start=load.backlog_bytes,
                unused_seconds=(1 - used) * outcome["parked_seconds"],
                moved_bytes=jitter * outcome["published_bytes"],
                **outcome,
            )
        ]
    )
    for share in (place.over_share, place.lost_share, place.parked_share, place.unused_share):
        assert 0 <= share <= 1 + 1e-9


def test_equal_scores_have_the_same_rank() -> None:
    points = [
        replace(POINT, grid_point=0, parked_seconds=5.0),
        replace(POINT, grid_point=1),
        replace(POINT, grid_point=2),
    ]
    assert [(p.totals.grid_point, p.rank) for p in rank(points)] == [(1, 1), (2, 1), (0, 3)]
    assert rank([]) == []


def test_the_front_keeps_unbeaten_points() -> None:
    assert pareto([(1, 3), (3, 1), (2, 2), (3, 3), (2, 2)]) == [True, True, True, False, True]
    assert pareto([]) == []


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_the_front_matches_its_definition(rows: list[tuple[int, ...]]) -> None:
    front = pareto(rows)
    assert any(front)
    for own, is_front in zip(rows, front, strict=True):
        beaten = any(
            other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in rows
        )
        assert is_front is not beaten
