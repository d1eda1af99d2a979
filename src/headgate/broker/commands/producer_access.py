"""Gets producers the access to their topic that they ask for: shared or exclusive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.broker.connection.producer_attempt import ProducerAttempt
from headgate.broker.held_memory import OBJECT_BYTES
from headgate.broker.producer_closing import CommitHost, close_producers, refuse_waiters
from headgate.engine.errors import ProducerFencedError
from headgate.engine.topic import Topic
from headgate.engine.types import AccessMode
from headgate.wire import encode


class EpochStore(Protocol):
    """Where the topic epochs are stored."""

    async def store_epoch(self, topic: Topic, epoch: int, check: Callable[[], None], /) -> None:
        """Make the topic epoch of a new exclusive producer durable.

        Raises:
            StorageError: it could not be stored.
            RefusalError: 404, the topic is deleted.
        """


class ProducerAccess:
    """The access modes of all producers of one broker."""

    def __init__(self, host: CommitHost, epochs: EpochStore) -> None:
        self._host = host
        self._epochs = epochs

    async def obtain(self, attempt: ProducerAttempt, check: Callable[[], None]) -> bool:
        """Get a producer the access that it asks for. False: it waits for its turn, and the client
        has been told; :meth:`ProducerAttempt.granted` continues. ``check`` raises a refusal if the
        client has lost its right meanwhile: it would close others, and raise the topic epoch.

        A producer on a dead connection loses its exclusive access. With fencing all others are
        closed. The topic epoch of an exclusive producer is durable when this returns.

        Raises:
            ProducerFencedError: exclusive access is not free, or the client's epoch is over.
            TopicFencedError, TopicTerminatedError: the topic takes no producers now.
            StorageError: the topic epoch could not be stored.
        """
        topic, producer = attempt.topic, attempt.producer
        mode = producer.access_mode
        if mode is AccessMode.SHARED:
            if topic.access is not None:
                await self._end_dead_holder(attempt)
            return True
        topic.check_takes_messages()
        access, brought = topic.exclusive_access(), attempt.brought_epoch
        access.check_epoch(brought)
        if mode is not AccessMode.EXCLUSIVE_WITH_FENCING:
            await self._end_dead_holder(attempt)
            topic.check_takes_messages()
        if not attempt.is_wanted:
            return True  # the caller looks again
        check()
        if access.must_wait(producer, topic.producers):
            self._wait(attempt)
            return False
        error = ProducerFencedError("Fenced out")
        refuse_waiters(topic, access.claim(producer, topic.producers, brought), error, self._host)
        if topic.producers:
            await close_producers(topic, self._host)
        epoch = access.next_epoch(brought)
        if epoch != access.epoch:
            await self._epochs.store_epoch(topic, epoch, check)
            access.stored(epoch)
        return True

    def _wait(self, attempt: ProducerAttempt) -> None:
        attempt.begin_wait()
        attempt.topic.exclusive_access().wait(attempt)
        connection = attempt.connection
        # Beside the producer, its attempt and its command stay.
        connection.described_bytes[attempt.key] = attempt.held_bytes + OBJECT_BYTES
        connection.write(
            encode.producer_success(
                attempt.request.request_id,
                producer_name=attempt.producer.name,
                schema_version=attempt.schema_version,
                ready=False,
            )
        )

    async def _end_dead_holder(self, attempt: ProducerAttempt) -> None:
        """Disconnect the producer that has exclusive access if its connection is dead."""
        topic = attempt.topic
        holder = None if topic.access is None else topic.access.holder
        if holder is None or topic.producers.get(holder.name) is not holder:
            return  # nobody has it, or the holder is being connected
        if holder.port is attempt.connection.producer_port:
            return
        is_alive = await holder.port.is_alive()
        self._host.begin_turn()
        if not is_alive and not holder.closed:
            topic.remove_producer(holder)
