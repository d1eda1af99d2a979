"""The SENDs of all topics that are parked because the disk is full.

The log reports that it is full, at the first entry that it refuses or after a commit without room;
what was in that commit is parked again, in front of what its producers sent later. When there is
room, tenants take turns, and the producers of each, of one SEND each. The bounds are those of a
backlog quota's hold (:mod:`headgate.engine.parked_bounds`): no connection is paused, because
acknowledgements make room. A connection whose producer was closed over these bounds gets no new
producer until there is room: its client would send everything again at once, forever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast
from weakref import WeakSet

from headgate.base.fair_queue import FairQueue
from headgate.base.units import NS_PER_S
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.errors import DiskFullError
from headgate.engine.parked_bounds import ENDED_IN_LOOK, NEXT_LOOK_NS
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.producer import Producer, ProducerPort
from headgate.engine.publishing import TopicPublishing

if TYPE_CHECKING:
    from headgate.engine.admission import AdmissionControl

LOOK_NS = NS_PER_S
"""Least time between two checks for overdue SENDs: producers are closed at most this late."""


class DiskHoldEngine(Protocol):
    """The engine, as far as this hold needs it."""

    now_ns: int
    limits: EngineLimits
    admission: AdmissionControl

    def work_pending(self) -> None:
        """Ask for a flush before the loop rests."""

    def wake_at(self, when_ns: int, action: Callable[[], None], /) -> None:
        """Run ``action`` in the first flush at or after ``when_ns``."""


class DiskFullHold:
    """The producers of one broker that wait for room on the disk."""

    def __init__(self, engine: DiskHoldEngine) -> None:
        self._engine = engine
        self.is_full = False
        """Whether every SEND to a user's topic is parked. Only :meth:`disk_changed` changes it."""
        self._waiting: dict[Producer, None] = {}
        """Waiting producers; some may have left."""
        self._turns: FairQueue[Producer] = FairQueue()
        """The same ones. Tenants take turns: clients may send more meanwhile, for ever."""
        self._over: WeakSet[ProducerPort] = WeakSet()
        """Connections that have parked more than they may since the disk became full."""
        self._timer_ns = 0
        """When overdue SENDs are looked for; 0 for never."""

    def disk_changed(self, *, full: bool) -> None:
        """The log takes no more entries from now on, or takes entries again."""
        if full is self.is_full:
            return
        self.is_full = full
        if not full:
            self._over.clear()
            self._engine.work_pending()

    # -- who waits -------------------------------------------------------------------------

    def no_room(self, publishing: TopicPublishing, producer: Producer, send: ParkedSend) -> None:
        """Park a SEND that the log refused: the oldest one of its producer that is not staged."""
        self.disk_changed(full=True)
        self._park(publishing, producer, send)

    def park_unstaged(
        self, publishing: TopicPublishing, unstaged: Sequence[tuple[Producer, ParkedSend]]
    ) -> None:
        """Park SENDs of a topic that were staged and not stored, oldest first."""
        self.disk_changed(full=True)
        for producer, _ in unstaged:
            producer.port.send_unstaged()
        for producer, send in reversed(unstaged):
            self._park(publishing, producer, send)

    def _park(self, publishing: TopicPublishing, producer: Producer, send: ParkedSend) -> None:
        if not producer.ending and not producer.closed:
            self._engine.admission.enter(publishing, producer, ParkedAt.DISK)
            self._engine.admission.park(publishing, producer, send, first=True)

    def entered(self, producer: Producer) -> None:
        """A producer waits for the disk from now on."""
        self._line_up(producer)
        self._arm(self._engine.now_ns + self._engine.limits.hold_park_ns)

    def _line_up(self, producer: Producer) -> None:
        if producer not in self._waiting:
            publishing = cast(TopicPublishing, producer.publishing)
            self._waiting[producer] = None
            self._turns.add(publishing.topic.name.tenant, producer)

    def over_bound(self, port: ProducerPort) -> None:
        """A producer is closed because its connection parked too much here."""
        self._over.add(port)

    def check_newcomer(self, port: ProducerPort) -> None:
        """Refuse a producer whose client would send again at once what had no room.

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
    def is_busy(self) -> bool:
        """Whether :meth:`work` has more to do at once."""
        return bool(self._waiting) and not self.is_full

    def work(self, entries_max: int) -> int:
        """Stage what is parked here while there is room, each producer in its turn.

        Stages about ``entries_max`` entries and returns about how many.
        """
        used, admission = 0, self._engine.admission
        while self.is_busy and used < entries_max:
            producer = self._turns.take()
            del self._waiting[producer]
            used += 1
            if producer.parked_at is not ParkedAt.DISK:
                continue
            publishing = cast(TopicPublishing, producer.publishing)
            blocked = admission.blocked_at(publishing, producer)
            if not producer.parked:
                continue  # a quota that refuses producers has just ended it
            if blocked is None:
                admission.stage_next(publishing, producer)
            elif blocked is not ParkedAt.DISK:
                admission.enter(publishing, producer, blocked)
            if producer.parked_at is ParkedAt.DISK:
                self._line_up(producer)
        return used

    # -- time ------------------------------------------------------------------------------

    def recheck_hold_timeouts(self) -> None:
        """Close the producers whose oldest SEND was parked for as long as it may be, a few at
        once."""
        self._timer_ns = ended_count = 0
        now_ns, hold_ns = self._engine.now_ns, self._engine.limits.hold_park_ns
        oldest_ns = None
        self._forget_those_that_left()
        for producer in list(self._waiting):
            since_ns = held_since_ns(producer)
            if since_ns is None:
                continue  # it left because another one was closed
            if since_ns + hold_ns <= now_ns:
                if ended_count == ENDED_IN_LOOK:
                    self._wake_at(now_ns + NEXT_LOOK_NS)
                    return
                if self.is_full:  # else its turn comes
                    cast(TopicPublishing, producer.publishing).end_producer(producer)
                    ended_count += 1
            else:
                oldest_ns = since_ns if oldest_ns is None else min(oldest_ns, since_ns)
        if oldest_ns is not None:
            self._arm(oldest_ns + hold_ns)

    def _forget_those_that_left(self) -> None:
        waiting = self._waiting
        left = [producer for producer in waiting if held_since_ns(producer) is None]
        if left:
            for producer in left:
                del waiting[producer]
            self._turns.drop(lambda producer: producer not in waiting)

    def _arm(self, due_ns: int) -> None:
        if not 0 < self._timer_ns <= due_ns + LOOK_NS:
            self._wake_at(max(due_ns, self._engine.now_ns + LOOK_NS))

    def _wake_at(self, when_ns: int) -> None:
        self._timer_ns = when_ns
        self._engine.wake_at(when_ns, self._look)

    def _look(self) -> None:
        if self._timer_ns and self._timer_ns <= self._engine.now_ns:
            self.recheck_hold_timeouts()


def held_since_ns(producer: Producer) -> int | None:
    """Since when the oldest SEND of a producer has waited for the disk; None if none does."""
    if not producer.parked or producer.parked_at is not ParkedAt.DISK:
        return None
    return max(producer.parked[0].arrived_ns, producer.parked_at_since_ns)
