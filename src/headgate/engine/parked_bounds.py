"""Bounds on parked SENDs: bytes of a connection, bytes of the broker, time at a hold.

* Over a bound of bytes, the connection that parks most is no longer read; a connection that parks
  nothing is always read (law 3.1). Far beyond the broker's bound, the producer that parks most is
  closed.
* At the broker's bound the connections make room of the tenants that park most. Those of other
  tenants are read on, and beyond a quarter more than the bound producers of the former are closed
  for them. So no tenant takes the room of all.
* What a quota or a full disk holds never pauses a socket, because the acknowledgements that end the
  hold may arrive on it: there the producer that parks most is closed, and what it parked is
  dropped. The same applies to the adaptive limit on a connection that has consumers. These holds
  also end so after ``headgateHoldParkMs`` (law 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from heapq import nlargest
from typing import Final, Protocol, cast

from headgate.base.fair_queue import FairQueue
from headgate.base.lazy_min_heap import LazyMinHeap
from headgate.base.owner_shares import OwnerShares
from headgate.base.park_cause import ParkCause
from headgate.base.units import NS_PER_S
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.parked_send import ParkedAt
from headgate.engine.parking import Parking
from headgate.engine.producer import Producer, ProducerPort
from headgate.engine.publishing import TopicPublishing

PARKED_RESERVE_SHARE: Final = 4
"""Tenants that do not park most may go beyond the broker's bound by this part of it."""

LOOKED_AT_PART: Final = 64
"""Of so many connections that make room one more does before the next look at all of them."""

HOLD_LOOK_NS: Final = NS_PER_S // 4
"""Least time between two looks for what a quota holds for too long: producers are closed at most
this late, and more than :data:`ENDED_IN_LOOK` later still."""

ENDED_IN_LOOK: Final = 256
"""Producers that are closed at once because a quota or the disk held them for too long: 9 ms."""
ENDED_IN_TURN: Final = 16
"""Those of one topic, before others have their turn."""
LOOKED_AT_PER_ENDED: Final = 128
"""Producers to look at, which takes as long as to close one."""
NEXT_LOOK_NS: Final = NS_PER_S // 50
"""Time between two such looks while more are due."""


class DiskBounds(Protocol):
    """The SENDs that wait for room on the disk, as far as their bounds are concerned."""

    def over_bound(self, port: ProducerPort, /) -> None:
        """A producer of a connection is closed because the connection parked too much here."""

    def recheck_hold_timeouts(self) -> None:
        """Close the producers whose oldest SEND was parked for as long as it may be."""


class BoundsEngine(Protocol):
    """The engine, as far as these bounds need it."""

    now_ns: int
    limits: EngineLimits

    @property
    def disk_full_hold(self) -> DiskBounds:
        """The SENDs that wait for room on the disk."""

    def wake_at(self, when_ns: int, action: Callable[[], None], /) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""


class ParkedBounds:
    """All producers of one broker that have parked SENDs, and what they take together."""

    def __init__(self, engine: BoundsEngine) -> None:
        self._engine = engine
        self._producers: dict[ProducerPort, dict[Producer, str]] = {}
        """The producers with parked SENDs, by connection, each with its tenant."""
        self._tenants: dict[ProducerPort, dict[str, int]] = {}
        """Of each of these connections how many of them a tenant has."""
        self._largest: dict[ProducerPort, LazyMinHeap[Producer]] = {}
        """Finds the one that parks most, on connections of which one was closed for a bound."""
        self._next_ports: dict[ProducerPort, int] = {}
        """Connections that make room next, the last one first, with what they parked then."""
        self._shares = OwnerShares()
        """What tenants park, in bytes."""
        self._paused: dict[ProducerPort, int] = {}
        """For each connection that is not read, the total of parked bytes that ends its pause."""
        self._on_paused: dict[TopicPublishing, dict[Producer, None]] = {}
        """The producers with parked SENDs on these connections, by topic."""
        self._overdue: FairQueue[tuple[TopicPublishing, Parking, int]] = FairQueue()
        """Topics whose quota holds something for too long, with their timers. Tenants take turns:
        the holds of thousands may end at one instant."""
        self._is_looking = False
        """Whether a timer runs for them."""

    # -- bytes -----------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """Memory that all parked SENDs take."""
        return self._shares.total

    def added(self, producer: Producer, size_bytes: int) -> None:
        """One more SEND is parked; enforce the bounds."""
        port, mine = producer.port, self._producers.setdefault(producer.port, {})
        tenant = mine.get(producer)
        if tenant is None:
            publishing = cast(TopicPublishing, producer.publishing)
            tenant = mine[producer] = publishing.topic.name.tenant
            tenants = self._tenants.setdefault(port, {})
            tenants[tenant] = tenants.get(tenant, 0) + 1
            if port in self._paused:
                self._note_paused(producer)
        self._count(port, tenant, 1, size_bytes)
        if port in self._largest:
            self._largest[port].changed(producer)
        bound = self._engine.limits.parked_bytes_max
        is_spared = not self._shares.makes_room(tenant)
        while self._is_over(port):
            self._relieve(port, self._reserve_end if is_spared else bound)
        if self.bytes <= bound:
            return
        if not is_spared:
            self._pause_those_that_make_room()
            last_bytes = bound + self._engine.limits.parked_bytes_over_max
        else:
            last_bytes = self._reserve_end
        # Each connection may still park one SEND: with very many of them that is too much again.
        while self.bytes > last_bytes:
            most = self._largest_of(max(self._making_room(self._producers), key=_parked_bytes))
            if most.publishing is None:
                break
            self._end(most)

    @property
    def _reserve_end(self) -> int:
        """So much may be parked by tenants that do not park most."""
        bound = self._engine.limits.parked_bytes_max
        return bound + bound // PARKED_RESERVE_SHARE

    def _pause_those_that_make_room(self) -> None:
        bound = self._engine.limits.parked_bytes_max
        while self.bytes > bound:
            port = self._next_that_makes_room()
            if port is None or not self._relieve(port, bound // 2):
                break  # the others may go on until one more SEND is parked

    def _next_that_makes_room(self) -> ProducerPort | None:
        """The connection to pause, or to close a producer of: the one that parks most, or of very
        many one of those that parked most at the last look and do not park less since."""
        while self._next_ports:
            port, parked_bytes = self._next_ports.popitem()
            parks_less = port.parked_bytes < parked_bytes
            if not parks_less and port not in self._paused and self._making_room((port,)):
                return port
        found = self._making_room(port for port in self._producers if port not in self._paused)
        largest = nlargest(1 + len(found) // LOOKED_AT_PART, found, key=_parked_bytes)
        self._next_ports = {port: port.parked_bytes for port in reversed(largest[1:])}
        return largest[0] if largest else None

    def _making_room(self, ports: Iterable[ProducerPort]) -> list[ProducerPort]:
        """Those connections over which producers of a tenant park that parks most."""
        makes_room, tenants = self._shares.makes_room, self._tenants
        return [port for port in ports if any(map(makes_room, tenants[port]))]

    def _largest_of(self, port: ProducerPort) -> Producer:
        """The producer that parks most of a connection with parked SENDs."""
        found = self._largest.get(port)
        if found is None:
            found = self._largest[port] = LazyMinHeap(_spared_bytes, self._producers[port])
        return cast(Producer, found.top())

    def removed(self, producer: Producer, count: int, size_bytes: int) -> None:
        """``count`` SENDs of a producer, of ``size_bytes`` together, are no longer parked."""
        port, before = producer.port, self.bytes
        self._count(port, self._producers[port][producer], -count, -size_bytes)
        if not producer.parked:
            self._forget(port, producer)
            self._forget_paused(producer)
        if self._paused:
            bound = self._engine.limits.parked_bytes_max
            ends = self._reserve_end, bound, bound // 2
            if any(before > end >= self.bytes for end in ends):
                self._resume(list(self._paused))
            elif port in self._paused:  # nothing has changed for the others
                self._resume([port])

    def _forget(self, port: ProducerPort, producer: Producer) -> None:
        """A producer parks nothing any more."""
        mine, tenants = self._producers[port], self._tenants[port]
        tenant = mine.pop(producer)
        tenants[tenant] -= 1
        if not tenants[tenant]:
            del tenants[tenant]
        if port in self._largest:
            self._largest[port].discard(producer)
        if not mine:
            del self._producers[port], self._tenants[port]
            self._next_ports.pop(port, None)
            self._largest.pop(port, None)

    def _count(self, port: ProducerPort, tenant: str, count: int, size_bytes: int) -> None:
        size_bytes += count * self._engine.limits.parked_send_bytes
        self._shares.count(tenant, size_bytes)
        port.parked_bytes += size_bytes

    def bounds_changed(self) -> None:
        """The bounds have other values: resume the connections that they now allow."""
        self._resume(list(self._paused))

    def _is_over(self, port: ProducerPort) -> bool:
        bound = self._engine.limits.parked_bytes_per_connection_max
        return port.parked_bytes > bound and port not in self._paused

    def hold_began(self, publishing: TopicPublishing) -> None:
        """From now on a quota, the disk or the adaptive limit holds what a topic parks, or some.

        Of the topic's producers on connections that are not read, those are closed that must not
        pause their connection for it, so that the connections are read again.
        """
        held = self._on_paused.get(publishing)
        if held is None:
            return
        quota = publishing.topic.quota
        exceeded = None if quota is None else quota.exceeded
        evicts = exceeded is not None and not exceeded.policy.stops_producers
        for producer in list(held):
            may_wait = evicts and producer.parked_at is not ParkedAt.DISK
            if not may_wait and _needs_reading(producer):
                self._end(producer)

    def _note_paused(self, producer: Producer) -> None:
        publishing = cast("TopicPublishing | None", producer.publishing)
        if publishing is not None:
            self._on_paused.setdefault(publishing, {})[producer] = None

    def _forget_paused(self, producer: Producer) -> None:
        publishing = cast("TopicPublishing | None", producer.publishing)
        held = None if publishing is None else self._on_paused.get(publishing)
        if publishing is not None and held is not None:
            held.pop(producer, None)
            if not held:
                del self._on_paused[publishing]

    def _relieve(self, port: ProducerPort, resume_at_bytes: int) -> bool:
        """Have a connection park less (True), or pause it until at most ``resume_at_bytes`` are
        parked in all (False). It is not paused for a producer that needs it read: that producer is
        closed."""
        most = self._largest_of(port)
        if most.publishing is not None and _needs_reading(most):
            self._end(most)
            return True
        self._paused[port] = resume_at_bytes
        for producer in self._producers[port]:
            self._note_paused(producer)
        port.pause_for_parked()
        return False

    def _end(self, producer: Producer) -> None:
        """Close a producer because of what it parked."""
        if producer.parked_at is ParkedAt.DISK:
            self._engine.disk_full_hold.over_bound(producer.port)
        cast(TopicPublishing, producer.publishing).end_producer(producer)

    def _resume(self, ports: list[ProducerPort]) -> None:
        few = self._engine.limits.parked_bytes_per_connection_max // 2
        for port in ports:
            parked_bytes = port.parked_bytes
            if not parked_bytes or (parked_bytes <= few and self.bytes <= self._paused[port]):
                del self._paused[port]
                for producer in self._producers.get(port, ()):
                    self._forget_paused(producer)
                port.resume_for_parked()

    # -- time ------------------------------------------------------------------------------

    def recheck_hold_timeouts(self) -> None:
        """Check everything that is parked against the longest hold, which changed."""
        self._engine.disk_full_hold.recheck_hold_timeouts()
        parked = {p.publishing: None for mine in self._producers.values() for p in mine}
        for each in parked:
            publishing = cast("TopicPublishing | None", each)
            if publishing is not None and publishing.parking is not None:
                publishing.parking.hold_timer_ns = now_ns = self._engine.now_ns
                one = publishing, publishing.parking, now_ns
                self._overdue.add(publishing.topic.name.tenant, one)
        if not self._is_looking:
            self._look()

    def arm_hold(self, publishing: TopicPublishing, parking: Parking, since_ns: int) -> None:
        """End overdue holds of a quota when a SEND that was parked at ``since_ns`` is overdue."""
        when_ns = since_ns + self._engine.limits.hold_park_ns
        if not 0 < parking.hold_timer_ns <= when_ns:
            parking.hold_timer_ns = when_ns
            action = partial(self._hold_timer, publishing, parking, when_ns)
            self._engine.wake_at(when_ns, action)

    def _hold_timer(self, publishing: TopicPublishing, parking: Parking, when_ns: int) -> None:
        if parking.hold_timer_ns == when_ns:  # else another timer has replaced this one
            self._overdue.add(publishing.topic.name.tenant, (publishing, parking, when_ns))
            if not self._is_looking:
                self._is_looking = True  # behind the other timers that are due now
                self._engine.wake_at(self._engine.now_ns, self._look)

    def _look(self) -> None:
        """Close producers of the topics in turn, a few of all together."""
        overdue, left = self._overdue, ENDED_IN_LOOK
        while overdue and left > 0:
            one = overdue.take()
            publishing, parking, when_ns = one
            left -= 1
            if parking.hold_timer_ns != when_ns:
                continue
            left -= len(parking.quota_queue) // LOOKED_AT_PER_ENDED
            turn_max = max(1, min(left, ENDED_IN_TURN) if overdue else left)
            ended_count, has_more = self._close_overdue(publishing, parking, turn_max)
            left -= ended_count
            if has_more:
                overdue.add(publishing.topic.name.tenant, one)
            else:
                self._arm_next(publishing, parking)
        self._is_looking = bool(overdue)
        if overdue:
            self._engine.wake_at(self._engine.now_ns + NEXT_LOOK_NS, self._look)

    def _close_overdue(
        self, publishing: TopicPublishing, parking: Parking, ended_max: int
    ) -> tuple[int, bool]:
        """Close the producers whose oldest SEND has waited for the quota as long as it may, a few
        at once; returns how many, and whether there are more."""
        ended_count = 0
        latest_ns = self._engine.now_ns - self._engine.limits.hold_park_ns
        for producer in list(parking.quota_queue):
            since_ns = held_since_ns(producer)
            if since_ns is not None and since_ns <= latest_ns:
                if ended_count == ended_max:
                    return ended_count, True
                publishing.end_producer(producer)
                ended_count += 1
        return ended_count, False

    def _arm_next(self, publishing: TopicPublishing, parking: Parking) -> None:
        parking.hold_timer_ns = 0
        waiting = [held_since_ns(producer) for producer in parking.quota_queue]
        since = [since_ns for since_ns in waiting if since_ns is not None]
        if since:
            # Not for each of thousands: a look asks all of them.
            soonest_ns = self._engine.now_ns + HOLD_LOOK_NS - self._engine.limits.hold_park_ns
            self.arm_hold(publishing, parking, max(min(since), soonest_ns))


def held_since_ns(producer: Producer) -> int | None:
    """Since when the oldest SEND of a producer has waited for the quota; None if none does."""
    if not producer.parked or producer.parked_at is not ParkedAt.QUOTA:
        return None
    return max(producer.parked[0].arrived_ns, producer.parked_at_since_ns)


def _needs_reading(producer: Producer) -> bool:
    """Whether only what arrives on its connection may end its wait."""
    publishing = cast("TopicPublishing | None", producer.publishing)
    parking = None if publishing is None else publishing.parking
    cause = None if parking is None else parking.cause_of(producer)
    return cause in (ParkCause.BACKLOG_QUOTA, ParkCause.DISK_FULL) or (
        cause is ParkCause.ADAPTIVE and producer.port.brings_acks
    )


def _parked_bytes(subject: Producer | ProducerPort) -> int:
    return subject.parked_bytes


def _spared_bytes(producer: Producer) -> int:
    """The less, the more it parks."""
    return -producer.parked_bytes
