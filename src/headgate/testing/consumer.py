"""The consumer of the test client, with a receiver queue as Pulsar's clients have."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headgate.base.ack_words import acked_mask, words_of
from headgate.base.errors import HeadgateError
from headgate.base.positions import Position
from headgate.testing.connection import ClientConnection
from headgate.testing.errors import ConnectionLostError
from headgate.wire import client as frames
from headgate.wire.batch import unpack_batch
from headgate.wire.codes import AckType
from headgate.wire.entry import batch_size, parse_metadata, payload_of
from headgate.wire.ids import position_of


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """One received entry: a message or a batch of messages."""

    position: Position
    payloads: tuple[bytes, ...]
    """Its messages; one unless it is a batch."""
    redelivery_count: int
    partition: int
    producer_name: str
    publish_time_ms: int
    body: bytes
    """The entry as it arrived."""
    left_mask: int
    """Bit i is set if message i is not acknowledged."""

    @property
    def left_count(self) -> int:
        """Its unacknowledged messages, for which permits are due."""
        return self.left_mask.bit_count()

    @property
    def payload(self) -> bytes:
        """The first message; the only one unless the entry is a batch."""
        return self.payloads[0]


class SimConsumer:
    """Receives from one subscription. :meth:`SimClient.subscribe` creates it.

    It requests ``queue_size`` messages at the start, and half as many whenever :meth:`receive` has
    taken half, as Pulsar's clients do.
    """

    def __init__(
        self,
        client: ClientConnection,
        consumer_id: int,
        topic: str,
        subscription: str,
        *,
        queue_size: int,
    ) -> None:
        self._client = client
        self.consumer_id = consumer_id
        self.topic = topic
        self.subscription = subscription
        self.queue_size = queue_size
        self.is_open = True
        self.queue: deque[ReceivedMessage] = deque()
        """Arrived and not yet taken out."""
        self.active_changes: list[bool] = []
        """Each change of being the active consumer, in order."""
        self.ends_count = 0
        """How often the broker reported that the topic is terminated and acknowledged."""
        self.on_arrival: Callable[[ReceivedMessage], None] | None = None
        """Called with every entry as it arrives."""
        self.permits = 0
        """Messages that were requested and have not arrived."""
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._end: HeadgateError | None = None

    async def receive(self) -> ReceivedMessage:
        """Take the next entry out of the queue; wait for it if need be.

        Raises:
            ConnectionLostError: the consumer has ended and its queue is empty.
        """
        while not self.queue:
            if self._end is not None:
                raise self._end
            future: asyncio.Future[None] = self._client.loop.create_future()
            self._waiting.append(future)
            await future
        return self.receive_nowait()

    def receive_nowait(self) -> ReceivedMessage:
        """Take the next entry out of the queue. Raises IndexError if it is empty."""
        message = self.queue.popleft()
        self._taken += message.left_count
        half = max(1, self.queue_size // 2)
        if self.queue_size and self._taken >= half and self.is_open:
            self.flow(self._taken)
            self._taken = 0
        return message

    def flow(self, permits: int) -> None:
        """Ask for ``permits`` more messages. Raises as :meth:`SimClient.write`."""
        self.permits += permits
        self._client.write(frames.flow(self.consumer_id, permits))

    def ack_nowait(self, *positions: Position) -> None:
        """Acknowledge entries one by one, without an answer."""
        self._client.write(frames.ack(self.consumer_id, positions))

    async def ack(self, *positions: Position) -> None:
        """Acknowledge entries one by one and wait until that is durable."""
        await self._client.request(lambda i: frames.ack(self.consumer_id, positions, request_id=i))

    def ack_part_nowait(
        self, position: Position, left_mask: int, kind: AckType = AckType.INDIVIDUAL
    ) -> None:
        """Acknowledge the messages of a batch that the mask leaves out, without an answer.
        Cumulative: also everything before the batch."""
        self._client.write(
            frames.ack(self.consumer_id, [position], kind, ack_set=words_of(left_mask))
        )

    async def ack_part(
        self, position: Position, left_mask: int, kind: AckType = AckType.INDIVIDUAL
    ) -> None:
        """The same, and wait until that is durable."""
        words = words_of(left_mask)
        await self._client.request(
            lambda i: frames.ack(self.consumer_id, [position], kind, request_id=i, ack_set=words)
        )

    def ack_through_nowait(self, position: Position) -> None:
        """Acknowledge everything up to an entry, without an answer."""
        self._client.write(frames.ack(self.consumer_id, [position], AckType.CUMULATIVE))

    async def ack_through(self, position: Position) -> None:
        """Acknowledge everything up to an entry and wait until that is durable."""
        await self._client.request(
            lambda i: frames.ack(self.consumer_id, [position], AckType.CUMULATIVE, request_id=i)
        )

    def redeliver(self, positions: Iterable[Position] = ()) -> None:
        """Ask the broker to deliver entries again; all of them if none is named."""
        self._client.write(frames.redeliver(self.consumer_id, positions))

    async def seek(
        self,
        *,
        position: Position | None = None,
        publish_time_ms: int | None = None,
        left_mask: int = 0,
        batch_index: int = -1,
    ) -> None:
        """Move the subscription. The broker closes the consumer; subscribe again afterwards.

        ``left_mask`` or ``batch_index`` name a message of the batch at ``position``.
        """
        await self._client.request(
            lambda i: frames.seek(
                i,
                self.consumer_id,
                position=position,
                publish_time_ms=publish_time_ms,
                ack_set=words_of(left_mask),
                batch_index=batch_index,
            )
        )

    async def last_message_id(self) -> Position:
        """The topic's last entry; its entry id is -1 if the topic has none."""
        answer = await self._client.request(
            lambda i: frames.get_last_message_id(i, self.consumer_id)
        )
        return position_of(answer.getLastMessageIdResponse.last_message_id)

    async def unsubscribe(self) -> None:
        """Delete the subscription. Raises as :meth:`SimClient.request`."""
        await self._client.request(lambda i: frames.unsubscribe(i, self.consumer_id))
        self._leave("the subscription was deleted")

    async def close(self) -> None:
        """Close the consumer; its subscription stays. Raises as :meth:`SimClient.request`."""
        await self._client.request(lambda i: frames.close_consumer(i, self.consumer_id))
        self._leave("the consumer is closed")

    # -- for the client --------------------------------------------------------------------

    def begin(self) -> None:
        """Request the first messages of the new subscription."""
        if self.queue_size and self.is_open:
            self.flow(self.queue_size)

    def arrived(self, delivery: Any, body: bytes) -> None:
        """Queue an entry that arrived."""
        metadata = parse_metadata(body)
        count = batch_size(metadata)
        payload = payload_of(body)
        payloads = (
            (payload,) if count is None else tuple(p for _, p in unpack_batch(payload, count))
        )
        left_mask = (1 << len(payloads)) - 1
        if delivery.ack_set:
            left_mask ^= acked_mask(delivery.ack_set, len(payloads))
        message = ReceivedMessage(
            position_of(delivery.message_id),
            payloads,
            delivery.redelivery_count,
            delivery.message_id.partition,
            metadata.producer_name,
            metadata.publish_time,
            body,
            left_mask,
        )
        self.permits -= message.left_count
        self.queue.append(message)
        if self.on_arrival is not None:
            self.on_arrival(message)
        self._wake()

    def ended(self, error: HeadgateError) -> None:
        """Mark the consumer as closed: no entry arrives any more."""
        self.is_open = False
        self._end = error
        self._wake()

    def _leave(self, why: str) -> None:
        self._client.forget_consumer(self.consumer_id)
        self.ended(ConnectionLostError(why))

    def _wake(self) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
