"""Which topics' retained messages grow most, found with bounded memory.

A topic's retained bytes grow in a window by what it received in the window and still retains,
less what it had before and lost. So the first figure bounds its growth from above, and it follows
from the topic alone. Each round measures it for all topics and keeps samples of the
:data:`TOPICS_MAX` topics with the largest; for these the growth is the difference of two samples.
A topic that grows is missed only while that many topics received and retained more than it did.
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

from headgate.base.units import NS_PER_S
from headgate.flow.disk_forecast import SHORT_NS

TOPICS_MAX: Final = 256
"""Topics of which samples are kept."""
SPAN_NS_MIN: Final = 30 * NS_PER_S
"""The shortest time from which a growth is known."""


class TopicGrowth(NamedTuple):
    """By how much one topic's retained messages grow."""

    topic: str
    """Its full name."""
    number: int
    """Its number, which no other topic ever has."""
    bytes_per_s: float
    span_s: float
    """The time over which that is the mean."""


class _Track:
    """The samples of one topic in the window, oldest first."""

    __slots__ = ("samples", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.samples: list[tuple[int, int]] = []

    def add(self, now_ns: int, retained_bytes: int) -> None:
        self.samples.append((now_ns, retained_bytes))
        # The newest sample at or before the beginning of the window stays: growth counts from it.
        while len(self.samples) > 2 and self.samples[1][0] <= now_ns - SHORT_NS:
            del self.samples[0]


class TopicGrowths:
    """The topics of one broker that grow most, from rounds over all topics."""

    def __init__(self) -> None:
        self._tracks: dict[int, _Track] = {}
        self._round: list[tuple[int, int, int, int, str]] = []
        """A heap of the present round, the least received bytes first."""

    def begin_round(self) -> None:
        """Begin a round; what an unfinished one found is dropped."""
        self._round.clear()

    def add(
        self, topic: str, number: int, received_bytes: int, retained_bytes: int, now_ns: int
    ) -> None:
        """Add a topic to the round: what it received within the window and still retains, and all
        that it retains."""
        if received_bytes <= 0:
            return
        item = (received_bytes, number, retained_bytes, now_ns, topic)
        if len(self._round) < TOPICS_MAX:
            heapq.heappush(self._round, item)
        else:
            heapq.heappushpop(self._round, item)

    def end_round(self) -> None:
        """Keep a sample of the topics of this round with most received bytes; forget the others."""
        tracks = {}
        for _, number, retained_bytes, now_ns, topic in self._round:
            track = tracks[number] = self._tracks.get(number) or _Track(topic)
            track.add(now_ns, retained_bytes)
        self._tracks = tracks
        self._round.clear()

    @property
    def topics_count(self) -> int:
        """Topics of which samples are kept."""
        return len(self._tracks)

    def fastest(self, count: int) -> list[TopicGrowth]:
        """The ``count`` topics that grow most, the fastest first."""
        grown = []
        for number, track in self._tracks.items():
            (begin_ns, begin_bytes), (end_ns, end_bytes) = track.samples[0], track.samples[-1]
            if end_ns - begin_ns >= SPAN_NS_MIN and end_bytes > begin_bytes:
                span_s = (end_ns - begin_ns) / NS_PER_S
                bytes_per_s = (end_bytes - begin_bytes) / span_s
                grown.append(TopicGrowth(track.topic, number, bytes_per_s, span_s))
        return heapq.nlargest(count, grown, key=lambda growth: growth.bytes_per_s)
