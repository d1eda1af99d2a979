"""Carries out ACK: the answer follows when the acknowledgement is durable.

Ids that are not stored, or belong to another topic, change nothing. Entries whose index is on the
disk are acknowledged when the read lane has brought it; a seek meanwhile makes that void.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from headgate.base.work_units import ACK_ID, HOLDERS_PER_UNIT, PIECE_UNITS
from headgate.broker.connection.bounds import SLICE_IDS
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.storage.managed_logs import ManagedLogs
from headgate.wire import encode
from headgate.wire.codes import AckType, ServerError
from headgate.wire.ids import to_signed
from headgate.wire.messages import BaseCommand, CommandAck, MessageIdData

PIECE_IDS: Final = PIECE_UNITS // ACK_ID
"""Entries that are acknowledged at once after their index was loaded."""


class Acknowledgements:
    """Carries out the ACKs of all connections of one broker."""

    def __init__(self, logs: ManagedLogs, work: WorkScheduler) -> None:
        self._logs = logs
        self._work = work

    def acknowledge(self, connection: ClientConnection, command: BaseCommand) -> int:
        """Carry out an ACK, or its first slice; returns the work that it took.

        An ACK of a consumer that is closed comes too late and changes nothing. An ACK with many
        ids is processed in slices, before any other command of its connection. If the consumer
        closes meanwhile, the remaining ids come too late, and their messages are delivered again.
        """
        ack = command.ack
        connected = connection.consumers.get(ack.consumer_id)
        if connected is None:
            _refuse_without_consumer(connection, ack)
            return 1
        consumer, subscription = connected
        if ack.ack_type == AckType.CUMULATIVE:
            problem, last = _find_last(subscription, ack)
            passed: list[int] = []
            if last > subscription.acks.mark_delete:
                passed = subscription.entries_passed(last)
            if problem:
                if ack.HasField("request_id"):
                    _refuse(connection, ack, ServerError.NOT_ALLOWED_ERROR, problem)
            elif not all(map(subscription.topic.log.is_indexed, passed)):
                rest = self._ack_through_loaded(connection, ack, connected, last)
                connection.run_waiting(rest, command)
            else:
                subscription.ack_through(consumer, last)
                self._answer_when_durable(connection, subscription, ack)
            return 1
        count = len(ack.message_id)
        if count > 1 and count > _slice_ids(subscription):
            connection.run_in_slices(self._ack_in_slices(connection, command, connected))
            return 1
        cold: list[int] = []
        work = _ack_entries(consumer, subscription, ack.message_id, cold)
        if cold or ack.HasField("request_id"):
            self._finish(connection, command, connected, cold)
        return work or 1

    def _finish(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
        cold: list[int],
    ) -> None:
        """Answer an ACK, after acknowledging the entries whose index is not in memory."""
        if cold:
            rest = self._ack_loaded(connection, command.ack, connected, cold)
            connection.run_waiting(rest, command)
        else:
            self._answer_when_durable(connection, connected[1], command.ack)

    async def _ack_loaded(
        self,
        connection: ClientConnection,
        ack: CommandAck,
        connected: tuple[Consumer, Subscription],
        ordinals: list[int],
    ) -> None:
        """Load the index of entries, then acknowledge them. The consumer may be closed meanwhile:
        that makes no difference.

        Raises:
            StorageError: the index cannot be read: nothing of this was acknowledged.
        """
        consumer, subscription = connected
        resets_count, log = subscription.resets_count, subscription.topic.log
        index = self._logs.of(subscription.topic).index
        for start in range(0, len(ordinals), PIECE_IDS):
            part = ordinals[start : start + PIECE_IDS]
            held = await index.load(log, part)
            await self._work.give_way(PIECE_UNITS, JobClass.COMMAND)
            if subscription.removed:
                if connection.is_open:
                    _refuse_without_consumer(connection, ack)
                return
            if subscription.resets_count != resets_count:
                break  # what the client acknowledged is void
            for ordinal in part:
                subscription.ack_entry(consumer, ordinal)
            del held
        if connection.is_open:
            self._answer_when_durable(connection, subscription, ack)

    async def _ack_through_loaded(
        self,
        connection: ClientConnection,
        ack: CommandAck,
        connected: tuple[Consumer, Subscription],
        last: int,
    ) -> None:
        """Load the index that a cumulative acknowledgement looks up, then acknowledge everything up
        to ``last``. The consumer may be closed meanwhile: that makes no difference.

        Raises:
            StorageError: the index cannot be read: nothing of this was acknowledged.
        """
        consumer, subscription = connected
        resets_count, log = subscription.resets_count, subscription.topic.log
        await self._work.give_way(PIECE_UNITS, JobClass.COMMAND)
        index = self._logs.of(subscription.topic).index
        held = await index.look_up(lambda: log.index_of(subscription.entries_passed(last)))
        if subscription.removed:
            if connection.is_open:
                _refuse_without_consumer(connection, ack)
            return
        if subscription.resets_count == resets_count:  # else what the client acknowledged is void
            subscription.ack_through(consumer, last)
        del held
        if connection.is_open:
            self._answer_when_durable(connection, subscription, ack)

    def _ack_in_slices(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
    ) -> Iterator[int]:
        consumer, subscription = connected
        ack = command.ack
        cold: list[int] = []
        slice_ids = _slice_ids(subscription)
        for start in range(0, len(ack.message_id), slice_ids):
            if not is_unchanged(connection, connected):
                _refuse_without_consumer(connection, ack)
                return
            ids = ack.message_id[start : start + slice_ids]
            yield _ack_entries(consumer, subscription, ids, cold)
        self._finish(connection, command, connected, cold)

    def _answer_when_durable(
        self, connection: ClientConnection, subscription: Subscription, ack: CommandAck
    ) -> None:
        """Answer, if the client asked for it, when everything staged until now is durable."""
        if not ack.HasField("request_id"):
            return
        consumer_id, request_id = ack.consumer_id, ack.request_id

        def stored(future: asyncio.Future[None]) -> None:
            error = future.exception()
            if error is None:
                connection.write(encode.ack_response(consumer_id, request_id))
            else:
                code = ServerError.PERSISTENCE_ERROR
                connection.write(encode.ack_response(consumer_id, request_id, code, str(error)))

        committer = self._logs.of(subscription.topic).committer
        committer.when_durable().add_done_callback(stored)


def is_unchanged(connection: ClientConnection, connected: tuple[Consumer, Subscription]) -> bool:
    """Whether a consumer is still connected, and its subscription neither moved nor removed."""
    consumer, subscription = connected
    present = connection.consumers.get(consumer.consumer_id)
    return present is connected and not (subscription.fenced or subscription.removed)


def _slice_ids(subscription: Subscription) -> int:
    """Ids that one slice processes: fewer if a search for the holder of each takes long."""
    holders_count = len(subscription.consumers)
    if holders_count <= HOLDERS_PER_UNIT or not subscription.type.is_shared:
        return SLICE_IDS
    return max(1, SLICE_IDS * HOLDERS_PER_UNIT // holders_count)


def _ack_entries(
    consumer: Consumer,
    subscription: Subscription,
    message_ids: Sequence[MessageIdData],
    cold: list[int],
) -> int:
    """Acknowledge entries; returns the work that it took. Those whose index is not in memory are
    added to ``cold`` instead."""
    log, dispatcher = subscription.topic.log, subscription.dispatcher
    searched_before = dispatcher.holders_searched_count
    for ids in message_ids:
        if _leaves_messages(ids):
            continue  # the client acknowledges the entry when all its messages are acknowledged
        position = (to_signed(ids.ledgerId), to_signed(ids.entryId))
        ordinal = log.ordinal_at_or_after(*position)
        if ordinal < log.end and log.position(ordinal) == position:
            if ordinal < log.memory_first and not _is_indexed(subscription, ordinal):
                cold.append(ordinal)
            else:
                subscription.ack_entry(consumer, ordinal)
    searched_count = dispatcher.holders_searched_count - searched_before
    return len(message_ids) + searched_count // HOLDERS_PER_UNIT


def _is_indexed(subscription: Subscription, ordinal: int) -> bool:
    """Whether an acknowledgement of an entry, and the move of the cursor by it, reads nothing."""
    log, acks = subscription.topic.log, subscription.acks
    if not log.is_indexed(ordinal):
        return False
    if ordinal != acks.mark_delete + 1:
        return True
    following = acks.next_unacked(ordinal + 1, log.end)
    return following == log.end or log.is_indexed(following)


def _find_last(subscription: Subscription, ack: CommandAck) -> tuple[str, int]:
    """Why a cumulative acknowledgement is refused, or an empty text; and the last entry that it
    acknowledges."""
    if len(ack.message_id) != 1 or subscription.type.is_shared:
        return "A cumulative acknowledgement names one message of an unshared subscription", -1
    ids = ack.message_id[0]
    log = subscription.topic.log
    position = (to_signed(ids.ledgerId), to_signed(ids.entryId))
    ordinal = log.ordinal_at_or_after(*position)
    if ordinal == log.end and position >= log.position(log.end):
        # Most likely an id of another topic: up to it lies the whole backlog.
        return f"{position[0]}:{position[1]} is not stored yet: nothing was acknowledged", -1
    if _leaves_messages(ids) or ordinal == log.end or log.position(ordinal) != position:
        ordinal -= 1
    return "", min(ordinal, log.end - 1)


def _leaves_messages(ids: MessageIdData) -> bool:
    """Whether the ACK leaves messages of a batch unacknowledged: those whose bit is set."""
    return any(ids.ack_set)


def _refuse_without_consumer(connection: ClientConnection, ack: CommandAck) -> None:
    if ack.HasField("request_id"):
        problem = f"Consumer {ack.consumer_id} does not exist on this connection"
        _refuse(connection, ack, ServerError.CONSUMER_NOT_FOUND, problem)


def _refuse(connection: ClientConnection, ack: CommandAck, code: ServerError, problem: str) -> None:
    connection.write(encode.ack_response(ack.consumer_id, ack.request_id, code, problem))
