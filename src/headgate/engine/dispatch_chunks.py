"""Dispatch of chunks: one consumer of a Shared subscription gets all chunks of a message."""

from __future__ import annotations

from abc import abstractmethod
from enum import Enum

from headgate.engine.chunk_holders import ASIDE_MAX, ChunkHolders
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_delayed import DelayingDispatcher
from headgate.engine.dispatcher import DispatchedSubscription

ROUND_ENTRIES = 20
"""Entries that one consumer takes before the next one's turn (dispatcherMaxRoundRobinBatchSize)."""


class _Found(Enum):
    """What a look at an entry found."""

    NO_CHUNK = 0
    CHUNK = 1
    PUT_ASIDE = 2


class ChunkingDispatcher(DelayingDispatcher):
    """A dispatcher that delivers a chunk to the consumer of its message."""

    __slots__ = ("_chosen", "_chunks", "_no_chunks_stop", "replaying")

    def __init__(self, subscription: DispatchedSubscription) -> None:
        super().__init__(subscription)
        self.replaying: dict[int, tuple[int, int]] = {}
        """Entries that wait for redelivery, with their messages and bytes."""
        self._chunks = ChunkHolders()
        self._chosen: Consumer | None = None
        """The consumer of the entry that :meth:`next_run` found, if that is a chunk."""
        self._no_chunks_stop = 0
        """The entries from the next one on to before this one are no chunks."""

    @abstractmethod
    def _queue(self, ordinal: int, messages: int, size_bytes: int) -> None:
        """Count an entry that waits to be delivered although later ones were."""

    def _next_with_chunks(self, first: int, stop: int) -> tuple[int, int]:
        """As :meth:`next_run`, from a run of unacknowledged entries on that may be chunks: put
        aside those whose consumers are not ready. An entry that is not in memory ends the search,
        to be read."""
        acks, topic = self.subscription.acks, self.subscription.topic
        while first < stop:
            if first < self._no_chunks_stop:
                return first, min(stop, self._no_chunks_stop)
            if first not in topic.cache:
                return first, first + 1
            found = self._look_for_chunk(first)
            if found is _Found.CHUNK:
                return first, first + 1
            if found is _Found.NO_CHUNK:
                self._no_chunks_stop = self._stop_before_chunk(first, stop)
                return first, self._no_chunks_stop
            first, stop = acks.unacked_run(first + 1, topic.log.end, ROUND_ENTRIES)
            self.read_ordinal = first
            if first < topic.delays_stop:
                first, stop = self._undelayed(first, stop, ROUND_ENTRIES)
        waiting = self._chunks.first_aside(self.replaying)
        if waiting is None:
            return -1, -1
        # Only for the reason why it waits: an event of its consumer queues it for delivery.
        ordinal, self._chosen = waiting
        return ordinal, ordinal + 1

    def _stop_before_chunk(self, first: int, stop: int) -> int:
        """The first entry behind ``first`` that is a chunk or not in memory, at most ``stop``."""
        topic = self.subscription.topic
        for ordinal in range(first + 1, stop):
            body = topic.cache.get(ordinal)
            if body is None or topic.chunk_of(ordinal, body) is not None:
                return ordinal
        return stop

    def _is_deliverable(self, ordinal: int) -> bool:
        """Whether an entry that is queued for redelivery can be delivered or read next. Else it is
        a chunk that is put aside, and no longer queued."""
        if ordinal not in self.subscription.topic.cache:
            return True
        return self._look_for_chunk(ordinal) is not _Found.PUT_ASIDE

    def _look_for_chunk(self, ordinal: int) -> _Found:
        """Look at an entry in memory. If it is a chunk, choose its consumer for :meth:`pick`, or
        put it aside because that is not ready."""
        topic, chunks = self.subscription.topic, self._chunks
        body = topic.cache[ordinal]
        chunk = topic.chunk_of(ordinal, body)
        if chunk is None:
            return _Found.NO_CHUNK
        holder = None
        if not (chunk.is_first and ordinal in self.replaying):  # that begins the message anew
            holder = chunks.holder_of(chunk.message, self.subscription.consumers)
        if holder is None:
            picked = self.pick()
            if isinstance(picked, Consumer):
                chunks.assign(chunk.message, picked)
                self._chosen = picked
        elif holder.is_ready or chunks.aside_count >= ASIDE_MAX:
            self._chosen = holder
        else:
            if ordinal not in self.replaying:
                self._queue(ordinal, 1, len(body))
            chunks.put_aside(ordinal, holder)
            topic.may_have_chunks()  # so that later runs look at what is aside, too
            return _Found.PUT_ASIDE
        return _Found.CHUNK
