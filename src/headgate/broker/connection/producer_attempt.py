"""One PRODUCER from its command until the producer is connected, which may have to wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from headgate.base.errors import HeadgateError
from headgate.broker.connection.client_connection import ClientConnection
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.wire.messages import BaseCommand, CommandProducer


class ProducerAttempt:
    """A producer that is being connected. Implements
    :class:`headgate.engine.exclusive_access.AccessWaiter`.

    It stands in ``connection.creating``. When its client closes it or is gone, it ends.
    """

    __slots__ = (
        "_connect",
        "command",
        "connection",
        "held_bytes",
        "is_waiting",
        "key",
        "producer",
        "schema_version",
        "topic",
    )

    def __init__(
        self,
        connection: ClientConnection,
        command: BaseCommand,
        topic: Topic,
        producer: Producer,
        connect: Callable[[ProducerAttempt], Coroutine[Any, Any, None]],
        *,
        schema_version: bytes,
        held_bytes: int,
    ) -> None:
        """``connect`` connects the producer once it may get exclusive access."""
        self.connection = connection
        self.command = command
        self.topic = topic
        self.producer = producer
        self.key: Final = ("producer", producer.producer_id)
        self._connect = connect
        self.schema_version = schema_version
        self.held_bytes = held_bytes
        """Memory of the producer's description."""
        self.is_waiting = False
        """Whether it waits for exclusive access, and no command runs for it."""

    @property
    def request(self) -> CommandProducer:
        """The client's request."""
        return self.command.producer

    @property
    def brought_epoch(self) -> int | None:
        """The topic epoch that the client was given before; None for a new producer."""
        request = self.request
        return request.topic_epoch if request.HasField("topic_epoch") else None

    def begin_wait(self) -> None:
        """It waits for its turn, perhaps for ever: keep of its command what the client is charged
        with. A schema is not, and parts that the protocol does not know."""
        self.is_waiting = True
        request = self.command.producer
        request.ClearField("schema")
        # Another message: what is cleared stays in the memory of the one that had it.
        kept = BaseCommand(type=self.command.type)
        kept.producer.CopyFrom(request)
        self.command = kept

    @property
    def is_wanted(self) -> bool:
        """Whether the client still wants the producer."""
        return self.connection.is_open and self.connection.creating.get(self.key) is self

    def granted(self) -> None:
        self.is_waiting = False
        self.connection.run_waiting(self._connect(self), self.command)

    def refused(self, error: HeadgateError) -> None:
        if self.is_wanted:
            self.connection.refuse(self.command, error)
        self.end()

    def end(self) -> None:
        """The attempt is over: unless the producer is connected, it gives up what it claimed or
        waited for."""
        connection, topic, producer = self.connection, self.topic, self.producer
        self.is_waiting = False
        if connection.creating.get(self.key) is self:
            del connection.creating[self.key]
        if topic.access is not None and topic.producers.get(producer.name) is not producer:
            topic.access.left(producer, topic.producers)
