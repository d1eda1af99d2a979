"""Brings blocks of a log's index into memory, on the read lane, for look-ups of the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar

from headgate.base.clock import Clock
from headgate.base.errors import InvariantError, StorageError
from headgate.base.work_owner import NO_TENANT
from headgate.engine.engine import Engine
from headgate.engine.ports import IndexedEntries, IndexPart
from headgate.ledger import (
    BlockKey,
    BlockMissingError,
    CommitLog,
    FetchedBlock,
    TopicGoneError,
)
from headgate.storage.entry_reader import RETRY_NS
from headgate.storage.fair_lane import FairLane
from headgate.storage.index_piece import fetch_piece
from headgate.storage.lanes import Lane

T = TypeVar("T")

logger = logging.getLogger("headgate.reads")

TRIES_MAX: Final = 1_000
"""Reads for one look-up. Each brings a block that the look-up lacked; more are needed only if
segments are rewritten again and again during the reads."""


class _Waiting(NamedTuple):
    """A look-up that waits for a read."""

    action: Callable[[], object]
    held: tuple[object, ...]
    """What earlier reads brought for it, so that reads of others do not evict it meanwhile."""


class IndexLoader:
    """Looks entries of one log up without a read on the event loop."""

    def __init__(
        self,
        log: CommitLog,
        lane: Lane,
        engine: Engine,
        begin_turn: Callable[[], None],
        clock: Clock,
    ) -> None:
        """``lane`` runs the reads, of tenants in turn: a client may have thousands at once."""
        self._log = log
        self._engine = engine
        self._lane = FairLane(lane)
        self._begin_turn = begin_turn
        self._clock = clock
        self._waiting: dict[tuple[int, int], dict[Callable[[], None], _Waiting]] = {}
        """What follows a read, by the file and place of its first block."""

    async def look_up(self, action: Callable[[], T], *, is_upkeep: bool = False) -> T:
        """What ``action`` returns, after reading the blocks of the index that it needs. Look-ups of
        a sweep over the topics of all tenants are ``is_upkeep``: in the line of one tenant all
        others would wait for that tenant's clients.

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
            held.append(await self._fetch(keys, NO_TENANT if is_upkeep else self._owner_of(keys)))
        raise StorageError("the index of the entries changed again and again", retryable=True)

    async def load(self, entries: IndexedEntries, ordinals: Iterable[int]) -> Sequence[IndexPart]:
        """Bring the index of these entries into memory; it stays there as long as the caller holds
        the result. Raises :class:`StorageError`, as :meth:`look_up`."""
        return await self.look_up(partial(entries.index_of, tuple(ordinals)))

    async def _fetch(self, keys: Sequence[BlockKey], owner: str) -> object:
        fetched: list[FetchedBlock] = []
        while len(fetched) < len(keys):
            rest = keys[len(fetched) :]
            piece = await self._lane.run(owner, partial(fetch_piece, self._log, rest, self._clock))
            self._begin_turn()
            error = self._log.keep_index(piece)
            if error is not None:
                raise error
            fetched += piece
        return fetched

    def is_looked_up(self, action: Callable[[], object], again: Callable[[], None]) -> bool:
        """Run a look-up for a caller that cannot await it. False if a block of the index is not in
        memory: then ``again`` is called in a later turn, when ``action`` found all that it needs.
        If a block cannot be read, that is :data:`RETRY_NS` later.

        ``action`` changes nothing but what it remembers of its result, because it is repeated after
        each read. All blocks that were read for it stay in memory until ``again`` returns, however
        small the cache is. So a caller that goes on within ``again`` makes progress with each
        look-up. One that goes on later holds what it needs: ``action`` remembers that.
        """
        return self._is_looked_up(action, again, ())

    def _is_looked_up(
        self, action: Callable[[], object], again: Callable[[], None], held: tuple[object, ...]
    ) -> bool:
        try:
            self._log.look_up(action)
        except BlockMissingError as missing:
            keys = missing.keys
        else:
            return True
        name = keys[0].file, keys[0].place
        waiting = self._waiting.get(name)
        if waiting is None:
            self._waiting[name] = waiting = {}
            self._read_piece(name, keys, ())
        waiting[again] = _Waiting(action, held)
        return False

    def _read_piece(
        self, name: tuple[int, int], keys: Sequence[BlockKey], before: tuple[object, ...]
    ) -> None:
        """Read the next blocks for those that wait for ``name``. ``before`` is what earlier pieces
        brought."""
        fetch = partial(fetch_piece, self._log, keys, self._clock)
        done = partial(self._fetched, name, keys, before)
        self._lane.submit(self._owner_of(keys), fetch, done)

    def _owner_of(self, keys: Sequence[BlockKey]) -> str:
        """The tenant of the topic that is looked up."""
        topic = self._engine.by_number.get(keys[0].topic_number) if keys else None
        return NO_TENANT if topic is None else topic.name.tenant

    def _fetched(
        self,
        name: tuple[int, int],
        keys: Sequence[BlockKey],
        before: tuple[object, ...],
        fetched: list[FetchedBlock],
        error: BaseException | None,
    ) -> None:
        self._begin_turn()
        if isinstance(error, InvariantError):
            del self._waiting[name]
            raise error
        failed = self._log.keep_index(fetched) if error is None else error
        if failed is None and len(fetched) < len(keys):
            self._read_piece(name, keys[len(fetched) :], (*before, fetched))
            return
        waiting = self._waiting.pop(name)
        if failed is not None and not isinstance(failed, TopicGoneError):
            logger.error("reading the index of entries: %s", failed)
        for again, (action, held) in waiting.items():
            if failed is not None:
                self._engine.wake_at(self._engine.now_ns + RETRY_NS, again)
            elif self._is_looked_up(action, again, (*held, *before, fetched)):
                again()
