"""Retention drops whole hours from every table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from headgate.pipeline.store.delta_log import (
    commit_append,
    ensure_table,
    kept_from_hour,
)
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.added_files import files_added
from tests.unit.pipeline.store.housekeeping.folder import (
    opened,
)
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files


def test_retention_drops_whole_hours_and_records_it(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1), (10, 2), (11, 3)), None)
    ensure_table(root, ATTRIBUTION)
    now_ns = (HOUR + 48) * HOUR_NS + 5
    seen = opened(tmp_path).version()
    assert drop_before(root, 2, now_ns=now_ns) == 1
    assert appended(tmp_path) == [2, 3]
    assert kept_from_hour(opened(tmp_path)) == HOUR
    assert kept_from_hour(opened(tmp_path, ATTRIBUTION)) is None
    assert files_added(str(tmp_path), INTERVALS, opened(tmp_path), seen) == []
    assert drop_before(root, 2, now_ns=now_ns) == 0
    assert drop_before(root, 2, now_ns=now_ns + HOUR_NS) == 1
    assert (appended(tmp_path), kept_from_hour(opened(tmp_path))) == ([3], HOUR + 1)


def test_late_rows_of_a_dropped_hour_are_dropped_next_time(tmp_path: Path) -> None:
    """Also where retention is longer by then, and the next time is the same hour."""
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1), (10, 2)), None)
    now_ns = (HOUR + 48) * HOUR_NS + 5
    for days in (2, 2, 30):
        commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)
        assert drop_before(root, days, now_ns=now_ns) > 0
        assert (appended(tmp_path), kept_from_hour(opened(tmp_path))) == ([2], HOUR)


def test_retention_leaves_tables_that_have_no_hours(tmp_path: Path) -> None:
    schema = pa.schema([("run_id", pa.string()), ("score", pa.float64())])
    DeltaTable.create(tmp_path / "policy_backtest", schema, partition_by=["run_id"])
    assert drop_before(str(tmp_path), 2) == 0
    assert DeltaTable(tmp_path / "policy_backtest").version() == 0
