"""A vacuum deletes unused files and keeps young ones."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.base.errors import InputError
from headgate.pipeline.store.delta_log import (
    AppTransaction,
    commit_append,
    commit_replace,
    table_files,
)
from headgate.pipeline.store.housekeeping import vacuum as module
from headgate.pipeline.store.housekeeping.compact import compact
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.housekeeping.vacuum import VERSIONS_KEPT, vacuum
from headgate.pipeline.store.lock_tokens import LockLostError
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.store.table_store import store_of
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.housekeeping.folder import (
    fill,
    opened,
    progress,
)
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files


def old_file(root: Path, path: str, hours: float) -> Path:
    """Make a file of ``intervals`` look so old."""
    file = root / INTERVALS.name / path
    at = file.stat().st_mtime - hours * 3_600
    os.utime(file, (at, at))
    return file


def test_vacuum_deletes_orphans_and_keeps_young_files(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    orphan = old_file(tmp_path, files(tmp_path, (10, 98))[0].path, 9)
    young = tmp_path / INTERVALS.name / files(tmp_path, (10, 99))[0].path
    # Old when it was written, dead for a moment only: somebody may be reading it.
    (live,) = (f.path for f in table_files(opened(tmp_path))[:1])
    just_removed = old_file(tmp_path, live, 9)
    commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, 5)), [HOUR], None)
    for _ in range(VERSIONS_KEPT):
        commit_append(str(tmp_path), INTERVALS, [], AppTransaction(f"{_}", 1))
    name = f"{INTERVALS.name}/{orphan.relative_to(tmp_path / INTERVALS.name)}"
    assert vacuum(str(tmp_path), 8, True) == [name]
    assert orphan.exists()
    assert vacuum(str(tmp_path), 8, False) == [name]
    assert (orphan.exists(), young.exists(), just_removed.exists()) == (False, True, True)
    assert len(vacuum(str(tmp_path), 0, False)) == 3
    assert (young.exists(), just_removed.exists()) == (False, False)
    assert appended(tmp_path) == [5]


def test_vacuum_checks_the_lock_before_each_batch_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 1)
    orphans = [old_file(tmp_path, files(tmp_path, (10, i))[0].path, 9) for i in range(5)]
    looks: list[int] = []

    def check_lease(_: str, name: str) -> None:
        assert name == "intervals.housekeeping"
        looks.append(sum(orphan.exists() for orphan in orphans))
        if len(looks) == 4:
            raise LockLostError("taken over")

    monkeypatch.setattr(module, "DELETED_AT_ONCE", 2)
    monkeypatch.setattr(module, "check_lease", check_lease)
    with pytest.raises(LockLostError):
        vacuum(str(tmp_path), 1, False)
    assert looks == [5, 5, 3, 1]


def test_in_a_bucket_an_unknown_file_stays_for_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 1)
    old = old_file(tmp_path, files(tmp_path, (10, 98))[0].path, 2)
    young = old_file(tmp_path, files(tmp_path, (10, 99))[0].path, 0.5)
    (replaced,) = (f.path for f in table_files(opened(tmp_path)))
    for i in range(VERSIONS_KEPT + 1):
        commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, i)), [HOUR], None)
    bucket = dataclasses.replace(store_of(str(tmp_path)), storage_options={})
    monkeypatch.setattr(module, "store_of", lambda _: bucket)
    found = {Path(path).name for path in vacuum(str(tmp_path), 0, True)}
    assert {old.name, Path(replaced).name} <= found
    assert young.name not in found


def test_vacuum_leaves_the_last_versions_readable(tmp_path: Path) -> None:
    for i in range(VERSIONS_KEPT + 5):
        commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, i)), [HOUR], None)
    last = opened(tmp_path).version()
    vacuum(str(tmp_path), 0, False)
    for version in range(last - VERSIONS_KEPT + 1, last + 1):
        delta = DeltaTable(tmp_path / INTERVALS.name, version=version)
        assert delta.to_pyarrow_table()["appended"].to_pylist() == [version - 1]
    gone = DeltaTable(tmp_path / INTERVALS.name, version=last - VERSIONS_KEPT)
    with pytest.raises(FileNotFoundError):
        gone.to_pyarrow_table()


def test_a_second_vacuum_has_nothing_to_do(tmp_path: Path) -> None:
    """The log tells for a week of files that the first one deleted. Deleting them again failed, so
    the daily ``compact --vacuum`` worked once."""
    for i in range(VERSIONS_KEPT + 5):
        commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, i)), [HOUR], None)
    assert len(vacuum(str(tmp_path), 0, False)) == 5
    assert vacuum(str(tmp_path), 0, True) == []
    assert vacuum(str(tmp_path), 0, False) == []
    commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, 99)), [HOUR], None)
    assert len(vacuum(str(tmp_path), 0, True)) == 1
    assert len(vacuum(str(tmp_path), 0, False)) == 1


def test_a_reader_can_finish_reading_its_version(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    reader = opened(tmp_path)
    compact(str(tmp_path), [INTERVALS.name], progress())
    vacuum(str(tmp_path), 1, False)
    assert sorted(reader.to_pyarrow_table()["appended"].to_pylist()) == [0, 1, 2, 3, 4]


def test_vacuum_deletes_empty_folders(tmp_path: Path) -> None:
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (9, 1), (10, 2)), None)
    for i in range(VERSIONS_KEPT + 1):
        commit_replace(str(tmp_path), INTERVALS, [], [HOUR - 1], AppTransaction("a", i))
    vacuum(str(tmp_path), 0, False)
    folders = {path.name for path in (tmp_path / INTERVALS.name / "date=2025-11-21").iterdir()}
    assert folders == {"hour=10"}


def test_files_of_a_job_that_fills_the_table_stay(tmp_path: Path) -> None:
    """It has written some that it will commit, and reads some that were replaced."""
    fill(tmp_path, 1)
    (replaced,) = (f.path for f in table_files(opened(tmp_path)))
    for i in range(VERSIONS_KEPT + 1):
        commit_replace(str(tmp_path), INTERVALS, files(tmp_path, (10, i)), [HOUR], None)
    uncommitted = files(tmp_path, (10, 98))
    old_file(tmp_path, uncommitted[0].path, 9)
    with fill_leases(str(tmp_path), tables=[INTERVALS.name]):
        assert vacuum(str(tmp_path), 0, False) == []
        assert commit_append(str(tmp_path), INTERVALS, uncommitted, None)
    assert appended(tmp_path) == [VERSIONS_KEPT, 98]
    orphan = old_file(tmp_path, files(tmp_path, (10, 99))[0].path, 9)
    assert (tmp_path / INTERVALS.name / replaced).exists()
    with fill_leases(str(tmp_path), tables=[INTERVALS.name]):
        vacuum(str(tmp_path), 8, False, filled_here=[INTERVALS.name])
    assert not orphan.exists()


def test_negative_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="retain_hours is -1"):
        vacuum(str(tmp_path), -1, True)
    with pytest.raises(InputError, match="retention is 1 days; at least 2 are needed"):
        drop_before(str(tmp_path), 1)
