"""The producer of the test client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from headgate.base.errors import HeadgateError
from headgate.base.positions import Position
from headgate.testing.connection import ClientConnection
from headgate.testing.errors import ConnectionLostError, refused
from headgate.wire import client as frames
from headgate.wire.batch import pack_batch
from headgate.wire.codes import CommandType
from headgate.wire.entry import build_entry
from headgate.wire.ids import position_of
from headgate.wire.messages import BaseCommand, MessageMetadata


class SimProducer:
    """Publishes to one topic. :meth:`SimClient.producer` creates it."""

    def __init__(self, client: ClientConnection, producer_id: int, topic: str) -> None:
        self._client = client
        self.producer_id = producer_id
        self.topic = topic
        self.name = ""
        self.schema_version = b""
        """The schema version that the broker sent; empty without a schema."""
        self.last_sequence_id = -1
        """The last sequence id under its name that the broker knew when it was created."""
        self.topic_epoch: int | None = None
        """The topic epoch that the broker sent."""
        self.is_open = True
        self.sequence_id = -1
        """Of the last message that was sent."""
        self._waiting: deque[tuple[int, asyncio.Future[Position]]] = deque()

    def send_nowait(
        self, payload: bytes, *, batch: Sequence[bytes] = (), delay_ms: int = 0
    ) -> asyncio.Future[Position]:
        """Publish one message (or, with ``batch``, those messages as one entry), which asks to be
        delivered after ``delay_ms``.

        The future gives the position of the receipt. It fails with :class:`RefusedError` or, if the
        outcome stays unknown, with :class:`ConnectionLostError`.
        """
        if not self.is_open:
            raise ConnectionLostError("the producer is closed")
        self.sequence_id += 1
        body = self.entry(payload, batch=batch, delay_ms=delay_ms)
        return self.send_entry_nowait(self.sequence_id, body, message_count=len(batch) or None)

    def send_entry_nowait(
        self,
        sequence_id: int,
        body: bytes,
        *,
        message_count: int | None = None,
        is_chunk: bool = False,
    ) -> asyncio.Future[Position]:
        """Publish an entry as it is. As :meth:`send_nowait`."""
        client = self._client
        client.write(
            frames.send(
                self.producer_id, sequence_id, body, message_count=message_count, is_chunk=is_chunk
            )
        )
        future: asyncio.Future[Position] = client.loop.create_future()
        self._waiting.append((sequence_id, future))
        return future

    async def send(
        self, payload: bytes, *, batch: Sequence[bytes] = (), delay_ms: int = 0
    ) -> Position:
        """Publish and wait for the receipt. Raises as :meth:`send_nowait` says."""
        return await self.send_nowait(payload, batch=batch, delay_ms=delay_ms)

    def entry(self, payload: bytes, *, batch: Sequence[bytes] = (), delay_ms: int = 0) -> bytes:
        """The entry that a send of ``payload`` or ``batch`` under the present sequence id makes."""
        metadata = MessageMetadata(
            producer_name=self.name,
            sequence_id=self.sequence_id,
            publish_time=self._client.wall_ms(),
        )
        if delay_ms:
            metadata.deliver_at_time = metadata.publish_time + delay_ms
        if batch:
            metadata.num_messages_in_batch = len(batch)
            payload = pack_batch(batch)
        return build_entry(metadata, payload)

    async def close(self) -> None:
        """Close it at the broker. Raises as :meth:`SimClient.request`."""
        await self._client.request(lambda i: frames.close_producer(i, self.producer_id))
        self._client.forget_producer(self.producer_id)
        self.ended(ConnectionLostError("the producer is closed"))

    # -- for the client --------------------------------------------------------------------

    def answered(self, command: BaseCommand) -> bool:
        """Settle a send by its receipt or refusal; False if this producer did not send it."""
        if command.type == CommandType.SEND_ERROR:
            refusal = command.send_error
            future = self._take(refusal.sequence_id)
            if future is not None:
                future.set_exception(refused(refusal))
            return future is not None
        receipt = command.send_receipt
        future = self._take(receipt.sequence_id)
        if future is not None:
            future.set_result(position_of(receipt.message_id))
        return future is not None

    def ended(self, error: HeadgateError) -> None:
        """Mark the producer as closed: unanswered sends fail with ``error``."""
        self.is_open = False
        while self._waiting:
            future = self._waiting.popleft()[1]
            future.set_exception(error)
            future.exception()  # retrieved here: a send that is not awaited is no error

    def _take(self, sequence_id: int) -> asyncio.Future[Position] | None:
        for index, (waiting_id, future) in enumerate(self._waiting):
            if waiting_id == sequence_id:
                del self._waiting[index]
                return future
        return None
