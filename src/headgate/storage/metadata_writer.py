"""Commits metadata changes: in order, atomically, and visible only when durable."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from headgate.base.errors import StorageError, broken
from headgate.base.units import MIB
from headgate.metadata.catalog import Catalog, Change
from headgate.metadata.rows import Kind
from headgate.metadata.state import RowChange
from headgate.metadata.store import MetadataStore, Write
from headgate.storage.fair_slots import FairSlots
from headgate.storage.lanes import Lane

CHANGES_TOGETHER: Final = 32
"""Most changes of one transaction, each of which takes effect on the loop then."""

IN_TURN_MAX: Final = 8 * CHANGES_TOGETHER
IN_TURN_OF_TENANT_MAX: Final = 2 * CHANGES_TOGETHER
"""Changes of :meth:`MetadataWriter.commit_in_turn` that are in flight, of all and of one tenant."""

WRITES_TOGETHER: Final = 256
BYTES_TOGETHER: Final = MIB
"""A transaction that has so much gets no further change."""


class OutcomeUnknownError(StorageError):
    """The disk failed in the middle of a change: only a restart shows whether it is stored."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}. Changes of tenants, topics and policies are refused until a restart: "
            "after such a failure it is not known which of them the disk holds",
            retryable=False,
        )


@dataclass(slots=True, eq=False)
class _Queued:
    """A change that waits for its transaction, or has had it."""

    rows: tuple[RowChange, ...]
    generation: int
    is_settled: bool = False
    error: StorageError | None = None

    def settle(self, error: StorageError | None = None) -> None:
        self.rows = ()
        self.is_settled, self.error = True, error


class MetadataWriter:
    """Commits the catalog's planned changes on the metadata lane.

    Changes that wait share a transaction: each takes a sync of the disk, and one client with
    hundreds of changes would hold up those of all others for seconds.

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
        self._turns = FairSlots(IN_TURN_MAX, IN_TURN_OF_TENANT_MAX)
        self._queue: deque[_Queued] = deque()
        """Changes without a transaction, in order. The loop adds, the lane takes away."""
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

    async def commit_in_turn(self, tenant: str, plan: Callable[[], Change]) -> Change:
        """Plan a change when it is the turn of its tenant, and :meth:`commit` it; returns it.

        For what a client can ask for thousands of times at once: changes are stored in the order in
        which they are planned, so that those of all others would wait behind them. A change that
        has begun keeps its turn until it is settled, also when its client has disconnected.

        Raises what ``plan`` raises, and as :meth:`commit`.
        """
        await self._turns.take(tenant)
        try:
            change = plan()
            stored = self._begin(change)
        except BaseException:
            self._turns.give_back(tenant)
            raise
        stored.add_done_callback(lambda _: self._turns.give_back(tenant))
        await asyncio.shield(stored)
        return change

    async def commit(self, change: Change) -> None:
        """Make ``change`` durable, then visible, then effective.

        Raises:
            OutcomeUnknownError: the disk failed; the change was abandoned, but a restart may
                find it stored.
            StorageError: the disk refused, or had failed before; the change was abandoned.
        """
        # A client that disconnects must not cancel a change that has begun.
        await asyncio.shield(self._begin(change))

    def _begin(self, change: Change) -> asyncio.Future[None]:
        """Have ``change`` committed; returns a future of its end, as :meth:`commit`."""
        future: asyncio.Future[None] = self._loop.create_future()
        generation = self._generation
        queued = _Queued(change.rows, generation)
        self._queue.append(queued)

        def work() -> None:
            if not queued.is_settled:
                self._store_next()
            if queued.error is not None:
                raise queued.error

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
                future.exception()  # whoever asked may be gone: that is no error of its own

        self._lane.submit(work, done)
        return future

    def _store_next(self) -> None:
        """On the lane: store the first change of the queue, and those behind it that fit, in one
        transaction."""
        first = self._queue.popleft()
        if self._failed_generation >= first.generation:
            first.settle(StorageError("an earlier metadata change was not stored", retryable=True))
            return
        if self.failed is not None:
            first.settle(StorageError(str(self.failed), retryable=False))
            return
        group = [first]
        error: StorageError | None
        try:
            writes = self._gather(group)
        except Exception as bug:
            # Nothing is stored of them. Those behind them may depend on them.
            self._failed_generation = first.generation
            error = StorageError(f"a change of metadata cannot be encoded: {bug}", retryable=False)
        else:
            error = self._store_writes(writes, first.generation)
        for queued in group:
            queued.settle(error)

    def _gather(self, group: list[_Queued]) -> list[Write]:
        """Add to the first change of ``group`` those behind it that fit. Returns what to write: of
        a row that changes several times only the last value, and only that one is encoded.

        So a large row that hundreds of requests change takes the time and memory of few."""
        first = group[0]
        last = {(row.kind, row.key): row for row in first.rows}
        writes = {place: row.write for place, row in last.items()}
        size_bytes = _bytes_of(writes)
        while self._queue and len(group) < CHANGES_TOGETHER:
            following = self._queue[0]
            more = {(row.kind, row.key): row for row in following.rows}
            added = {place: row.write for place, row in more.items() if place not in last}
            added_bytes = _bytes_of(added)
            if (
                following.generation != first.generation
                or len(last) + len(added) > WRITES_TOGETHER
                or (added_bytes and size_bytes + added_bytes > BYTES_TOGETHER)
            ):
                break
            group.append(self._queue.popleft())
            size_bytes += added_bytes
            for place in more.keys() & writes.keys():
                del writes[place]
            writes |= added
            last |= more
        return [writes.get(place) or row.write for place, row in last.items()]

    def _store_writes(self, writes: list[Write], generation: int) -> StorageError | None:
        """Commit ``writes``; returns why they are not stored, or not known to be."""
        try:
            self._store.commit(writes)
        except BaseException as error:
            self._failed_generation = generation
            if isinstance(error, StorageError) and error.retryable:
                return error
            self.failed = OutcomeUnknownError(str(error))
            self.failed.__cause__ = error
            return self.failed
        return None


def _bytes_of(writes: Mapping[tuple[Kind, str], Write]) -> int:
    return sum(len(write.value or b"") for write in writes.values())
