"""Options and output of forecasts, with a stand-in for the session."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import FolderOptions, ForecastOptions
from headgate.pipeline.queries import forecast as module
from tests.unit.pipeline.queries.sessions import SPARK, opened
from tests.unit.pipeline.report.folder import quota_row, write


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "query_session", opened)
    for table in ("quota_usage", "intervals"):
        write(tmp_path, table, [quota_row(0)])
    return str(tmp_path)


def forecast(topic: str, seconds: float | None) -> dict[str, Any]:
    return {
        "cluster": "east" if topic in "abc" else "west",
        "minute": datetime(2026, 11, 21, 10 if topic in "abc" else 8, tzinfo=UTC),
        "topic": topic,
        "quota": "size",
        "use": 0.5,
        "forecast_at": datetime(2026, 11, 21, 10, tzinfo=UTC),
        "seconds_to_breach": seconds,
        "sentence": "It fills.",
    }


class Forecasts:
    """Answers, and remembers what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[Any] = []
        self.scored = 3
        monkeypatch.setattr(module, "forecast_rows", self.forecast_rows)
        monkeypatch.setattr(module, "forecast_score", self.forecast_score)

    def forecast_rows(self, *asked: Any) -> list[dict[str, Any]]:
        self.asked.append(asked)
        return [
            forecast("a", 0.0), forecast("b", 3_600.0), forecast("c", None), forecast("old", 0.0),
        ]  # fmt: skip

    def forecast_score(self, *asked: Any) -> Any:
        self.asked.append(asked)
        row = {"topic": None, "coverage": 0.8, "forecasts": self.scored}
        return SimpleNamespace(rows=lambda: [row], total=SimpleNamespace(forecasts=self.scored))


@pytest.fixture
def forecasts(monkeypatch: pytest.MonkeyPatch) -> Forecasts:
    return Forecasts(monkeypatch)


@pytest.mark.parametrize(("within", "near"), [(None, 0), ("1h", 2), ("59m", 1)])
def test_forecasts_are_written_and_near_ones_counted(
    root: str, forecasts: Forecasts, within: str | None, near: int
) -> None:
    out, err = io.StringIO(), io.StringIO()
    at = "2026-11-21T10:00:00Z"
    options = ForecastOptions(FolderOptions(root, format="json"), at, within=within)
    assert module.run_forecast(options, out, err) == near
    rows = json.loads(out.getvalue())
    assert [row["topic"] for row in rows] == ["a", "b", "c", "old"]
    assert rows[0]["forecast_at"] == at
    assert forecasts.asked == [(SPARK, root, 1_795_255_200 * 10**9)]
    assert "4 topics with a quota" in err.getvalue()
    said = "Cluster 'west' has no telemetry after 2026-11-21 08:00 UTC.\n"
    assert err.getvalue().endswith(said)


def test_scores_are_written_instead(root: str, forecasts: Forecasts) -> None:
    out = io.StringIO()
    folder = FolderOptions(root, "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z", format="csv")
    options = ForecastOptions(folder, is_score=True)
    assert module.run_forecast(options, out, io.StringIO()) == 0
    assert out.getvalue() == "topic,coverage,forecasts\n,0.8,3\n"
    since_ns = 1_795_255_200 * 10**9
    assert forecasts.asked == [(SPARK, root, since_ns, since_ns + 3_600 * 10**9)]


@pytest.mark.parametrize(
    ("style", "written"), [("table", ""), ("csv", "topic,coverage,forecasts\n,0.8,0\n")]
)
def test_a_sentence_says_that_there_was_no_forecast(
    root: str, forecasts: Forecasts, style: Any, written: str
) -> None:
    forecasts.scored = 0
    out, err = io.StringIO(), io.StringIO()
    options = ForecastOptions(FolderOptions(root, format=style), is_score=True)
    assert module.run_forecast(options, out, err) == 0
    assert out.getvalue() == written
    assert "There is nothing to score: no forecast was made in this range." in err.getvalue()


def test_a_table_has_selected_columns(root: str, forecasts: Forecasts) -> None:
    out = io.StringIO()
    options = ForecastOptions(FolderOptions(root, width=120))
    module.run_forecast(options, out, io.StringIO())
    assert "It fills." in out.getvalue()
    assert "forecast_at" not in out.getvalue()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (ForecastOptions(FolderOptions("t"), at="soon"), "--at 'soon' is no time"),
        (ForecastOptions(FolderOptions("t"), within="soon"), "--fail-within 'soon' is no duration"),
        (ForecastOptions(FolderOptions("/nonexistent")), "no folder /nonexistent yet"),
        (ForecastOptions(FolderOptions("t", "1h", "2h")), "does not lie before"),
        (
            ForecastOptions(FolderOptions("t", "x"), at="y", within="z"),
            "^--since 'x' .*\n--at 'y' .*\n--fail-within 'z' ",
        ),
    ],
)
def test_invalid_options_start_no_spark(options: ForecastOptions, said: str) -> None:
    with pytest.raises(InputError, match=said):
        module.run_forecast(options, io.StringIO(), io.StringIO())


@pytest.mark.parametrize(("is_score", "table"), [(False, "quota_usage"), (True, "intervals")])
def test_a_table_that_is_missing_starts_no_spark(
    tmp_path: Path, is_score: bool, table: str
) -> None:
    write(tmp_path, "evictions", [quota_row(0)])
    options = ForecastOptions(FolderOptions(str(tmp_path)), is_score=is_score)
    with pytest.raises(InputError, match=f"has no table {table}"):
        module.run_forecast(options, io.StringIO(), io.StringIO())
