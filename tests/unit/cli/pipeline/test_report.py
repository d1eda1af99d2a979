"""The command ``report``, from its options to the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.options import ReportOptions
from tests.unit.cli.pipeline.jobs import loads
from tests.unit.pipeline.report.folder import played


def test_options_reach_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[ReportOptions] = []
    asked = loads(monkeypatch, "report", run_report=lambda options, _err: found.append(options))
    words = ["--since", "2h", "--until", "1h", "--html", "x.html", "--count", "3"]
    assert CliRunner().invoke(main, ["pipeline", "report", "--out", "t", *words]).exit_code == 0
    assert CliRunner().invoke(main, ["pipeline", "report", "--out", "t"]).exit_code == 0
    assert found == [ReportOptions("t", "2h", "1h", "x.html", 3), ReportOptions("t")]
    assert asked == ["report.job", "report.job"]


def test_a_page_is_written(tmp_path: Path) -> None:
    played(tmp_path, 60)
    result = CliRunner().invoke(main, ["pipeline", "report", "--out", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"Wrote {tmp_path}/report.html (" in result.stderr
    assert "<title>Headgate: 2025-11-21 10:00:00 UTC" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("words", [["--count", "0"], ["--count", "51"], ["--since", "x"]])
def test_bad_options(tmp_path: Path, words: list[str]) -> None:
    played(tmp_path, 60)
    result = CliRunner().invoke(main, ["pipeline", "report", "--out", str(tmp_path), *words])
    assert result.exit_code == 2
