"""Brings blocks of a log's index into memory, on the read lane, for look-ups of the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

from headgate.base.errors import StorageError
from headgate.engine.ports import IndexedEntries, IndexPart
from headgate.ledger import BlockKey, BlockMissingError, CommitLog, FetchedBlock
from headgate.storage.lanes import Lane, run_on

T = TypeVar("T")

TRIES_MAX: Final = 1_000
"""Reads for one look-up. Each brings a block that the look-up lacked; more are needed only if
segments are rewritten again and again during the reads."""


class IndexLoader:
    """Looks entries of one log up without a read on the event loop."""

    def __init__(self, log: CommitLog, lane: Lane, begin_turn: Callable[[], None]) -> None:
        """``lane`` runs the reads."""
        self._log = log
        self._lane = lane
        self._begin_turn = begin_turn

    async def look_up(self, action: Callable[[], T]) -> T:
        """What ``action`` returns, after reading the blocks of the index that it needs.

        ``action`` looks entries up and changes nothing, because it is repeated after each read. It
        runs at once if all blocks are in memory; the caller goes on in the turn in which it ran.

        Raises:
            StorageError: a block could be neither read nor rebuilt.
        """
        held: list[object] = []  # so that reads of others do not evict what this look-up brought
        for _ in range(TRIES_MAX):
            try:
                return self._log.look_up(action)
            except BlockMissingError as missing:
                keys = missing.keys
            held.append(await self._fetch(keys))
        raise StorageError("the index of the entries changed again and again", retryable=True)

    async def load(self, entries: IndexedEntries, ordinals: Iterable[int]) -> Sequence[IndexPart]:
        """Bring the index of these entries into memory; it stays there as long as the caller holds
        the result. Raises :class:`StorageError`, as :meth:`look_up`."""
        return await self.look_up(partial(entries.index_of, tuple(ordinals)))

    async def _fetch(self, keys: Sequence[BlockKey]) -> object:
        fetched = await run_on(self._lane, partial(self._log.fetch_index, keys))
        self._begin_turn()
        error = self._log.keep_index(fetched)
        if error is not None:
            raise error
        return fetched

    def load_then(
        self,
        entries: IndexedEntries,
        ordinals: Iterable[int],
        then: Callable[[BaseException | None], None],
    ) -> None:
        """Bring the index of entries into memory, then call ``then`` in a later turn, with the
        error if that failed. For callers that cannot await it."""
        try:
            self._log.look_up(partial(entries.index_of, tuple(ordinals)))
            keys: Sequence[BlockKey] = ()
        except BlockMissingError as missing:
            keys = missing.keys

        def done(fetched: list[FetchedBlock], error: BaseException | None) -> None:
            self._begin_turn()
            then(self._log.keep_index(fetched) if error is None else error)

        self._lane.submit(partial(self._log.fetch_index, keys), done)
