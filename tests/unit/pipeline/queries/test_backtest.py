"""Options and output of backtests, with a stand-in for the session."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import BacktestOptions, FolderOptions
from headgate.pipeline.queries import backtest as module
from tests.unit.pipeline.queries.sessions import SPARK, opened
from tests.unit.pipeline.report.folder import quota_row, write


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "filling_session", opened)
    for table in ("quota_usage", "intervals"):
        write(tmp_path, table, [quota_row(0)])
    return str(tmp_path)


RANKED = {
    "name": "drain 0.7", "rank": 1, "score": 0.25, "conf": ["a=b"],
    "commands": ["headgate admin x"], "over_share": 0.0, "lost_share": 4e-6, "parked_share": 0.08,
    "settings": '{"name":"drain 0.7","adaptive":{"law":"drain","drain_horizon_ms":5000}}',
}  # fmt: skip


def test_a_backtest_runs_and_its_ranks_are_written(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def backtest(*words: Any) -> list[dict[str, Any]]:
        asked.append(words)
        return [dict(RANKED)]

    monkeypatch.setattr(module, "replay_range", backtest)
    monkeypatch.setattr(module, "load_grid", lambda path: f"<{path}>")
    out, err = io.StringIO(), io.StringIO()
    options = BacktestOptions(FolderOptions(root, format="json"), "grid.toml")
    run = module.run_backtest(options, out, err)
    assert json.loads(out.getvalue()) == [RANKED]
    ((*words, _progress),) = asked
    assert words == [SPARK, root, "<grid.toml>", None, None, run]
    assert datetime.strptime(run, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).year >= 2026
    assert err.getvalue() == f"Run {run}: 1 setting.\n"
    named = BacktestOptions(FolderOptions(root, width=100), "g", "mine")
    table = io.StringIO()
    assert module.run_backtest(named, table, err) == "mine"
    assert table.getvalue().endswith(
        "To set the best one, drain 0.7:\n\n  in broker.conf, for the next start\n    a=b\n\n"
        "  in a running broker, without settings that need a start\n    headgate admin x\n"
    )

    for told in ("adaptive: law drain, drain_horizon_ms 5,000", "< 0.1 %", "8 %", "\ncensored: "):
        assert told in table.getvalue()
    assert "share a rank" not in table.getvalue()


def test_a_tie_is_explained(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = [RANKED | {"name": name} for name in ("one", "two")] + [RANKED | {"rank": 3}]
    monkeypatch.setattr(module, "replay_range", lambda *_: ranked)
    monkeypatch.setattr(module, "load_grid", str)
    out, err = io.StringIO(), io.StringIO()
    module.run_backtest(BacktestOptions(FolderOptions(root, width=120), "g", "r"), out, err)
    assert out.getvalue().count("=1 ") == 2
    assert "=: settings with equal scores share a rank.\n" in out.getvalue()
    assert "To set the first of the 2 best ones, one:\n" in out.getvalue()
    assert err.getvalue() == "Run r: 3 settings.\n"


def test_one_error_lists_all_faults_of_a_backtest() -> None:
    options = BacktestOptions(FolderOptions("t", "soon"), "/nonexistent.toml", "a/b")
    with pytest.raises(InputError) as caught:
        module.run_backtest(options, io.StringIO(), io.StringIO())
    since, grid, run_id, folder = str(caught.value).splitlines()
    assert folder.startswith("there is no folder t yet (--out): ")
    assert since.startswith("--since 'soon' is no time: ")
    assert grid.startswith("grid file /nonexistent.toml cannot be read")
    assert run_id.startswith("--run-id 'a/b': up to 100 letters")
