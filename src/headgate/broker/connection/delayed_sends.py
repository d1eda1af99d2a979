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

from typing import Final

from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ordered_refusals import OrderedRefusals
from headgate.broker.connection.refusals import RefusalLogger
from headgate.broker.info import BrokerCounts
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.peer import JAVA_CLIENT

ENDS_ONE_SEND: Final = JAVA_CLIENT
"""Start of the client version of clients that take the refusal as the end of one send."""

REASON: Final = "Delayed delivery is not supported: send the message without a delay"


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

    def admit(self, producer: Producer, topic: Topic, sequence_id: int, messages: int) -> bool:
        """Admit a SEND that asks for a delay, and count the ignored delay; or refuse it (False)."""
        connection = self._connection
        client = "" if connection.peer is None else connection.peer.client_version
        address, refusal_logger = connection.address, self._refusal_logger
        if client.startswith(ENDS_ONE_SEND):
            refusal_logger.refused(address, CommandType.SEND, ServerError.NOT_ALLOWED_ERROR, REASON)
            self.refusals.refuse(producer, sequence_id, ServerError.NOT_ALLOWED_ERROR, REASON)
            return False
        topic.delays_ignored += messages
        self._counts.delays_ignored += messages
        refusal_logger.delay_ignored(address, producer.name, topic.name)
        return True
