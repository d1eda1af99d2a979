"""The parked SENDs of one topic: how much is parked, for which cause and how long (laws 3.1, 4.3).

A parked SEND is in its producer's own queue. A producer with parked SENDs waits in one place
(:class:`headgate.engine.parked_send.ParkedAt`). All producers of a topic that wait at the gate wait
for the same limits, so they share one cause.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from headgate.base.park_cause import ParkCause
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.producer import Producer, ProducerTurns


class ParkedCounts(NamedTuple):
    """What is parked now for one cause."""

    producers: int
    messages: int
    bytes: int


NOTHING_PARKED: Final = ParkedCounts(0, 0, 0)


class Parking:
    """What one topic parks. Created with its first parked SEND."""

    __slots__ = (
        "_by_place",
        "_causes",
        "_causes_since_take",
        "_gate_cause",
        "_gate_since_ns",
        "_is_quota_exceeded",
        "_paused_count",
        "_since_ns",
        "_spent_ns",
        "hold_timer_ns",
        "quota_queue",
    )

    def __init__(self) -> None:
        self._by_place = [[0, 0, 0] for _ in ParkedAt]
        """Producers, messages and bytes at each :class:`ParkedAt`."""
        self._causes: set[ParkCause] = set()
        """The causes that something waits for now."""
        self._causes_since_take: set[ParkCause] = set()
        self._since_ns = [0] * len(ParkCause)
        self._spent_ns = [0] * len(ParkCause)
        self._gate_cause = ParkCause.TOPIC_RATE
        self._gate_since_ns = 0
        self._is_quota_exceeded = False
        self._paused_count = 0
        """Producers that wait for memory."""
        self.quota_queue = ProducerTurns()
        """Producers that wait for room in the quota, in the order of their turns."""
        self.hold_timer_ns = 0
        """When to check next for SENDs that wait too long for the quota; 0 for never."""

    def __bool__(self) -> bool:
        at_quota, at_gate, at_connection, at_disk = self._by_place
        return bool(at_quota[0] or at_gate[0] or at_connection[0] or at_disk[0])

    @property
    def messages(self) -> int:
        """Messages that are parked now."""
        return sum(place[1] for place in self._by_place)

    @property
    def bytes(self) -> int:
        """Bytes that are parked now."""
        return sum(place[2] for place in self._by_place)

    def waiting(self, cause: ParkCause) -> ParkedCounts:
        """What is parked now for one cause.

        For ``memory`` it counts only producers: those whose connections are not read because of
        what others parked.
        """
        if cause is ParkCause.MEMORY:
            return ParkedCounts(self._paused_count, 0, 0)
        if not self:
            return NOTHING_PARKED
        places = [p for p in ParkedAt if self._cause_of(p) is cause]
        return ParkedCounts(*(sum(self._by_place[p][i] for p in places) for i in range(3)))

    def parked_ns(self, cause: ParkCause, now_ns: int) -> int:
        """Time in which at least one SEND waited for one cause, until now.

        A later :meth:`correct_gate_cause` may move time to another cause. Call :meth:`fix_causes`
        before you publish this figure, so that it never falls.
        """
        running_ns = now_ns - self._since_ns[cause] if cause in self._causes else 0
        return self._spent_ns[cause] + running_ns

    def all_parked_ns(self, now_ns: int) -> tuple[int, ...]:
        """:meth:`parked_ns` of each :class:`ParkCause`."""
        if not self._causes:  # the usual case: each topic is asked every second
            return tuple(self._spent_ns)
        return tuple(self.parked_ns(cause, now_ns) for cause in ParkCause)

    def fix_causes(self, now_ns: int) -> None:
        """Keep the causes of all time until now: :meth:`correct_gate_cause` corrects only later
        time."""
        self._gate_since_ns = now_ns

    def causes(self, now_ns: int) -> list[ParkCause]:
        """The causes that anything waits for or ever waited for."""
        return [c for c in ParkCause if c in self._causes or self.parked_ns(c, now_ns)]

    def since_ns(self, cause: ParkCause) -> int | None:
        """Since when something has waited for a cause without a break; None if nothing does."""
        return self._since_ns[cause] if cause in self._causes else None

    # -- who waits -------------------------------------------------------------------------

    def enter(self, producer: Producer, place: ParkedAt, now_ns: int) -> None:
        """A producer's parked SENDs wait at ``place`` from now on."""
        self._count_paused(producer, -1)
        if producer.parked_at is not None:
            self._take_out(producer)
        producer.parked_at = place
        self._count_paused(producer, 1)
        producer.parked_at_since_ns = now_ns
        figures = self._by_place[place]
        figures[0] += 1
        figures[1] += producer.parked_messages
        figures[2] += producer.parked_bytes
        queue = self._queue(producer, place)
        if queue is not None:
            queue.append(producer)
        self._update_causes(now_ns)
        producer.throttled_by = self._cause_of(place)
        producer.port.throttled(producer.throttled_by)

    def leave(self, producer: Producer, now_ns: int) -> None:
        """A producer has no parked SENDs any more."""
        if producer.parked_at is not None:
            self._count_paused(producer, -1)
            self._take_out(producer)
            producer.parked_at = None
            self._count_paused(producer, 1)
            self._update_causes(now_ns)

    def count(self, producer: Producer, sign: int, send: ParkedSend) -> None:
        """One more (1) or one less (-1) SEND is parked."""
        messages, size = sign * send.message_count, sign * len(send.body)
        producer.parked_messages += messages
        producer.parked_bytes += size
        if producer.parked_at is not None:
            figures = self._by_place[producer.parked_at]
            figures[1] += messages
            figures[2] += size

    def _take_out(self, producer: Producer) -> None:
        place = cast(ParkedAt, producer.parked_at)
        figures = self._by_place[place]
        figures[0] -= 1
        figures[1] -= producer.parked_messages
        figures[2] -= producer.parked_bytes
        queue = self._queue(producer, place)
        if queue is not None:
            queue.remove(producer)
        producer.port.unthrottled(producer.throttled_by)

    def _queue(self, producer: Producer, place: ParkedAt) -> ProducerTurns | None:
        """The queue of producers at ``place``; None for gate and disk, which keep their own
        queues."""
        if place is ParkedAt.GATE or place is ParkedAt.DISK:
            return None
        return self.quota_queue if place is ParkedAt.QUOTA else producer.port.waiting

    # -- causes ----------------------------------------------------------------------------

    def set_gate_cause(self, cause: ParkCause, now_ns: int) -> None:
        """Producers at the gate wait for this limit from now on: the one that releases last."""
        self._gate_since_ns = now_ns
        if cause is not self._gate_cause:
            self._gate_cause = cause
            self._update_causes(now_ns)

    def correct_gate_cause(self, cause: ParkCause, now_ns: int) -> None:
        """Producers at the gate waited for this limit since the cause was last set: only now is it
        known which limit released last."""
        recorded = self._cause_of(ParkedAt.GATE)
        if (
            recorded is not cause
            and recorded is self._gate_cause
            and self._by_place[ParkedAt.GATE][0]
        ):
            since_ns = max(self._gate_since_ns, self._since_ns[recorded])
            self.set_gate_cause(cause, now_ns)
            if recorded not in self._causes:  # else something else still waits for it
                self._spent_ns[recorded] -= now_ns - since_ns
                self._spent_ns[cause] += now_ns - since_ns

    def set_quota_exceeded(self, is_exceeded: bool, now_ns: int) -> None:
        """A quota stops producers from now on, or no longer does. While it does, it may release
        last, so producers at the gate wait for it, too."""
        if is_exceeded is not self._is_quota_exceeded:
            self._is_quota_exceeded = is_exceeded
            self._update_causes(now_ns)

    def pause(self, producer: Producer, for_parked: bool, now_ns: int) -> None:
        """The connection of a producer is not read because too much is parked.

        ``for_parked``: the connection itself parked too much. Its producers with parked SENDs then
        wait for what parked them, and not for memory (law 3.5).
        """
        self._count_paused(producer, -1)
        producer.is_paused, producer.is_paused_for_parked = True, for_parked
        self._count_paused(producer, 1)
        self._update_causes(now_ns)

    def resume(self, producer: Producer, now_ns: int) -> None:
        """The connection is read again, or the producer is gone."""
        if producer.is_paused:
            self._count_paused(producer, -1)
            producer.is_paused = producer.is_paused_for_parked = False
            self._update_causes(now_ns)

    def _count_paused(self, producer: Producer, step: int) -> None:
        """Count a producer (1) or stop counting it (-1), if it waits for memory."""
        has_own = producer.is_paused_for_parked and producer.parked_at is not None
        if producer.is_paused and not has_own:
            self._paused_count += step

    def take_causes(self) -> set[ParkCause]:
        """The causes that anything waited for since the last call."""
        seen, self._causes_since_take = self._causes_since_take, set(self._causes)
        return seen

    def cause_of(self, producer: Producer) -> ParkCause | None:
        """The cause that a producer waits for now; None if it does not wait."""
        return None if producer.parked_at is None else self._cause_of(producer.parked_at)

    def _cause_of(self, place: ParkedAt) -> ParkCause:
        if place is ParkedAt.CONNECTION:
            return ParkCause.PENDING_LIMIT
        if place is ParkedAt.DISK:
            return ParkCause.DISK_FULL
        if place is ParkedAt.QUOTA or self._is_quota_exceeded:
            return ParkCause.BACKLOG_QUOTA
        return self._gate_cause

    def _update_causes(self, now_ns: int) -> None:
        causes = {self._cause_of(place) for place in ParkedAt if self._by_place[place][0]}
        if self._paused_count:
            causes.add(ParkCause.MEMORY)
        before = self._causes
        if causes == before:
            return
        self._causes_since_take |= causes
        for cause in before - causes:
            self._spent_ns[cause] += now_ns - self._since_ns[cause]
        for cause in causes - before:
            self._since_ns[cause] = now_ns
        self._causes = causes
