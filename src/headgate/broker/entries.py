"""Reads single entries for clients and administrators, from the cache or else from disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from headgate.base.errors import CorruptionError, StorageError
from headgate.base.instants import iso_time
from headgate.base.positions import Position
from headgate.broker.shared_result import SharedResult
from headgate.engine.topic import Topic
from headgate.ledger import ReadPlan
from headgate.storage.fair_lane import FairLane
from headgate.storage.lanes import Lane
from headgate.storage.managed_logs import ManagedLogs
from headgate.wire.codes import CompressionType
from headgate.wire.entry import (
    ChunkFacts,
    EncryptionFacts,
    KeyFacts,
    batch_size,
    chunk_facts,
    key_facts,
    payload_of,
)
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.metadata_head import head_of, properties_and_keys


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """The position of a message."""

    position: Position
    batch_index: int = -1
    """Index of the last message in its batch; -1 if the entry is not a batch."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One entry, with the metadata that its producer sent."""

    payload: bytes
    """A message, a batch or a chunk, compressed or not."""
    producer_name: str
    sequence_id: int
    published: str
    """The publish time that its producer set, in ISO 8601."""
    batch_size: int | None
    """How many messages its batch holds; None if it is not a batch."""
    chunk: ChunkFacts | None
    """Which chunk of a large message it is; None if it is no chunk."""
    key: KeyFacts | None
    """Its key; None if it has none, or if it is a batch: there each message has its own."""
    compression: CompressionType
    """How ``payload`` is compressed."""
    uncompressed_bytes: int
    """Size of ``payload`` before compression."""
    encryption: EncryptionFacts | None
    """The keys of its encryption; None if it is not encrypted."""
    event_time: str = ""
    """The event time that its producer set, in ISO 8601; empty without one."""
    properties: tuple[tuple[str, str], ...] = ()
    """Its properties; none for a batch: there each message has its own. Of very many the first."""


Reserve = Callable[[int], Awaitable[None]]
"""Waits for so many bytes of memory for an answer."""


async def uncharged(_: int) -> None:
    """Wait for nothing: a :data:`Reserve`."""


class EntryTrimmedError(CorruptionError):
    """An entry was trimmed before it was read. On the disk others may have its place by then, so
    who reads entries handles both alike."""


class SingleEntryReader:
    """Reads single entries of the topics of one broker."""

    def __init__(self, logs: ManagedLogs, lane: Lane, begin_turn: Callable[[], None]) -> None:
        """``lane`` runs the reads from disk, of tenants in turn: a client may ask for the last
        messages of thousands of topics at once, of megabytes each."""
        self._logs = logs
        self._lane = FairLane(lane)
        self._begin_turn = begin_turn
        self._batch_sizes: WeakKeyDictionary[Topic, tuple[int, int | None]] = WeakKeyDictionary()
        """Of topics whose last message was asked for: the entry, and what ``batch_size`` says."""
        self._reads: dict[tuple[Topic, int], SharedResult[bytes]] = {}
        """Reads of last messages, which all share that ask meanwhile."""

    async def body(self, topic: Topic, ordinal: int) -> bytes:
        """The entry ``ordinal`` (``first`` <= it < ``end``) as its producer sent it.

        Raises:
            StorageError: it could not be read.
            CorruptionError: the stored entry is damaged.
            EntryTrimmedError: it was trimmed meanwhile.
            TopicFencedError: the topic was unloaded or deleted meanwhile.
            DamagedError: data of the topic is lost, and no administrator has accepted that.
        """
        topic.check_not_damaged()
        body = topic.cache.get(ordinal)
        if body is not None:
            return body
        managed = self._logs.of(topic)
        log = managed.log

        def locate() -> ReadPlan:
            # Again before each look-up: the topic may change while the index is read.
            _check_there(topic, ordinal)
            return log.locate(topic.log, ordinal, 1, 1)

        while True:
            plan = await managed.index.look_up(locate)
            try:
                found = await self._lane.run(topic.name.tenant, partial(log.read, plan))
            except (StorageError, CorruptionError):
                # The segment may have been rewritten or removed during the read, and its file be
                # that of another segment by now.
                is_gone = not topic.is_live or ordinal < topic.log.first
                if is_gone or log.is_outdated(plan):
                    continue
                raise
            self._begin_turn()
            return found[0][2]

    async def last_message(self, topic: Topic) -> FoundMessage:
        """The last durable message that the disk has not lost; position ``(ledger, -1)`` or
        ``(-1, -1)`` if the topic holds none.

        Raises:
            StorageError: it could not be read.
            CorruptionError: the stored entry is damaged.
            DamagedError: data of the topic is lost, and no administrator has accepted that.
            TopicFencedError: the topic was unloaded or deleted during the read.
        """
        topic.check_not_damaged()
        log = topic.log

        def find_last() -> tuple[int, int]:
            # Again before each look-up: the topic may change while the index is read.
            topic.check_loaded()
            last = log.last_kept()
            return last, 0 if last < log.first else log.message_count(last)

        last, messages = await self._logs.of(topic).index.look_up(find_last)
        position = log.position(last)
        if last < log.first:
            none = position if position.entry_id < 0 else position._replace(entry_id=-1)
            return FoundMessage(none)
        if messages > 1:
            return FoundMessage(position, messages - 1)
        # The log's index cannot tell a batch of one message from a single message.
        try:
            size = await self._batch_size(topic, last)
        except CorruptionError:
            # The entry's space on the disk may have been reused during the read.
            topic.check_loaded()
            if last < log.first:
                return await self.last_message(topic)
            raise
        return FoundMessage(position, -1 if size is None else size - 1)

    async def _batch_size(self, topic: Topic, last: int) -> int | None:
        """How many messages the batch of the last entry holds; None if it is not a batch. Looks at
        an entry once, however often clients ask. Raises as :meth:`body`."""
        known = self._batch_sizes.get(topic)
        if known is not None and known[0] == last:
            return known[1]
        body = topic.cache.get(last) or await self._shared_body(topic, last)
        known = self._batch_sizes.get(topic)
        if known is not None and known[0] == last:
            return known[1]  # another request that waited for the read has looked
        try:
            size = batch_size(head_of(body))
        except RemoteProtocolError:
            size = None
        self._batch_sizes[topic] = (last, size)
        return size

    async def _shared_body(self, topic: Topic, ordinal: int) -> bytes:
        """:meth:`body`, read once for all that ask meanwhile."""
        key = (topic, ordinal)
        read = self._reads.get(key)
        if read is None:
            task = asyncio.get_running_loop().create_task(self.body(topic, ordinal))
            task.add_done_callback(lambda _: self._reads.pop(key))
            read = self._reads[key] = SharedResult(task)
            del task
        try:
            return await read.join()
        finally:
            del read  # an error's traceback leads to this frame: they would be a cycle

    async def stored_entry(
        self, topic: Topic, ordinal: int, reserve: Reserve = uncharged
    ) -> StoredEntry:
        """The entry ``ordinal`` (``first`` <= it < ``end``) with its metadata. ``reserve`` waits
        for memory: for its bytes, and as much until its client has read the payload.

        Raises:
            StorageError: it could not be read.
            CorruptionError: the stored entry is damaged, or its producer sent no valid message.
            EntryTrimmedError: it was trimmed meanwhile.
            TopicFencedError: the topic was unloaded or deleted meanwhile.
            RefusalError: 503, there is no memory.
        """
        topic.check_not_damaged()

        def size_bytes() -> int:
            _check_there(topic, ordinal)
            return topic.log.size_bytes(ordinal)

        await reserve(2 * await self._logs.of(topic).index.look_up(size_bytes))
        self._begin_turn()
        body = await self.body(topic, ordinal)
        try:
            metadata = head_of(body)
            properties, keys = properties_and_keys(body)
            return StoredEntry(
                payload_of(body),
                metadata.producer_name,
                metadata.sequence_id,
                iso_time(metadata.publish_time),
                batch_size(metadata),
                chunk_facts(metadata),
                key_facts(metadata),
                CompressionType(metadata.compression),
                metadata.uncompressed_size,
                EncryptionFacts(keys, metadata.encryption_param) if keys else None,
                iso_time(metadata.event_time) if metadata.event_time else "",
                properties,
            )
        except RemoteProtocolError as error:
            raise CorruptionError(f"{topic.name}, entry {ordinal}: {error}") from error


def _check_there(topic: Topic, ordinal: int) -> None:
    """Check that a topic is loaded and has an entry still.

    Raises:
        EntryTrimmedError: it was trimmed.
        TopicFencedError: the topic was unloaded or deleted.
    """
    topic.check_loaded()
    if ordinal < topic.log.first:
        raise EntryTrimmedError(f"{topic.name}, entry {ordinal}: it was trimmed")
