"""Which folders in S3 this process may write, by the token of the hold on each.

The writer's commit runs in a process of its own, which gets the token as an option of the writer.
A token is no secret: it tells holds apart, and opens nothing. Folders of a mounted file system
have none, because their lock ends with its process and with nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from headgate.pipeline.failures import PipelineError
from headgate.pipeline.store.lease import LockObject
from headgate.pipeline.store.location import is_object_store
from headgate.pipeline.store.table_store import objects

LOCK_OPTION: Final = "lock"
"""Option of the writer: the token of the hold that its commits go by."""

_tokens: Final[dict[str, str]] = {}


class LockLostError(PipelineError):
    """This job does not hold the folder that it was about to write, or does so no longer."""


@contextmanager
def holding(root: str, token: str | None) -> Iterator[None]:
    """Let this process commit to a folder while the hold with ``token`` is on it."""
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
    """Options of ``format("headgate_tables")`` that say where, and by which hold."""
    token = _tokens.get(root.rstrip("/"))
    return {"root": root} if token is None else {"root": root, LOCK_OPTION: token}


def check_held(root: str, lock: LockObject | None = None) -> None:
    """See that this process still holds a folder in S3; asks for it, once.

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
    found = (objects().lock_object(root) if lock is None else lock).read()
    if found is None:
        raise LockLostError(
            f"folder {root} has no lock any more; somebody deleted it, so nothing is written"
        )
    if found.hold.token != token:
        other = f"now held by {found.hold}" if found.hold.token else "free"
        raise LockLostError(
            f"folder {root} was taken over, because this job could not renew its hold in time, and "
            f"is {other}; nothing more is written, and the next run continues from here"
        )
