"""Refusals of SENDs, each in its turn among the receipts of its producer.

A client ends the one message that a refusal names only if the answers come in the order of its
SENDs: Java's looks at the oldest message without an answer, and at no other.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ended_connection import ENDED
from headgate.engine.producer import Producer
from headgate.wire import encode
from headgate.wire.codes import ServerError

WAITING_MAX: Final = 10_000
"""How many refusals of one connection may wait. Beyond that a SEND gets no refusal and ends by its
client's send timeout, so that a client which keeps sending takes no more memory."""

REFUSAL_BYTES: Final = 320
DEFERRED_BYTES: Final = 900
"""What a refusal that waits takes, and a producer that has some: they are charged to the client."""


class _DeferredRefusals:
    """Refusals for one producer that wait for the answers to its earlier SENDs."""

    def __init__(self) -> None:
        self.answers_count = 0
        """SENDs answered since the first refusal began to wait."""
        self.waiting: deque[tuple[int, int, ServerError, str]] = deque()
        """For each refusal the answer count at which it is due, its sequence id, code and text."""


class OrderedRefusals:
    """The refusals of SENDs of one connection."""

    __slots__ = ("_connection", "_waiting_count", "by_producer")

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.by_producer: dict[int, _DeferredRefusals] = {}
        """Refusals that wait, by producer id; nearly always empty."""
        self._waiting_count = 0

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED

    @property
    def held_bytes(self) -> int:
        """Memory of the refusals that wait: for minutes, where a limit keeps the SENDs before."""
        return REFUSAL_BYTES * self._waiting_count + DEFERRED_BYTES * len(self.by_producer)

    def refuse(self, producer: Producer, sequence_id: int, code: ServerError, text: str) -> None:
        """Refuse a SEND after the answers to its producer's earlier SENDs, and before those to its
        later ones."""
        ahead = producer.pending_count + len(producer.parked or ())
        if not ahead:
            self._write(producer.producer_id, sequence_id, code, text)
            return
        deferred = self.by_producer.setdefault(producer.producer_id, _DeferredRefusals())
        if self._waiting_count < WAITING_MAX:
            self._waiting_count += 1
            due = deferred.answers_count + ahead
            deferred.waiting.append((due, sequence_id, code, text))

    def send_answered(self, producer_id: int) -> None:
        """A SEND of a producer was answered: write the refusals whose turn it is."""
        deferred = self.by_producer.get(producer_id)
        if deferred is None:
            return
        deferred.answers_count += 1
        waiting = deferred.waiting
        while waiting and waiting[0][0] <= deferred.answers_count:
            self._waiting_count -= 1
            _, sequence_id, code, text = waiting.popleft()
            self._write(producer_id, sequence_id, code, text)
        if not waiting:
            del self.by_producer[producer_id]

    def forget(self, producer_id: int) -> None:
        """Drop the refusals of a producer that is closed."""
        deferred = self.by_producer.pop(producer_id, None)
        if deferred is not None:
            self._waiting_count -= len(deferred.waiting)

    def _write(self, producer_id: int, sequence_id: int, code: ServerError, text: str) -> None:
        self._connection.write(encode.send_error(producer_id, sequence_id, code, text))
