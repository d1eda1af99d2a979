"""Plotly figures from plain values; the browser draws them.

Names that clients choose reach a chart only through :func:`label`, because plotly interprets some
HTML in its texts.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from headgate.base.texts import time_text as length_text
from headgate.base.units import MS_PER_S, NS_PER_MS, NS_PER_S
from headgate.pipeline.kernels.array_types import Doubles
from headgate.pipeline.report.backlogs import WorstBacklog
from headgate.pipeline.report.backtests import BacktestRun, GridPoint
from headgate.pipeline.report.grid import Grid, time_text
from headgate.pipeline.report.legend import (
    BLAME_COLORS,
    BLAME_NAMES,
    GREY,
    LIMIT_COLORS,
    PARK_COLORS,
    PARK_NAMES,
    QUOTA_COLOR,
    SLATE,
    VERMILION,
)
from headgate.pipeline.report.publishing import Limiter, ParkedTopic
from headgate.pipeline.report.quality import Quality
from headgate.pipeline.report.quotas import Breach, Eviction, QuotaTopic
from headgate.pipeline.time_span import Span
from headgate.record.fields import QUOTA_TYPES

_HEIGHT: Final = 300
_TALL: Final = 400
_MARKED_MAX: Final = 60
"""A line of at most so many points has markers, because a point between two gaps would otherwise be
invisible. Such a chart also draws each step from its begin to its end."""
_NAME_MAX: Final = 48
_HORIZON_S: Final = 86_400.0
"""Longest time to a breach that the chart shows; the text has no bound."""
_TICKS: Final = [
    {"dtickrange": [None, 59_999], "value": "%H:%M:%S\n%d %b %Y UTC"},
    {"dtickrange": [60_000, 86_400_000], "value": "%H:%M\n%d %b %Y UTC"},
    {"dtickrange": [86_400_000, None], "value": "%d %b\n%Y UTC"},
]
"""24-hour times in every locale."""
_TICKS_MAX: Final = 6
_TICK_STEPS_S: Final = tuple(
    unit * count
    for unit, counts in (
        (1, (1, 2, 5, 10, 15, 30)),
        (60, (1, 2, 5, 10, 15, 30)),
        (3_600, (1, 2, 4, 6, 12, 24)),
    )
    for count in counts
)
_PIXELS: Final = 150
"""Least height of a chart's axis."""
_PIXELS_WIDE: Final = 1_100
"""Width of a chart on a page of full width."""
_WIDTH_LINE: Final = 2
_DECIMALS: Final = 4


def label(name: str, length: int = _NAME_MAX) -> str:
    """A name that a client chose, escaped and shortened to ``length``."""
    short = name.removeprefix("persistent://")
    if len(short) > length:
        half = (length - 1) // 2
        short = f"{short[:half]}…{short[-half:]}"
    return html.escape(short)


def _is_visible(values: Doubles, axis_length: float) -> bool:
    """Whether any value is at least a pixel high on an axis of that length.

    A chart omits smaller series: plotly draws each bar at least a pixel high, and the legend would
    name series that nobody can see.
    """
    return float(np.nanmax(values, initial=0.0)) * _PIXELS > axis_length


def _highest_stack(stacked: Iterable[Doubles]) -> float:
    """Length of the axis of a stacked chart."""
    return float(np.sum([np.nan_to_num(values) for values in stacked], axis=0).max(initial=0.0))


def _values(values: Doubles) -> list[float | None]:
    """Values rounded to visible digits, which keeps the page small; null where unknown."""
    digits = [float(f"{v:.{_DECIMALS}g}") if not np.isnan(v) else None for v in values]
    return [int(v) if v is not None and v.is_integer() else v for v in digits]


def _mode(grid: Grid) -> str:
    return "lines+markers" if grid.count <= _MARKED_MAX else "lines"


def _steps(grid: Grid) -> dict[str, Any]:
    """The time axis as begin and step, much shorter than a list of times."""
    return {"x0": time_text(grid.start_ns), "dx": grid.step_ns / NS_PER_MS}


def _line(grid: Grid, values: Doubles, name: str, color: str, **more: Any) -> go.Scatter:
    """A line of levels, each drawn at the end of its step."""
    if grid.count <= _MARKED_MAX:
        axis: dict[str, Any] = {"x": [time_text(end) for end in grid.edges_ns[1:]]}
    else:
        axis = _steps(grid) | {"x0": time_text(grid.start_ns + grid.step_ns)}
    return go.Scatter(
        **axis, y=_values(values), name=name, mode=_mode(grid),
        line={"color": color, "width": _WIDTH_LINE} | more.pop("line", {}), marker={"size": 4},
        **more,
    )  # fmt: skip


def _with_first_level(line: go.Scatter, grid: Grid, level: float) -> go.Scatter:
    """``line`` with the level at its begin in front, if it has few steps: otherwise the first step
    would be empty."""
    first = next((i for i, value in enumerate(line.y) if value is not None), None)
    if grid.count <= _MARKED_MAX and first is not None:
        line.x = [time_text(grid.edges_ns[first]), *line.x[first:]]
        line.y = [level, *line.y[first:]]
    return line


def _rate(grid: Grid, values: Doubles, name: str, color: str, **more: Any) -> go.Scatter:
    """A line of rates: each over the length of its step if there are few, else in its middle."""
    y = _values(values)
    if grid.count <= _MARKED_MAX:
        edges = [time_text(edge) for edge in grid.edges_ns]
        axis: dict[str, Any] = {"x": [edge for step in pairwise(edges) for edge in step]}
        y = [value for value in y for _ in range(2)]
    else:
        axis = _steps(grid) | {"x0": time_text(grid.start_ns + grid.step_ns // 2)}
    return go.Scatter(
        **axis, y=y, name=name, mode="lines",
        line={"color": color, "width": _WIDTH_LINE} | more.pop("line", {}), **more,
    )  # fmt: skip


def _bars(grid: Grid, values: Doubles, name: str, color: str, hover: str) -> go.Bar:
    """Bars as wide as their steps; of few steps, as wide as the known part of each."""
    if grid.count <= _MARKED_MAX:
        edges = grid.edges_ns
        axis: dict[str, Any] = {
            "x": [time_text(edge) for edge in edges[:-1]],
            "width": (np.diff(edges) / NS_PER_MS).tolist(),
        }
    else:
        axis = _steps(grid) | {"width": grid.step_ns / NS_PER_MS}
    return go.Bar(
        **axis, y=_values(values), name=name, offset=0,
        marker={"color": color, "line": {"width": 0}}, hovertemplate=hover,
    )  # fmt: skip


def _set_time_axis(figure: go.Figure, grid: Grid, until: str | None = None) -> None:
    """Set the time axis to the known range, which may cut the first and the last step."""
    begin, end = time_text(grid.known_from_ns), time_text(grid.known_to_ns)
    end = end if until is None else until
    length = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    figure.update_xaxes(range=[begin, end], dtick=_tick_ms(length.total_seconds()))


def _tick_ms(length_s: float) -> float | None:
    """Milliseconds between two ticks, few enough for a narrow screen; None for ranges of many days.

    Without it plotly sets no tick between two bars, however far apart they are.
    """
    fitting = (step for step in _TICK_STEPS_S if step * _TICKS_MAX >= length_s)
    step_s = next(fitting, None)
    return None if step_s is None else step_s * MS_PER_S


def _layout(figure: go.Figure, height: int, **more: Any) -> go.Figure:
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 64, "r": 16, "t": 8, "b": 36},
        # Above the chart: on a narrow screen the legend has many lines, which push the chart down.
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        showlegend=True,
        hovermode="x unified",
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#888", "activecolor": SLATE},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        **more,
    )
    figure.update_xaxes(zeroline=False, automargin=True, tickformatstops=_TICKS, tickangle=0)
    figure.update_yaxes(zeroline=False, automargin=True, title_standoff=8)
    return figure


def backlog_figure(backlog: WorstBacklog, grid: Grid) -> go.Figure:
    """The backlog over time, above the causes of each step."""
    own = grid.within(backlog.span)
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.55, 0.45], vertical_spacing=0.06
    )
    figure.add_trace(
        _with_first_level(
            _line(
                own, backlog.levels, "backlog", SLATE, showlegend=False,
                hovertemplate="%{y:,} messages",
            ),
            own,
            backlog.backlog_messages - backlog.growth_messages,
        ),
        row=1, col=1,
    )  # fmt: skip
    for blame, values in backlog.shares.items():
        if blame != "NONE" and _is_visible(values, 1.0):
            figure.add_trace(_share(own, 100 * values, blame), row=2, col=1)
    _layout(figure, _TALL, barmode="stack")
    _set_time_axis(figure, grid)
    figure.update_yaxes(title_text="backlog (messages)", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title_text="cause (% of time)", range=[0, 100], row=2, col=1)
    return figure


def _share(grid: Grid, values: Doubles, blame: str) -> go.Bar | go.Scatter:
    """Bars if there are few steps, else an area, which the browser draws faster."""
    name, color, hover = BLAME_NAMES[blame], BLAME_COLORS[blame], "%{y:.0f} %"
    if grid.count <= _MARKED_MAX:
        return _bars(grid, values, name, color, hover)
    return go.Scatter(
        **_steps(grid), y=_values(values), name=name, mode="lines", stackgroup="one",
        line={"width": 0, "color": color, "shape": "hv"}, fillcolor=color, hovertemplate=hover,
    )  # fmt: skip


def parked_figure(held: ParkedTopic, grid: Grid) -> go.Figure:
    """Share of each step in which producers were held, stacked by cause."""
    figure = go.Figure()
    own = grid.within(held.span)
    lengths_s = np.maximum(np.diff(own.edges_ns), 1) / NS_PER_S
    shares = {cause: values / lengths_s for cause, values in held.parked_s.items()}
    highest = _highest_stack(shares.values())
    for cause, values in shares.items():
        if _is_visible(values, highest):
            figure.add_trace(
                _bars(own, 100 * values, PARK_NAMES[cause], PARK_COLORS[cause], "%{y:.0f} %")
            )
    _layout(figure, _HEIGHT, barmode="stack")
    _set_time_axis(figure, grid)
    figure.update_yaxes(title_text="held (% of time)", rangemode="tozero")
    return figure


def limiter_figure(limiter: Limiter, grid: Grid) -> go.Figure:
    """Offered and granted rates, with the limit."""
    figure = go.Figure()
    own = grid.within(limiter.span)
    unit = "B" if limiter.dimension == "bytes" else "messages"
    hover = "%{y:,.4s} " + unit + "/s"
    for values, name, color in (
        (limiter.offered_per_s, "offered", GREY),
        (limiter.granted_per_s, "granted", SLATE),
    ):
        if not np.isnan(values).all():
            figure.add_trace(_rate(own, values, name, color, hovertemplate=hover, fill="tozeroy"))
    if not np.isnan(limiter.limit_per_s).all():
        figure.add_trace(
            _rate(
                own, limiter.limit_per_s, "limit", LIMIT_COLORS.get(limiter.level, VERMILION),
                hovertemplate=hover, line={"dash": "dash"},
            )
        )  # fmt: skip
    _layout(figure, _HEIGHT)
    _set_time_axis(figure, grid)
    figure.update_yaxes(title_text=f"{unit} per second", rangemode="tozero")
    return figure


def quota_figure(topic: QuotaTopic, grid: Grid) -> go.Figure:
    """Use of the quotas, with the forecast of the breach."""
    figure = go.Figure()
    own = grid.within(Span(None, topic.until_ns))
    for quota, values, dash in (
        ("size", topic.size_use, "solid"),
        ("time", topic.time_use, "dash"),
    ):
        if not np.isnan(values).all():
            figure.add_trace(
                _line(
                    own, 100 * values, f"{quota} quota", SLATE,
                    hovertemplate="%{y:.1f} %", line={"dash": dash},
                )
            )  # fmt: skip
    end = time_text(grid.known_to_ns)
    if topic.breach is not None:
        end = max(end, *_add_breach(figure, topic.breach, grid))
    figure.add_trace(
        go.Scatter(
            x=[time_text(grid.known_from_ns), end], y=[100, 100], name="full", mode="lines",
            hoverinfo="skip", line={"color": QUOTA_COLOR, "dash": "dash", "width": _WIDTH_LINE},
        )
    )  # fmt: skip
    _layout(figure, _HEIGHT)
    _set_time_axis(figure, grid, end)
    highest = max(100.0, 100 * (topic.peak_use or 0.0))
    figure.update_yaxes(title_text="used (% of the quota)", range=[0, 1.08 * highest])
    return figure


def _add_breach(figure: go.Figure, breach: Breach, grid: Grid) -> tuple[str, ...]:
    """Draw the forecast from the last use to the limit: the likely time, and the band around it.

    Returns the times at which these lines end.
    """
    use = 100 * breach.use
    begin = time_text(breach.from_ns)
    ends = [begin]

    def at(seconds: float) -> str:
        ends.append(time_text(breach.from_ns + min(seconds, _HORIZON_S) * NS_PER_S))
        return ends[-1]

    likely, latest = breach.likely_s, breach.latest_s
    earliest = likely if breach.earliest_s is None else breach.earliest_s
    shown_s = (grid.known_to_ns - grid.known_from_ns) / NS_PER_S + likely
    if 0 < earliest <= _HORIZON_S and latest is not None and _is_wide(latest - earliest, shown_s):
        # The horizon cuts the band at the level that its slowest line has reached by then.
        reach = min(latest, _HORIZON_S)
        top = use + (100 - use) * (reach / latest if latest else 1)
        figure.add_trace(
            go.Scatter(
                x=[begin, at(earliest), at(reach), begin], y=[use, 100, top, use],
                fill="toself", mode="lines", line={"width": 0, "color": QUOTA_COLOR}, opacity=0.3,
                name="earliest to latest", hoverinfo="skip",
            )
        )  # fmt: skip
    if 0 < likely <= _HORIZON_S:
        figure.add_trace(
            go.Scatter(
                x=[begin, at(likely)], y=[use, 100], name="likely", mode="lines+markers",
                line={"color": QUOTA_COLOR, "dash": "dot", "width": _WIDTH_LINE},
                hovertemplate="%{y:.0f} %",
            )
        )  # fmt: skip
    return tuple(ends)


def _is_wide(seconds: float, axis_s: float) -> bool:
    """Whether a duration is at least a pixel wide on an axis of that length."""
    return seconds * _PIXELS_WIDE > axis_s


def eviction_figure(lost: Sequence[Eviction], grid: Grid) -> go.Figure:
    """Messages lost over time, stacked by quota."""
    figure = go.Figure()
    nothing = np.zeros(grid.count)
    by_quota = {
        quota: np.sum([e.messages_lost for e in lost if e.quota == quota] or [nothing], axis=0)
        for quota in QUOTA_TYPES
    }
    highest = _highest_stack(by_quota.values())
    for quota, color in (("size", SLATE), ("time", GREY)):
        values = by_quota[quota]
        if _is_visible(values, highest):
            figure.add_trace(_bars(grid, values, f"{quota} quota", color, "%{y:,} messages"))
    _layout(figure, _HEIGHT, barmode="stack")
    _set_time_axis(figure, grid)
    figure.update_yaxes(
        title_text=f"messages evicted in each {_step_text(grid)}", rangemode="tozero"
    )
    return figure


def pareto_figure(run: BacktestRun) -> go.Figure:
    """Every grid point by the time it holds producers and the time it is over the quota."""
    figure = go.Figure()

    def points(found: Sequence[GridPoint], name: str, **style: Any) -> None:
        if not found:
            return
        figure.add_trace(
            go.Scatter(
                x=[p.parked_seconds for p in found], y=[p.seconds_over_quota for p in found],
                name=name, hovertemplate="%{text}<extra></extra>",
                text=[_point_text(p) for p in found], cliponaxis=False, **style,
            )
        )  # fmt: skip

    points(
        [p for p in run.points if not p.is_pareto], "not on the front", mode="markers",
        marker={"color": GREY, "size": 7},
    )  # fmt: skip
    points(
        [p for p in run.points if p.is_pareto], "Pareto front", mode="markers",
        marker={"color": VERMILION, "size": 10},
    )  # fmt: skip
    steps = best_of_two(run.points)
    if len(steps) > 1:
        figure.add_trace(
            go.Scatter(
                x=[p.parked_seconds for p in steps], y=[p.seconds_over_quota for p in steps],
                name="best in these two measures", mode="lines", hoverinfo="skip",
                line={"color": VERMILION, "width": 1, "shape": "hv"},
            )
        )  # fmt: skip
    _layout(figure, _TALL)
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(title_text="producers held (s, all topics)", rangemode="tozero")
    figure.update_yaxes(title_text="over the quota (s, all topics)", rangemode="tozero")
    return figure


def best_of_two(points: Sequence[GridPoint]) -> list[GridPoint]:
    """The Pareto front of the chart's two measures, from left to right.

    The front of the run uses four measures: not each of its points is on this one.
    """
    found: list[GridPoint] = []
    for point in sorted(points, key=lambda p: (p.parked_seconds, p.seconds_over_quota)):
        if not found or point.seconds_over_quota < found[-1].seconds_over_quota:
            found.append(point)
    return found


def _point_text(point: GridPoint) -> str:
    rank = "" if point.rank is None else f"rank {point.rank}: "
    return (
        f"{rank}{label(point.name, 80)}<br>{label(point.settings, 80)}<br>"
        f"held {length_text(point.parked_seconds)}, "
        f"over the quota {length_text(point.seconds_over_quota)}"
    )


def quality_figure(quality: Quality, grid: Grid) -> go.Figure:
    """Completeness over time, with the gaps."""
    figure = make_subplots(specs=[[{"secondary_y": True}]])
    figure.add_trace(
        _rate(
            grid, 100 * quality.completeness_steps, "completeness", SLATE,
            hovertemplate="%{y:.1f} %",
        )
    )  # fmt: skip
    if quality.gaps_steps.max(initial=0) > 0:
        figure.add_trace(
            _bars(grid, quality.gaps_steps, "gaps", GREY, "%{y:,} gaps"), secondary_y=True
        )
        figure.update_yaxes(title_text="gaps", secondary_y=True, showgrid=False)
    _layout(figure, _HEIGHT)
    _set_time_axis(figure, grid)
    figure.update_yaxes(
        title_text="covered by telemetry (% of time)", range=[0, 105], secondary_y=False
    )
    return figure


def _step_text(grid: Grid) -> str:
    minutes = grid.step_ns // (60 * NS_PER_S)
    return "minute" if minutes == 1 else f"{minutes} minutes"
