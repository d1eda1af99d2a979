"""Traces of the figures: positions, colours and names."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from headgate.pipeline.report import figures
from headgate.pipeline.report.grid import POINTS_MAX, Grid
from headgate.pipeline.report.legend import BLAME_COLORS, LIMIT_COLORS, PARK_COLORS
from headgate.pipeline.tables.attribution import BLAMES
from headgate.pipeline.tables.columns import MINUTE_NS
from headgate.pipeline.time_span import Span
from headgate.record.fields import PARK_CAUSES
from tests.unit.pipeline.play import T0, S
from tests.unit.pipeline.report import facts
from tests.unit.pipeline.report.facts import GRID

MINUTE_MS = 60_000


def traces(figure: Any) -> dict[str, Any]:
    return {trace.name: trace for trace in figure.data}


def all_figures(grid: Grid = GRID) -> list[Any]:
    return [
        figures.backlog_figure(facts.backlog(), grid),
        figures.parked_figure(facts.parked_topic(), grid),
        figures.limiter_figure(facts.limiter(), grid),
        figures.quota_figure(facts.quota_topic(facts.near_breach()), grid),
        figures.eviction_figure([facts.eviction(), facts.eviction("time")], grid),
        figures.quality_figure(facts.quality(), grid),
        figures.pareto_figure(facts.run()),
    ]


def test_every_cause_has_a_different_colour_in_each_chart() -> None:
    assert set(BLAME_COLORS) == set(BLAMES)
    assert set(PARK_COLORS) == set(PARK_CAUSES)
    for colors in (BLAME_COLORS, PARK_COLORS):
        assert len(set(colors.values())) == len(colors)


def test_axes_name_their_quantity() -> None:
    titles = [
        axis["title"]["text"]
        for figure in all_figures()
        for name, axis in figure.to_plotly_json()["layout"].items()
        if name.startswith("yaxis")
    ]
    assert titles == [
        "backlog (messages)",
        "cause (% of time)",
        "held (% of time)",
        "B per second",
        "used (% of the quota)",
        "messages evicted in each minute",
        "covered by telemetry (% of time)",
        "gaps",
        "over the quota (s, all topics)",
    ]


def test_backlog_over_its_causes() -> None:
    found = traces(figures.backlog_figure(facts.backlog(), GRID))
    assert set(found) == {"backlog", "topic limit"}
    backlog, limit = found["backlog"], found["topic limit"]
    # What it began with, then levels, each that of a minute's end; a share is of the whole minute.
    assert list(backlog.y) == [800, 1_000, None, 2_000]
    assert backlog.x[:2] == ("2025-11-21 10:00:00", "2025-11-21 10:01:00")
    assert limit.x[0] == "2025-11-21 10:00:00"
    assert list(limit.width) == [MINUTE_MS] * 3
    assert list(limit.y) == [100, 50, 0]
    assert limit.marker.color == BLAME_COLORS["THROTTLED_TOPIC"]
    assert (backlog.yaxis, limit.yaxis) == ("y", "y2")


def test_many_steps_are_areas_and_few_are_bars() -> None:
    many = Grid(GRID.start_ns, MINUTE_NS, 1_440)
    shares = dict.fromkeys(BLAMES, np.zeros(1_440)) | {"CONSUMER": np.ones(1_440)}
    long = facts.backlog(levels=np.ones(1_440), shares=shares)
    area = traces(figures.backlog_figure(long, many))["consumer"]
    assert (area.type, area.stackgroup, area.fillcolor) == ("scatter", "one", "#0072b2")
    assert len(area.y) == POINTS_MAX


def test_held_seconds_are_stacked_by_cause() -> None:
    figure = figures.parked_figure(facts.parked_topic(), GRID)
    found = traces(figure)
    assert set(found) == {"topic's publish limit", "broker's memory"}
    assert list(found["topic's publish limit"].y) == [16.67, 33.33, 0]
    assert figure.layout.barmode == "stack"


def test_invisible_causes_are_neither_drawn_nor_named() -> None:
    """A tenth of a percent of a minute is no pixel high, but a bar has always one."""
    shares = dict.fromkeys(BLAMES, np.zeros(3)) | {
        "CONSUMER": np.array([0.9, 0.0, 0.0]), "BROKER": np.array([0.001, 0.0, 0.002]),
    }  # fmt: skip
    assert set(traces(figures.backlog_figure(facts.backlog(shares=shares), GRID))) == {
        "backlog", "consumer",
    }  # fmt: skip
    many = Grid(GRID.start_ns, MINUTE_NS, 1_440)
    area = {blame: np.resize(values, 1_440) for blame, values in shares.items()}
    long = facts.backlog(levels=np.ones(1_440), shares=area)
    assert set(traces(figures.backlog_figure(long, many))) == {"backlog", "consumer"}
    parked = dict.fromkeys(PARK_CAUSES, np.zeros(3)) | {
        "topic_rate": np.array([50.0, 20.0, 0.0]), "memory": np.array([0.1, 0.0, 0.0]),
    }  # fmt: skip
    held = dataclasses.replace(facts.parked_topic(), parked_s=parked)
    assert set(traces(figures.parked_figure(held, GRID))) == {"topic's publish limit"}
    # Where the axis is shorter, the same is as high as the chart.
    alone = dataclasses.replace(held, parked_s=parked | {"topic_rate": np.zeros(3)})
    assert set(traces(figures.parked_figure(alone, GRID))) == {"broker's memory"}
    none = dataclasses.replace(facts.eviction("time"), messages_lost=np.zeros(3))
    assert set(traces(figures.eviction_figure([facts.eviction(), none], GRID))) == {"size quota"}


def test_series_without_points_are_not_in_a_legend() -> None:
    limiter = facts.limiter(limit_per_s=np.full(3, np.nan), offered_per_s=np.full(3, np.nan))
    assert set(traces(figures.limiter_figure(limiter, GRID))) == {"granted"}
    alone = figures.pareto_figure(facts.run(1))
    assert set(traces(alone)) == {"Pareto front"}
    day = Grid.over(T0, T0 + 1_440 * MINUTE_NS)
    thin = facts.near_breach(from_ns=day.end_ns, earliest_s=299.0, latest_s=301.0)
    figure = figures.quota_figure(facts.quota_topic(thin, size_use=np.ones(1_440)), day)
    assert set(traces(figure)) == {"size quota", "likely", "full"}


def test_an_unfinished_minute_is_drawn_up_to_its_end() -> None:
    """What came later than others, and ended earlier, is as high as its rate was."""
    span = Span(GRID.start_ns + 30 * S, GRID.end_ns - 40 * S)
    held = dataclasses.replace(facts.parked_topic(), span=span)
    (bars,) = (t for t in figures.parked_figure(held, GRID).data if t.name == "broker's memory")
    assert list(bars.x) == ["2025-11-21 10:00:30", "2025-11-21 10:01:00", "2025-11-21 10:02:00"]
    assert list(bars.width) == [30_000, 60_000, 20_000]
    assert list(bars.y) == [0, 0, 25]
    limiter = figures.limiter_figure(facts.limiter(span=span), GRID)
    assert list(traces(limiter)["offered"].x) == [
        "2025-11-21 10:00:30", "2025-11-21 10:01:00", "2025-11-21 10:01:00",
        "2025-11-21 10:02:00", "2025-11-21 10:02:00", "2025-11-21 10:02:20",
    ]  # fmt: skip
    backlog = figures.backlog_figure(facts.backlog(span=span), GRID)
    assert traces(backlog)["backlog"].x[-1] == "2025-11-21 10:02:20"
    topic = facts.quota_topic(until_ns=span.until_ns)
    assert traces(figures.quota_figure(topic, GRID))["size quota"].x[-1] == "2025-11-21 10:02:20"


def test_all_charts_show_the_range_that_is_known() -> None:
    partial = dataclasses.replace(GRID, known=Span(GRID.start_ns + S, GRID.end_ns - S // 2))
    for figure in all_figures(partial)[:-1]:
        for name, axis in figure.to_plotly_json()["layout"].items():
            if name.startswith("xaxis"):
                assert axis["range"][0] == "2025-11-21 10:00:01"
                assert axis["range"][1] in ("2025-11-21 10:02:59.500", "2025-11-21 10:13:00")


def test_legends_stand_above_where_nothing_else_is() -> None:
    for figure in all_figures():
        legend = figure.layout.legend
        assert (legend.y > 1, legend.yanchor, figure.layout.showlegend) == (True, "bottom", True)


def test_a_limit_is_drawn_with_offered_and_granted_rates() -> None:
    figure = figures.limiter_figure(facts.limiter(), GRID)
    found = traces(figure)
    assert list(found["offered"].y) == [90, 90, 160, 160, None, None]
    assert list(found["granted"].y) == [90, 90, 100, 100, None, None]
    assert found["limit"].line.color == LIMIT_COLORS["publish_broker"]
    assert figure.layout.yaxis.title.text == "B per second"


def test_a_breach_is_a_line_in_a_band() -> None:
    found = traces(figures.quota_figure(facts.quota_topic(facts.near_breach()), GRID))
    assert list(found["size quota"].y) == [50, 60, 70]
    assert "time quota" not in found
    likely, band = found["likely"], found["earliest to latest"]
    assert list(likely.x) == ["2025-11-21 10:03:00", "2025-11-21 10:08:00"]
    assert list(likely.y) == [70, 100]
    assert list(band.x) == [
        "2025-11-21 10:03:00", "2025-11-21 10:05:00", "2025-11-21 10:13:00", "2025-11-21 10:03:00",
    ]  # fmt: skip
    assert list(band.y) == [70, 100, 100, 70]
    assert list(found["full"].x) == ["2025-11-21 10:00:00", "2025-11-21 10:13:00"]


@pytest.mark.parametrize(
    ("breach", "names"),
    [
        (None, {"size quota", "full"}),
        (facts.near_breach(likely_s=0.0, earliest_s=0.0, latest_s=0.0), {"size quota", "full"}),
        (facts.near_breach(latest_s=None), {"size quota", "full", "likely"}),
        (facts.near_breach(likely_s=1e9, latest_s=None), {"size quota", "full"}),
    ],
)
def test_a_forecast_without_a_band_draws_none(breach: Any, names: set[str]) -> None:
    assert set(traces(figures.quota_figure(facts.quota_topic(breach), GRID))) == names


def test_a_band_beyond_a_day_is_cut_off() -> None:
    breach = facts.near_breach(latest_s=2 * 86_400.0)
    band = traces(figures.quota_figure(facts.quota_topic(breach), GRID))["earliest to latest"]
    assert band.x[2] == "2025-11-22 10:03:00"
    assert list(band.y) == [70, 100, 85, 70]


def test_evictions_by_quota() -> None:
    lost = [facts.eviction(), facts.eviction(), facts.eviction("time")]
    found = traces(figures.eviction_figure(lost, GRID))
    assert list(found["size quota"].y) == [200, 0, 0]
    assert list(found["time quota"].y) == [100, 0, 0]


def test_the_front_differs_from_other_points() -> None:
    found = traces(figures.pareto_figure(facts.run()))
    assert list(found["Pareto front"].y) == [0]
    assert list(found["not on the front"].y) == [10, 20]
    assert "<b>" not in found["Pareto front"].text[0]
    assert found["Pareto front"].mode == found["not on the front"].mode == "markers"


def test_the_line_joins_the_points_that_are_best_in_both_measures() -> None:
    """The front is of more measures than the chart has: in it, points of the front zigzag."""
    places = [(0.0, 90.0), (10.0, 95.0), (20.0, 40.0), (20.0, 60.0), (30.0, 40.0), (50.0, 5.0)]
    points = tuple(
        dataclasses.replace(
            facts.run().points[0], parked_seconds=held, seconds_over_quota=over, is_pareto=True
        )
        for held, over in reversed(places)
    )
    run = dataclasses.replace(facts.run(), points=points)
    line = traces(figures.pareto_figure(run))["best in these two measures"]
    assert list(zip(line.x, line.y, strict=True)) == [(0, 90), (20, 40), (50, 5)]
    assert (line.mode, line.line.shape) == ("lines", "hv")


def test_completeness_and_gaps() -> None:
    found = traces(figures.quality_figure(facts.quality(), GRID))
    assert list(found["completeness"].y) == [100, 100, 50, 50, None, None]
    assert list(found["gaps"].y) == [0, 2, 0]
    quiet = dataclasses.replace(facts.quality(), gaps_steps=np.zeros(3))
    assert set(traces(figures.quality_figure(quiet, GRID))) == {"completeness"}


@pytest.mark.parametrize(
    ("minutes", "tick_s"),
    [(0.8, 10), (3, 30), (6, 60), (60, 600), (200, 3_600), (361, 7_200), (1_440, 14_400)],
)
def test_times_on_the_axis_fit_beside_each_other(minutes: float, tick_s: int) -> None:
    begin, end = T0, T0 + int(minutes * MINUTE_NS)
    figure = figures.parked_figure(facts.parked_topic(), Grid.over(begin, end, 3))
    assert figure.layout.xaxis.dtick == 1_000 * tick_s


def test_the_axis_of_weeks_is_left_to_the_library() -> None:
    figure = figures.parked_figure(
        facts.parked_topic(), Grid.over(T0, T0 + 30 * 1_440 * MINUTE_NS, 3)
    )
    assert figure.layout.xaxis.dtick is None
