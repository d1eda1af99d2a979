"""What waits because the disk is full: the SENDs of all topics, until the log takes entries again.

The log itself says that it is full, at the first entry that it refuses or after a commit for which
there was no room; what was in that commit waits again, before all that its producers sent later.
When there is room, producers take turns, one SEND each. The bounds are those of a backlog quota's
hold (:mod:`headgate.engine.parked_bounds`): nothing is paused, because acknowledgements are what
makes room. A connection one of whose producers passed them gets no new producer until there is
room, else its client would send all of it again at once, for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast
from weakref import WeakSet

from headgate.base.units import NS_PER_S
from headgate.engine.errors import DiskFullError
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.ports import ProducerPort
from headgate.engine.producer import Producer

if TYPE_CHECKING:
    from headgate.engine.engine import Engine
    from headgate.engine.topic import Topic

LOOK_NS = NS_PER_S
"""Between two looks at who has waited too long: so much late producers are closed at most."""


class DiskFullHold:
    """The producers of one broker that wait for room on the disk."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.is_full = False
        """Whether everything that is sent to users' topics waits. Read only for others."""
        self._waiting: dict[Producer, None] = {}
        """In the order of their turns; some may have left."""
        self._over: WeakSet[ProducerPort] = WeakSet()
        """Connections that parked more than they may since the disk is full."""
        self._timer_ns = 0
        """When it is looked who has waited too long; 0 for never."""

    def turned(self, *, full: bool) -> None:
        """The log takes no more entries from now on, or takes them again."""
        if full is self.is_full:
            return
        self.is_full = full
        if not full:
            self._over.clear()
            self._engine.effects.work_pending()

    # -- who waits -------------------------------------------------------------------------

    def no_room(self, topic: Topic, producer: Producer, send: ParkedSend) -> None:
        """The log refused a SEND, the oldest of its producer that is not staged."""
        self.turned(full=True)
        self._park(topic, producer, send)

    def take_back(self, topic: Topic, taken: Sequence[tuple[Producer, ParkedSend]]) -> None:
        """What was staged in ``topic`` was not stored; oldest first."""
        self.turned(full=True)
        for producer, _ in taken:
            producer.port.send_unstaged()
        for producer, send in reversed(taken):
            self._park(topic, producer, send)

    def _park(self, topic: Topic, producer: Producer, send: ParkedSend) -> None:
        if not producer.ending and not producer.closed:
            self._engine.admission.enter(topic, producer, ParkedAt.DISK)
            self._engine.admission.park(topic, producer, send, first=True)

    def entered(self, producer: Producer) -> None:
        """A producer waits here from now on."""
        self._waiting[producer] = None
        self._arm(self._engine.now_ns + self._engine.limits.hold_park_ns)

    def over_bound(self, port: ProducerPort) -> None:
        """A producer of a connection is closed because too much of it waits here."""
        self._over.add(port)

    def check_newcomer(self, port: ProducerPort) -> None:
        """Refuse a producer that would send again at once what had no room here.

        Raises:
            DiskFullError: its connection has parked too much for the full disk.
        """
        if port in self._over:
            raise DiskFullError(
                "Cannot create producer: the disk is full, and this connection has sent more than "
                "waits for room (headgateMaxParkedBytesPerConnection, "
                "maxMessagePublishBufferSizeInMB)"
            )

    # -- going on --------------------------------------------------------------------------

    @property
    def may_go(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._waiting) and not self.is_full

    def work(self, entries_max: int) -> int:
        """Stage what waits here while there is room, each producer in its turn, about
        ``entries_max`` of it; return how much that was."""
        used, admission = 0, self._engine.admission
        while self.may_go and used < entries_max:
            producer = next(iter(self._waiting))
            del self._waiting[producer]
            used += 1
            if producer.parked_at is not ParkedAt.DISK:
                continue
            topic = cast("Topic", producer.topic)
            refused = admission.refused(topic, producer)
            if not producer.parked:
                continue  # a quota that refuses producers ended it just now
            if refused is None:
                admission.stage_next(topic, producer)
            elif refused is not ParkedAt.DISK:
                admission.enter(topic, producer, refused)
            if producer.parked_at is ParkedAt.DISK:
                self._waiting[producer] = None
        return used

    # -- time ------------------------------------------------------------------------------

    def holds_due(self) -> None:
        """Close the producers whose oldest SEND has waited as long as it may."""
        self._timer_ns = 0
        now_ns, hold_ns = self._engine.now_ns, self._engine.limits.hold_park_ns
        oldest_ns = None
        for producer in list(self._waiting):
            since_ns = held_since_ns(producer)
            if since_ns is None:
                self._waiting.pop(producer, None)
            elif since_ns + hold_ns <= now_ns:
                if self.is_full:  # else its turn comes
                    cast("Topic", producer.topic).end_producer(producer)
            else:
                oldest_ns = since_ns if oldest_ns is None else min(oldest_ns, since_ns)
        if oldest_ns is not None:
            self._arm(oldest_ns + hold_ns)

    def _arm(self, due_ns: int) -> None:
        if not 0 < self._timer_ns <= due_ns + LOOK_NS:
            self._timer_ns = max(due_ns, self._engine.now_ns + LOOK_NS)
            self._engine.wake_at(self._timer_ns, self._look)

    def _look(self) -> None:
        if self._timer_ns and self._timer_ns <= self._engine.now_ns:
            self.holds_due()


def held_since_ns(producer: Producer) -> int | None:
    """Since when the oldest SEND of a producer waits for room on the disk; None if none does."""
    if not producer.parked or producer.parked_at is not ParkedAt.DISK:
        return None
    return max(producer.parked[0].arrived_ns, producer.parked_at_since_ns)
