"""Options of ``upgrade``."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.options import UpgradeOptions
from headgate.pipeline.spark_options import SparkOptions
from tests.unit.cli.pipeline.jobs import loads


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("", {}),
        ("--dry-run", {"is_dry_run": True}),
        ("--cores 2", {"spark": SparkOptions(cores=2)}),
    ],
)
def test_options(monkeypatch: pytest.MonkeyPatch, words: str, more: dict[str, Any]) -> None:
    found: list[UpgradeOptions] = []
    asked = loads(monkeypatch, "upgrade", run_upgrade=lambda options, *_: found.append(options))
    result = CliRunner().invoke(main, ["pipeline", "upgrade", "--out", "t", *words.split()])
    assert result.exit_code == 0
    assert asked == ["upgrade.job"]
    assert found == [UpgradeOptions("t", **more)]
