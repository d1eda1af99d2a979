"""The answers of a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.serve.history import History
from headgate.pipeline.tables.columns import HOUR_NS, MINUTE_NS
from headgate.pipeline.time_span import iso_text
from tests.unit.pipeline.output.test_views import segment
from tests.unit.pipeline.play import T0
from tests.unit.pipeline.report.folder import NS, backtest_row, played, quota_row, write


@pytest.fixture
def history(tmp_path: Path) -> History:
    played(tmp_path)
    write(tmp_path, "episodes", [segment(T0, T0 + 3 * MINUTE_NS)])
    write(tmp_path, "quota_usage", [quota_row(place) for place in range(3)])
    runs = [backtest_row(i) for i in range(3)] + [backtest_row(9, "r2")]
    write(tmp_path, "policy_backtest", runs, ("run_id",))
    return History(str(tmp_path), lambda: T0 + HOUR_NS)


def test_about(history: History, tmp_path: Path) -> None:
    assert history.about({}) == {
        "folder": str(tmp_path),
        "tables": ["intervals", "attribution", "episodes", "quota_usage", "policy_backtest"],
        "since": iso_text(T0),
        "until": iso_text(T0 + 3 * MINUTE_NS),
    }


def test_each_answer_is_json(history: History) -> None:
    one = {"topic": NS + "slow", "subscription": "s"}
    answers: dict[str, Any] = {
        "episodes": history.episodes({}),
        "episode": history.episode({**one, "at": iso_text(T0)}),
        "timelines": history.timelines({}),
        "timeline": history.timeline(one),
        "forecasts": history.forecasts({}),
        "forecast": history.forecast({"topic": NS + "filling"}),
        "backtests": history.backtests({}),
    }
    assert json.loads(json.dumps(answers, allow_nan=False)) == answers
    assert len(answers["episodes"]["episodes"]) == 1
    assert answers["timelines"]["subscriptions"]
    assert answers["forecasts"]["topics"][0]["topic"] == NS + "filling"


def test_backtests_are_the_newest_run_or_the_named_one(history: History) -> None:
    newest = history.backtests({})
    assert [run["runId"] for run in newest["runs"]] == ["r2", "r1"]
    assert (newest["run"]["runId"], newest["run"]["count"]) == ("r2", 1)
    older = history.backtests({"run": "r1"})["run"]
    assert [point["rank"] for point in older["points"]] == [1, 2, 3]
    assert older["points"][0]["isPareto"]
    with pytest.raises(InputError, match="no run 'r3'"):
        history.backtests({"run": "r3"})


def test_a_folder_without_a_table_says_what_makes_it(tmp_path: Path) -> None:
    played(tmp_path)
    history = History(str(tmp_path), lambda: T0)
    assert history.backtests({}) == {"runs": [], "run": None}
    with pytest.raises(InputError, match="has no table episodes yet: headgate pipeline run"):
        history.episodes({})
    with pytest.raises(InputError, match="has no table quota_usage"):
        history.forecasts({})


@pytest.mark.parametrize("query", [{}, {"topic": "t"}, {"subscription": "s"}])
def test_a_missing_parameter_is_named(history: History, query: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"the parameter (topic|subscription) is missing"):
        history.timeline(query)
