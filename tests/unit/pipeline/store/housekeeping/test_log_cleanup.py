"""The log is shortened at a checkpoint, and kept for tables that still read it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from deltalake import DeltaTable

from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    source_key,
)
from headgate.pipeline.store.housekeeping.log_cleanup import clean_log
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.tables.attribution import ATTRIBUTION
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.added_files import files_added
from tests.unit.pipeline.store.housekeeping.folder import (
    fill,
    log_names,
    opened,
)
from tests.unit.pipeline.store.test_delta_log import appended


def filled_with_checkpoints(root: Path) -> None:
    """25 versions after the first, with checkpoints of the 10th and the 20th."""
    for count in (10, 10, 5):
        fill(root, count)
        if count == 10:
            opened(root).create_checkpoint()


def cleaned(root: Path, versions_kept: int, hours_kept: int = 0) -> int:
    return clean_log(str(root), INTERVALS.name, versions_kept=versions_kept, hours_kept=hours_kept)


def test_versions_of_some_hours_stay_readable(tmp_path: Path) -> None:
    """A stream makes a thousand versions in less than three hours; a reader of changes that stood
    still for longer lost its place, though the files were there for six."""
    filled_with_checkpoints(tmp_path)
    log = tmp_path / INTERVALS.name / "_delta_log"
    assert cleaned(tmp_path, 1, hours_kept=6) == 0
    now_s = time.time()
    for version in range(26):
        age_s = (25 - version) * 3_600 + 60
        os.utime(log / f"{version:020d}.json", (now_s - age_s, now_s - age_s))
    # Of 14 hours ago version 11 was the newest.
    assert cleaned(tmp_path, 1, hours_kept=14) == 10
    assert cleaned(tmp_path, 1, hours_kept=6) == 0
    assert cleaned(tmp_path, 1, hours_kept=5) == 11
    assert log_names(tmp_path)[0] == f"{20:020d}.checkpoint.parquet"


def test_the_log_is_shortened_at_a_checkpoint(tmp_path: Path) -> None:
    filled_with_checkpoints(tmp_path)
    assert cleaned(tmp_path, 25) == 0
    assert cleaned(tmp_path, 16) == 0
    assert cleaned(tmp_path, 10) == 10
    assert log_names(tmp_path)[0] == f"{10:020d}.checkpoint.parquet"
    assert DeltaTable(tmp_path / INTERVALS.name, version=10).version() == 10
    assert len(appended(tmp_path)) == 25
    assert cleaned(tmp_path, 10) == 0
    assert cleaned(tmp_path, 5) == 11
    fill(tmp_path, 1)
    assert vacuum(str(tmp_path), 0, False) == []
    assert len(appended(tmp_path)) == 26


def test_delta_creates_checkpoints_periodically(tmp_path: Path) -> None:
    for i in range(100):
        commit_append(str(tmp_path), INTERVALS, [], AppTransaction("a", i))
    assert any("checkpoint.parquet" in name for name in log_names(tmp_path))


def test_the_log_is_kept_for_tables_that_have_yet_to_read_it(tmp_path: Path) -> None:
    root = str(tmp_path)
    filled_with_checkpoints(tmp_path)
    key = source_key(opened(tmp_path))
    commit_append(root, ATTRIBUTION, [], AppTransaction(key, 9))
    assert cleaned(tmp_path, 1) == 0
    assert len(files_added(str(tmp_path), INTERVALS, opened(tmp_path), 9)) == 25 - 9
    commit_append(root, ATTRIBUTION, [], AppTransaction(key, 19))
    assert cleaned(tmp_path, 1) == 10
    assert len(files_added(str(tmp_path), INTERVALS, opened(tmp_path), 19)) == 25 - 19
    # One that has seen nothing reads all live files anyway.
    assert len(files_added(str(tmp_path), INTERVALS, opened(tmp_path), None)) == 25
