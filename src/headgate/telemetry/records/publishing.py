"""The publishing side of one topic in the telemetry: its limit, held producers, waiting
messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headgate.base.drained import drained
from headgate.base.park_cause import ParkCause
from headgate.base.sliced import Sliced, at_once
from headgate.base.units import NS_PER_S
from headgate.engine.producer import Producer
from headgate.engine.topic import Topic
from headgate.flow.limits.rate_limit import Dimension
from headgate.record.codec import Value
from headgate.record.fields import PARKED_FIELD_NAMES
from headgate.telemetry.records.limit_track import LimitTrack

PUBLISH_COLUMNS: Final = (
    "publish_limit_messages_per_s", "publish_limit_bytes_per_s", "publish_limit_source",
    "natural_rate_messages_per_s", "natural_rate_bytes_per_s",
)  # fmt: skip

PARKED_COLUMNS: Final = PARKED_FIELD_NAMES
"""For each cause nanoseconds, messages and bytes; for ``memory`` only nanoseconds."""

_CAUSES: Final = tuple(ParkCause)
_NOTHING: Final = (0,) * len(PARKED_COLUMNS)

LIMIT_CAUSES: Final = (ParkCause.TOPIC_RATE, ParkCause.BROKER_RATE, ParkCause.ADAPTIVE)
"""The causes that are publish limits."""


PRODUCERS_PER_YIELD: Final = 32
"""Producers that are looked at between two yields: about 30 us."""

_NOBODY: Final[Mapping[Producer, tuple[int, int]]] = {}


class HoldChange(NamedTuple):
    """Publish limits began or ceased to hold a topic's producers."""

    began: bool
    cause: ParkCause
    """The cause that held most of the window; for an end, the cause of its begin."""


class PublishTrack:
    """One live topic."""

    __slots__ = ("_before", "_granted", "_held_ns", "_holding", "_topic", "limit")

    def __init__(self, topic: Topic, since_ns: int) -> None:
        self._topic = topic
        self.limit = LimitTrack(since_ns)
        """The limit that is set; ``values`` has the one in force."""
        self._before: dict[Producer, tuple[int, int]] | None = None
        """Published by each producer when the window began; None while no limit is in use."""
        self._granted = _NOBODY
        self._held_ns = (0,) * len(LIMIT_CAUSES)
        self._holding: ParkCause | None = None

    def values(self) -> tuple[Value, ...]:
        """In the order of :data:`PUBLISH_COLUMNS`."""
        limit = self.limit.values
        period_s = (limit.period_ns or NS_PER_S) / NS_PER_S
        control = self._topic.publishing.control
        natural = None if control is None or not control.natural.is_known else control.natural
        return (
            None if limit.messages is None else limit.messages / period_s,
            None if limit.bytes is None else limit.bytes / period_s,
            limit.source,
            None if natural is None else natural.messages,
            None if natural is None else natural.bytes,
        )

    # -- what was granted ------------------------------------------------------------------

    def begin(self) -> None:
        """Count what the limits grant from now on."""
        if self._before is None:
            self._before = self._published()

    def end_window(self) -> None:
        """Count what each producer was granted in the window that ends now."""
        at_once(self.end_window_in_steps())

    def end_window_in_steps(self) -> Sliced[None]:
        """:meth:`end_window`, which yields while it looks at the producers."""
        if not self._topic.publishing.is_limited:
            self._before = None
            self._granted = _NOBODY
            return
        before = self._before
        now: dict[Producer, tuple[int, int]] = {}
        granted: dict[Producer, tuple[int, int]] = {}
        for number, producer in enumerate(drained([*self._topic.producers.values()]), 1):
            published = producer.messages_published, producer.bytes_published
            of = published if before is None else before.get(producer, (0, 0))
            now[producer] = published
            granted[producer] = (published[0] - of[0], published[1] - of[1])
            if number % PRODUCERS_PER_YIELD == 0:
                yield
        self._before = now
        self._granted = granted

    def granted(self, producer: Producer, dimension: Dimension) -> int:
        """Messages or bytes that one producer was granted in the last window."""
        return self._granted.get(producer, (0, 0))[dimension]

    def _published(self) -> dict[Producer, tuple[int, int]]:
        return {
            producer: (producer.messages_published, producer.bytes_published)
            for producer in self._topic.producers.values()
        }

    # -- who waits -------------------------------------------------------------------------

    def waiting(self, dimension: Dimension) -> int:
        """Messages or bytes that wait at the publish limits now."""
        parking = self._topic.publishing.parking
        if parking is None:
            return 0
        return sum(parking.waiting(cause)[1 + dimension] for cause in LIMIT_CAUSES)

    def hold_change(self) -> HoldChange | None:
        """Whether limits began or ceased to hold producers in the window that ends now."""
        parking, now_ns = self._topic.publishing.parking, self._topic.now_ns
        if parking is None:
            return None
        parking.fix_causes(now_ns)
        before, self._held_ns = (
            self._held_ns,
            tuple(parking.parked_ns(cause, now_ns) for cause in LIMIT_CAUSES),
        )
        held_ns = [b - a for a, b in zip(before, self._held_ns, strict=True)]
        longest_ns = max(held_ns)
        if longest_ns and self._holding is None:
            self._holding = LIMIT_CAUSES[held_ns.index(longest_ns)]
            return HoldChange(True, self._holding)
        if not longest_ns and self._holding is not None:
            cause, self._holding = self._holding, None
            return HoldChange(False, cause)
        return None


def parked_values(topic: Topic) -> tuple[int, ...]:
    """In the order of :data:`PARKED_COLUMNS`."""
    parking = topic.publishing.parking
    if parking is None:
        return _NOTHING
    now_ns = topic.now_ns
    parking.fix_causes(now_ns)
    values: list[int] = []
    for cause, parked_ns in zip(_CAUSES, parking.all_parked_ns(now_ns), strict=True):
        values.append(parked_ns)
        if cause is not ParkCause.MEMORY:
            waiting = parking.waiting(cause)
            values += (waiting.messages, waiting.bytes)
    return tuple(values)
