"""Forecasts of quotas by the kernel, minute by minute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.kernels.column_values import optional
from headgate.pipeline.kernels.quota_forecast import METHODS, QuotaForecasts, row_forecasts
from headgate.pipeline.kernels.quota_usage import quota_usage_table
from headgate.pipeline.tables.columns import HOUR_NS
from tests.unit.pipeline.level_play import MINUTE, Row, rows_of, table_of
from tests.unit.pipeline.play import T0, S
from tests.unit.pipeline.quotas_by_row import QuotaForecast, RowForecast

HOUR = T0 // HOUR_NS
LIMIT = 10_000


def forecasts(rows: list[Row]) -> list[RowForecast]:
    """The forecast of each row."""
    found = row_forecasts(table_of(rows), np.arange(len(rows)))
    by_quota = {quota: listed(each) for quota, each in found.by_quota.items()}
    return [
        RowForecast(made, {q: each[i] for q, each in by_quota.items() if each[i] is not None})
        for i, made in enumerate(found.made_at_ns.tolist())
    ]


def listed(found: QuotaForecasts) -> list[Any]:
    """The forecast of each row; None without such a quota."""
    seconds = zip(*map(optional, (found.earliest_s, found.likely_s, found.latest_s)), strict=True)
    facts = zip(
        seconds, found.method.tolist(), found.reached.tolist(), found.stopped.tolist(), strict=True
    )
    return [
        QuotaForecast(*each, METHODS[method], reached, stopped) if there else None
        for there, (each, method, reached, stopped) in zip(
            found.in_force.tolist(), facts, strict=True
        )
    ]


def size(rows: list[Row]) -> list[QuotaForecast]:
    """The size quota's forecast of each row."""
    return [found.by_quota["size"] for found in forecasts(rows)]


def made_minutes(rows: list[Row]) -> list[int]:
    """The minute after T0 in which each row's forecast was made."""
    return [(found.made_at_ns - T0) // MINUTE - 1 for found in forecasts(rows)]


def rising(minutes: int, **facts: Any) -> list[Row]:
    """100 bytes a minute."""
    levels = [100 * (i + 1) for i in range(minutes)]
    return rows_of(levels, **{"quota_size_limit_bytes": LIMIT, **facts})


def test_a_forecast_is_made_every_five_minutes_and_carried_between() -> None:
    rows = rising(33, first=2)
    # Ten samples are there with the tenth row, minute 11; until then each minute is for itself.
    assert made_minutes(rows) == [*range(2, 12), *_slots(12, 35, 11)]
    found = size(rows)
    for place, forecast in enumerate(found):
        made = made_minutes(rows)[place] - 2
        if forecast.method == "theil_sen":
            assert forecast.likely_s == pytest.approx(60 * (100 - (made + 1)))
            assert forecast.earliest_s is not None
            assert forecast.latest_s is not None
            assert forecast.earliest_s < forecast.likely_s < forecast.latest_s
    assert [forecast.method for forecast in found] == ["none"] * 9 + ["theil_sen"] * 24


def _slots(begin: int, end: int, before: int) -> list[int]:
    """The minutes in which forecasts of some minutes were made; ``before`` carries until the next
    boundary."""
    return [max(minute - minute % 5, before) for minute in range(begin, end)]


def test_with_few_samples_each_minute_has_the_broker_s_figure() -> None:
    rows = rising(12, quota_size_breach_ns={i: (500 + i) * S for i in range(12)})
    found = size(rows)
    assert found[0] == QuotaForecast(None, 500.0, None, "broker", False, False)
    assert [f.likely_s for f in found[:9]] == [500.0 + i for i in range(9)]
    assert {f.method for f in found[9:]} == {"theil_sen"}
    assert made_minutes(rows) == [*range(10), 10, 10]


def test_a_missing_boundary_minute_is_taken_by_the_next() -> None:
    rows = [row for i, row in enumerate(rising(40)) if i not in (20, 21, 25)]
    made = dict(zip((r["from_ns"] for r in rows), made_minutes(rows), strict=True))
    assert [made[T0 + i * MINUTE] for i in (19, 22, 23, 24, 26, 27, 30)] == [
        15, 22, 22, 22, 26, 26, 30,
    ]  # fmt: skip


@pytest.mark.parametrize("fact", ["restarts", "eviction_size_acts", "eviction_time_acts"])
def test_evictions_and_restarts_begin_a_window(fact: str) -> None:
    rows = rising(40, **{fact: {20: 1}})
    found = size(rows)
    # In the minute of its own eviction the limit is reached.
    first = "broker" if fact == "eviction_size_acts" else "none"
    methods = ["theil_sen"] * 2 + [first] + ["none"] * 8 + ["theil_sen"] * 2
    assert [f.method for f in found[18:31]] == methods
    assert made_minutes(rows)[18:31] == [15, 15, *range(20, 30), 30]


def test_a_sawtooth_does_not_hide_its_slope() -> None:
    """Cleared every half hour, always at 100 bytes a minute."""
    levels = [100 * (i % 30 + 1) for i in range(120)]
    found = size(rows_of(levels, quota_size_limit_bytes=4_000))
    told = [f for f in found if f.method == "theil_sen"]
    assert len(told) == 4 * 21
    for place, forecast in enumerate(found):
        if place % 30 == 29 - 29 % 5:
            assert forecast.likely_s == pytest.approx(60 * (4_000 - levels[place]) / 100)


def test_a_new_limit_is_forecast_at_once() -> None:
    rows = rising(30, quota_size_limit_bytes={i: LIMIT if i < 22 else 5_000 for i in range(30)})
    assert made_minutes(rows)[20:27] == [20, 20, 22, 22, 22, 25, 25]
    assert size(rows)[22].likely_s == pytest.approx(60 * (5_000 - 2_300) / 100)


def test_a_quota_that_is_set_later_uses_the_hour_before() -> None:
    rows = rising(30, quota_size_limit_bytes=dict.fromkeys(range(22, 30), LIMIT))
    found = forecasts(rows)
    assert all(not f.by_quota for f in found[:22])
    assert found[22].by_quota["size"].method == "theil_sen"
    assert made_minutes(rows)[22:27] == [22, 22, 22, 25, 25]


def test_a_reached_limit_has_zero_seconds_until_there_is_room() -> None:
    rows = rows_of(
        [8_000 + 100 * i for i in range(21)] + [9_700, 9_400, 9_450, 9_500],
        quota_size_limit_bytes=LIMIT,
        # The broker holds producers down to 95 %.
        quota_size_breach_ns={20: 0, 21: 0, 22: 100 * S, 23: 100 * S},
    )
    found = size(rows)
    assert [f.reached for f in found[18:24]] == [False, False, True, True, False, False]
    assert found[20] == found[21] == QuotaForecast(0.0, 0.0, 0.0, "theil_sen", True, True)
    assert made_minutes(rows)[18:] == [15, 15, 20, 21, 22, 22, 22]


def test_a_quota_that_acts_below_the_limit_counts_as_reached() -> None:
    """It evicts down to nine tenths, or holds until there is room, in each of these minutes."""
    for acts, expected in (
        ({"eviction_size_acts": {21: 3, 22: 1}}, [False, True, True, False]),
        ({"parked_backlog_quota_ns": {21: 40 * S, 22: S // 100}}, [False, True, False, False]),
        # Held by the other quota: this one is far from its limit.
        ({"parked_backlog_quota_ns": {5: 40 * S}}, [False] * 4),
        ({"eviction_time_acts": {21: 3}}, [False] * 4),
    ):
        rows = rows_of(
            [5_000 + 100 * i for i in range(20)] + [9_100, 9_000, 9_050, 9_100],
            quota_size_limit_bytes=LIMIT,
            **acts,
        )
        found = size(rows)
        assert [f.reached for f in found[20:24]] == expected
        assert not any(f.stopped or f.reached for f in found[:20])
        assert all(f.likely_s == 0.0 and not f.stopped for f in found if f.reached)


def test_a_limit_of_zero_is_always_reached() -> None:
    found = size(rows_of([0, 0, 5], quota_size_limit_bytes=0))
    assert [(f.likely_s, f.method) for f in found] == [(0.0, "broker")] * 3
    found = size(rows_of([None] * 3, quota_size_limit_bytes=0))
    assert [(f.likely_s, f.method) for f in found] == [(None, "none")] * 3


def test_an_unknown_level_is_no_sample() -> None:
    rows = rising(30)
    for place in (10, 11, 20, 25):
        rows[place]["backlog_bytes"] = None
    found = size(rows)
    assert made_minutes(rows)[19:28] == [15, 20, 21, 21, 21, 21, 25, 26, 26]
    assert [found[i].method for i in (20, 25)] == ["none", "none"]
    assert found[21].likely_s == pytest.approx(60 * (LIMIT - 2_200) / 100)


def test_backlogs_that_stand_or_fall_are_not_approached() -> None:
    for levels in ([9_000] * 30, [9_000 - 50 * i for i in range(30)]):
        found = size(rows_of(levels, quota_size_limit_bytes=LIMIT))
        assert {f.method for f in found[9:]} == {"none"}


def test_a_possible_breach_is_forecast_from_half_use_on() -> None:
    wild = [(400 if i % 2 else -400) for i in range(60)]
    for base, methods in ((9_400, {"theil_sen"}), (4_000, {"none"})):
        found = size(rows_of([base + w for w in wild], quota_size_limit_bytes=LIMIT))
        assert {f.method for f in found[25:]} == methods
    told = size(rows_of([9_400 + w for w in wild], quota_size_limit_bytes=LIMIT))[-1]
    assert told.likely_s is None
    assert told.earliest_s is not None


def test_an_age_without_consumers_breaches_as_time_passes() -> None:
    ages = {i: (i + 1) * MINUTE for i in range(30)}
    rows = rows_of([1] * 30, quota_time_limit_ns=3_600 * S, oldest_age_ns=ages)
    found = [f.by_quota["time"] for f in forecasts(rows)]
    assert set(forecasts(rows)[0].by_quota) == {"time"}
    assert found[25].method == "theil_sen"
    assert found[25].likely_s == found[25].earliest_s == pytest.approx(3_600 - 26 * 60)


def test_an_age_with_consumers_follows_their_pace() -> None:
    """They take half of what comes: the oldest message ages by half a minute a minute."""
    ages = {i: (i + 1) * MINUTE // 2 for i in range(60)}
    rows = rows_of([1] * 60, quota_time_limit_ns=3_600 * S, oldest_age_ns=ages)
    found = forecasts(rows)[55].by_quota["time"]
    left_s = 3_600 - 28 * 60
    assert found.likely_s == pytest.approx(2 * left_s)
    # If they stopped now it would still take the whole rest.
    assert found.earliest_s is not None
    assert left_s <= found.earliest_s < 2 * left_s
    # Without backlog nothing is old.
    none = rows_of([0] * 30, quota_time_limit_ns=3_600 * S)
    assert {f.by_quota["time"].method for f in forecasts(none)} == {"none"}


def test_other_topics_and_incarnations_are_ignored() -> None:
    one, other, anew = rising(30), rising(30), rising(30, first=30)
    for row in other:
        row["topic"] += "2"
    for row in anew:
        row["incarnation"] = 2
    found = size([*one, *other, *anew])
    assert {f.method for f in found[30:39]} == {"none"}
    assert found[:30] == size(one)
    assert found[60:] == size(other)
    assert found[30:60] == size(anew)


@given(
    st.lists(st.integers(0, 12_000) | st.none(), min_size=1, max_size=150),
    st.sets(st.integers(0, 149), max_size=60),
    st.sets(st.integers(0, 149), max_size=3),
    st.integers(0, 119),
)
def test_an_hour_gives_the_same_forecasts_alone_and_with_others(
    levels: list[int | None], missing: set[int], restarts: set[int], first: int
) -> None:
    rows = rows_of(
        levels,
        first=first,
        quota_size_limit_bytes=LIMIT,
        restarts=dict.fromkeys(restarts, 1),
    )
    rows = [row for place, row in enumerate(rows) if place not in missing]
    every = {HOUR + i for i in range(6)}
    together = quota_usage_table(table_of(rows), every).to_pylist()
    for hour in every:
        near = [row for row in rows if row["from_ns"] // HOUR_NS in (hour - 1, hour)]
        alone = quota_usage_table(table_of(near), {hour}).to_pylist()
        assert alone == [row for row in together if int(row["minute"].timestamp()) // 3_600 == hour]


def test_a_forecast_of_a_new_hour_looks_back_over_its_edge() -> None:
    rows = rising(80)
    alone = quota_usage_table(table_of(rows), {HOUR + 1}).to_pylist()
    assert {row["method"] for row in alone} == {"theil_sen"}
    assert {row["forecast_at"].minute % 5 for row in alone} == {1}
