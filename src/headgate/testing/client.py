"""A small Pulsar client for tests: one connection, plain coroutines, no hidden reconnecting.

A refusal raises :class:`RefusedError` with the broker's code. When the connection ends, everything
that waits raises :class:`ConnectionLostError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.base.positions import Position
from headgate.testing.consumer import SimConsumer
from headgate.testing.errors import ConnectionLostError, refused
from headgate.testing.producer import SimProducer
from headgate.wire import client as frames
from headgate.wire.codes import CommandType, InitialPosition, ProducerAccessMode, SubscriptionType
from headgate.wire.frame import FIELD_OF_TYPE, FrameDecoder
from headgate.wire.ids import NO_REQUEST
from headgate.wire.messages import BaseCommand, Schema


class SimClient(asyncio.Protocol):
    """One connection to a broker.

    ``wall_ms`` gives the publish time of messages. Commands that answer no request are delivered to
    their producers and consumers; all others are kept in ``unexpected``.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, wall_ms: Callable[[], int] = lambda: 0
    ) -> None:
        self.loop = loop
        self.wall_ms = wall_ms
        self.is_open = False
        self.connected: BaseCommand | None = None
        """The broker's CONNECTED; None until it arrives."""
        self.lost: asyncio.Future[None] = loop.create_future()
        """Done when the connection has ended."""
        self.unexpected: list[BaseCommand] = []
        self.answers_pings = True
        """If False, the client ignores pings, so the broker should cut the connection."""
        self.transport: asyncio.Transport
        self._decoder = FrameDecoder()
        self._requests: dict[int, asyncio.Future[BaseCommand]] = {}
        self._connecting: asyncio.Future[BaseCommand] | None = None
        self._token: Callable[[], bytes] | None = None
        self.queued_producers: list[str] = []
        """Names of the producers that had to wait for exclusive access."""
        self.challenges_count = 0
        """AUTH_CHALLENGEs so far."""
        self._producers: dict[int, SimProducer] = {}
        self._consumers: dict[int, SimConsumer] = {}
        self._next_id = 0

    # -- the connection --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self.transport = transport
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        error = ConnectionLostError("the connection has ended" + (f": {exc}" if exc else ""))
        waiting = [*self._requests.values(), *([self._connecting] if self._connecting else [])]
        for future in waiting:
            _settle(future, error)
        self._requests.clear()
        for producer in self._producers.values():
            producer.ended(error)
        for consumer in self._consumers.values():
            consumer.ended(error)
        _settle(self.lost, None)

    def data_received(self, data: bytes) -> None:
        self._decoder.feed(data)
        while (frame := self._decoder.next_frame()) is not None:
            self._receive(*frame)

    async def connect(
        self,
        *,
        protocol_version: int | None = None,
        client_version: str = "headgate-testing",
        token: Callable[[], bytes] | None = None,
        **credentials: Any,
    ) -> BaseCommand:
        """Send CONNECT and wait for CONNECTED.

        ``token`` gives a token for CONNECT, and a new one for each AUTH_CHALLENGE. ``credentials``
        are further arguments of :func:`headgate.wire.client.connect`.

        Raises:
            RefusedError: the broker refused the connection.
            ConnectionLostError: the broker ended the connection.
        """
        self._connecting = self.loop.create_future()
        options = dict(credentials)
        if protocol_version is not None:
            options["protocol_version"] = protocol_version
        if token is not None:
            self._token = token
            options |= {
                "auth_method": "token", "auth_data": token(), "refreshes_credentials": True,
            }  # fmt: skip
        self.write(frames.connect(client_version=client_version, **options))
        self.connected = await self._connecting
        self._connecting = None
        return self.connected

    def write(self, frame: bytes) -> None:
        """Send bytes unchanged.

        Raises:
            ConnectionLostError: the connection has ended.
        """
        if not self.is_open:
            raise ConnectionLostError("the connection has ended")
        self.transport.write(frame)

    def close(self) -> None:
        """End the connection after everything written is sent."""
        self.transport.close()

    def abort(self) -> None:
        """End the connection as a killed process does."""
        self.transport.abort()

    # -- requests --------------------------------------------------------------------------

    def new_id(self) -> int:
        """A number that was not used on this connection."""
        self._next_id += 1
        return self._next_id

    async def request(self, make: Callable[[int], bytes]) -> BaseCommand:
        """Send the frame that ``make(request id)`` builds and wait for its answer.

        Raises:
            RefusedError: the answer is an error.
            ConnectionLostError: there will be no answer.
        """
        request_id = self.new_id()
        future: asyncio.Future[BaseCommand] = self.loop.create_future()
        self.write(make(request_id))
        self._requests[request_id] = future
        try:
            return await future
        finally:
            self._requests.pop(request_id, None)

    async def partitions(self, topic: str, *, auto_creation: bool = True) -> int:
        """How many partitions the topic has; 0 if it is not partitioned."""
        answer = await self.request(
            lambda i: frames.partitioned_metadata(i, topic, auto_creation=auto_creation)
        )
        return int(answer.partitionMetadataResponse.partitions)

    async def lookup(self, topic: str) -> str:
        """The URL of the broker that serves the topic."""
        answer = await self.request(lambda i: frames.lookup(i, topic))
        return str(answer.lookupTopicResponse.brokerServiceUrl)

    async def topics(self, namespace: str) -> list[str]:
        """The topics of a namespace."""
        answer = await self.request(lambda i: frames.get_topics_of_namespace(i, namespace))
        return list(answer.getTopicsOfNamespaceResponse.topics)

    async def producer(
        self,
        topic: str,
        *,
        name: str | None = None,
        access_mode: ProducerAccessMode = ProducerAccessMode.SHARED,
        epoch: int = 0,
        topic_epoch: int | None = None,
        schema: Schema | None = None,
        encrypted: bool = False,
    ) -> SimProducer:
        """Create a producer, when its turn comes if it waits for exclusive access. Raises as
        :meth:`request`."""
        producer_id = self.new_id()
        producer = SimProducer(self, producer_id, topic)
        self._producers[producer_id] = producer
        try:
            answer = await self.request(
                lambda i: frames.producer(
                    i,
                    producer_id,
                    topic,
                    name=name,
                    epoch=epoch,
                    access_mode=access_mode,
                    topic_epoch=topic_epoch,
                    schema=schema,
                    encrypted=encrypted,
                )
            )
        except HeadgateError:
            del self._producers[producer_id]
            raise
        producer.name = answer.producer_success.producer_name
        producer.schema_version = answer.producer_success.schema_version
        producer.last_sequence_id = answer.producer_success.last_sequence_id
        if answer.producer_success.HasField("topic_epoch"):
            producer.topic_epoch = answer.producer_success.topic_epoch
        return producer

    async def subscribe(
        self,
        topic: str,
        subscription: str,
        *,
        kind: SubscriptionType = SubscriptionType.EXCLUSIVE,
        earliest: bool = True,
        name: str | None = None,
        queue_size: int = 1_000,
        durable: bool = True,
        start: Position | None = None,
        priority_level: int | None = None,
        properties: Mapping[str, str] | None = None,
        schema: Schema | None = None,
    ) -> SimConsumer:
        """Attach a consumer and request ``queue_size`` messages. Raises as :meth:`request`.

        With ``queue_size`` 0 the consumer requests nothing: use :meth:`SimConsumer.flow`.
        """
        consumer_id = self.new_id()
        consumer = SimConsumer(self, consumer_id, topic, subscription, queue_size=queue_size)
        self._consumers[consumer_id] = consumer
        position = InitialPosition.EARLIEST if earliest else InitialPosition.LATEST
        try:
            await self.request(
                lambda i: frames.subscribe(
                    i,
                    consumer_id,
                    topic,
                    subscription,
                    kind=kind,
                    initial_position=position,
                    consumer_name=name,
                    priority_level=priority_level,
                    durable=durable,
                    start=start,
                    properties=properties,
                    schema=schema,
                )
            )
        except HeadgateError:
            del self._consumers[consumer_id]
            raise
        consumer.begin()
        return consumer

    async def reader(
        self, topic: str, start: Position, *, name: str = "reader", queue_size: int = 1_000
    ) -> SimConsumer:
        """A consumer whose position is not stored. Raises as :meth:`request`."""
        return await self.subscribe(
            topic, name, durable=False, start=start, queue_size=queue_size, earliest=False
        )

    # -- what arrives ----------------------------------------------------------------------

    def _receive(self, command: BaseCommand, body: bytes | None) -> None:
        kind = command.type
        if kind == CommandType.MESSAGE:
            consumer = self._consumers.get(command.message.consumer_id)
            if consumer is not None and body is not None:
                consumer.arrived(command.message, body)
        elif kind == CommandType.SEND_RECEIPT:
            self._of_producer(command.send_receipt, command)
        elif kind == CommandType.SEND_ERROR:
            self._of_producer(command.send_error, command)
        elif kind == CommandType.PING:
            if self.answers_pings and self.is_open:
                self.write(frames.pong())
        elif kind == CommandType.CONNECTED and self._connecting is not None:
            _settle(self._connecting, None, command)
        elif kind == CommandType.AUTH_CHALLENGE:
            self.challenges_count += 1
            if self._token is not None and self.is_open:
                self.write(frames.auth_response("token", self._token()))
        elif kind == CommandType.CLOSE_PRODUCER:
            self._producers.pop(command.close_producer.producer_id).ended(
                ConnectionLostError("the broker closed the producer")
            )
        elif kind == CommandType.CLOSE_CONSUMER:
            self._consumers.pop(command.close_consumer.consumer_id).ended(
                ConnectionLostError("the broker closed the consumer")
            )
        elif kind == CommandType.REACHED_END_OF_TOPIC:
            ended = self._consumers.get(command.reachedEndOfTopic.consumer_id)
            if ended is not None:
                ended.ends_count += 1
        elif kind == CommandType.ACTIVE_CONSUMER_CHANGE:
            consumer = self._consumers.get(command.active_consumer_change.consumer_id)
            if consumer is not None:
                consumer.active_changes.append(command.active_consumer_change.is_active)
        else:
            self._answer(command)

    def _of_producer(self, answer: Any, command: BaseCommand) -> None:
        producer = self._producers.get(answer.producer_id)
        if producer is None or not producer.answered(command):
            self.unexpected.append(command)

    def _answer(self, command: BaseCommand) -> None:
        answer = getattr(command, FIELD_OF_TYPE[command.type])
        request_id = getattr(answer, "request_id", None)
        error = _error_in(answer)
        if request_id == NO_REQUEST and self._connecting is not None:
            _settle(self._connecting, error)
            return
        future = self._requests.get(request_id) if request_id is not None else None
        if future is None:
            self.unexpected.append(command)
            return
        if command.type == CommandType.PRODUCER_SUCCESS and not answer.producer_ready:
            self.queued_producers.append(answer.producer_name)
            return  # a second answer follows
        _settle(future, error, command)

    def forget_producer(self, producer_id: int) -> None:
        """A producer is closed: nothing more is delivered to it."""
        self._producers.pop(producer_id, None)

    def forget_consumer(self, consumer_id: int) -> None:
        """A consumer is closed: nothing more is delivered to it."""
        self._consumers.pop(consumer_id, None)


def _error_in(answer: Any) -> HeadgateError | None:
    fields = answer.DESCRIPTOR.fields_by_name
    failed = any(name in fields and answer.HasField(name) for name in ("error", "error_code"))
    return refused(answer) if failed else None


def _settle(
    future: asyncio.Future[Any], error: BaseException | None, result: object = None
) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        future.exception()  # retrieved here: a request that is not awaited is no error
