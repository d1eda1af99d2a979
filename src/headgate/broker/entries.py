"""Single entries for questions about messages: from memory if they are there, else from disk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from headgate.base.errors import CorruptionError
from headgate.base.instants import iso_time
from headgate.base.positions import Position
from headgate.engine.topic import Topic
from headgate.storage.lanes import run_on
from headgate.wire.codes import CompressionType
from headgate.wire.entry import (
    ChunkFacts,
    KeyFacts,
    batch_size,
    chunk_facts,
    key_facts,
    parse_metadata,
    payload_of,
)
from headgate.wire.errors import RemoteProtocolError


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that was asked for."""

    position: Position
    batch_index: int = -1
    """Index of the last message in its batch; -1 if the entry is not a batch."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One entry as its producer sent it."""

    payload: bytes
    """A message, a batch or a chunk, perhaps compressed."""
    producer_name: str
    sequence_id: int
    published: str
    """When its producer says that it sent it, in ISO 8601."""
    batch_size: int | None
    """How many messages its batch holds; None if it is not a batch."""
    chunk: ChunkFacts | None
    """Which part of a chunked message it is; None if it is a message of its own."""
    key: KeyFacts | None
    """Its key; None if it has none. A batch's messages have keys of their own."""
    compression: CompressionType
    """How ``payload`` is compressed."""
    uncompressed_bytes: int
    """Bytes of ``payload`` before that."""


if TYPE_CHECKING:
    from headgate.broker.service import Broker


async def entry_body(broker: Broker, topic: Topic, ordinal: int) -> bytes:
    """The entry ``ordinal`` (``first`` <= it < ``end``) as its producer sent it.

    Raises:
        StorageError: it could not be read.
        CorruptionError: it was read and is damaged.
        DamagedError: something of the topic is lost, and nobody has accepted that.
    """
    topic.check_sound()
    body = topic.cache.get(ordinal)
    if body is not None:
        return body
    log = broker.logs.of(topic).log
    plan = log.locate(topic.log, ordinal, 1, 1)
    found = await run_on(broker.lanes.read, partial(log.read, plan))
    broker.begin_turn()
    return found[0][2]


async def last_message(broker: Broker, topic: Topic) -> FoundMessage:
    """The last durable message; position ``(ledger, -1)`` or ``(-1, -1)`` if none is held.

    Raises:
        StorageError: it could not be read.
        CorruptionError: it was read and is damaged.
    """
    log = topic.log
    last = log.end - 1
    position = log.position(last)
    if last < log.first:
        return FoundMessage(position if position.entry_id < 0 else position._replace(entry_id=-1))
    messages = log.message_count(last)
    if messages > 1:
        return FoundMessage(position, messages - 1)
    # A batch of one is a batch all the same, and only the entry itself can tell.
    try:
        body = await entry_body(broker, topic, last)
    except CorruptionError:
        if last < log.first:  # it was trimmed while it was read, and its place given back
            return await last_message(broker, topic)
        raise
    try:
        size = batch_size(parse_metadata(body))
    except RemoteProtocolError:
        size = None
    return FoundMessage(position, -1 if size is None else size - 1)


async def stored_entry(broker: Broker, topic: Topic, ordinal: int) -> StoredEntry:
    """The entry ``ordinal`` (``first`` <= it < ``end``) and what its producer says of it.

    Raises:
        StorageError: it could not be read.
        CorruptionError: it was read and is damaged, or its producer sent no message.
    """
    body = await entry_body(broker, topic, ordinal)
    try:
        metadata = parse_metadata(body)
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
        )
    except RemoteProtocolError as error:
        raise CorruptionError(f"{topic.name}, entry {ordinal}: {error}") from error
