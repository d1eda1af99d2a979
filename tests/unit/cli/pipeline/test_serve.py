"""The command ``serve``."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.options import ServeOptions
from tests.unit.cli.pipeline.jobs import loads


def test_options_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[ServeOptions] = []
    loads(monkeypatch, "serve", run_serve=lambda options, _err: found.append(options))
    words = ["--port", "0", "--address", "0.0.0.0", "--insecure-listen"]
    for more in (words, []):
        result = CliRunner().invoke(main, ["pipeline", "serve", "--out", "t", *more])
        assert result.exit_code == 0, result.output
    assert found == [ServeOptions("t", "0.0.0.0", 0, True), ServeOptions("t")]


def test_an_open_address_must_be_meant(tmp_path: Path) -> None:
    words = ["pipeline", "serve", "--out", str(tmp_path), "--address", "0.0.0.0"]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, "--insecure-listen" in result.stderr) == (2, True)
