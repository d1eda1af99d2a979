"""Commits metadata changes: in order, atomically, and visible only when durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headgate.base.errors import StorageError, broken
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.store import MetadataStore
from headgate.storage.lanes import Lane


class OutcomeUnknownError(StorageError):
    """The disk failed in the middle of a change: only a restart shows whether it is stored."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}. Changes of tenants, topics and policies are refused until a restart: "
            "after such a failure it is not known which of them the disk holds",
            retryable=False,
        )


class MetadataWriter:
    """Commits the catalog's planned changes on the metadata lane.

    A change depends on those planned before it. So if one cannot be committed, the writer refuses
    all changes queued behind it, and the catalog abandons them together.

    After an error that no retry can repair (a failed sync) it is not known whether the transaction
    is on the disk; a restart may find it. Until then the writer, like the log, stores no more.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: MetadataStore,
        lane: Lane,
        loop: asyncio.AbstractEventLoop,
        on_applied: Callable[[Change], None],
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._lane = lane
        self._loop = loop
        self._on_applied = on_applied
        self._generation = 0
        self._failed_generation = -1
        self.failed: OutcomeUnknownError | None = None
        """Why no change is stored until a restart; None in normal operation. Only the writer sets
        it."""

    async def when_earlier_done(self) -> None:
        """Return when every change submitted before is stored or abandoned."""
        future: asyncio.Future[None] = self._loop.create_future()

        def done(_: object, __: BaseException | None) -> None:
            if not future.cancelled():
                future.set_result(None)

        self._lane.submit(lambda: None, done)
        await future

    async def commit(self, change: Change) -> None:
        """Make ``change`` durable, then visible, then effective.

        Raises:
            OutcomeUnknownError: the disk failed; the change was abandoned, but a restart may
                find it stored.
            StorageError: the disk refused, or had failed before; the change was abandoned.
        """
        future: asyncio.Future[None] = self._loop.create_future()
        generation = self._generation
        writes = change.writes

        def work() -> None:
            if self._failed_generation >= generation:
                raise StorageError("an earlier metadata change was not stored", retryable=True)
            if self.failed is not None:
                raise StorageError(str(self.failed), retryable=False)
            try:
                self._store.commit(writes)
            except BaseException as error:
                self._failed_generation = generation
                if isinstance(error, StorageError) and error.retryable:
                    raise
                self.failed = OutcomeUnknownError(str(error))
                raise self.failed from error

        def done(_: object, error: BaseException | None) -> None:
            if error is None:
                try:
                    self._catalog.apply(change)
                    self._on_applied(change)
                except Exception as bug:
                    raise broken("a stored change of metadata", bug) from bug
                if not future.cancelled():
                    future.set_result(None)
                return
            if generation == self._generation:
                self._catalog.abandon_all()
                self._generation += 1
            if not future.cancelled():
                future.set_exception(error)

        self._lane.submit(work, done)
        # A client that disconnects must not cancel a change that has begun.
        await asyncio.shield(future)
