"""SENDs that ask for delayed delivery: admitted, or refused because the delay is too long.

A refusal is Pulsar's (``NotAllowedError``), and what clients do with it is theirs (seen with Java
4.0.8, C++ 4.2 and Go 0.19):

* Java ends the send with ``NotAllowedException`` and continues, if the answer comes in order: after
  the answers to the producer's earlier SENDs and before those to its later ones.
* C++, and with it Python and Node.js, closes the connection and sends everything again, ten times a
  second, until the limit allows it.
* Go does the same, or processes no more receipts: the producer hangs.

Without a limit on the delay, the default, the broker refuses none. If delayed delivery is switched
off the messages are delivered at once, as in Pulsar; a metric, ``explain`` and a log line report
them.
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

WAITING_MAX: Final = 10_000
"""How many refusals of one connection may wait. Beyond that a SEND gets no refusal and ends by its
client's send timeout, so that a client which keeps sending takes no more memory."""


class _DeferredRefusals:
    """Refusals for one producer that wait for the answers to its earlier SENDs."""

    def __init__(self) -> None:
        self.answers_count = 0
        """SENDs answered since the first refusal began to wait."""
        self.waiting: deque[tuple[int, int, int]] = deque()
        """For each refusal the answer count at which it is due, its sequence id, and the longest
        delay that was allowed."""


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

    def admit(
        self, producer: Producer, topic: Topic, sequence_id: int, messages: int, delay_ms: int
    ) -> bool:
        """Admit a SEND that asks for a delay, or refuse it (False) because that is too long. If
        the topic's messages are not delayed, count the ignored delay."""
        policy = topic.delayed_delivery
        address, refusal_logger = self._connection.address, self._refusal_logger
        if not policy.active:
            topic.delays_ignored += messages
            self._counts.delays_ignored += messages
            refusal_logger.delay_ignored(address, producer.name, topic.name)
        elif 0 < policy.delay_max_ms < delay_ms:
            topic.delays_refused += 1
            if topic.delays_refused == 1:  # most clients send it again in a new connection
                refusal_logger.refused(
                    address,
                    CommandType.SEND,
                    ServerError.NOT_ALLOWED_ERROR,
                    f"producer {producer.name[:80]!r} of {topic.name}, and perhaps others after"
                    f" it: {_reason(policy.delay_max_ms)}",
                )
            self._refuse_in_turn(producer, sequence_id, policy.delay_max_ms)
            return False
        topic.may_be_delayed()
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
            _, sequence_id, delay_max_ms = waiting.popleft()
            self._refuse(producer_id, sequence_id, delay_max_ms)
        if not waiting:
            del self.by_producer[producer_id]

    def forget(self, producer_id: int) -> None:
        """Drop the refusals of a producer that is closed."""
        deferred = self.by_producer.pop(producer_id, None)
        if deferred is not None:
            self._waiting_count -= len(deferred.waiting)

    def _refuse_in_turn(self, producer: Producer, sequence_id: int, delay_max_ms: int) -> None:
        ahead = producer.pending_count + len(producer.parked or ())
        if not ahead:
            self._refuse(producer.producer_id, sequence_id, delay_max_ms)
            return
        deferred = self.by_producer.setdefault(producer.producer_id, _DeferredRefusals())
        if self._waiting_count < WAITING_MAX:
            self._waiting_count += 1
            due = deferred.answers_count + ahead
            deferred.waiting.append((due, sequence_id, delay_max_ms))

    def _refuse(self, producer_id: int, sequence_id: int, delay_max_ms: int) -> None:
        code, reason = ServerError.NOT_ALLOWED_ERROR, _reason(delay_max_ms)
        self._connection.write(encode.send_error(producer_id, sequence_id, code, reason))


def _reason(delay_max_ms: int) -> str:
    return f"Exceeds max allowed delivery delay of {delay_max_ms} milliseconds"
