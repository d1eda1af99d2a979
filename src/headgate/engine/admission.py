"""What may be appended now, and what waits: publish limits, quotas, full connections (law 3).

A SEND passes four questions in this order. Has the disk room? Has its connection room for one more
unanswered SEND? Has its topic's backlog quota room? Do the publish limits, static and adaptive, of
topic and broker allow it? At the first no it waits in its producer's own queue, and so does what
its producer sends after it; others go on. Limits are charged in the turn in which the entry is
handed to the log. The disk is not asked for a SEND that arrives: the log then refuses it.

The limits are a tree of gates as those of dispatch are, with a producer in a subscription's place:
producers share their topic's limit max-min fairly, topics the broker's. A topic without limits,
quotas and waiting SENDs never comes here: its append is one comparison with
:attr:`Topic.admit_below`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, cast

from headgate.base.park_cause import ParkCause
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.parking import Parking
from headgate.engine.ports import ProducerPort
from headgate.engine.producer import Producer
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.precedence import is_tighter, tighter
from headgate.flow.limits.rate_limit import Level, RateLimit, Refusal

if TYPE_CHECKING:
    from headgate.engine.engine import Engine
    from headgate.engine.topic import Topic

PARKED = -1
"""Instead of what was charged: the SEND waits, or is forgotten with a producer that is ending."""

NOTHING_CHARGED = 0

RUN_SENDS_MAX = 16
"""SENDs of one producer that are staged before others have their turn."""


class AdmissionControl:
    """The way into all topics of one broker."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.gate = BrokerGate()
        """The publish limits: of the broker, then of topics; producers wait at it."""
        self.limit: RateLimit | None = None
        """The broker's own."""
        self._full: dict[ProducerPort, None] = {}
        """Connections on which producers wait for answers to what was sent before."""
        self._with_room: dict[ProducerPort, None] = {}
        """Those of them that had answers since."""
        self._ready: deque[Producer] = deque()
        """Producers whose next SEND may be staged, had the turn not been over."""

    # -- limits ----------------------------------------------------------------------------

    def set_broker_limit(self, limit: RateLimit | None) -> None:
        """Put a limit on everything that is published, None for none."""
        self.limit = limit
        self.gate.forgive_raised(limit, self._engine.now_ns)
        self.gate.set_limit(limit, self._engine.now_ns)
        self._engine.observer.publish_limits_changed(None)
        for topic in self._engine.topics.values():
            topic.settle_admission()
        self._engine.effects.work_pending()

    def put_in_force(self, topic: Topic, *, forgives: bool = False) -> None:
        """The topic's own limit, or the adaptive one, was set: the tighter holds in each
        dimension. Both count the same messages over the same second, so one budget is exact.

        ``forgives`` debts where the limit is raised or removed: with what an operator does, not
        with the steps of the adaptive controller."""
        limit = tighter(topic.publish_limit, topic.adaptive_limit)
        if limit is not None or topic.publish_gate is not None:
            gate = self.gate_of(topic)
            if forgives:
                gate.forgive_raised(limit, self._engine.now_ns)
            gate.set_limit(limit, self._engine.now_ns)
            self._engine.observer.publish_limits_changed(topic)
        topic.settle_admission()
        if topic.parking:
            self._engine.effects.work_pending()

    def gate_of(self, topic: Topic) -> TopicGate:
        """The topic's publish limits; made when it first needs them."""
        if topic.publish_gate is None:
            topic.publish_gate = self.gate.topic(topic)
        return topic.publish_gate

    def is_limited(self, topic: Topic) -> bool:
        """Whether a publish limit holds for the topic."""
        if topic.is_system:
            return False
        own = topic.publish_gate
        return bool(self.gate.budgets or (own is not None and own.budgets))

    # -- one SEND --------------------------------------------------------------------------

    def admit(self, topic: Topic, producer: Producer, messages: int, size_bytes: int) -> int:
        """How many messages were charged of a SEND that arrived now, whose connection has room: it
        is to be staged at once. :data:`PARKED` when it has to wait: :meth:`park` it."""
        if producer.parked or producer.ending:
            return PARKED
        gate, now_ns = producer.gate, self._engine.now_ns
        if gate is not None and topic.quota is None and gate.request(now_ns) is None:
            if not gate.limited:
                return NOTHING_CHARGED
            gate.charge(now_ns, messages, size_bytes)  # as _charge: this is the hot way
            self.gate.charged_ns = gate.topic.charged_ns = now_ns
            return messages
        place = self._refused_by_topic(topic, producer)
        if place is None:
            return self._charge(producer, messages, size_bytes)
        if not producer.ending:
            self.enter(topic, producer, place)
        return PARKED

    def wait_for_answers(self, topic: Topic, producer: Producer, send: ParkedSend) -> None:
        """A SEND arrived whose connection has as many unanswered ones as it may."""
        if not producer.parked and not producer.ending:
            self.enter(topic, producer, ParkedAt.CONNECTION)
        self.park(topic, producer, send)

    def refused(self, topic: Topic, producer: Producer) -> ParkedAt | None:
        """Where the next SEND of a producer has to wait; None if it may be staged."""
        if self._engine.disk_hold.is_full:
            return ParkedAt.DISK
        if not producer.port.has_room:
            return ParkedAt.CONNECTION
        return self._refused_by_topic(topic, producer)

    def _refused_by_topic(self, topic: Topic, producer: Producer) -> ParkedAt | None:
        quota, parking = topic.quota, topic.parking
        if quota is not None:
            others_wait = parking is not None and parking.quota_ring
            if others_wait and producer.parked_at is not ParkedAt.QUOTA:
                return ParkedAt.QUOTA
            if topic.staged_bytes >= quota.mark:
                quota.evaluate()
                if quota.over is not None or producer.ending:
                    return ParkedAt.QUOTA
        gate = producer.gate
        if gate is None:
            if not self.is_limited(topic):
                return None
            gate = producer.gate = self.gate_of(topic).waiter(producer)
        if gate.limited:
            refusal = gate.request(self._engine.now_ns)
            if refusal is not None:
                cause = _cause(topic, refusal)
                self._parking_of(topic).set_gate_cause(cause, self._engine.now_ns)
                if cause is ParkCause.ADAPTIVE:
                    self._engine.parked.held(topic)
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

    # -- waiting ---------------------------------------------------------------------------

    def _parking_of(self, topic: Topic) -> Parking:
        if topic.parking is None:
            topic.parking = Parking()
        return topic.parking

    def enter(self, topic: Topic, producer: Producer, place: ParkedAt) -> None:
        """A producer waits there from now on."""
        if producer.parked_at is place:
            return
        now_ns = self._engine.now_ns
        if producer.gate is not None and place is not ParkedAt.GATE:
            producer.gate.leave(now_ns)
        parking = self._parking_of(topic)
        parking.enter(producer, place, now_ns)
        if place is ParkedAt.CONNECTION:
            self._full[producer.port] = None
        elif place is ParkedAt.GATE:
            self._engine.effects.work_pending()  # so that the loop wakes when its turn is there
        elif place is ParkedAt.QUOTA:
            self._engine.parked.arm_hold(topic, parking, now_ns)
            self._engine.parked.held(topic)
        elif place is ParkedAt.DISK:
            self._engine.disk_hold.entered(producer)
            self._engine.parked.held(topic)
        topic.settle_admission()

    def park(
        self, topic: Topic, producer: Producer, send: ParkedSend, *, first: bool = False
    ) -> None:
        """Keep a SEND that was not admitted, behind what its producer has waiting (or, ``first``,
        before it), or forget it with a producer that is ending."""
        if producer.ending:
            return  # forgotten
        if producer.parked is None:
            producer.parked = deque()
        if first:
            producer.parked.appendleft(send)
        else:
            producer.parked.append(send)
        self._parking_of(topic).count(producer, 1, send)
        self._engine.parked.parked(producer, len(send.body))

    def discard(self, producer: Producer) -> None:
        """Forget what a producer has waiting: it is never stored."""
        topic = producer.topic
        if topic is None or topic.parking is None or not producer.parked:
            return
        now_ns, size_bytes = self._engine.now_ns, producer.parked_bytes
        count = len(producer.parked)
        topic.parking.leave(producer, now_ns)
        for send in producer.parked:
            topic.parking.count(producer, -1, send)
        producer.parked = None
        if producer.gate is not None:
            producer.gate.leave(now_ns)
        self._engine.parked.left(producer, count, size_bytes)
        topic.settle_admission()
        if topic.quota is not None and topic.quota.over is not None:
            self._engine.quotas.touch(topic.quota)  # what goes next now may need less room

    # -- going on --------------------------------------------------------------------------

    def answered(self) -> None:
        """SENDs were answered: look at the connections that had too many unanswered ones."""
        if self._full:
            self._with_room.update(self._full)
            self._full.clear()
            self._engine.effects.work_pending()

    @property
    def is_busy(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._with_room or self._ready or self._engine.disk_hold.may_go)

    def work(self, entries_max: int) -> int:
        """Stage what waited at the disk, connections or the gate and may go, about ``entries_max``
        of it; return how much that was."""
        used = self._engine.disk_hold.work(entries_max)
        while self._with_room and used < entries_max:
            port = next(iter(self._with_room))
            del self._with_room[port]
            used += 1 + self.drain(port.waiting, ParkedAt.CONNECTION, entries_max - used)
            if port.waiting:
                (self._with_room if port.has_room else self._full)[port] = None
        for _ in range(len(self._ready)):
            if used >= entries_max:
                break
            used += 1 + self._go_on(self._ready.popleft(), RUN_SENDS_MAX)
        while used < entries_max:
            ready = self.gate.pop_ready(self._engine.now_ns)
            if ready is None:
                break
            used += 1 + self._go_on(cast(Producer, ready.owner), RUN_SENDS_MAX)
        return used

    def drain(self, ring: deque[Producer], place: ParkedAt, entries_max: int) -> int:
        """Stage what waits in one place, each producer in its turn, while it may go."""
        used = 0
        while ring and used < entries_max:
            producer = ring[0]
            topic = cast("Topic", producer.topic)
            refused = self.refused(topic, producer)
            used += 1
            if not producer.parked:
                continue  # a quota that refuses producers ended it just now
            if refused is place:
                break
            if refused is not None:
                self.enter(topic, producer, refused)
                continue
            self.stage_next(topic, producer)
            if ring and ring[0] is producer:
                ring.rotate(-1)
        return used

    def _go_on(self, producer: Producer, entries_max: int) -> int:
        """Stage what a producer has waiting, as far as it may go."""
        topic, used = producer.topic, 0
        if topic is not None and topic.parking is not None and producer.gate is not None:
            waited_for = producer.gate.cause(self._engine.now_ns)
            if waited_for is not None:
                cause = _cause(topic, waited_for)
                topic.parking.retell_gate_cause(cause, self._engine.now_ns)
        while topic is not None and producer.parked:
            if used >= entries_max:
                self._ready.append(producer)
                break
            refused = self.refused(topic, producer)
            if not producer.parked:
                break  # a quota that refuses producers ended it just now
            if refused is not None:
                self.enter(topic, producer, refused)
                break
            self.stage_next(topic, producer)
            used += 1
        return used

    def stage_next(self, topic: Topic, producer: Producer) -> None:
        """The oldest waiting SEND of a producer goes."""
        parking, parked = cast(Parking, topic.parking), cast("deque[ParkedSend]", producer.parked)
        now_ns, send = self._engine.now_ns, parked.popleft()
        size = len(send.body)
        parking.count(producer, -1, send)
        if not parked:
            parking.leave(producer, now_ns)
        charged = self._charge(producer, send.message_count, size)
        if not parked and producer.gate is not None:
            producer.gate.leave(now_ns)
        self._engine.parked.left(producer, 1, size)
        topic.stage_parked(producer, send, charged)

    # -- producers -------------------------------------------------------------------------

    def producer_left(self, producer: Producer) -> None:
        """It is gone: what it parked is forgotten, and its turns are."""
        self.discard(producer)
        if producer.gate is not None:
            producer.gate.close(self._engine.now_ns)
            producer.gate = None


def _cause(topic: Topic, refusal: Refusal) -> ParkCause:
    """Whose limit refuses: of the topic's own the tighter one."""
    if refusal.level is Level.BROKER:
        return ParkCause.BROKER_RATE
    if topic.adaptive_limit is None:
        return ParkCause.TOPIC_RATE
    is_adaptive = is_tighter(topic.adaptive_limit, topic.publish_limit, refusal.dimension)
    return ParkCause.ADAPTIVE if is_adaptive else ParkCause.TOPIC_RATE
