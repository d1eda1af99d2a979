"""Options of ``compact`` reach the job."""

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
        ("--dry-run", {"is_dry_run": True}),
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
    assert asked == ["store.housekeeping.job"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--retain 0", "not in the range x>=2"),
        ("--vacuum --vacuum-hours -1", "not in the range x>=0"),
        ("--retain x", "not a valid integer"),
        # Also the number that is the default: who says it means to delete something.
        ("--vacuum-hours 24", "--vacuum-hours has no effect without --vacuum."),
    ],
)
def test_bad_options(monkeypatch: pytest.MonkeyPatch, words: str, said: str) -> None:
    asked = loads(monkeypatch, "compact")
    result = CliRunner().invoke(main, ["pipeline", "compact", "--out", "t", *words.split()])
    assert result.exit_code == 2
    assert said in result.stderr
    assert asked == []
