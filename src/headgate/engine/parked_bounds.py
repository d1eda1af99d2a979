"""Bounds on what waits before its append: bytes of a connection, bytes of all, time at a quota.

* Over a bound the connection that parks most is read no further, never one that parks nothing
  (law 3.1). A good deal beyond the bound of all, the producer that parks most is closed.
* What a quota or a full disk holds never pauses a socket, because the acknowledgements that end
  the hold may come over it: there the producer that parks most is closed, and what it parked is
  forgotten. So it is with what the adaptive limit holds on a connection that has consumers. These
  holds also end so after ``headgateHoldParkMs`` (law 4.3).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.base.park_cause import ParkCause
from headgate.engine.parked_send import ParkedAt
from headgate.engine.parking import Parking
from headgate.engine.ports import ProducerPort
from headgate.engine.producer import Producer

if TYPE_CHECKING:
    from headgate.engine.engine import Engine
    from headgate.engine.topic import Topic


class ParkedBounds:
    """Everybody who has SENDs waiting in one broker."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._producers: dict[ProducerPort, dict[Producer, None]] = {}
        """Those with waiting SENDs, of each connection that has any."""
        self._paused: dict[ProducerPort, int] = {}
        """Down to how many parked bytes of all each of them is not read."""
        self.bytes = 0
        """Memory that all that waits takes now."""

    # -- bytes -----------------------------------------------------------------------------

    def parked(self, producer: Producer, size_bytes: int) -> None:
        """A SEND more waits; keep the bounds."""
        port = producer.port
        self._producers.setdefault(port, {})[producer] = None
        self._count(port, 1, size_bytes)
        bound = self._engine.limits.parked_bytes_max
        while self._is_over(port):
            self._relieve(port, bound)
        while self.bytes > bound:
            unpaused = [other for other in self._producers if other not in self._paused]
            if not unpaused or not self._relieve(max(unpaused, key=_parked_bytes), bound // 2):
                break  # the others may go on until one more SEND waits

        # Each connection may still park one SEND: with very many of them that is too much again.
        while self.bytes > bound + self._engine.limits.parked_bytes_over_max:
            port = max(self._producers, key=_parked_bytes)
            most = max(self._producers[port], key=_parked_bytes)
            if most.topic is None:
                break
            self._end(most.topic, most)

    def left(self, producer: Producer, count: int, size_bytes: int) -> None:
        """So many SENDs of a producer, of so many bytes in all, wait no longer."""
        port, before = producer.port, self.bytes
        self._count(port, -count, -size_bytes)
        if not producer.parked:
            mine = self._producers.get(port, {})
            mine.pop(producer, None)
            if not mine:
                self._producers.pop(port, None)
        if self._paused:
            bound = self._engine.limits.parked_bytes_max
            if before > bound >= self.bytes or before > bound // 2 >= self.bytes:
                self._resume(list(self._paused))
            elif port in self._paused:  # for all others nothing has changed
                self._resume([port])

    def _count(self, port: ProducerPort, count: int, size_bytes: int) -> None:
        size_bytes += count * self._engine.limits.parked_send_bytes
        self.bytes += size_bytes
        port.parked_bytes += size_bytes

    def look(self) -> None:
        """The bounds are others: who is paused may go on."""
        self._resume(list(self._paused))

    def _is_over(self, port: ProducerPort) -> bool:
        bound = self._engine.limits.parked_bytes_per_connection_max
        return port.parked_bytes > bound and port not in self._paused

    def held(self, topic: Topic) -> None:
        """A quota, the disk or the adaptive limit holds from now on what a topic parks, or some: of
        its producers on connections that are not read those are closed for which these may not be
        paused, so that these are read again."""
        over = None if topic.quota is None else topic.quota.over
        evicts = over is not None and not over.policy.stops_producers
        for port in list(self._paused):
            for producer in list(self._producers.get(port, ())):
                may_wait = evicts and producer.parked_at is not ParkedAt.DISK
                if producer.topic is topic and not may_wait and _needs_reading(producer):
                    self._end(topic, producer)

    def _relieve(self, port: ProducerPort, read_on_at: int) -> bool:
        """Have a connection park less (True), or no more until at most so much is parked in all
        (False). Of what it must not be paused for, the producer that parks most is closed."""
        most = max(self._producers[port], key=_parked_bytes)
        if most.topic is not None and _needs_reading(most):
            self._end(most.topic, most)
            return True
        self._paused[port] = read_on_at
        port.pause_for_parked()
        return False

    def _end(self, topic: Topic, producer: Producer) -> None:
        """Close a producer for what it parks."""
        if producer.parked_at is ParkedAt.DISK:
            self._engine.disk_hold.over_bound(producer.port)
        topic.end_producer(producer)

    def _resume(self, ports: list[ProducerPort]) -> None:
        few = self._engine.limits.parked_bytes_per_connection_max // 2
        for port in ports:
            parked_bytes = port.parked_bytes
            if not parked_bytes or (parked_bytes <= few and self.bytes <= self._paused[port]):
                del self._paused[port]
                port.resume_for_parked()

    # -- time ------------------------------------------------------------------------------

    def holds_due(self) -> None:
        """How long a hold may be was changed: look at everybody who waits."""
        self._engine.disk_hold.holds_due()
        topics = {p.topic: None for mine in self._producers.values() for p in mine}
        for topic in topics:
            if topic is not None and topic.parking is not None:
                self._holds_due(topic, topic.parking)

    def arm_hold(self, topic: Topic, parking: Parking, since_ns: int) -> None:
        """Look who has waited for the quota too long when a SEND that waits since then has."""
        when_ns = since_ns + self._engine.limits.hold_park_ns
        if not 0 < parking.hold_timer_ns <= when_ns:
            parking.hold_timer_ns = when_ns
            self._engine.wake_at(when_ns, partial(self._hold_timer, topic, parking, when_ns))

    def _hold_timer(self, topic: Topic, parking: Parking, when_ns: int) -> None:
        if parking.hold_timer_ns == when_ns:  # else another one was armed for it
            self._holds_due(topic, parking)

    def _holds_due(self, topic: Topic, parking: Parking) -> None:
        """Close the producers whose oldest SEND has waited for the quota as long as it may."""
        parking.hold_timer_ns = 0
        engine = self._engine
        for producer in list(parking.quota_ring):
            since_ns = held_since_ns(producer)
            if since_ns is not None and since_ns + engine.limits.hold_park_ns <= engine.now_ns:
                topic.end_producer(producer)
        waiting = [held_since_ns(producer) for producer in parking.quota_ring]
        since = [since_ns for since_ns in waiting if since_ns is not None]
        if since:
            self.arm_hold(topic, parking, min(since))


def held_since_ns(producer: Producer) -> int | None:
    """Since when the oldest SEND of a producer waits for the quota; None if none does."""
    if not producer.parked or producer.parked_at is not ParkedAt.QUOTA:
        return None
    return max(producer.parked[0].arrived_ns, producer.parked_at_since_ns)


def _needs_reading(producer: Producer) -> bool:
    """Whether its wait may end only by what comes over its connection."""
    parking = None if producer.topic is None else producer.topic.parking
    cause = None if parking is None else parking.cause_of(producer)
    return cause in (ParkCause.BACKLOG_QUOTA, ParkCause.DISK_FULL) or (
        cause is ParkCause.ADAPTIVE and producer.port.brings_acks
    )


def _parked_bytes(subject: Producer | ProducerPort) -> int:
    return subject.parked_bytes
