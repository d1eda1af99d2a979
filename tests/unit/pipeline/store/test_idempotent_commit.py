"""A commit with a lost response counts; another job's does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction

from headgate.pipeline.store.delta_log import commit_append, ensure_table
from headgate.pipeline.store.idempotent_commit import CommitConflictError, commit
from headgate.pipeline.store.table_store import TableStore, store_of
from headgate.pipeline.tables.intervals import INTERVALS
from tests.unit.pipeline.store.test_delta_log import appended, files

NAME = INTERVALS.name


def bucket(root: Path) -> TableStore:
    """A folder that is taken for a bucket."""
    return replace(store_of(str(root)), storage_options={})


def add(delta: DeltaTable, root: Path, value: int, properties: CommitProperties) -> str:
    """One more row."""
    (file,) = files(root, (10, value))
    action = AddAction(
        file.path, file.size_bytes, dict(file.partition), file.modified_ms, True, file.statistics
    )
    delta.create_write_transaction(
        [action], "append", delta.schema(), ["date", "hour", "kind"], commit_properties=properties
    )
    return "answered"


def refused(version: int) -> CommitFailedError:
    return CommitFailedError(f"Failed to commit transaction: {version}")


def test_a_lost_response_is_no_failure(tmp_path: Path) -> None:
    delta = ensure_table(str(tmp_path), INTERVALS)

    def act(properties: CommitProperties) -> str:
        add(delta, tmp_path, 1, properties)
        raise refused(0)

    assert commit(bucket(tmp_path), NAME, delta, act) is None
    assert appended(tmp_path) == [1]


def test_the_result_of_a_commit_is_returned(tmp_path: Path) -> None:
    delta = ensure_table(str(tmp_path), INTERVALS)
    said = commit(bucket(tmp_path), NAME, delta, lambda p: add(delta, tmp_path, 1, p))
    assert said == "answered"
    assert appended(tmp_path) == [1]


def test_the_second_writer_commits_nothing(tmp_path: Path) -> None:
    delta = ensure_table(str(tmp_path), INTERVALS)
    commit_append(str(tmp_path), INTERVALS, files(tmp_path, (10, 7)), None)
    for store in (bucket(tmp_path), store_of(str(tmp_path))):
        with pytest.raises(CommitConflictError, match=r"version 1 of .* intervals .* another job"):
            commit(store, NAME, delta, lambda p: add(delta, tmp_path, 1, p))
    assert appended(tmp_path) == [7]


def test_a_commit_that_never_arrived_is_an_error(tmp_path: Path) -> None:
    delta = ensure_table(str(tmp_path), INTERVALS)

    def act(properties: CommitProperties) -> None:
        raise refused(properties is None)

    for store in (bucket(tmp_path), store_of(str(tmp_path))):
        with pytest.raises(CommitFailedError):
            commit(store, NAME, delta, act)
