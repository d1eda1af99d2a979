"""The commands of consumers, from SUBSCRIBE to CLOSE_CONSUMER."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from headgate.base.ack_words import acked_mask
from headgate.base.errors import HeadgateError, InputError
from headgate.base.names import (
    TopicName,
    check_new_subscription,
    check_subscription,
    parse_topic,
)
from headgate.base.positions import EARLIEST, Position
from headgate.base.units import INT64_MAX, MS_PER_S
from headgate.base.work_units import PIECE_UNITS, QUEUED_AGAIN, REDELIVER_ID, RETURNED_PER_UNIT
from headgate.broker.commands.acknowledging import is_unchanged
from headgate.broker.commands.command_host import CommandHost
from headgate.broker.commands.patient_reads import read_patiently
from headgate.broker.commands.schemas import TopicSchemas, takes_any_schema
from headgate.broker.connection.bounds import SLICE_REDELIVERED_IDS, bytes_beside, check_room
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.count_limits import CountLimits
from headgate.broker.entries import SingleEntryReader
from headgate.broker.registry import TopicRegistry
from headgate.broker.subscriptions import Subscriptions
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import GIVE_BACK_ENTRIES
from headgate.engine.errors import (
    ConsumerBusyError,
    NotAllowedError,
    SubscriptionBusyError,
    SubscriptionNotFoundError,
    TopicFencedError,
    UnsupportedVersionError,
)
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.metadata.errors import RefusalError
from headgate.policy.use_table import UseTable
from headgate.storage.managed_logs import ManagedLogs
from headgate.wire import encode
from headgate.wire.codes import InitialPosition
from headgate.wire.codes import SubscriptionType as WireType
from headgate.wire.ids import position_of, to_signed
from headgate.wire.messages import (
    BaseCommand,
    CommandRedeliverUnacknowledgedMessages,
    CommandSubscribe,
    MessageIdData,
)


class ConsumerCommands:
    """Carries out the commands of consumers that need more than their connection."""

    def __init__(
        self,
        host: CommandHost,
        registry: TopicRegistry,
        schemas: TopicSchemas,
        subscriptions: Subscriptions,
        entries: SingleEntryReader,
        count_limits: CountLimits,
        uses: UseTable,
        logs: ManagedLogs,
        later_check: Callable[[ClientConnection, BaseCommand], Callable[[], None]],
    ) -> None:
        """``later_check`` gives what raises a refusal once a client may not have a command carried
        out any more."""
        self._later_check = later_check
        self._host = host
        self._registry = registry
        self._schemas = schemas
        self._subscriptions = subscriptions
        self._entries = entries
        self._count_limits = count_limits
        self._uses = uses
        self._logs = logs

    async def subscribe(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Connect a consumer; its subscription (and topic) are created if they do not exist."""
        request = command.subscribe
        if request.consumer_id in connection.consumers:
            connection.write(encode.success(request.request_id))
            return
        key = ("consumer", request.consumer_id)
        if key in connection.creating:
            raise TopicFencedError("Consumer is already present on the connection")
        size_bytes = check_room(connection, request)
        held_bytes = self._host.client_memory.admit(
            connection.identity, size_bytes, connection.objects_count, bytes_beside(request)
        )
        connection.creating[key] = request
        try:
            name = parse_topic(request.topic)
            check_subscription(request.subscription)
            kind = _type_of(request)
            check, creates = self._later_check(connection, command), request.force_topic_creation
            topic = await self._registry.get_or_create(name, create=creates, check=check)
            self._check_type_enabled(name, kind)
            _check_version(connection, topic)
            await self._check_counts(connection, topic, request, kind)
            await self._schemas.check_consumer(topic, request, check)
            await self._subscriptions.when_idle(topic, request.subscription)
            check()  # it may create the subscription, or move that of others
            subscription = await self._find_or_create(topic, request, check)
            try:
                await _check_exclusive(connection, subscription, kind)
                await self._subscriptions.when_rankable(subscription, kind)
                self._host.begin_turn()
                if not connection.is_open or connection.creating.get(key) is not request:
                    _remove_unused(subscription)
                    return
                check()  # its permissions may have changed meanwhile
                self._count_limits.check_crowd(subscription)
                self._count_limits.check_consumer(topic, subscription, kind)
                self._count_limits.check_consumer_address(topic, connection.address)
                consumer = self._make_consumer(connection, topic, request)
                subscription.add_consumer(consumer, kind)
            except BaseException:  # also the end of the connection, which cancels this
                _remove_unused(subscription)
                raise
            connection.consumers[request.consumer_id] = (consumer, subscription)
            connection.described_bytes[key] = held_bytes
            connection.write(encode.success(request.request_id))
            connection.consumer_port.subscribed(request.consumer_id)
        finally:
            if connection.creating.get(key) is request:
                del connection.creating[key]

    def _check_type_enabled(self, topic: TopicName, kind: SubscriptionType) -> None:
        """Refuse a type of subscription that policies or settings exclude; the text is Pulsar's."""
        if kind.label not in self._uses.subscription_types(topic):
            raise NotAllowedError(f"Topic[{{{topic}}}] doesn't support {kind.label} sub type!")

    async def _check_counts(
        self,
        connection: ClientConnection,
        topic: Topic,
        request: CommandSubscribe,
        kind: SubscriptionType,
    ) -> None:
        """Refuse a consumer beyond a limit on their number, unless a dead connection holds the
        place of the same consumer."""
        host = self._host
        subscription = topic.subscriptions.get(request.subscription)
        try:
            self._count_limits.check_consumer(topic, subscription, kind)
        except ConsumerBusyError:
            holder = _holder(connection, subscription, request)
            if subscription is None or holder is None or await holder.port.is_alive():
                raise
            host.begin_turn()
            subscription.remove_consumer(holder)  # as in _check_exclusive

    async def _find_or_create(
        self, topic: Topic, request: CommandSubscribe, check: Callable[[], None]
    ) -> Subscription:
        name = request.subscription
        present = topic.subscriptions.get(name)
        if present is not None:
            if present.is_durable != request.durable:
                kind = "durable" if present.is_durable else "non-durable"
                raise NotAllowedError(f"Subscription {name} exists and is {kind}")
            if request.start_message_rollback_duration_sec > 0 and not present.consumers:
                ordinal = await self._rollback_ordinal(topic, request)
                await self._subscriptions.seek(present, ordinal, check=check)
            if request.subscription_properties and not present.properties and present.is_durable:
                await self._subscriptions.set_properties(present, _properties(request), check)
            await self._registry.note_use(topic.name, name)
            return present
        check_new_subscription(name)
        topic.check_not_fenced()
        if request.durable and not self._uses.creates_subscriptions(topic.name):
            raise SubscriptionNotFoundError("Subscription does not exist")
        ordinal = await self._start_ordinal(topic, request)
        if not request.durable:
            return await self._subscriptions.add_reader(topic, name, ordinal)
        return await self._subscriptions.create(
            topic, name, at_ordinal=ordinal, properties=_properties(request), check=check
        )

    async def _start_ordinal(self, topic: Topic, request: CommandSubscribe) -> int:
        """The first ordinal of a new subscription. The entry of a start message id is delivered
        whole, because the client may have read a part of its batch, and drops that part."""
        log = topic.log
        if request.start_message_rollback_duration_sec > 0:
            return await self._rollback_ordinal(topic, request)
        if request.HasField("start_message_id"):
            return log.ordinal_at_or_after(*position_of(request.start_message_id))
        if request.durable and request.initialPosition == InitialPosition.EARLIEST:
            return log.first
        return log.end

    async def _rollback_ordinal(self, topic: Topic, request: CommandSubscribe) -> int:
        rollback_ms = request.start_message_rollback_duration_sec * MS_PER_S
        return await self._ordinal_at_time(topic, topic.now_ms - rollback_ms)

    async def _ordinal_at_time(self, topic: Topic, publish_ms: int) -> int:
        find = partial(self._host.ordinal_at_time, topic, publish_ms)
        return await self._logs.of(topic).index.look_up(find)

    def _make_consumer(
        self, connection: ClientConnection, topic: Topic, request: CommandSubscribe
    ) -> Consumer:
        return Consumer(
            request.consumer_id,
            request.consumer_name or self._host.unique_name(),
            connection.consumer_port,
            priority_level=request.priority_level,
            metadata={item.key: item.value for item in request.metadata},
            address=connection.address,
            client_version=connection.peer.client_version if connection.peer else "",
            connected_ms=topic.now_ms,
            epoch=to_signed(request.consumer_epoch) if request.HasField("consumer_epoch") else -1,
            takes_any_schema=takes_any_schema(request),
        )

    async def unsubscribe(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Delete a subscription for its only consumer, or for any of them with ``force``."""
        request, check = command.unsubscribe, self._later_check(connection, command)
        connected = consumer, subscription = _connected(connection, request.consumer_id)
        if len(subscription.consumers) > 1 and not request.force:
            raise SubscriptionBusyError(
                "Unconnected or shared consumer attempting to unsubscribe while others are "
                "connected"
            )
        subscription.remove_consumer(consumer)
        if subscription.is_durable and not subscription.removed:
            try:
                await self._subscriptions.disconnect(subscription)
                await self._subscriptions.delete(subscription, check=check)
            except HeadgateError:
                if _is_present(connection, connected):
                    # The client reconnects the consumer.
                    connection.consumer_port.close_consumer(request.consumer_id)
                raise
        else:
            await self._subscriptions.disconnect(subscription)
        if _is_present(connection, connected):
            del connection.consumers[request.consumer_id]
        connection.write(encode.success(request.request_id))

    async def seek(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Reset the cursor of a subscription to a message or a publish time. Its consumers
        reconnect."""
        request, check = command.seek, self._later_check(connection, command)
        _, subscription = _connected(connection, request.consumer_id)
        topic, acked_mask = subscription.topic, 0
        if request.HasField("message_publish_time"):
            publish_ms = min(request.message_publish_time, INT64_MAX)
            ordinal = await self._ordinal_at_time(topic, publish_ms)
        elif request.HasField("message_id"):
            ordinal = topic.log.ordinal_at_or_after(*position_of(request.message_id))
            acked_mask = await self._messages_before(topic, ordinal, request.message_id)
        else:
            raise NotAllowedError("SEEK names neither a message nor a time")
        if subscription.fenced:
            raise RefusalError(409, "Another seek is going on")  # UNKNOWN_ERROR for the client
        await self._subscriptions.seek(subscription, ordinal, acked_mask, check)
        connection.write(encode.success(request.request_id))

    async def _messages_before(self, topic: Topic, ordinal: int, target: MessageIdData) -> int:
        """The messages of the batch ``ordinal`` that are before the one that a SEEK names: they
        count as acknowledged. Java names it by an ``ack_set``, Go by its index.

        Raises:
            NotAllowedError: the batch has no such message.
        """
        log, left, index = topic.log, tuple(target.ack_set), target.batch_index
        if not self._host.settings.acknowledgmentAtBatchIndexLevelEnabled:
            return 0
        if (index <= 0 and not any(left)) or ordinal >= log.end:
            return 0
        if log.position(ordinal) != position_of(target):
            return 0  # that message is gone

        def find_size() -> int:
            # Again before each look-up: the topic may be trimmed while the index is read.
            return log.message_count(ordinal) if ordinal >= log.first else 0

        batch_size = await self._logs.of(topic).index.look_up(find_size)
        if not batch_size:
            return 0  # that message is gone now
        if left:
            try:
                return acked_mask(left, batch_size)
            except InputError as error:
                raise NotAllowedError(f"SEEK to {position_of(target)}: {error}") from error
        return (1 << index) - 1 if index < batch_size else 0

    async def last_message_id(self, connection: ClientConnection, command: BaseCommand) -> None:
        """Answer with the last durable message and the subscription's mark-delete position."""
        request = command.getLastMessageId
        _, subscription = _connected(connection, request.consumer_id)
        topic = subscription.topic
        log = topic.log
        found = await self._entries.last_message(topic)
        has_entries = found.position.entry_id >= 0
        mark = subscription.acks.mark_delete
        marked = log.position(mark) if log.first <= mark < log.end else Position(-1, -1)
        connection.write(
            encode.last_message_id(
                request.request_id,
                found.position if has_entries else EARLIEST,
                partition=topic.partition,
                batch_index=found.batch_index if has_entries else -1,
                mark_delete=marked,
            )
        )


def _properties(request: CommandSubscribe) -> dict[str, str]:
    return {item.key: item.value for item in request.subscription_properties}


def _check_version(connection: ClientConnection, topic: Topic) -> None:
    """Refuse a client that does not know batches, if the topic has had some."""
    peer, log = connection.peer, topic.log
    if peer is not None and not peer.knows_batches and log.messages_before(log.end) > log.end:
        raise UnsupportedVersionError("Consumer doesn't support batch-message")


def _type_of(request: CommandSubscribe) -> SubscriptionType:
    """The type of the subscription that a consumer asks for.

    Raises:
        NotAllowedError: it is not supported, or not with ``readCompacted``.
    """
    if request.subType == WireType.KEY_SHARED:
        raise NotAllowedError("Key_Shared is not supported: Exclusive, Shared and Failover are")
    if request.read_compacted and request.subType == WireType.SHARED:
        raise NotAllowedError("readCompacted only allowed on failover or exclusive subscriptions")
    return SubscriptionType(request.subType)


def _holder(
    connection: ClientConnection, subscription: Subscription | None, request: CommandSubscribe
) -> Consumer | None:
    """The consumer on another connection whose place the requested one takes: the one of its name,
    or the only one of an exclusive subscription."""
    if subscription is None:
        return None
    is_exclusive = request.subType == WireType.EXCLUSIVE
    for consumer in subscription.consumers:
        if consumer.port is not connection.consumer_port and (
            is_exclusive or consumer.name == request.consumer_name
        ):
            return consumer
    return None


def _remove_unused(subscription: Subscription) -> None:
    """Remove the subscription of a reader that did not get connected, unless it is being moved."""
    if not (subscription.is_durable or subscription.consumers or subscription.fenced):
        subscription.topic.remove_subscription(subscription.name)


async def _check_exclusive(
    connection: ClientConnection, subscription: Subscription, kind: SubscriptionType
) -> None:
    """Refuse a second exclusive consumer, unless the connection of the first is dead."""
    if kind is not SubscriptionType.EXCLUSIVE or not subscription.consumers:
        return
    if subscription.type is not kind:
        return
    holder = next(iter(subscription.consumers))
    if holder.port is connection.consumer_port or await holder.port.is_alive():
        raise ConsumerBusyError("Exclusive consumer is already connected")
    subscription.remove_consumer(holder)  # if its connection still disconnects its many clients


def _connected(connection: ClientConnection, consumer_id: int) -> tuple[Consumer, Subscription]:
    connected = connection.consumers.get(consumer_id)
    if connected is None:
        raise NotAllowedError(f"Consumer {consumer_id} does not exist on this connection")
    return connected


def _is_present(connection: ClientConnection, connected: tuple[Consumer, Subscription]) -> bool:
    """Whether a consumer still has its id: the client may have closed it while a command waited,
    and given the id to another one."""
    return connection.consumers.get(connected[0].consumer_id) is connected


def redeliver(
    logs: ManagedLogs, work: WorkScheduler, connection: ClientConnection, command: BaseCommand
) -> None:
    """Redeliver a consumer's entries: those that the command names, in slices, or all."""
    request = command.redeliverUnacknowledgedMessages
    connected = connection.consumers.get(request.consumer_id)
    if connected is None:
        return
    if request.message_ids and connected[1].type.is_shared:
        connection.run_in_slices(_redeliver_in_slices(logs, work, connection, command, connected))
    elif not connection.is_partial:
        connection.run_in_slices(_redeliver_all(connection, request, connected))


def _redeliver_all(
    connection: ClientConnection,
    request: CommandRedeliverUnacknowledgedMessages,
    connected: tuple[Consumer, Subscription],
) -> Iterator[int]:
    """Give back all that the consumer holds; the flushes that follow queue most of it."""
    consumer, subscription = connected
    if is_unchanged(connection, connected):
        units = len(consumer.held) // RETURNED_PER_UNIT
        queued = min(len(consumer.held), GIVE_BACK_ENTRIES)
        subscription.redeliver(consumer, None, _epoch(request))
        yield units + queued * QUEUED_AGAIN + 1


def _redeliver_in_slices(
    logs: ManagedLogs,
    work: WorkScheduler,
    connection: ClientConnection,
    command: BaseCommand,
    connected: tuple[Consumer, Subscription],
) -> Iterator[int]:
    consumer, subscription = connected
    request = command.redeliverUnacknowledgedMessages
    log = subscription.topic.log
    cold: list[int] = []
    for start in range(0, len(request.message_ids), SLICE_REDELIVERED_IDS):
        if not is_unchanged(connection, connected):
            return  # closing the consumer has redelivered its entries
        ordinals: list[int] = []
        message_ids = request.message_ids[start : start + SLICE_REDELIVERED_IDS]
        for message_id in message_ids:
            position = position_of(message_id)
            ordinal = log.ordinal_at_or_after(*position)
            if ordinal < log.end and log.position(ordinal) == position:
                (ordinals if log.is_indexed(ordinal) else cold).append(ordinal)
        subscription.redeliver(consumer, ordinals, _epoch(request))
        yield len(message_ids) * REDELIVER_ID
    if cold:
        rest = _redeliver_loaded(logs, work, connection, connected, cold, _epoch(request))
        connection.run_waiting(rest, command)


async def _redeliver_loaded(
    logs: ManagedLogs,
    work: WorkScheduler,
    connection: ClientConnection,
    connected: tuple[Consumer, Subscription],
    ordinals: list[int],
    epoch: int,
) -> None:
    """Redeliver entries whose index is on the disk, after loading it.

    Raises:
        StorageError: it cannot be read. The consumer is closed, which redelivers the entries.
    """
    consumer, subscription = connected
    topic, loaded = subscription.topic, logs.loaded_index
    for start in range(0, len(ordinals), PIECE_UNITS // REDELIVER_ID):
        part = ordinals[start : start + PIECE_UNITS // REDELIVER_ID]
        held = await read_patiently(connection, connected, work, partial(loaded.load, topic, part))
        try:
            await work.give_way(PIECE_UNITS, JobClass.COMMAND, topic.name.tenant)
            if not is_unchanged(connection, connected):
                return  # closing the consumer has redelivered its entries
            subscription.redeliver(consumer, part, epoch)
        finally:
            del held
            loaded.give_back(topic)


def _epoch(request: CommandRedeliverUnacknowledgedMessages) -> int:
    return to_signed(request.consumer_epoch) if request.HasField("consumer_epoch") else -1


def close_consumer(connection: ClientConnection, command: BaseCommand) -> None:
    """Disconnect a consumer; its unacknowledged entries are redelivered to others."""
    request = command.close_consumer
    connection.creating.pop(("consumer", request.consumer_id), None)
    connected = connection.consumers.pop(request.consumer_id, None)
    if connected is not None:
        consumer, subscription = connected
        subscription.remove_consumer(consumer)
    connection.write(encode.success(request.request_id))
