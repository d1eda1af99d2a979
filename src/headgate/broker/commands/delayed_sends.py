"""SENDs that ask to be delivered later, which Headgate does not do.

What a client is told depends on what it does with the answer, for there is no error that all of
them take as the end of one send (seen with Java 4.0.8, C++ 4.2 and Go 0.19):

* Java ends the send with ``NotAllowedException`` and goes on, if the answer comes in its turn:
  after those to the producer's sends before it, and before those to the ones after it.
* C++, and with it Python and Node.js, closes the connection and sends all again, ten times a second
  and for ever. The one code that ends a send, ``ChecksumError``, says what is not so, and one that
  is not for the oldest send (which may have timed out) crashes the process.
* Go does the same, or (``NotAllowedError``) hears no more receipts for its producer: it is lost.

So Java's client is refused. The others' messages are delivered at once, as by a Pulsar with
``delayedDeliveryEnabled=false``, and counted: a metric, ``explain`` and a line in the log tell it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.wire import encode
from headgate.wire.codes import CommandType, ServerError

if TYPE_CHECKING:
    from headgate.broker.connection import Connection

ENDS_ONE_SEND: Final = "Pulsar-Java-v"
"""How clients call themselves that take the refusal as the end of one send."""

REASON: Final = "Delayed delivery is not supported: send the message without a delay"


WAITING_MAX: Final = 10_000
"""Refusals on one connection that wait for their turn. Beyond that none is kept, and its client's
own send timeout ends the send, so that one that sends on and on takes no memory."""


class _Behind:
    """Refusals of one producer's sends that wait for the answers to those before."""

    def __init__(self) -> None:
        self.answers = 0
        """SENDs that were answered since the first of them began to wait."""
        self.waiting: deque[tuple[int, int]] = deque()
        """After how many answers each goes, and its sequence id."""


class DelayedSends:
    """The SENDs of one connection that ask for a delay."""

    __slots__ = ("_connection", "_waiting_count", "behind")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.behind: dict[int, _Behind] = {}
        """By producer id; empty nearly always."""
        self._waiting_count = 0

    def refuses(self, producer: Producer, topic: Topic, sequence_id: int, messages: int) -> bool:
        """Take a SEND that asks for a delay: refuse it, or count that its delay is ignored."""
        connection = self._connection
        client = "" if connection.peer is None else connection.peer.client_version
        address, refusal_log = connection.address, connection.refusal_log
        if client.startswith(ENDS_ONE_SEND):
            refusal_log.refused(address, CommandType.SEND, ServerError.NOT_ALLOWED_ERROR, REASON)
            self._refuse_in_turn(producer, sequence_id)
            return True
        topic.delays_ignored += messages
        connection.broker.counts.delays_ignored += messages
        refusal_log.delay_ignored(address, producer.name, topic.name)
        return False

    def answered(self, producer_id: int) -> None:
        """A SEND of a producer was answered: those behind it may have their turn."""
        behind = self.behind.get(producer_id)
        if behind is None:
            return
        behind.answers += 1
        waiting = behind.waiting
        while waiting and waiting[0][0] <= behind.answers:
            self._waiting_count -= 1
            self._refuse(producer_id, waiting.popleft()[1])
        if not waiting:
            del self.behind[producer_id]

    def forget(self, producer_id: int) -> None:
        """A producer is gone: nothing of it has a turn any more."""
        behind = self.behind.pop(producer_id, None)
        if behind is not None:
            self._waiting_count -= len(behind.waiting)

    def _refuse_in_turn(self, producer: Producer, sequence_id: int) -> None:
        ahead = producer.pending_count + len(producer.parked or ())
        if not ahead:
            self._refuse(producer.producer_id, sequence_id)
            return
        behind = self.behind.setdefault(producer.producer_id, _Behind())
        if self._waiting_count < WAITING_MAX:
            self._waiting_count += 1
            behind.waiting.append((behind.answers + ahead, sequence_id))

    def _refuse(self, producer_id: int, sequence_id: int) -> None:
        code = ServerError.NOT_ALLOWED_ERROR
        self._connection.write(encode.send_error(producer_id, sequence_id, code, REASON))
