"""What Pulsar's figures call a throttled connection, and the one reason for which Headgate reads a
connection no further: too much of what was sent waits.

Pulsar pauses the connection for each of its :class:`ThrottleType`; Headgate has the one producer's
SENDs wait (law 3.1). Figures such as ``pulsar_publish_rate_limit_times`` keep their meaning (law
3.5): a connection counts as throttled while SENDs of any of its producers wait.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from headgate.base.park_cause import ParkCause

if TYPE_CHECKING:
    from headgate.broker.connection import Connection


class ThrottleType(Enum):
    """Pulsar's reasons to throttle a connection, by its names and in its order (PIP-322), and the
    one of adaptive publish throttling, which is last so that the others keep their ordinals.

    A reentrant one is counted: it holds until as many have let go of it as took it.
    """

    ConnectionMaxPendingPublishRequestsExceeded = (0, False)
    IOThreadMaxPendingPublishBytesExceeded = (1, False)
    TopicPublishRate = (2, True)
    ResourceGroupPublishRate = (3, True)
    BrokerPublishRate = (4, False)
    ConnectionOutboundBufferFull = (5, False)
    ConnectionPauseReceivingCooldownRateLimit = (6, False)
    AdaptivePublishRate = (7, True)

    @property
    def ordinal(self) -> int:
        """Its place in the enumeration."""
        return self.value[0]

    @property
    def is_reentrant(self) -> bool:
        """Whether it is counted."""
        return self.value[1]


THROTTLE_TYPES: Final[dict[ParkCause, ThrottleType | None]] = {
    ParkCause.TOPIC_RATE: ThrottleType.TopicPublishRate,
    ParkCause.BROKER_RATE: ThrottleType.BrokerPublishRate,
    ParkCause.ADAPTIVE: ThrottleType.AdaptivePublishRate,
    ParkCause.BACKLOG_QUOTA: None,
    ParkCause.PENDING_LIMIT: ThrottleType.ConnectionMaxPendingPublishRequestsExceeded,
    ParkCause.MEMORY: ThrottleType.IOThreadMaxPendingPublishBytesExceeded,
    ParkCause.DISK_FULL: None,
}
"""What Pulsar would call each cause. A quota does not throttle there: it disconnects. Nor does a
full disk: there the write fails."""


class ThrottleTracker:
    """What throttles one connection, by cause."""

    __slots__ = ("_connection", "_counts", "_is_buffer_full", "_is_over_bound", "_total")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._counts = [0] * len(ParkCause)
        self._total = 0
        self._is_buffer_full = False
        self._is_over_bound = False

    def is_by(self, cause: ParkCause) -> bool:
        """Whether that throttles it now."""
        return self._counts[cause] > 0

    @property
    def pauses_reading(self) -> bool:
        """Whether it must not be read, because too much of what was sent waits."""
        return self._is_over_bound or self._is_buffer_full

    # -- marks -----------------------------------------------------------------------------

    def mark(self, cause: ParkCause) -> None:
        """One producer more is held by that."""
        if THROTTLE_TYPES[cause] is None:
            return
        counts = self._connection.broker.counts
        self._counts[cause] += 1
        if cause is ParkCause.PENDING_LIMIT and self._counts[cause] == 1:
            counts.connections_throttled += 1
        self._total += 1
        if self._total == 1:
            counts.connections_paused += 1
            for topic in {topic for _, topic in self._connection.producers.values()}:
                topic.publish_throttled_count += 1

    def unmark(self, cause: ParkCause) -> None:
        """One of them is held by that no more."""
        if THROTTLE_TYPES[cause] is None:
            return
        counts = self._connection.broker.counts
        self._counts[cause] -= 1
        if cause is ParkCause.PENDING_LIMIT and not self._counts[cause]:
            counts.connections_unthrottled += 1
        self._total -= 1
        if not self._total:
            counts.connections_resumed += 1

    # -- reading ---------------------------------------------------------------------------

    def set_over_bound(self, is_over: bool) -> None:
        """What it parks passes a bound, or does no more."""
        before = (self._is_over_bound, self._is_buffer_full)
        self._is_over_bound = is_over
        self._turned(before)

    def set_buffer_full(self, is_full: bool) -> None:
        """More waits to be durable than may, or does no more."""
        before = (self._is_over_bound, self._is_buffer_full)
        self._is_buffer_full = is_full
        self._turned(before)

    def _turned(self, before: tuple[bool, bool]) -> None:
        if (self._is_over_bound, self._is_buffer_full) == before:
            return
        was_paused, is_paused = any(before), self.pauses_reading
        for producer, topic in self._connection.producers.values():
            if is_paused:
                topic.pause_reading(producer, for_parked=not self._is_buffer_full)
            else:
                topic.read_on(producer)
        if not is_paused:
            self.unmark(ParkCause.MEMORY)
        elif not was_paused:
            self.mark(ParkCause.MEMORY)
            self._connection.keep_alive.reassure()

    def stop(self) -> None:
        """The connection is over."""
        self.set_over_bound(False)
        self.set_buffer_full(False)
