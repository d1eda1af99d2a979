"""Parts of a Grafana board, in the form of Grafana's dashboard schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from boards.alert_rules import Alert
from boards.selectors import variables

SCHEMA_VERSION: Final = 39
"""Grafana 10 and later read it."""
COLUMNS: Final = 24
"""Width of a board in Grafana's units."""
_HEIGHT: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_TAG: Final = "headgate"

OPEN_TOPIC: Final = {
    "title": "Open the topic in the broker's page",
    "url": "${page}/headgate/#/topic/${__field.labels.topic:percentencode}",
    "targetBlank": True,
}
"""A link of a series with the label ``topic``."""


@dataclass(frozen=True, slots=True)
class Query:
    """One expression, and how its series are called."""

    expression: str
    legend: str = "__auto"


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    title: str
    meaning: str
    """What a reader learns from it."""
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = _HEIGHT
    threshold: float | None = None
    """A line: where an alert begins."""
    is_stacked: bool = False
    opens_topic: bool = True
    colors: Mapping[str, str] = field(default_factory=dict)
    """By the name of a series."""


@dataclass(frozen=True, slots=True)
class Row:
    """A heading with its panels."""

    title: str
    panels: Sequence[Panel]
    is_collapsed: bool = False


def share(title: str, meaning: str, *queries: Query, **fields: Any) -> Panel:
    """A panel of parts of a whole, 0 to 1."""
    return Panel(title, meaning, queries, unit="percentunit", **fields)


def figure(title: str, meaning: str, expression: str, unit: str = "short") -> Panel:
    """One number of now."""
    return Panel(
        title, meaning, (Query(expression),), unit=unit, kind="stat", width=6, height=4,
        opens_topic=False,
    )  # fmt: skip


def alert_row(alerts: Sequence[Alert]) -> Row:
    """A panel with the expression of each alert: it has a series while the alert is pending or
    fires."""
    return Row(
        "Alerts: a series means that the alert is pending or fires",
        [
            Panel(
                alert.name,
                f"The expression of the alert, of deploy/prometheus. docs/guide/{alert.guide} says "
                "what it means and what to do.",
                (Query(alert.expression),),
                width=8,
                height=6,
                opens_topic="topic" in alert.expression,
            )
            for alert in alerts
        ],
        is_collapsed=True,
    )  # fmt: skip


def board(
    name: str, title: str, meaning: str, rows: Sequence[Row], *,
    source: str = "pulsar_topics_count", has_page: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """A board as Grafana imports it. ``source`` is the series whose labels the variables list."""
    links = [_link("Other boards", type="dashboards", tags=[_TAG], asDropdown=True)]
    if has_page:
        links.append(_link("Broker's page", type="link", url="${page}/headgate/"))
    names = variables(source)
    return {
        "uid": f"headgate-{name}",
        "title": title,
        "description": meaning,
        "tags": [_TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timepicker": {},
        "fiscalYearStartMonth": 0,
        "weekStart": "",
        "annotations": {"list": []},
        "links": links,
        "templating": {
            "list": [each for each in names if has_page or each["name"] != "page"],
        },
        "panels": _placed(rows, has_page=has_page),
    }


def _link(title: str, **fields: Any) -> dict[str, Any]:
    return {
        "title": title, "icon": "external link", "tooltip": "", "url": "", "tags": [],
        "asDropdown": False, "targetBlank": True, "includeVars": True, "keepTime": True, **fields,
    }  # fmt: skip


def _placed(rows: Sequence[Row], *, has_page: bool) -> list[dict[str, Any]]:
    """Panels from left to right and from top to bottom, each with its number."""
    found: list[dict[str, Any]] = []
    number, top = 1, 0
    for row in rows:
        heading: dict[str, Any] = {
            "id": number, "type": "row", "title": row.title, "collapsed": row.is_collapsed,
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}, "panels": [],
        }  # fmt: skip
        number, top = number + 1, top + 1
        left = highest = 0
        inside = []
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, highest = 0, top + highest, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            inside.append(_panel(panel, number, place, has_page=has_page))
            number, left, highest = number + 1, left + panel.width, max(highest, panel.height)
        top += highest
        found.append(heading)
        if row.is_collapsed:
            heading["panels"] = inside
        else:
            found += inside
    return found


def _panel(
    panel: Panel, number: int, place: Mapping[str, int], *, has_page: bool
) -> dict[str, Any]:
    links = [OPEN_TOPIC] if panel.opens_topic and has_page and panel.kind == "timeseries" else []
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _SOURCE,
        "gridPos": place,
        "links": [],
        "targets": [
            {
                "datasource": _SOURCE,
                "refId": chr(ord("A") + place_of),
                "expr": query.expression,
                "legendFormat": query.legend,
                "range": panel.kind == "timeseries",
                "instant": panel.kind != "timeseries",
                "editorMode": "code",
                "format": "time_series",
            }
            for place_of, query in enumerate(panel.queries)
        ],
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "links": links,
                "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
                "thresholds": {"mode": "absolute", "steps": _steps(panel.threshold)},
                "custom": _drawing(panel) if panel.kind == "timeseries" else {},
            },
            "overrides": [
                {
                    "matcher": {"id": "byName", "options": name},
                    "properties": [
                        {"id": "color", "value": {"mode": "fixed", "fixedColor": color}}
                    ],
                }
                for name, color in panel.colors.items()
            ],
        },
        "options": _options(panel),
    }


def _steps(threshold: float | None) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    return steps if threshold is None else [*steps, {"color": "red", "value": threshold}]


def _drawing(panel: Panel) -> dict[str, Any]:
    return {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 40 if panel.is_stacked else 0,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if panel.is_stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "off" if panel.threshold is None else "dashed"},
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "none", "graphMode": "none", "justifyMode": "auto",
            "textMode": "auto", "orientation": "auto",
        }  # fmt: skip
    return {
        "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True,
                   "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }  # fmt: skip
