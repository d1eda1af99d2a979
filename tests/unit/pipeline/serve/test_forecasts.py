"""Forecasts, and what came true of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.base.units import NS_PER_S
from headgate.pipeline.serve.forecasts import forecast, forecasts, outcome
from headgate.pipeline.serve.selected_scan import SelectedScan
from headgate.pipeline.serve.selection import Selection
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.time_span import iso_text
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, played, quota_row, write

HOUR = (T0, T0 + HOUR_NS)


def usage_row(place: int, **more: Any) -> dict[str, Any]:
    """A minute with a forecast of its own, and all that ``quota_usage`` has."""
    at_ns = T0 + (place + 1) * MINUTE_NS
    return quota_row(
        place,
        to_ns=at_ns,
        forecast_at=datetime.fromtimestamp(at_ns / NS_PER_S, UTC),
        seconds_to_breach_earliest=300.0,
        seconds_to_breach=400.0,
        seconds_to_breach_latest=500.0,
        size_use_max=0.1 * place,
        time_use_max=None,
        eviction_size_acts=0,
        eviction_time_acts=0,
        eviction_size_messages=0,
        eviction_time_messages=0,
        **more,
    )


@pytest.fixture
def root(tmp_path: Path) -> str:
    rows = [usage_row(place) for place in range(9)]
    rows[8] |= {"seconds_to_breach": 0.0, "size_use_max": 1.0}
    write(tmp_path, "quota_usage", rows)
    played(tmp_path)
    return str(tmp_path)


def test_topics_with_their_forecast_and_the_accuracy(root: str) -> None:
    selection = Selection(T0, T0 + 9 * MINUTE_NS)
    usage = SelectedScan(root, "quota_usage", selection)
    answer = forecasts(usage, TableScan(root, "intervals"), selection)
    (topic,) = answer["topics"]
    assert (topic["topic"], topic["state"]) == (NS + "filling", "reached")
    assert topic["peakUse"] == 1.0
    assert (answer["reached"], answer["approached"]) == (1, 0)
    assert answer["accuracy"]["forecasts"] == sum(row["forecasts"] for row in answer["scores"])


def test_names_select_topics(root: str) -> None:
    selection = Selection(*HOUR, text="nothing")
    usage = SelectedScan(root, "quota_usage", selection)
    answer = forecasts(usage, TableScan(root, "intervals"), selection)
    assert (answer["topics"], answer["scores"]) == ([], [])


def test_each_forecast_has_what_came_true(root: str) -> None:
    scan = TableScan(root, "quota_usage")
    answer = forecast(scan, Selection(*HOUR), NS + "filling", "c1")
    assert answer["use"]["size"][:3] == [0.0, 0.1, 0.2]
    assert answer["use"]["size"][8] == 1.0
    assert answer["use"]["size"][9] is None
    first, *_, last = answer["forecasts"]
    assert first["at"] == iso_text(T0 + MINUTE_NS)
    assert first["likely"] == iso_text(T0 + MINUTE_NS + 400 * NS_PER_S)
    assert first["came"] == iso_text(T0 + 8 * MINUTE_NS)
    assert [each["outcome"] for each in answer["forecasts"]] == ["within"] * 3 + ["earlier"] * 5
    assert last["quota"] == "size"
    assert answer["sentence"] == "The size quota fills."


def test_an_unknown_topic_has_none(root: str) -> None:
    answer = forecast(TableScan(root, "quota_usage"), Selection(*HOUR), NS + "other")
    assert (answer["forecasts"], answer["sentence"]) == ([], None)


@pytest.mark.parametrize(
    ("came", "earliest", "latest", "end", "expected"),
    [
        (10, 8, 12, 20, "within"),
        (7, 8, 12, 20, "within"),
        (6, 8, 12, 20, "earlier"),
        (13, 8, 12, 20, "later"),
        (13, 8, None, 20, "within"),
        (1, None, None, 20, "within"),
        (None, 8, 12, 14, "not"),
        (None, 8, 12, 13, "open"),
        (None, 8, None, 99, "open"),
    ],
)
def test_outcomes(
    came: int | None, earliest: int | None, latest: int | None, end: int, expected: str
) -> None:
    def minutes(number: int | None) -> int | None:
        # A breach at an edge of the band by a second is told from one at its edge.
        return None if number is None else number * MINUTE_NS

    edge = None if earliest is None else earliest * MINUTE_NS - NS_PER_S
    assert outcome(minutes(came), edge, minutes(latest), end * MINUTE_NS) == expected
