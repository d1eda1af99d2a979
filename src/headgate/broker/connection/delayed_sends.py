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

from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ended_connection import ENDED
from headgate.broker.connection.ordered_refusals import OrderedRefusals
from headgate.broker.connection.refusals import RefusalLogger
from headgate.broker.info import BrokerCounts
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.wire.codes import CommandType, ServerError


class DelayedSends:
    """The SENDs of one connection that ask for a delay."""

    __slots__ = ("_connection", "_counts", "_refusal_logger", "refusals")

    def __init__(
        self, connection: ClientConnection, refusal_logger: RefusalLogger, counts: BrokerCounts
    ) -> None:
        self._connection = connection
        self._refusal_logger = refusal_logger
        self._counts = counts
        self.refusals = OrderedRefusals(connection)

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED
        self.refusals.forget_connection()

    def admit(
        self, producer: Producer, topic: Topic, sequence_id: int, messages: int, delay_ms: int
    ) -> bool:
        """Admit a SEND that asks for a delay, or refuse it (False) because that is too long. If
        the topic's messages are not delayed, count the ignored delay."""
        policy = topic.delayed_delivery
        client, refusal_logger = self._connection, self._refusal_logger
        if not policy.active:
            topic.delays_ignored += messages
            self._counts.delays_ignored += messages
            refusal_logger.delay_ignored(client, producer.name, topic.name)
        elif 0 < policy.delay_max_ms < delay_ms:
            reason = f"Exceeds max allowed delivery delay of {policy.delay_max_ms} milliseconds"
            is_first = not topic.delays_refused
            topic.delays_refused += messages
            self._counts.delays_refused += messages
            if is_first:  # most clients send it again in a new connection
                refusal_logger.refused(
                    client,
                    CommandType.SEND,
                    ServerError.NOT_ALLOWED_ERROR,
                    f"producer {producer.name[:80]!r} of {topic.name}, and perhaps others after"
                    f" it: {reason}",
                )
            self.refusals.refuse(producer, sequence_id, ServerError.NOT_ALLOWED_ERROR, reason)
            return False
        topic.may_be_delayed()
        return True
