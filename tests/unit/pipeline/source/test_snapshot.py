"""A version of a table, with what its log tells of each file."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.source.snapshot import open_snapshot
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.quotas import QUOTA_USAGE
from tests.unit.pipeline.report.folder import quota_row, write
from tests.unit.pipeline.source.folder import append, minute_row


def test_bounds_of_partitions_and_of_statistics(tmp_path: Path) -> None:
    append(tmp_path, [minute_row(0), minute_row(30), minute_row(60)])
    snapshot = open_snapshot(str(tmp_path), INTERVALS)
    first = min(snapshot.files_with_bounds(), key=lambda found: found.file.hour)
    day = date(2025, 11, 21)
    assert first.bounds["date"] == (day, day)
    assert first.bounds["hour"] == (10, 10)
    assert first.bounds["kind"] == ("topic", "topic")
    start = datetime(2025, 11, 21, 10, tzinfo=UTC)
    # The log may round a time down to its millisecond.
    assert first.bounds["minute"] == (start, start + timedelta(minutes=30, milliseconds=1))


def test_another_layout_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "quota_usage", [quota_row(0)], layout=99)
    with pytest.raises(InputError, match="has table layout 99"):
        open_snapshot(str(tmp_path), QUOTA_USAGE)
