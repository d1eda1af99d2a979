"""How backlog quotas stopped the producers of one topic: figures, and the end of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from headgate.base.work_units import PRODUCER_ENDED
from headgate.engine.producer import Producer
from headgate.flow.quota.backlog_quota import QuotaType

ENDED_IN_STEP: Final = 16
"""Producers that one step ends. A topic may have tens of thousands."""


class EndingPublishing(Protocol):
    """The publish side of a topic, as far as the end of its producers needs it."""

    def end_producer(self, producer: Producer, /) -> None:
        """Close a producer as soon as its staged entries are answered."""


class EndingTopic(Protocol):
    """A topic, as far as the end of its producers needs it."""

    @property
    def producers(self) -> Mapping[str, Producer]:
        """The connected producers by name."""

    @property
    def publishing(self) -> EndingPublishing:
        """The publish side."""


class ProducerStops:
    """What quotas did to the producers of one topic since it was loaded."""

    __slots__ = ("_ended_ns", "_left", "_since_ns", "_spent_ns", "closed_count", "refused_count")

    def __init__(self) -> None:
        self._since_ns: list[int | None] = [None, None]
        self._ended_ns: list[int | None] = [None, None]
        self._spent_ns = [0, 0]
        self._left: Iterator[Producer] | None = None
        self.closed_count = 0
        """Producers closed: refused by policy, parked for too long, or with too much parked."""
        self.refused_count = 0
        """Times that a producer was not created."""

    def quota_state_changed(self, kind: QuotaType, now_ns: int, *, exceeded: bool) -> None:
        """A quota stops producers from now on, or no longer does."""
        self._left = None  # the next evaluation knows whether the producers still end
        since_ns = self._since_ns[kind]
        if since_ns is not None:
            self._spent_ns[kind] += now_ns - since_ns
            self._ended_ns[kind] = now_ns
        self._since_ns[kind] = now_ns if exceeded else None

    def ended_ns(self, kind: QuotaType) -> int | None:
        """When a quota last released the producers; None if it never did or still stops them."""
        return self._ended_ns[kind]

    def stopped_ns(self, kind: QuotaType, now_ns: int) -> int:
        """Time in which a quota stopped producers, until now."""
        since_ns = self._since_ns[kind]
        return self._spent_ns[kind] + (0 if since_ns is None else now_ns - since_ns)

    @property
    def is_ending(self) -> bool:
        """Whether :meth:`end_step` has not come to all producers yet."""
        return self._left is not None

    def end_all(self, topic: EndingTopic) -> bool:
        """End the first of the producers that a topic has now; :meth:`end_step` goes on. False if
        that goes on already, or if there are none."""
        if self._left is not None:
            return False
        self._left = iter(list(topic.producers.values()))
        return self.end_step(topic) > 0

    def end_step(self, topic: EndingTopic) -> int:
        """End up to :data:`ENDED_IN_STEP` of those that are left. Returns the units of work."""
        ended_count = 0
        for producer in self._left or ():
            if not (producer.ending or producer.closed):
                topic.publishing.end_producer(producer)
                ended_count += 1
                if ended_count == ENDED_IN_STEP:
                    break
        else:
            self._left = None
        return ended_count * PRODUCER_ENDED
