"""Admission control: which SENDs are staged now and which are parked (law 3).

A SEND passes four checks in this order. Does the disk have room? Does its connection have room for
one more unanswered SEND? Does its topic's backlog quota have room? Do the publish limits of topic
and broker, static and adaptive, allow it? The first check that fails parks the SEND in its
producer's own queue, with all that the producer sends after it; other producers go on. Limits are
charged in the turn that hands the entry to the log. The disk is not checked for a SEND that
arrives: the log then refuses it.

Publish limits are a tree of gates like those of dispatch, with producers instead of subscriptions:
producers share their topic's limit max-min fairly, and topics share the broker's. A topic without
limits, quotas and parked SENDs never comes here: its append is one comparison with
:attr:`TopicPublishing.admit_below`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol, cast

from headgate.base.fair_queue import FairQueue
from headgate.base.park_cause import ParkCause
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.parking import Parking
from headgate.engine.producer import Producer, ProducerPort, ProducerTurns
from headgate.engine.publishing import TopicPublishing
from headgate.engine.topic import Topic
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.precedence import is_tighter, tighter
from headgate.flow.limits.rate_limit import Level, RateLimit, Refusal

if TYPE_CHECKING:
    from headgate.engine.disk_full_hold import DiskFullHold
    from headgate.engine.observer import Observer
    from headgate.engine.parked_bounds import ParkedBounds
    from headgate.engine.topic_quota import QuotaSchedule

PARKED = -1
"""In place of the charged messages: the SEND is parked, or dropped if its producer is ending."""

NOTHING_CHARGED = 0

RUN_SENDS_MAX = 16
"""SENDs of one producer that are staged before others have their turn."""


class AdmissionEngine(Protocol):
    """The engine, as far as admission control needs it."""

    now_ns: int
    topics: dict[str, Topic]
    observer: Observer
    disk_full_hold: DiskFullHold
    parked: ParkedBounds

    @property
    def quotas(self) -> QuotaSchedule:
        """The work that backlog quotas do in each turn."""

    def work_pending(self) -> None:
        """Ask for a flush before the loop rests."""


class AdmissionControl:
    """Admits or parks the SENDs to all topics of one broker, and stages parked SENDs later."""

    def __init__(self, engine: AdmissionEngine) -> None:
        self._engine = engine
        self.gate = BrokerGate()
        """The publish limits of the broker, and below it of topics; producers wait at it."""
        self.limit: RateLimit | None = None
        """The broker's publish limit."""
        self._full: dict[ProducerPort, None] = {}
        """Connections whose producers wait until more of their SENDs are answered."""
        self._with_room: FairQueue[ProducerPort] = FairQueue()
        """Connections that were full and on which SENDs were answered meanwhile. Tenants take
        turns: those that flood would keep all others waiting."""
        self._queued: set[ProducerPort] = set()
        """The same connections."""
        self._ready: FairQueue[Producer] = FairQueue()
        """Producers whose next SEND may be staged after the turns of others."""

    # -- limits ----------------------------------------------------------------------------

    def set_broker_limit(self, limit: RateLimit | None) -> None:
        """Limit everything that is published; None for no limit.

        Another amount is in force at once, a limit of another kind (messages, bytes, none) on a
        topic from its next :meth:`limit_in_steps` on; see :meth:`BrokerGate.install`.
        """
        self.limit = limit
        self.gate.forgive_raised(limit, self._engine.now_ns)
        self.gate.install(limit, self._engine.now_ns)
        self._engine.observer.publish_limits_changed(None)
        self._engine.work_pending()

    def put_in_force(self, topic: Topic, *, forgives: bool = False) -> None:
        """Apply a topic's publish limit and its adaptive limit: in each dimension the tighter one.

        Both count the same messages over the same second, so one budget is exact. ``forgives``
        debts if the limit is raised or removed: set it for what an operator does, not for the
        steps of the adaptive controller.
        """
        for _ in self.limit_in_steps(topic, forgives=forgives):
            pass

    def limit_in_steps(self, topic: Topic, *, forgives: bool = False) -> Iterator[None]:
        """:meth:`put_in_force` in steps, one for each producer that gets another kind of limit.
        Until its step a producer keeps to the limits that it had."""
        publishing = topic.publishing
        limit = tighter(publishing.limit, publishing.adaptive_limit)
        if limit is not None or publishing.gate is not None:
            gate = self.gate_of(publishing)
            if forgives:
                gate.forgive_raised(limit, self._engine.now_ns)
            if gate.install(limit, self._engine.now_ns):
                publishing.update_admit_below()  # new producers ask the gate from now on
                for producer in list(gate.waiters):
                    producer.refresh_path(self._engine.now_ns)
                    yield
            self._engine.observer.publish_limits_changed(topic)
        publishing.update_admit_below()
        if publishing.parking:
            self._engine.work_pending()

    def gate_of(self, publishing: TopicPublishing) -> TopicGate:
        """The budget of a topic's publish limits; created when the topic first needs it."""
        if publishing.gate is None:
            topic = publishing.topic
            publishing.gate = self.gate.topic(topic, topic.name.tenant)
        return publishing.gate

    def is_limited(self, publishing: TopicPublishing) -> bool:
        if publishing.topic.is_system:
            return False
        own = publishing.gate
        return bool(self.gate.budgets or (own is not None and own.budgets))

    # -- one SEND --------------------------------------------------------------------------

    def admit(
        self, publishing: TopicPublishing, producer: Producer, messages: int, size_bytes: int
    ) -> int:
        """Decide about a SEND that arrived now, on a connection with room.

        Returns how many messages were charged for it: the caller stages it at once. Returns
        :data:`PARKED` if the caller must :meth:`park` it.
        """
        if producer.parked or producer.ending:
            return PARKED
        gate, now_ns = producer.gate, self._engine.now_ns
        if gate is not None and publishing.topic.quota is None and gate.request(now_ns) is None:
            if not gate.limited:
                return NOTHING_CHARGED
            gate.charge(now_ns, messages, size_bytes)  # as _charge, without the call: the hot path
            self.gate.charged_ns = gate.topic.charged_ns = now_ns
            return messages
        blocked = self._blocked_by_topic(publishing, producer)
        if blocked is None:
            return self._charge(producer, messages, size_bytes)
        if not producer.ending:
            self.enter(publishing, producer, blocked)
        return PARKED

    def wait_for_answers(
        self, publishing: TopicPublishing, producer: Producer, send: ParkedSend
    ) -> None:
        if not producer.parked and not producer.ending:
            self.enter(publishing, producer, ParkedAt.CONNECTION)
        self.park(publishing, producer, send)

    def blocked_at(self, publishing: TopicPublishing, producer: Producer) -> ParkedAt | None:
        """Where the next SEND of a producer must wait; None if it may be staged."""
        if self._engine.disk_full_hold.is_full:
            return ParkedAt.DISK
        if not producer.port.has_room:
            return ParkedAt.CONNECTION
        return self._blocked_by_topic(publishing, producer)

    def _blocked_by_topic(self, publishing: TopicPublishing, producer: Producer) -> ParkedAt | None:
        quota, parking = publishing.topic.quota, publishing.parking
        if quota is not None:
            others_wait = parking is not None and parking.quota_queue
            if others_wait and producer.parked_at is not ParkedAt.QUOTA:
                return ParkedAt.QUOTA
            if publishing.staged_bytes >= quota.safe_below:
                quota.evaluate()
                if quota.exceeded is not None or producer.ending:
                    return ParkedAt.QUOTA
        gate = producer.gate
        if gate is None:
            if not self.is_limited(publishing):
                return None
            gate = producer.gate = self.gate_of(publishing).waiter(producer)
        if gate.limited:
            refusal = gate.request(self._engine.now_ns)
            if refusal is not None:
                cause = _cause(publishing, refusal)
                publishing.ensure_parking().set_gate_cause(cause, self._engine.now_ns)
                if cause is ParkCause.ADAPTIVE:
                    self._engine.parked.hold_began(publishing)
                return ParkedAt.GATE
        return None

    def _charge(self, producer: Producer, messages: int, size_bytes: int) -> int:
        gate = producer.gate
        if gate is None or not gate.limited:
            return NOTHING_CHARGED
        now_ns = self._engine.now_ns
        gate.charge(now_ns, messages, size_bytes)
        self.gate.charged_ns = gate.topic.charged_ns = now_ns
        return messages

    # -- parking ---------------------------------------------------------------------------

    def enter(self, publishing: TopicPublishing, producer: Producer, at: ParkedAt) -> None:
        """A producer's parked SENDs wait at ``at`` from now on."""
        if producer.parked_at is at:
            return
        engine = self._engine
        now_ns = engine.now_ns
        if producer.gate is not None and at is not ParkedAt.GATE:
            producer.gate.leave(now_ns)
        parking = publishing.ensure_parking()
        parking.enter(producer, at, now_ns)
        if at is ParkedAt.CONNECTION:
            self._full[producer.port] = None
        elif at is ParkedAt.GATE:
            engine.work_pending()  # the loop then knows when to wake for the producer's turn
        elif at is ParkedAt.QUOTA:
            engine.parked.arm_hold(publishing, parking, now_ns)
            engine.parked.hold_began(publishing)
        elif at is ParkedAt.DISK:
            engine.disk_full_hold.entered(producer)
            engine.parked.hold_began(publishing)
        publishing.update_admit_below()

    def park(
        self,
        publishing: TopicPublishing,
        producer: Producer,
        send: ParkedSend,
        *,
        first: bool = False,
    ) -> None:
        """Park a SEND that was not admitted, or drop it if its producer is ending.

        It is parked behind the producer's other parked SENDs or, if ``first``, in front of them.
        """
        if producer.ending:
            return
        if producer.parked is None:
            producer.parked = deque()
        if first:
            producer.parked.appendleft(send)
        else:
            producer.parked.append(send)
        publishing.ensure_parking().count(producer, 1, send)
        self._engine.parked.added(producer, len(send.body))

    def discard(self, producer: Producer) -> None:
        publishing = cast("TopicPublishing | None", producer.publishing)
        if publishing is None or publishing.parking is None or not producer.parked:
            return
        now_ns, size_bytes = self._engine.now_ns, producer.parked_bytes
        count = len(producer.parked)
        publishing.parking.leave(producer, now_ns)
        for send in producer.parked:
            publishing.parking.count(producer, -1, send)
        producer.parked = None
        if producer.gate is not None:
            producer.gate.leave(now_ns)
        self._engine.parked.removed(producer, count, size_bytes)
        publishing.update_admit_below()
        quota = publishing.topic.quota
        if quota is not None and quota.exceeded is not None:
            self._engine.quotas.touch(quota)  # the next SEND may need less room

    # -- staging what is parked ------------------------------------------------------------

    def recheck_pending_limits(self) -> None:
        """Check the connections that had too many unanswered SENDs: they may have room now."""
        if self._full:
            for port in self._full:
                self._queue(port)
            self._full.clear()
            self._engine.work_pending()

    @property
    def is_busy(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._with_room or self._ready or self._engine.disk_full_hold.is_busy)

    def work(self, entries_max: int) -> int:
        """Stage what was parked at the disk, at connections or at the gate and may go now.

        Stages about ``entries_max`` entries and returns about how many.
        """
        used, disk_hold = 0, self._engine.disk_full_hold
        while used < entries_max:
            # In turn: each of these may have more to stage at any time, for as long as clients
            # send, and then those behind it would wait for ever.
            before = used
            if disk_hold.is_busy:
                used += disk_hold.work(min(RUN_SENDS_MAX, entries_max - used))
            if self._with_room:
                used += self._stage_of_port(min(RUN_SENDS_MAX, entries_max - used))
            if self._ready:
                used += 1 + self._stage_allowed(self._ready.take(), RUN_SENDS_MAX)
            waiter = self.gate.pop_ready(self._engine.now_ns)
            if waiter is not None:
                used += 1 + self._stage_allowed(cast(Producer, waiter.owner), RUN_SENDS_MAX)
            if used == before:
                break
        return used

    def _queue(self, port: ProducerPort) -> None:
        """Stage what waits at a connection that has room, when its turn comes."""
        if port.waiting and port not in self._queued:
            publishing = cast(TopicPublishing, port.waiting.first.publishing)
            self._queued.add(port)
            self._with_room.add(publishing.topic.name.tenant, port)

    def _stage_of_port(self, entries_max: int) -> int:
        """Stage what waits at the connection whose turn it is, while that has room."""
        port = self._with_room.take()
        self._queued.discard(port)
        used = 1 + self.drain(port.waiting, ParkedAt.CONNECTION, entries_max)
        if port.waiting and port.has_room:
            self._queue(port)
        elif port.waiting:
            self._full[port] = None
        return used

    def drain(self, queue: ProducerTurns, at: ParkedAt, entries_max: int) -> int:
        """Stage what producers of a queue parked, one SEND in each turn, while it may go."""
        used = 0
        while queue and used < entries_max:
            producer = queue.first
            publishing = cast(TopicPublishing, producer.publishing)
            blocked = self.blocked_at(publishing, producer)
            used += 1
            if not producer.parked:
                continue  # a quota that refuses producers has just ended it
            if blocked is at:
                break
            if blocked is not None:
                self.enter(publishing, producer, blocked)
                continue
            self.stage_next(publishing, producer)
            if queue and queue.first is producer:
                queue.pass_turn()
        return used

    def _stage_allowed(self, producer: Producer, entries_max: int) -> int:
        """Stage what a producer parked, as far as it may go."""
        publishing, used = cast("TopicPublishing | None", producer.publishing), 0
        if publishing is None:
            return used
        if publishing.parking is not None and producer.gate is not None:
            waited_for = producer.gate.cause(self._engine.now_ns)
            if waited_for is not None:
                cause = _cause(publishing, waited_for)
                publishing.parking.correct_gate_cause(cause, self._engine.now_ns)
        while producer.parked:
            if used >= entries_max:
                self._ready.add(publishing.topic.name.tenant, producer)
                break
            blocked = self.blocked_at(publishing, producer)
            if not producer.parked:
                break  # a quota that refuses producers has just ended it
            if blocked is not None:
                self.enter(publishing, producer, blocked)
                break
            self.stage_next(publishing, producer)
            used += 1
        return used

    def stage_next(self, publishing: TopicPublishing, producer: Producer) -> None:
        """Stage the oldest parked SEND of a producer."""
        parking = cast(Parking, publishing.parking)
        parked = cast("deque[ParkedSend]", producer.parked)
        now_ns, send = self._engine.now_ns, parked.popleft()
        size = len(send.body)
        parking.count(producer, -1, send)
        if not parked:
            parking.leave(producer, now_ns)
        charged = self._charge(producer, send.message_count, size)
        if not parked and producer.gate is not None:
            producer.gate.leave(now_ns)
        self._engine.parked.removed(producer, 1, size)
        publishing.stage_parked(producer, send, charged)

    # -- producers -------------------------------------------------------------------------

    def producer_left(self, producer: Producer) -> None:
        self.discard(producer)
        if producer.gate is not None:
            producer.gate.close(self._engine.now_ns)
            producer.gate = None


def _cause(publishing: TopicPublishing, refusal: Refusal) -> ParkCause:
    """The cause of a refusal: of the topic's two limits, the tighter one."""
    if refusal.level is Level.BROKER:
        return ParkCause.BROKER_RATE
    if publishing.adaptive_limit is None:
        return ParkCause.TOPIC_RATE
    is_adaptive = is_tighter(publishing.adaptive_limit, publishing.limit, refusal.dimension)
    return ParkCause.ADAPTIVE if is_adaptive else ParkCause.TOPIC_RATE
