"""Lease tokens: which tables in S3 this process may write.

Each acquisition of leases has a random token. The writer commits in another process, which gets the
tokens as an option of the writer. A token is not a secret: it identifies an acquisition and grants
nothing. Folders of a file system have none, because the system releases their leases when a process
ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.location import is_object_store
from headgate.pipeline.store.lease import LockObject
from headgate.pipeline.store.table_store import s3_objects

LOCK_OPTION: Final = "lock"
"""Option of the writer: the tokens under which it commits, a JSON object by the leases' names."""

_tokens: Final[dict[str, dict[str, str]]] = {}
"""By folder, then by the lease's name."""


class LockLostError(PipelineError):
    """This job does not hold the lease of the table that it was about to write."""


@contextmanager
def with_lease_tokens(root: str, tokens: Mapping[str, str]) -> Iterator[None]:
    """Let this process write a folder under these tokens, by the leases' names."""
    root = root.rstrip("/")
    before = _tokens.get(root, {})
    _tokens[root] = {**before, **tokens}
    try:
        yield
    finally:
        _tokens[root] = before


def writer_options(root: str) -> dict[str, str]:
    """Options of ``format("headgate_tables")``: the folder and the tokens."""
    tokens = _tokens.get(root.rstrip("/"))
    return {"root": root, LOCK_OPTION: json.dumps(tokens)} if tokens else {"root": root}


def check_lease(root: str, name: str, lock: LockObject | None = None) -> None:
    """Check with one request that this process still holds a lease of a folder in S3.

    ``lock`` replaces the lease's object, for tests.

    Raises:
        LockLostError: it does not.
        OSError: the lease cannot be read.
    """
    if not is_object_store(root):
        return
    token = _tokens.get(root.rstrip("/"), {}).get(name)
    if token is None:
        raise LockLostError(
            f"table {name} in {root} is not held by this process, so it may not write there"
        )
    found = (s3_objects().lease_object(root, name) if lock is None else lock).read()
    if found is None:
        raise LockLostError(f"the lease of {name} in {root} was deleted; nothing more is written")
    if found.lease.token != token:
        other = f"now held by {found.lease}" if found.lease.token else "free"
        raise LockLostError(
            f"the lease of {name} in {root} was taken over, because this job could not renew it in "
            f"time, and is {other}; nothing more is written, and the next run continues from here"
        )
