"""The last hour of each subscription, as a track of points.

A sweep looks at every subscription about once a second; one that did nothing costs a comparison and
no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from headgate.engine.subscription import Subscription
from headgate.observe.history.backlog_phase import first_phase
from headgate.observe.history.downsampling import THIN_EVERY_POINTS, bucket_of
from headgate.observe.history.points import Point, at_ns_of, decode, encode, later, point_now

ROUND_CHANGED_MAX = 1_000
"""Most changed subscriptions of a round each second. With more, rounds are less frequent, so the
history takes at most about one percent of the loop's time."""
ROUND_PERIOD_S_MAX = 5


class Track:
    """The history of one subscription."""

    __slots__ = ("_points", "last", "phase", "seen_ns", "signature")

    def __init__(self, point: Point) -> None:
        self._points = [encode(point)]
        self.phase = first_phase(point)
        self.last = self._points[0]
        """The newest kept point."""
        self.seen_ns = point.at_ns
        """Nothing happened from the newest point up to this instant."""
        self.signature: tuple[object, ...] = ()

    def add(self, point: Point) -> None:
        """Keep a point, and before it the last instant at which nothing had changed yet."""
        if self.seen_ns > at_ns_of(self.last):
            self._push(later(decode(self.last), self.seen_ns))
        self._push(point)
        self.seen_ns = point.at_ns

    def _push(self, point: Point) -> None:
        self.last = encode(point)
        self._points.append(self.last)
        self.phase = self.phase.after(point)
        if len(self._points) % THIN_EVERY_POINTS == 0:
            self._thin(point.at_ns)

    def _thin(self, now_ns: int) -> None:
        """Keep the first point of each bucket; the next kept point takes over the ages of those
        dropped."""
        kept: list[bytes] = []
        bucket_before = -1, -1
        dropped_age_ns = 0
        for record in self._points:
            bucket = bucket_of(now_ns - at_ns_of(record), at_ns_of(record))
            if bucket is None:
                continue
            if bucket == bucket_before:
                dropped_age_ns = max(dropped_age_ns, decode(record).age_ns_max)
                continue
            bucket_before = bucket
            if dropped_age_ns:
                point = decode(record)
                if point.age_ns_max < dropped_age_ns:
                    record = encode(replace(point, age_ns_max=dropped_age_ns))
                dropped_age_ns = 0
            kept.append(record)
        self._points = kept

    def since(self, start_ns: int) -> list[Point]:
        """The kept points from ``start_ns`` on, in order. If nothing has happened since then,
        the only point follows from the last one."""
        points = [decode(record) for record in self._points if at_ns_of(record) >= start_ns]
        if points:
            return points
        last = decode(self.last)
        return [later(last, max(last.at_ns, min(start_ns, self.seen_ns)))]


class History:
    """The tracks of all subscriptions of one broker."""

    def __init__(self) -> None:
        self._tracks: dict[Subscription, Track] = {}
        self._changed = 0
        self._skip = 0

    def __len__(self) -> int:
        return len(self._tracks)

    def begin_round(self) -> bool:
        """Whether a round is due; if so, forget removed subscriptions. Call it once a second."""
        if self._skip > 0:
            self._skip -= 1
            return False
        self._skip = min(self._changed // ROUND_CHANGED_MAX, ROUND_PERIOD_S_MAX - 1)
        self._changed = 0
        for subscription in self._removed():
            del self._tracks[subscription]
        return True

    def _removed(self) -> list[Subscription]:
        return [subscription for subscription in self._tracks if subscription.removed]

    def observe(self, subscription: Subscription) -> bool:
        """Record one subscription; returns whether it did anything since the last time. If not, it
        costs a comparison."""
        track = self._tracks.get(subscription)
        if track is not None and track.signature == _signature(subscription):
            track.seen_ns = subscription.topic.now_ns
            return False
        self._changed += 1
        point = point_now(subscription, keep=True)
        if track is None:
            track = self._tracks[subscription] = Track(point)
        else:
            track.add(point)
        track.signature = _signature(subscription)
        return True

    def track(self, subscription: Subscription) -> Track | None:
        """The track of a subscription; None before the first round after its creation."""
        return self._tracks.get(subscription)

    def tracks(self) -> Iterator[tuple[Subscription, Track]]:
        """All tracks, in no order."""
        return iter(self._tracks.items())


def _signature(subscription: Subscription) -> tuple[object, ...]:
    """Differs whenever anything but time has changed: its counters, or the limits that are set."""
    account = subscription.account
    return (
        *subscription.limits_set(),
        account.since_ns,
        account.cell,
        subscription.topic.log.end,
        subscription.done_messages,
        subscription.messages_sent,
        subscription.redelivered_messages,
    )
