"""SENDs that wait before their append, each in its producer's own queue (laws 3.1 and 4.3).

While a topic parks anything, everything that is sent to it is parked behind, so that the order of
each producer is kept. Producers take turns when there is room again, one SEND each.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from headgate.engine.producer import Producer


class ParkedSend(NamedTuple):
    """One SEND as it arrived."""

    sequence_id: int
    highest_sequence_id: int
    message_count: int
    body: bytes
    arrived_ns: int


class Parking:
    """What one topic parks. Made at the first SEND that waits."""

    __slots__ = ("_ring", "_since_ns", "_spent_ns", "bytes", "messages")

    def __init__(self) -> None:
        self._ring: deque[Producer] = deque()
        """Producers with parked SENDs; the first one's turn is next."""
        self.messages = 0
        """Messages that wait now."""
        self.bytes = 0
        """Bytes that wait now."""
        self._since_ns = 0
        self._spent_ns = 0

    def __bool__(self) -> bool:
        return bool(self._ring)

    @property
    def producers(self) -> list[Producer]:
        """Whose SENDs wait, in the order of their turns. A new list."""
        return list(self._ring)

    @property
    def producers_count(self) -> int:
        """Of how many producers SENDs wait."""
        return len(self._ring)

    def parked_ns(self, now_ns: int) -> int:
        """Time in which at least one SEND waited, until now."""
        return self._spent_ns + (now_ns - self._since_ns if self._ring else 0)

    def park(self, producer: Producer, send: ParkedSend) -> None:
        """Have a SEND wait behind those of its producer."""
        if not self._ring:
            self._since_ns = send.arrived_ns
        if producer.parked is None:
            producer.parked = deque()
        if not producer.parked:
            self._ring.append(producer)
        producer.parked.append(send)
        self._count(producer, 1, send)

    def next(self) -> tuple[Producer, ParkedSend] | None:
        """Whose turn it is, and with what; None when nothing waits."""
        if not self._ring:
            return None
        producer = self._ring[0]
        return producer, producer.parked[0]  # type: ignore[index]

    def take(self, now_ns: int) -> None:
        """What :meth:`next` gave waits no longer; the next producer has its turn."""
        producer = self._ring.popleft()
        parked = producer.parked
        send = parked.popleft()  # type: ignore[union-attr]
        if parked:
            self._ring.append(producer)
        self._count(producer, -1, send)
        self._rest(now_ns)

    def discard(self, producer: Producer, now_ns: int) -> None:
        """Forget what a producer parked: it is never stored."""
        if not producer.parked:
            return
        for send in producer.parked:
            self._count(producer, -1, send)
        producer.parked = None
        self._ring.remove(producer)
        self._rest(now_ns)

    def _count(self, producer: Producer, sign: int, send: ParkedSend) -> None:
        size = sign * len(send.body)
        self.messages += sign * send.message_count
        self.bytes += size
        producer.parked_bytes += size
        producer.port.parked_bytes += size

    def _rest(self, now_ns: int) -> None:
        if not self._ring:
            self._spent_ns += now_ns - self._since_ns
