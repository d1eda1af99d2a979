"""Carries out PRODUCER and CLOSE_PRODUCER."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final

from headgate.base.errors import HeadgateError, invariant
from headgate.base.names import TopicName, check_subscription, parse_topic
from headgate.base.units import INT64_MAX
from headgate.broker.commands.command_host import CommandHost
from headgate.broker.commands.producer_access import ProducerAccess
from headgate.broker.commands.schemas import TopicSchemas
from headgate.broker.connection.bounds import bytes_beside, check_room
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.producer_attempt import ProducerAttempt
from headgate.broker.count_limits import CountLimits
from headgate.broker.registry import TopicRegistry
from headgate.broker.subscriptions import Subscriptions
from headgate.engine.errors import NotAllowedError, ProducerBusyError, TopicFencedError
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.engine.types import AccessMode
from headgate.metadata.errors import not_allowed
from headgate.policy.use_table import UseTable
from headgate.wire import encode
from headgate.wire.messages import BaseCommand, CommandProducer

TOPIC_EPOCH_MAX: Final = INT64_MAX // 2
"""Far above every topic epoch that the broker gave; the rest of Pulsar's range stays free, so that
no client can use it up."""

_OTHERS_LEAVE: Final = (AccessMode.WAIT_FOR_EXCLUSIVE, AccessMode.EXCLUSIVE_WITH_FENCING)
"""The modes of producers that are connected after the topic's others are gone."""


class ProducerCommands:
    """Carries out PRODUCER and CLOSE_PRODUCER for all connections of one broker."""

    def __init__(
        self,
        host: CommandHost,
        registry: TopicRegistry,
        schemas: TopicSchemas,
        subscriptions: Subscriptions,
        count_limits: CountLimits,
        uses: UseTable,
        access: ProducerAccess,
        check: Callable[[ClientConnection, BaseCommand], None],
    ) -> None:
        """``check`` raises a refusal unless a client may have a command carried out."""
        self._check = check
        self._access = access
        self._host = host
        self._registry = registry
        self._schemas = schemas
        self._subscriptions = subscriptions
        self._count_limits = count_limits
        self._uses = uses

    async def create_producer(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Connect a producer; its topic is created if it does not exist."""
        request = command.producer
        producer_id, check = request.producer_id, partial(self._check, connection, command)
        present = connection.producers.get(producer_id)
        if present is not None:
            version = await self._schemas.version(present[1].name, request, check)
            _answer(connection, request.request_id, *present, version)
            return
        key = ("producer", producer_id)
        if key in connection.creating:
            raise TopicFencedError("Producer is already present on the connection")
        size_bytes = check_room(connection, request)
        held_bytes = self._host.client_memory.admit(
            connection.identity, size_bytes, connection.objects_count, bytes_beside(request)
        )
        connection.creating[key] = request
        try:
            name = parse_topic(request.topic)
            self._check_supported(request, name)
            topic = await self._registry.get_or_create(name, create=True, check=check)
            topic.check_takes_messages()
            _check_epoch(topic, request)
            if topic.send_rules is not None and topic.send_rules.encrypted:
                _check_encrypts(request)
            mode = AccessMode(request.producer_access_mode)
            if request.producer_name not in topic.producers and mode not in _OTHERS_LEAVE:
                self._count_limits.check_producer(topic)
            version = await self._schemas.version(name, request, check)
            if request.initial_subscription_name:
                check()
                await self._create_initial_subscription(
                    topic, request.initial_subscription_name, check
                )
            if connection.creating.get(key) is not request:
                return  # given up: its client may have asked again, and have the producer already
            producer = self._make_producer(connection, topic, request)
            holder = topic.producers.get(producer.name)
            if holder is not None and mode is not AccessMode.EXCLUSIVE_WITH_FENCING:
                await _take_over(connection, topic, holder, producer)
            if connection.creating.get(key) is not request:
                return
            attempt = connection.creating[key] = ProducerAttempt(
                connection, command, topic, producer, self._connect,
                schema_version=version, held_bytes=held_bytes,
            )  # fmt: skip
            await self._connect(attempt)
        finally:
            if connection.creating.get(key) is request:
                del connection.creating[key]

    async def _when_settled(self, topic: Topic, name: str) -> None:
        """Return when the last sequence id of a producer is known: what an earlier connection
        staged under its name is stored or not.

        Raises:
            StorageError: that could not be stored; the client tries again.
        """
        table = topic.log.sequences
        if table is not None and table.has_staged(name):
            await self._host.when_durable(topic)

    async def _connect(self, attempt: ProducerAttempt) -> None:
        """Connect a producer when it has the access that it asks for. If it has to wait for that,
        this is called again at its turn."""
        connection, topic, producer = attempt.connection, attempt.topic, attempt.producer
        try:
            await self._when_settled(topic, producer.name)
            self._host.begin_turn()
            topic.publishing.check_newcomer(connection.producer_port)
            check = partial(self._check, connection, attempt.command)
            if not await self._access.obtain(attempt, check):
                return
            self._host.begin_turn()
            if not attempt.is_wanted:
                return
            check()  # its permissions may have changed meanwhile
            self._count_limits.check_producer(topic)
            self._count_limits.check_producer_address(topic, connection.address)
            topic.publishing.check_newcomer(connection.producer_port)
            topic.add_producer(producer)
            connection.producers[producer.producer_id] = (producer, topic)
            connection.described_bytes[attempt.key] = attempt.held_bytes
            _answer(connection, attempt.request.request_id, producer, topic, attempt.schema_version)
        finally:
            if not attempt.is_waiting:
                attempt.end()

    def _check_supported(self, request: CommandProducer, name: TopicName) -> None:
        """Refuse a request that is not supported or not allowed, before anything is created."""
        if self._registry.is_system(name):
            raise NotAllowedError(f"{name} belongs to the broker: only it may produce there")
        if request.initial_subscription_name:
            check_subscription(request.initial_subscription_name)

    def _make_producer(
        self, connection: ClientConnection, topic: Topic, request: CommandProducer
    ) -> Producer:
        invariant(connection.peer is not None, "commands come after CONNECT")
        return Producer(
            request.producer_id,
            request.producer_name or self._host.unique_name(),
            connection.producer_port,
            epoch=request.epoch,
            access_mode=AccessMode(request.producer_access_mode),
            metadata={item.key: item.value for item in request.metadata},
            address=connection.address,
            client_version=connection.peer.client_version if connection.peer else "",
            connected_ms=topic.now_ms,
            is_encrypting=request.encrypted,
            is_partial=connection.peer is not None and connection.peer.leaves_out_partitions,
        )

    async def _create_initial_subscription(
        self, topic: Topic, name: str, check: Callable[[], None]
    ) -> None:
        if name not in topic.subscriptions:
            if not self._uses.creates_subscriptions(topic.name):
                raise NotAllowedError(
                    "Could not create the initial subscription due to the auto subscription "
                    "creation is not allowed."
                )
            await self._subscriptions.create(
                topic, name, at_ordinal=topic.log.first, properties={}, check=check
            )

    async def close_producer(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Disconnect a producer once its SENDs are durable and answered."""
        request = command.close_producer
        attempt = connection.creating.pop(("producer", request.producer_id), None)
        if isinstance(attempt, ProducerAttempt):
            attempt.end()
        connected = connection.producers.get(request.producer_id)
        if connected is not None:
            producer, topic = connected
            # The client no longer waits for their receipts.
            topic.publishing.discard_parked(producer)
            if producer.pending_count:
                with contextlib.suppress(HeadgateError):  # each SEND gets an error of its own
                    await self._host.when_durable(topic)
                self._host.begin_turn()
            if connection.producers.get(request.producer_id) is connected:
                connection.forget_producer(request.producer_id)
            topic.remove_producer(producer)
        connection.write(encode.success(request.request_id))


def _check_epoch(topic: Topic, request: CommandProducer) -> None:
    """Refuse an epoch beyond :data:`TOPIC_EPOCH_MAX` that the broker did not give: behind one who
    brings the highest, others get still higher ones, and bring those when they come back."""
    brought = request.topic_epoch
    if brought > TOPIC_EPOCH_MAX:
        given = None if topic.access is None else topic.access.epoch
        if given is None or brought > given:
            raise NotAllowedError(f"Topic epoch {brought} is above {TOPIC_EPOCH_MAX}")


def _check_encrypts(request: CommandProducer) -> None:
    if not request.encrypted:
        raise not_allowed(f"Encryption is required in {request.topic}")


async def _take_over(
    connection: ClientConnection, topic: Topic, holder: Producer, newcomer: Producer
) -> None:
    """Free the name of ``newcomer`` if an earlier attempt of the same client, or a dead
    connection, holds it.

    Raises:
        ProducerBusyError: a producer on a live connection holds the name, and the newcomer wants
            to share the topic; else the access modes decide.
    """
    port = holder.port
    if port is connection.producer_port and holder.producer_id == newcomer.producer_id:
        connection.forget_producer(holder.producer_id)
        topic.remove_producer(holder)
        return
    if await port.is_alive():
        if newcomer.access_mode is not AccessMode.SHARED:
            return
        raise ProducerBusyError(f"Producer with name '{holder.name}' is already connected to topic")
    if not holder.closed:  # its connection has ended, and disconnects its many clients in slices
        topic.remove_producer(holder)


def _answer(
    connection: ClientConnection,
    request_id: int,
    producer: Producer,
    topic: Topic,
    schema_version: bytes,
) -> None:
    table = topic.log.sequences
    connection.write(
        encode.producer_success(
            request_id,
            producer_name=producer.name,
            last_sequence_id=-1 if table is None else table.last_id(producer.name),
            schema_version=schema_version,
            topic_epoch=None if topic.access is None else topic.access.epoch,
        )
    )
