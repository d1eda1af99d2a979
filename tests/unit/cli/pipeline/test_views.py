"""The command ``views``, without Spark."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from headgate.cli.group import main
from tests.unit.pipeline.report.folder import quota_row, write


def test_a_script_alone_on_the_standard_output(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(0)])
    words = ["pipeline", "views", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, [*words, "--engine", "duckdb"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "CREATE OR REPLACE VIEW quota_usage AS" in result.stdout
    result = CliRunner().invoke(main, [*words, "--engine", "oracle"])
    assert result.exit_code == 2
    assert "'oracle' is not one of 'spark', 'duckdb', 'delta'" in result.stderr
