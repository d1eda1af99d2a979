"""The seconds for which SENDs were parked in the last hour, by topic and cause.

Explain answers "why is my producer slow" from here. A topic on which no SEND was ever parked costs
nothing; each other topic has a point whenever its seconds changed, downsampled with age.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Final

from headgate.base.park_cause import ParkCause
from headgate.engine.parking import Parking
from headgate.engine.topic import Topic
from headgate.explain.changes import APART_NS
from headgate.explain.downsampling import THIN_EVERY_POINTS, bucket_of

Nanoseconds = tuple[int, ...]
"""One amount for each :class:`ParkCause`."""

NOTHING: Nanoseconds = (0,) * len(ParkCause)

CHECKED_TOPICS_MAX: Final = 1_000
"""Topics that a round looks at whether they are gone: 0.1 ms. To look at 100,000 took 10 ms."""

_POINT = struct.Struct(f"<{1 + len(ParkCause)}q")
"""An instant, and the nanoseconds of each cause until then."""


def parked_ns(parking: Parking, now_ns: int) -> Nanoseconds:
    """Time in which anything waited for each cause, until now; it never falls."""
    parking.fix_causes(now_ns)
    return parking.all_parked_ns(now_ns)


class ParkedTrack:
    """The history of one topic."""

    __slots__ = ("_points", "_seen_ns")

    def __init__(self, at_ns: int, spent_ns: Nanoseconds) -> None:
        """``spent_ns`` passed since the wait began, which was at most one round ago."""
        began_ns = at_ns - max(spent_ns)
        self._points = [_POINT.pack(began_ns, *NOTHING), _POINT.pack(at_ns, *spent_ns)]
        self._seen_ns = at_ns
        """Nothing waited from the newest point up to this instant."""

    def add(self, at_ns: int, spent_ns: Nanoseconds) -> None:
        """Add the time spent until now."""
        _, *last_ns = _POINT.unpack(self._points[-1])
        if tuple(last_ns) != spent_ns:
            self._push(self._seen_ns, tuple(last_ns))
            self._push(at_ns, spent_ns)
        self._seen_ns = at_ns

    def _push(self, at_ns: int, spent_ns: Nanoseconds) -> None:
        point = _POINT.pack(at_ns, *spent_ns)
        if point != self._points[-1]:
            self._points.append(point)
            if len(self._points) % THIN_EVERY_POINTS == 0:
                self._thin(at_ns)

    def _thin(self, now_ns: int) -> None:
        """Keep the first point of each bucket, and always the newest."""
        kept: dict[object, bytes] = {}
        for point in self._points[:-1]:
            at_ns = _POINT.unpack(point)[0]
            bucket = bucket_of(now_ns - at_ns, at_ns)
            if bucket is not None:
                kept.setdefault(bucket, point)
        self._points = [*kept.values(), self._points[-1]]

    def begins_ns(self, cause: ParkCause, apart_ns: int) -> list[int]:
        """When something began to wait for a cause. A wait that follows within ``apart_ns`` of one
        before is not another one."""
        found: list[int] = []
        place = 1 + list(ParkCause).index(cause)
        last_ns = -apart_ns - 1
        for before, after in pairwise(map(_POINT.unpack, self._points)):
            waited_ns = after[place] - before[place]
            if waited_ns > 0:
                if before[0] - last_ns > apart_ns or not found:
                    found.append(max(before[0], after[0] - waited_ns))
                last_ns = after[0]
        return found

    def since(self, start_ns: int, now_ns: int, spent_ns: Nanoseconds) -> Nanoseconds:
        """The part of ``spent_ns``, the amounts until now, that passed from ``start_ns`` on."""
        points = [_POINT.unpack(point) for point in self._points]
        last = points[-1]
        points += [(self._seen_ns, *last[1:]), (now_ns, *spent_ns)]
        before = points[0]
        for after in points:
            if after[0] >= start_ns:
                break
            before = after
        length_ns = after[0] - before[0]
        # Between two points the time counts as evenly spread.
        part = min(1.0, max(0.0, (start_ns - before[0]) / length_ns)) if length_ns else 0.0
        pairs = zip(before[1:], after[1:], spent_ns, strict=True)
        return tuple(now - was - round((then - was) * part) for was, then, now in pairs)


class ParkedHistory:
    """The tracks of all topics of one broker on which anything ever waited."""

    def __init__(self) -> None:
        self._tracks: dict[Topic, ParkedTrack] = {}
        self._not_looked_at: list[Topic] = []

    def __len__(self) -> int:
        return len(self._tracks)

    def forget_gone(self) -> None:
        """Forget topics that are no longer live. Call it once a round: each call looks at a part of
        the topics."""
        if not self._not_looked_at:
            self._not_looked_at = [*self._tracks]
        looked_at = self._not_looked_at[-CHECKED_TOPICS_MAX:]
        del self._not_looked_at[-CHECKED_TOPICS_MAX:]
        for topic in looked_at:
            if not topic.is_live:
                self._tracks.pop(topic, None)

    def observe(self, topic: Topic) -> None:
        """Record one topic. Call it about once a second."""
        if topic.publishing.parking is None:
            return
        now_ns = topic.now_ns
        spent_ns = parked_ns(topic.publishing.parking, now_ns)
        track = self._tracks.get(topic)
        if track is None:
            self._tracks[topic] = ParkedTrack(now_ns, spent_ns)
        else:
            track.add(now_ns, spent_ns)

    def quota_reached_ns(self, topic: Topic) -> list[int]:
        """When a backlog quota stopped producers of a topic in the last hour."""
        track = self._tracks.get(topic)
        return [] if track is None else track.begins_ns(ParkCause.BACKLOG_QUOTA, APART_NS)

    def last(self, topic: Topic, length_ns: int) -> Nanoseconds:
        """Time in which anything waited, out of the last ``length_ns`` (at most an hour)."""
        if topic.publishing.parking is None:
            return NOTHING
        now_ns = topic.now_ns
        spent_ns = parked_ns(topic.publishing.parking, now_ns)
        track = self._tracks.get(topic) or ParkedTrack(now_ns, spent_ns)
        return track.since(now_ns - length_ns, now_ns, spent_ns)
