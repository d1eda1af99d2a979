"""An idempotent commit to a table in S3: it happens once, even if its response is lost.

A commit puts the next version, and S3 refuses the put if that version exists. If the response is
lost, delta-rs repeats the put, finds its own version and takes it for another writer's. So each
commit carries a mark: after a refusal, the job reads whose mark the version has.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from headgate.pipeline.store.lock_tokens import LockLostError
from headgate.pipeline.store.table_store import LOG, TableStore

MARK_KEY: Final = "headgate.commit"
"""Key in a commit's metadata with a value that no other commit has."""

Result = TypeVar("Result")


def commit(
    store: TableStore,
    name: str,
    delta: DeltaTable,
    make_commit: Callable[[CommitProperties], Result],
    transactions: Sequence[Transaction] = (),
) -> Result | None:
    """Let ``make_commit`` commit the version of table ``name`` after the one that ``delta`` loaded.

    In S3 it commits that version or none. Otherwise delta-rs would commit after another writer's
    version, and might replace rows that no longer exist. Returns the result of ``make_commit``;
    None if the commit took effect and the response was lost.

    Raises:
        LockLostError: another job has written that version.
        CommitFailedError: the commit failed on a mounted file system.
    """
    version, mark = delta.version() + 1, uuid.uuid4().hex
    properties = commit_properties(store, {MARK_KEY: mark}, transactions)
    try:
        return make_commit(properties)
    except CommitFailedError as error:
        if not store.is_object_store:
            raise
        if not has_mark(store, name, version, mark):
            raise LockLostError(
                f"version {version} of table {name} in {store.root} was written by another job; "
                "this commit had no effect, and the next run repeats its work"
            ) from error
        return None


def commit_properties(
    store: TableStore,
    metadata: dict[str, str] | None = None,
    transactions: Sequence[Transaction] = (),
) -> CommitProperties:
    """Properties of a commit by delta-rs: in S3 it makes the next version or fails."""
    return CommitProperties(
        custom_metadata=metadata,
        app_transactions=list(transactions),
        max_commit_retries=0 if store.is_object_store else None,
    )


def has_mark(store: TableStore, name: str, version: int, mark: str) -> bool:
    """Whether a version of a table exists and was made by the commit with ``mark``."""
    try:
        log = store.text(name, LOG, f"{version:020d}.json")
    except FileNotFoundError:
        return False
    infos = (json.loads(line).get("commitInfo") or {} for line in log.splitlines())
    return any(info.get(MARK_KEY) == mark for info in infos)
