"""Options of ``backtest`` reach the job."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.cli.terminal import WIDTH_PIPED
from headgate.pipeline.options import BacktestOptions, FolderOptions
from tests.unit.cli.pipeline.jobs import loads


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[Any, ...]] = []

    def run_backtest(*words: Any) -> None:
        found.append(words)

    monkeypatch.delenv("COLUMNS", raising=False)
    asked = loads(monkeypatch, "backtest", run_backtest=run_backtest)
    words = "--out t --grid g.toml --since 2d --until 1d --run-id mine --format json"
    result = CliRunner().invoke(main, ["pipeline", "backtest", *words.split()])
    assert (result.exit_code, result.output) == (0, "")
    ((options, _out, _err),) = found
    folder = FolderOptions("t", "2d", "1d", "json", WIDTH_PIPED)
    assert options == BacktestOptions(folder, "g.toml", "mine")
    assert asked == ["queries.backtest"]


def test_a_grid_is_needed() -> None:
    result = CliRunner().invoke(main, ["pipeline", "backtest", "--out", "t"])
    assert result.exit_code == 2
    assert "Missing option '--grid'" in result.stderr
