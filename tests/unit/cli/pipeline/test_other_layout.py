"""Every command refuses a folder of another layout before it does anything."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from headgate.cli.group import main
from headgate.pipeline.store.delta_log import LAYOUT_VERSION
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.columns import Table
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from tests.unit.pipeline.report.folder import write
from tests.unit.pipeline.scrapes.texts import write_scrapes

_AT = datetime(2025, 11, 21, 10, tzinfo=UTC)


def files_of(root: Path) -> dict[Path, int]:
    """What lies in a folder, but for the lock, and when it was written."""
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if "_delta_log" in path.parts}


@pytest.mark.parametrize(
    ("words", "table"),
    [
        ("run --scrapes {scrapes}", BRONZE_SAMPLES),
        ("attribute --scrapes {scrapes}", BRONZE_SAMPLES),
        ("attribute --no-read", INTERVALS),
        ("attribute --no-read --producers", INTERVALS),
        ("show attribution", ATTRIBUTION),
        ("show namespace_rollup", INTERVALS),
        ("report", INTERVALS),
        ("forecast", QUOTA_USAGE),
        ("forecast --score", INTERVALS),
        ("upgrade", ATTRIBUTION),
        ("upgrade --dry-run", ATTRIBUTION),
        ("compact", ATTRIBUTION),
        ("compact --retain 2", ATTRIBUTION),
        ("compact --vacuum --dry-run", ATTRIBUTION),
    ],
)
def test_it_is_reported_in_a_line_and_left_as_it_is(
    words: str, table: Table, tmp_path: Path
) -> None:
    root, scrapes = tmp_path / "tables", tmp_path / "scrapes"
    write_scrapes(scrapes, range(2))
    for name, column in (
        (ATTRIBUTION.name, "minute"),
        (BRONZE_SAMPLES.name, "window_end"),
        (INTERVALS.name, "minute"),
        (QUOTA_USAGE.name, "minute"),
    ):
        row = {"date": _AT.date(), "hour": 10, column: _AT}
        write(root, name, [row], layout=LAYOUT_VERSION + 1)
    before = files_of(root)
    typed = words.format(scrapes=scrapes).split()
    result = CliRunner().invoke(main, ["pipeline", *typed, "--out", str(root)])
    path = root / table.name
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"Error: {path} has table layout {LAYOUT_VERSION + 1}; this version reads and writes "
        f"{LAYOUT_VERSION}: use the newer release that wrote it\n"
    )
    assert files_of(root) == before
