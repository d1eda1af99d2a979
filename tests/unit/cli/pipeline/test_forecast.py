"""Options and exit status of ``forecast``."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.cli.pipeline.common import EXIT_FOUND
from headgate.cli.terminal import WIDTH_PIPED
from headgate.pipeline.options import FolderOptions, ForecastOptions
from tests.unit.cli.pipeline.jobs import loads


def forecast(*words: str) -> Any:
    return CliRunner().invoke(main, ["pipeline", "forecast", "--out", "t", *words])


@pytest.mark.parametrize(
    ("words", "near", "status", "said"),
    [
        ("", 0, 0, ""),
        ("--fail-within 1h", 0, 0, ""),
        ("--fail-within 1h", 1, EXIT_FOUND, "1 quota is reached now, or likely within 1h.\n"),
        ("--fail-within 2d", 3, EXIT_FOUND, "3 quotas are reached now, or likely within 2d.\n"),
    ],
)
def test_a_script_learns_that_a_quota_is_near(
    monkeypatch: pytest.MonkeyPatch, words: str, near: int, status: int, said: str
) -> None:
    asked = loads(monkeypatch, "forecast", run_forecast=lambda *_: near)
    result = forecast(*words.split())
    assert (result.exit_code, result.stdout) == (status, "")
    assert result.stderr == (f"--fail-within: {said}" if said else "")
    assert asked == ["queries.forecast"]


@pytest.mark.parametrize(
    ("words", "folder", "more"),
    [
        ("--at 5m --format csv", {"format": "csv"}, {"at": "5m"}),
        ("--score --since 2d --until 1d", {"since": "2d", "until": "1d"}, {"is_score": True}),
        ("--fail-within 1h", {}, {"within": "1h"}),
    ],
)
def test_options(
    monkeypatch: pytest.MonkeyPatch, words: str, folder: dict[str, Any], more: dict[str, Any]
) -> None:
    found: list[ForecastOptions] = []

    def run_forecast(options: ForecastOptions, *_: object) -> int:
        found.append(options)
        return 0

    monkeypatch.delenv("COLUMNS", raising=False)
    loads(monkeypatch, "forecast", run_forecast=run_forecast)
    assert forecast(*words.split()).exit_code == 0
    assert found == [ForecastOptions(FolderOptions("t", width=WIDTH_PIPED, **folder), **more)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--since 1h", "--since and --until need --score"),
        ("--score --at 1h", "--score takes neither --at nor --fail-within"),
        ("--score --fail-within 1h", "--score takes neither"),
    ],
)
def test_options_that_exclude_each_other(
    monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    asked = loads(monkeypatch, "forecast")
    result = forecast(*words.split())
    assert result.exit_code == 2
    assert said in result.stderr
    assert asked == []
