"""Tracks for which reasons a connection is throttled, in Pulsar's terms.

For each :class:`ThrottleType` Pulsar pauses the connection; Headgate parks the SENDs of the one
producer (law 3.1). Metrics such as ``pulsar_publish_rate_limit_times`` keep their meaning (law
3.5): a connection counts as throttled while SENDs of any of its producers wait. Of the reasons to
throttle, only two also stop reading: parked SENDs beyond their bound, and a full publish buffer.
The connection pauses reading for other bounds as well (:mod:`headgate.broker.connection.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.broker.info import BrokerCounts
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic


class ThrottleType(Enum):
    """Pulsar's reasons to throttle a connection, with its names and in its order (PIP-322).
    Adaptive publish throttling is added at the end, so that the others keep their ordinals.

    Pulsar counts the marks of a reentrant reason only; :class:`ThrottleTracker` counts those of
    every reason, which then applies until each mark has been removed.
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
        """Whether Pulsar counts its marks."""
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
"""Pulsar's type for each cause. Pulsar does not throttle for a quota, it disconnects; on a full
disk its writes fail."""


class ThrottleTracker:
    """The causes for which one connection is throttled."""

    __slots__ = (
        "_broker_counts",
        "_causes",
        "_is_buffer_full",
        "_is_memory_full",
        "_is_over_bound",
        "_producers",
        "_send_pongs_while",
        "_total",
    )

    def __init__(
        self,
        producers: Mapping[int, tuple[Producer, Topic]],
        broker_counts: BrokerCounts,
        send_pongs_while: Callable[[Callable[[], bool]], None],
    ) -> None:
        """``producers`` are those of the connection. ``send_pongs_while`` sends PONGs to the peer
        while the given function returns True: the broker does not read it."""
        self._producers = producers
        self._broker_counts = broker_counts
        self._send_pongs_while = send_pongs_while
        self._causes = [0] * len(ParkCause)
        self._total = 0
        self._is_buffer_full = False
        self._is_memory_full = False
        self._is_over_bound = False

    def is_by(self, cause: ParkCause) -> bool:
        """Whether the connection is throttled for that cause now."""
        return self._causes[cause] > 0

    @property
    def pauses_commands(self) -> bool:
        """Whether the commands that were received must wait, too."""
        return self._is_over_bound or self._is_buffer_full

    @property
    def is_memory_full(self) -> bool:
        """Whether all clients together hold too much, and this one much of it."""
        return self._is_memory_full

    @property
    def pauses_reading(self) -> bool:
        """Whether the broker must not read the connection, because its parked SENDs exceed their
        bound, the publish buffer is full, or all clients together hold too much."""
        return self._is_over_bound or self._is_buffer_full or self._is_memory_full

    # -- causes ----------------------------------------------------------------------------

    def mark(self, cause: ParkCause) -> None:
        """SENDs of one more producer wait for that cause."""
        if THROTTLE_TYPES[cause] is None:
            return
        counts = self._broker_counts
        self._causes[cause] += 1
        if cause is ParkCause.PENDING_LIMIT and self._causes[cause] == 1:
            counts.pending_limits_reached += 1
        self._total += 1
        if self._total == 1:
            counts.throttles_begun += 1
            for topic in {topic for _, topic in self._producers.values()}:
                topic.publishing.throttled_count += 1

    def unmark(self, cause: ParkCause) -> None:
        """SENDs of one producer less wait for that cause."""
        if THROTTLE_TYPES[cause] is None:
            return
        counts = self._broker_counts
        self._causes[cause] -= 1
        if cause is ParkCause.PENDING_LIMIT and not self._causes[cause]:
            counts.pending_limits_left += 1
        self._total -= 1
        if not self._total:
            counts.throttles_ended += 1

    # -- reading ---------------------------------------------------------------------------

    def set_over_bound(self, is_over: bool) -> None:
        """The SENDs that wait on this connection exceed a bound, or no longer do."""
        before = self._reasons
        self._is_over_bound = is_over
        self._update_reading(before)

    def set_buffer_full(self, is_full: bool) -> None:
        """Bytes staged in the whole broker exceed their bound, or no longer do."""
        before = self._reasons
        self._is_buffer_full = is_full
        self._update_reading(before)

    def set_memory_full(self, is_full: bool) -> None:
        """The connection holds much, and all connections together too much; or no longer so."""
        before = self._reasons
        self._is_memory_full = is_full
        self._update_reading(before)

    @property
    def _reasons(self) -> tuple[bool, bool, bool]:
        return self._is_over_bound, self._is_buffer_full, self._is_memory_full

    def _update_reading(self, before: tuple[bool, bool, bool]) -> None:
        if self._reasons == before:
            return
        for_parked = self._reasons == (True, False, False)
        was_paused, is_paused = any(before), self.pauses_reading
        for producer, topic in self._producers.values():
            if is_paused:
                topic.publishing.pause_reading(producer, for_parked=for_parked)
            else:
                topic.publishing.resume_reading(producer)
        if not is_paused:
            self.unmark(ParkCause.MEMORY)
        elif not was_paused:
            self.mark(ParkCause.MEMORY)
            self._send_pongs_while(lambda: self.pauses_reading)

    def stop(self) -> None:
        """Remove the reasons that stop reading, because the connection has ended. The engine
        unmarks the others when it removes the producers."""
        self.set_over_bound(False)
        self.set_buffer_full(False)
        self.set_memory_full(False)
