"""``compact``: what the command line says reaches the job."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.options import CompactOptions
from tests.unit.cli.pipeline.jobs import loads


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("", {}),
        ("--retain 7", {"retain_days": 7}),
        (
            "--vacuum --vacuum-hours 0 --dry-run",
            {"vacuum": True, "vacuum_hours": 0, "is_dry_run": True},
        ),
    ],
)
def test_options(monkeypatch: pytest.MonkeyPatch, words: str, options: dict[str, Any]) -> None:
    found: list[CompactOptions] = []
    asked = loads(monkeypatch, "compact", run_compact=lambda options, *_: found.append(options))
    result = CliRunner().invoke(main, ["pipeline", "compact", "--out", "t", *words.split()])
    assert (result.exit_code, result.output) == (0, "")
    assert found == [CompactOptions("t", **options)]
    assert asked == ["upkeep", "store.maintenance"]


@pytest.mark.parametrize("words", ["--retain 0", "--vacuum-hours -1", "--retain x"])
def test_bad_options(words: str) -> None:
    result = CliRunner().invoke(main, ["pipeline", "compact", "--out", "t", *words.split()])
    assert result.exit_code == 2
