"""A process follows a log: it reads only what was added, and notices another log."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from deltalake.exceptions import TableNotFoundError

from headgate.pipeline.store.delta_log import (
    TableFile,
    commit_append,
    commit_drop,
    commit_replace,
    ensure_table,
    file_of_action,
    table_files,
)
from headgate.pipeline.store.followed_log import FollowedLog
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.table_store import TableStore, store_of
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.test_delta_log import HOUR, files


def follow(root: Path) -> FollowedLog[TableFile]:
    return FollowedLog(store_of(str(root)), INTERVALS.name, file_of_action, table_files)


def listed(root: Path) -> list[TableFile]:
    return in_order(table_files(ensure_table(str(root), INTERVALS)))


def in_order(found: list[TableFile]) -> list[TableFile]:
    return sorted(found, key=lambda file: file.path)


def test_what_was_added_and_removed_is_what_a_whole_listing_tells(tmp_path: Path) -> None:
    root = str(tmp_path)
    ensure_table(root, INTERVALS)
    log = follow(tmp_path)
    log.advance()
    assert (log.files(), log.hours(), log.version) == ([], [], 0)
    for value in range(3):
        commit_append(root, INTERVALS, files(tmp_path, (9, value), (10, value)), None)
    log.advance()
    assert in_order(log.files()) == listed(tmp_path)
    assert log.hours() == [HOUR - 1, HOUR]
    replaced = {file.path for file in log.files_of_hours([HOUR])}
    compact_table(root, INTERVALS.name)
    commit_replace(root, INTERVALS, files(tmp_path, (10, 7)), [HOUR], None)
    commit_drop(root, INTERVALS.name, HOUR)
    log.advance()
    assert in_order(log.files()) == listed(tmp_path)
    assert log.hours() == [HOUR]
    assert replaced <= {file.path for file in log.removed_files()}
    assert log.loads == 1


def test_removed_files_are_forgotten_by_version(tmp_path: Path) -> None:
    root = str(tmp_path)
    ensure_table(root, INTERVALS)
    log = follow(tmp_path)
    log.advance()
    for value in range(3):
        commit_replace(root, INTERVALS, files(tmp_path, (10, value)), [HOUR], None)
    log.advance()
    assert [file.version for file in log.removed_files()] == [2, 3]
    log.forget_removed(2)
    assert [file.version for file in log.removed_files()] == [3]


def test_nothing_is_read_again_without_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_table(str(tmp_path), INTERVALS)
    log, read = follow(tmp_path), []
    text = TableStore.text

    def counted(store: TableStore, *names: str) -> str:
        read.append(names[-1])
        return text(store, *names)

    monkeypatch.setattr(TableStore, "text", counted)
    for value in range(2):
        commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, value)), None)
        for _ in range(3):
            log.advance()
    assert read == [f"{2:020d}.json"]
    assert log.loads == 1


def test_a_table_that_was_made_again_is_read_as_a_whole(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)
    log = follow(tmp_path)
    log.advance()
    assert log.hours() == [HOUR - 1]
    shutil.rmtree(tmp_path / INTERVALS.name)
    with pytest.raises(TableNotFoundError):
        log.advance()
    commit_append(root, INTERVALS, files(tmp_path, (10, 22)), None)
    newest = tmp_path / INTERVALS.name / "_delta_log" / f"{1:020d}.json"
    os.utime(newest, (1, 1))
    log.advance()
    assert log.hours() == [HOUR]
    assert in_order(log.files()) == listed(tmp_path)


def test_a_log_that_lost_the_versions_since_is_read_as_a_whole(tmp_path: Path) -> None:
    root = str(tmp_path)
    commit_append(root, INTERVALS, files(tmp_path, (9, 1)), None)
    log = follow(tmp_path)
    log.advance()
    commit_append(root, INTERVALS, files(tmp_path, (10, 2)), None)
    ensure_table(root, INTERVALS).create_checkpoint()
    for version in (0, 1):
        (tmp_path / INTERVALS.name / "_delta_log" / f"{version:020d}.json").unlink()
    log.advance()
    assert in_order(log.files()) == listed(tmp_path)
    assert log.loads == 2
