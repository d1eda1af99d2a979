"""An idempotent commit to a table: it makes the next version once, or fails.

A commit puts the next version, and the file system or S3 refuses it if that version exists. If a
response of S3 is lost, delta-rs repeats the put, finds its own version and takes it for another
writer's. So each commit carries a mark: after a refusal, the job reads whose mark the version has.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.store.table_store import LOG, TableStore

MARK_KEY: Final = "headgate.commit"
"""Key in a commit's metadata with a value that no other commit has."""

Result = TypeVar("Result")


class CommitConflictError(PipelineError):
    """Another job has written the version that a commit was about to make; it had no effect."""


def commit(
    store: TableStore,
    name: str,
    delta: DeltaTable,
    make_commit: Callable[[CommitProperties], Result],
    transactions: Sequence[Transaction] = (),
    metadata: dict[str, str] | None = None,
) -> Result | None:
    """Let ``make_commit`` commit the version of table ``name`` after the one that ``delta`` loaded.

    It commits that version or none. Otherwise delta-rs would commit after another writer's
    version, and might replace rows that no longer exist. ``metadata`` is stored with it. Returns
    the result of ``make_commit``; None if the commit took effect and the response was lost.

    Raises:
        CommitConflictError: another job has written that version.
        CommitFailedError: the commit failed, and there is no such version.
    """
    version, mark = delta.version() + 1, uuid.uuid4().hex
    properties = commit_properties({MARK_KEY: mark, **(metadata or {})}, transactions)
    try:
        return make_commit(properties)
    except CommitFailedError as error:
        if not store.has_version(name, version):
            raise
        if not has_mark(store, name, version, mark):
            raise CommitConflictError(
                f"version {version} of table {name} in {store.root} was written by another job; "
                "this commit had no effect, and the next run repeats its work"
            ) from error
        return None


def commit_properties(
    metadata: dict[str, str] | None = None, transactions: Sequence[Transaction] = ()
) -> CommitProperties:
    """Properties of a commit by delta-rs: it makes the next version or fails."""
    return CommitProperties(
        custom_metadata=metadata, app_transactions=list(transactions), max_commit_retries=0
    )


def has_mark(store: TableStore, name: str, version: int, mark: str) -> bool:
    """Whether a version of a table exists and was made by the commit with ``mark``."""
    try:
        log = store.text(name, LOG, f"{version:020d}.json")
    except FileNotFoundError:
        return False
    infos = (json.loads(line).get("commitInfo") or {} for line in log.splitlines())
    return any(info.get(MARK_KEY) == mark for info in infos)
