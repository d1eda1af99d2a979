"""SENDs that ask for delayed delivery, which Headgate does not support.

The answer depends on the client, because no error ends one send in every client (seen with Java
4.0.8, C++ 4.2 and Go 0.19):

* Java ends the send with ``NotAllowedException`` and continues, if the answer comes in order: after
  the answers to the producer's earlier SENDs and before those to its later ones.
* C++, and with it Python and Node.js, closes the connection and sends everything again, ten times a
  second, without end. The one code that ends a send, ``ChecksumError``, would be wrong, and crashes
  the process unless it answers the oldest send (which may have timed out).
* Go does the same, or, after ``NotAllowedError``, processes no more receipts: the producer hangs.

So the broker refuses only Java's client. It delivers the messages of others at once, like a Pulsar
with ``delayedDeliveryEnabled=false``; a metric, ``explain`` and a log line report them.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.refusals import RefusalLogger
from headgate.broker.info import BrokerCounts
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.wire import encode
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.peer import JAVA_CLIENT

ENDS_ONE_SEND: Final = JAVA_CLIENT
"""Start of the client version of clients that take the refusal as the end of one send."""

REASON: Final = "Delayed delivery is not supported: send the message without a delay"

WAITING_MAX: Final = 10_000
"""How many refusals of one connection may wait. Beyond that a SEND gets no refusal and ends by its
client's send timeout, so that a client which keeps sending takes no more memory."""


class _DeferredRefusals:
    """Refusals for one producer that wait for the answers to its earlier SENDs."""

    def __init__(self) -> None:
        self.answers_count = 0
        """SENDs answered since the first refusal began to wait."""
        self.waiting: deque[tuple[int, int]] = deque()
        """For each refusal the answer count at which it is due, and its sequence id."""


class DelayedSends:
    """The SENDs of one connection that ask for a delay."""

    __slots__ = ("_connection", "_counts", "_refusal_logger", "_waiting_count", "by_producer")

    def __init__(
        self, connection: ClientConnection, refusal_logger: RefusalLogger, counts: BrokerCounts
    ) -> None:
        self._connection = connection
        self._refusal_logger = refusal_logger
        self._counts = counts
        self.by_producer: dict[int, _DeferredRefusals] = {}
        """Refusals that wait, by producer id; nearly always empty."""
        self._waiting_count = 0

    def admit(self, producer: Producer, topic: Topic, sequence_id: int, messages: int) -> bool:
        """Admit a SEND that asks for a delay, and count the ignored delay; or refuse it (False)."""
        connection = self._connection
        client = "" if connection.peer is None else connection.peer.client_version
        address, refusal_logger = connection.address, self._refusal_logger
        if client.startswith(ENDS_ONE_SEND):
            refusal_logger.refused(address, CommandType.SEND, ServerError.NOT_ALLOWED_ERROR, REASON)
            self._refuse_in_turn(producer, sequence_id)
            return False
        topic.delays_ignored += messages
        self._counts.delays_ignored += messages
        refusal_logger.delay_ignored(address, producer.name, topic.name)
        return True

    def send_answered(self, producer_id: int) -> None:
        """A SEND of a producer was answered: write the refusals whose turn it is."""
        deferred = self.by_producer.get(producer_id)
        if deferred is None:
            return
        deferred.answers_count += 1
        waiting = deferred.waiting
        while waiting and waiting[0][0] <= deferred.answers_count:
            self._waiting_count -= 1
            self._refuse(producer_id, waiting.popleft()[1])
        if not waiting:
            del self.by_producer[producer_id]

    def forget(self, producer_id: int) -> None:
        """Drop the refusals of a producer that is closed."""
        deferred = self.by_producer.pop(producer_id, None)
        if deferred is not None:
            self._waiting_count -= len(deferred.waiting)

    def _refuse_in_turn(self, producer: Producer, sequence_id: int) -> None:
        ahead = producer.pending_count + len(producer.parked or ())
        if not ahead:
            self._refuse(producer.producer_id, sequence_id)
            return
        deferred = self.by_producer.setdefault(producer.producer_id, _DeferredRefusals())
        if self._waiting_count < WAITING_MAX:
            self._waiting_count += 1
            deferred.waiting.append((deferred.answers_count + ahead, sequence_id))

    def _refuse(self, producer_id: int, sequence_id: int) -> None:
        code = ServerError.NOT_ALLOWED_ERROR
        self._connection.write(encode.send_error(producer_id, sequence_id, code, REASON))
