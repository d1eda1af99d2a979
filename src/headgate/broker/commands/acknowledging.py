"""Carries out ACK: the answer follows when the acknowledgement is durable.

Ids that are not stored, or belong to another topic, change nothing. Entries whose index is on the
disk are acknowledged when the read lane has brought it; a seek meanwhile makes that void.

An id with an ``ack_set`` leaves messages of its batch unacknowledged
(:mod:`headgate.base.ack_words`). One that does not fit the batch changes nothing, and the answer to
the ACK, if the client asked for one, says so. As in Pulsar, ``batch_index`` alone does not make an
id one of a message: without an ``ack_set`` it is the whole entry.

If the disk cannot read the index, an ACK with an answer is refused, and one without is tried again
(:mod:`headgate.broker.commands.patient_reads`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from headgate.base.ack_words import WORD_BITS
from headgate.base.errors import StorageError
from headgate.base.units import KIB
from headgate.base.work_units import (
    ACK_ID,
    ACK_MESSAGES_PER_UNIT,
    HOLDERS_PER_UNIT,
    PIECE_UNITS,
    SLICE_UNITS,
)
from headgate.broker.commands.acked_ids import (
    Cold,
    Through,
    ack_entries,
    ack_found,
    ack_loaded,
    entries_looked_up,
    find_last,
    first_of,
    slices,
    through_units,
)
from headgate.broker.commands.patient_reads import read_patiently
from headgate.broker.connection.bounds import SLICE_IDS
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.work.scheduler import JobClass, WorkScheduler
from headgate.engine.consumer import Consumer
from headgate.engine.subscription import Subscription
from headgate.policy.settings import Settings
from headgate.storage.fair_slots import FairSlots
from headgate.storage.managed_logs import ManagedLogs
from headgate.wire import encode
from headgate.wire.codes import AckType, ServerError
from headgate.wire.messages import BaseCommand, CommandAck

T = TypeVar("T")

Answer = Callable[[asyncio.Future[None]], None]
"""Tells a client what became of its ACK, given a future that is done when that is stored."""

ANSWERS_MAX: Final = 20_000
"""Answers that wait for the next commit without being charged, 700 bytes each: as many as come in a
fifth of a second. Beyond it an ACK waits like other commands, so that it counts in the memory of
clients, and a connection has a bounded number of them."""

FEW_IDS: Final = 16
LONG_ACK_BYTES: Final = 32 * KIB
"""An ACK of more than :data:`FEW_IDS` ids and of so many bytes has sets of large batches."""
PIECE_IDS: Final = PIECE_UNITS // ACK_ID
"""Entries that are acknowledged at once after their index was loaded."""

LOADED_MAX: Final = 16
LOADED_OF_TENANT_MAX: Final = 8
"""ACKs whose index is read, or in memory until it is their turn, of all and of one tenant. A client
may have thousands. 64 ids may need 64 blocks of the index, so each takes up to 400 KB, with which
nobody is charged, and reads are faster than turns."""


class Acknowledgements:
    """Carries out the ACKs of all connections of one broker."""

    def __init__(self, logs: ManagedLogs, work: WorkScheduler, settings: Settings) -> None:
        self._logs = logs
        self._work = work
        self._settings = settings
        self._loaded = FairSlots(LOADED_MAX, LOADED_OF_TENANT_MAX)

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
            return self._ack_through(connection, command, connected)
        count = len(ack.message_id)
        if count > 1 and (count > _slice_ids(subscription) or _is_long(ack)):
            connection.run_in_slices(self._ack_in_slices(connection, command, connected, [], []))
            return 1
        cold: list[Cold] = []
        problems: list[str] = []
        work, done = ack_entries(
            consumer, subscription, ack.message_id, cold, problems, self._settings
        )
        if done < count:
            rest = self._ack_in_slices(connection, command, connected, cold, problems, done)
            connection.run_in_slices(rest)
        elif cold or ack.HasField("request_id"):
            self._finish(connection, command, connected, cold, problems)
        return work or 1

    def _ack_through(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
    ) -> int:
        """Carry out a cumulative ACK; returns the work that it took."""
        ack, (consumer, subscription) = command.ack, connected
        problem, through = find_last(subscription, ack, self._settings)
        units = 1 + WORD_BITS * len(through.left) // ACK_MESSAGES_PER_UNIT
        units += through_units(subscription, through)
        if problem:
            if ack.HasField("request_id"):
                _refuse(connection, ack, ServerError.NOT_ALLOWED_ERROR, problem)
        elif not all(
            map(subscription.topic.log.is_indexed, entries_looked_up(subscription, through))
        ):
            rest = self._ack_through_loaded(connection, command, connected, through)
            connection.run_waiting(rest, command)
        else:
            problem = ack_found(consumer, subscription, through)
            self._answer(connection, subscription, command, problem)
        return units

    def _finish(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
        cold: list[Cold],
        problems: list[str],
    ) -> None:
        """Answer an ACK, after acknowledging the entries whose index is not in memory."""
        if cold:
            rest = self._ack_loaded(connection, command, connected, cold, problems)
            connection.run_waiting(rest, command)
        else:
            self._answer(connection, connected[1], command, first_of(problems))

    async def _ack_loaded(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
        cold: list[Cold],
        problems: list[str],
    ) -> None:
        """Load the index of entries, then acknowledge them. The consumer may be closed meanwhile:
        that makes no difference.

        Raises:
            StorageError: the index cannot be read: not all of this was acknowledged.
        """
        ack, (consumer, subscription) = command.ack, connected
        resets_count, tenant = subscription.resets_count, subscription.topic.name.tenant
        for start in range(0, len(cold), PIECE_IDS):
            if subscription.resets_count != resets_count:
                break  # what the client acknowledged is void
            part = cold[start : start + PIECE_IDS]
            load = partial(self._load, subscription, [one.ordinal for one in part])
            held = await self._read(connection, ack, connected, load)
            try:
                used = PIECE_UNITS
                for one in part:
                    if used >= PIECE_UNITS:
                        await self._work.give_way(min(used, SLICE_UNITS), JobClass.COMMAND, tenant)
                        used = 0
                    if subscription.removed:
                        if connection.is_open:
                            _refuse_without_consumer(connection, ack)
                        return
                    if subscription.resets_count != resets_count:
                        break
                    used += ack_loaded(consumer, subscription, one, problems)
            finally:
                del held
                self._loaded.give_back(tenant)
        if connection.is_open:
            self._answer(connection, subscription, command, first_of(problems))

    async def _load(self, subscription: Subscription, ordinals: Sequence[int]) -> object:
        """Load the index of entries, which stays in memory as long as the caller holds the result.
        It takes a slot of the tenant for that, which the caller gives back.

        Raises:
            StorageError: the index cannot be read; no slot is taken.
        """
        topic = subscription.topic
        await self._loaded.take(topic.name.tenant)
        try:
            return await self._logs.of(topic).index.load(topic.log, ordinals)
        except BaseException:
            self._loaded.give_back(topic.name.tenant)
            raise

    async def _ack_through_loaded(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
        through: Through,
    ) -> None:
        """Load the index that a cumulative acknowledgement looks up, then carry it out. The
        consumer may be closed meanwhile: that makes no difference.

        Raises:
            StorageError: the index cannot be read: nothing of this was acknowledged.
        """
        ack, (consumer, subscription) = command.ack, connected
        resets_count, log = subscription.resets_count, subscription.topic.log
        units = min(PIECE_UNITS + through_units(subscription, through), SLICE_UNITS)
        await self._work.give_way(units, JobClass.COMMAND, subscription.topic.name.tenant)
        index = self._logs.of(subscription.topic).index
        look_up = partial(
            index.look_up, lambda: log.index_of(entries_looked_up(subscription, through))
        )
        held = await self._read(connection, ack, connected, look_up)
        if subscription.removed:
            if connection.is_open:
                _refuse_without_consumer(connection, ack)
            return
        problem = ""
        if subscription.resets_count == resets_count:  # else what the client acknowledged is void
            problem = ack_found(consumer, subscription, through)
            if subscription.type.is_shared:
                # The consumer has left, and others came that may hold what this passed.
                subscription.dispatcher.cursor_moved()
                subscription.wake()
        del held
        if connection.is_open:
            self._answer(connection, subscription, command, problem)

    async def _read(
        self,
        connection: ClientConnection,
        ack: CommandAck,
        connected: tuple[Consumer, Subscription],
        read: Callable[[], Awaitable[T]],
    ) -> T:
        """What a read of the index returns; an ACK without an answer tries it again.

        Raises:
            StorageError: the index cannot be read.
        """
        if ack.HasField("request_id"):
            return await read()
        return await read_patiently(connection, connected, self._work, read)

    def _ack_in_slices(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        connected: tuple[Consumer, Subscription],
        cold: list[Cold],
        problems: list[str],
        first: int = 0,
    ) -> Iterator[int]:
        consumer, subscription = connected
        ack = command.ack
        message_ids = ack.message_id[first:] if first else ack.message_id
        for ids in slices(message_ids, _slice_ids(subscription)):
            done = 0
            while done < len(ids):
                if not is_unchanged(connection, connected):
                    _refuse_without_consumer(connection, ack)
                    return
                left = ids[done:] if done else ids
                units, count = ack_entries(
                    consumer, subscription, left, cold, problems, self._settings
                )
                done += count
                yield units
        self._finish(connection, command, connected, cold, problems)

    def _answer(
        self,
        connection: ClientConnection,
        subscription: Subscription,
        command: BaseCommand,
        why: str,
    ) -> None:
        """Answer, if the client asked for it, when everything staged until now is durable. ``why``
        something was refused; empty if nothing was."""
        ack = command.ack
        if not ack.HasField("request_id"):
            return
        answer = partial(_write_answer, connection, ack.consumer_id, ack.request_id, why)
        committer = self._logs.of(subscription.topic).committer
        stored = committer.when_durable()
        if committer.waiting_count <= ANSWERS_MAX:
            stored.add_done_callback(answer)
        else:
            connection.run_waiting(_answer_later(stored, answer), command)


async def _answer_later(stored: asyncio.Future[None], answer: Answer) -> None:
    with contextlib.suppress(StorageError):
        await stored
    answer(stored)


def _write_answer(
    connection: ClientConnection,
    consumer_id: int,
    request_id: int,
    why: str,
    stored: asyncio.Future[None],
) -> None:
    error = stored.exception()
    if error is not None:
        code = ServerError.PERSISTENCE_ERROR
        connection.write(encode.ack_response(consumer_id, request_id, code, str(error)))
    elif why:
        code = ServerError.NOT_ALLOWED_ERROR
        connection.write(encode.ack_response(consumer_id, request_id, code, why))
    else:
        connection.write(encode.ack_response(consumer_id, request_id))


def is_unchanged(connection: ClientConnection, connected: tuple[Consumer, Subscription]) -> bool:
    """Whether a consumer is still connected, and its subscription neither moved nor removed."""
    consumer, subscription = connected
    present = connection.consumers.get(consumer.consumer_id)
    return present is connected and not (subscription.fenced or subscription.removed)


def _is_long(ack: CommandAck) -> bool:
    """Whether few ids have long sets of messages."""
    return len(ack.message_id) > FEW_IDS and ack.ByteSize() > LONG_ACK_BYTES


def _slice_ids(subscription: Subscription) -> int:
    """Ids that one slice processes: fewer if a search for the holder of each takes long."""
    holders_count = len(subscription.consumers)
    if holders_count <= HOLDERS_PER_UNIT or not subscription.type.is_shared:
        return SLICE_IDS
    return max(1, SLICE_IDS * HOLDERS_PER_UNIT // holders_count)


def _refuse_without_consumer(connection: ClientConnection, ack: CommandAck) -> None:
    if ack.HasField("request_id"):
        problem = f"Consumer {ack.consumer_id} does not exist on this connection"
        _refuse(connection, ack, ServerError.CONSUMER_NOT_FOUND, problem)


def _refuse(connection: ClientConnection, ack: CommandAck, code: ServerError, problem: str) -> None:
    connection.write(encode.ack_response(ack.consumer_id, ack.request_id, code, problem))
