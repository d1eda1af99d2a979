"""Bounds on what waits before its append: bytes of a connection, bytes of all, time at a quota.

* Over a bound the connection that parks most is read no further, never one that parks nothing
  (law 3.1).
* What a quota holds never pauses a socket, because the acknowledgements that end the hold may come
  over it: there the producer that parks most is closed, and what it parked is forgotten. So it is
  with what the adaptive limit holds on a connection that has consumers. A quota's hold also ends so
  after ``headgateHoldParkMs`` (law 4.3).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.base.park_cause import ParkCause
from headgate.engine.parking import Parking, Place
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
        self._paused: dict[ProducerPort, None] = {}
        self.bytes = 0
        """Of all of them, now."""

    # -- bytes -----------------------------------------------------------------------------

    def parked(self, producer: Producer, size_bytes: int) -> None:
        """A SEND more waits; keep the bounds."""
        port = producer.port
        self._producers.setdefault(port, {})[producer] = None
        self.bytes += size_bytes
        limits = self._engine.limits
        while self._is_over(port):
            self._relieve(port)
        while self.bytes > limits.parked_bytes_max:
            unpaused = [other for other in self._producers if other not in self._paused]
            if not unpaused:
                break
            self._relieve(max(unpaused, key=_parked_bytes))

    def left(self, producer: Producer, size_bytes: int) -> None:
        """So much of a producer waits no longer."""
        self.bytes -= size_bytes
        port = producer.port
        if not producer.parked:
            mine = self._producers.get(port, {})
            mine.pop(producer, None)
            if not mine:
                self._producers.pop(port, None)
        if self._paused:
            self._resume()

    def look(self) -> None:
        """The bounds are others: who is paused may go on."""
        self._resume()

    def _is_over(self, port: ProducerPort) -> bool:
        bound = self._engine.limits.parked_bytes_per_connection_max
        return port.parked_bytes > bound and port not in self._paused

    def _relieve(self, port: ProducerPort) -> None:
        """Have a connection park less, or no more. Of what it must not be paused for, the producer
        that parks most is closed."""
        most = max(self._producers[port], key=_parked_bytes)
        cause = most.throttled_by
        if cause is ParkCause.BACKLOG_QUOTA or (cause is ParkCause.ADAPTIVE and port.brings_acks):
            topic = most.topic
            if topic is not None:
                topic.end_producer(most)
        else:
            self._paused[port] = None
            port.pause_for_parked()

    def _resume(self) -> None:
        limits = self._engine.limits
        has_room = self.bytes <= limits.parked_bytes_max // 2
        for port in list(self._paused):
            parked_bytes = port.parked_bytes
            few = parked_bytes <= limits.parked_bytes_per_connection_max // 2
            if not parked_bytes or (few and has_room):
                del self._paused[port]
                port.resume_for_parked()

    # -- time ------------------------------------------------------------------------------

    def holds_due(self) -> None:
        """How long a hold may be was changed: look at everybody who waits."""
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
    if not producer.parked or producer.place is not Place.QUOTA:
        return None
    return max(producer.parked[0].arrived_ns, producer.place_since_ns)


def _parked_bytes(subject: Producer | ProducerPort) -> int:
    return subject.parked_bytes
