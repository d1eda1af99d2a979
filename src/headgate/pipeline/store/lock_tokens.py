"""Lock tokens: which folders in S3 this process may write.

Each acquisition of a folder's lock has a random token. The writer commits in another process, which
gets the token as an option of the writer. A token is not a secret: it identifies an acquisition and
grants nothing. Folders of a file system have none, because the system releases their lock when its
process ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.location import is_object_store
from headgate.pipeline.store.lease import LockObject
from headgate.pipeline.store.table_store import s3_objects

LOCK_OPTION: Final = "lock"
"""Option of the writer: the token under which it commits."""

_tokens: Final[dict[str, str]] = {}


class LockLostError(PipelineError):
    """This job does not hold the lock of the folder that it was about to write."""


@contextmanager
def with_lock_token(root: str, token: str | None) -> Iterator[None]:
    """Let this process commit to a folder under ``token``; None needs none."""
    if token is None:
        yield
        return
    root = root.rstrip("/")
    before = _tokens.get(root)
    _tokens[root] = token
    try:
        yield
    finally:
        if before is None:
            del _tokens[root]
        else:
            _tokens[root] = before


def writer_options(root: str) -> dict[str, str]:
    """Options of ``format("headgate_tables")``: the folder and the token."""
    token = _tokens.get(root.rstrip("/"))
    return {"root": root} if token is None else {"root": root, LOCK_OPTION: token}


def check_lock(root: str, lock: LockObject | None = None) -> None:
    """Check with one request that this process still holds the lock of a folder in S3.

    ``lock`` replaces the folder's own, for tests.

    Raises:
        LockLostError: it does not.
        OSError: the lock cannot be read.
    """
    if not is_object_store(root):
        return
    token = _tokens.get(root.rstrip("/"))
    if token is None:
        raise LockLostError(f"folder {root} is not held by this process, so it may not write there")
    found = (s3_objects().lock_object(root) if lock is None else lock).read()
    if found is None:
        raise LockLostError(
            f"folder {root} has no lock any more, because it was deleted; nothing more is written"
        )
    if found.lease.token != token:
        other = f"now held by {found.lease}" if found.lease.token else "free"
        raise LockLostError(
            f"folder {root} was taken over, because this job could not renew its lease in time, "
            f"and is {other}; nothing more is written, and the next run continues from here"
        )
