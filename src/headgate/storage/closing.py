"""Closes a log once no thread works on it any more."""

from __future__ import annotations

from headgate.ledger import CommitLog
from headgate.storage.lanes import Lane, run_on


async def close_log(log: CommitLog, *, removal: Lane, upkeep: Lane, commits: Lane) -> None:
    """Wait for the last jobs on the lanes of a log, then close the log.

    Its maintenance and its committer must be stopped before. The upkeep lane comes before that of
    the commits: when a job ends there, a commit may be in flight, but then none begins any more.

    Raises :class:`StorageError` if what was staged last could not be stored.
    """
    for lane in (removal, upkeep, commits):
        await run_on(lane, lambda: None)
    log.close()
