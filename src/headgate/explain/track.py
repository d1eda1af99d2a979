"""The last hour of one subscription: packed points, the older the fewer."""

from __future__ import annotations

from dataclasses import replace

from headgate.explain.backlog_phase import first_phase
from headgate.explain.downsampling import FEW_POINTS, THIN_EVERY_POINTS, bucket_of
from headgate.explain.points import Point, at_ns_of, decode, encode, later


class Track:
    """The history of one subscription, or of its part on one partition."""

    __slots__ = ("_points", "last", "phase", "seen_ns")

    def __init__(self, point: Point) -> None:
        self._points = [encode(point)]
        self.phase = first_phase(point)
        self.last = self._points[0]
        """The newest kept point."""
        self.seen_ns = point.at_ns
        """Nothing happened from the newest point up to this instant."""

    def __len__(self) -> int:
        """How many points are kept."""
        return len(self._points)

    def add(self, point: Point, *, keeps_few: bool = False) -> None:
        """Keep a point, and before it the last instant at which nothing had changed yet. With
        ``keeps_few`` it gives up most of its other points, the older the more."""
        if self.seen_ns > self.phase.last.at_ns:
            self._push(later(self.phase.last, self.seen_ns))
        self._push(point)
        if keeps_few and len(self._points) > FEW_POINTS:
            self._thin(point.at_ns, keeps_few=True)
        self.seen_ns = point.at_ns

    def _push(self, point: Point) -> None:
        self.last = encode(point)
        self._points.append(self.last)
        self.phase = self.phase.after(point)
        if len(self._points) % THIN_EVERY_POINTS == 0:
            self._thin(point.at_ns)

    def _thin(self, now_ns: int, *, keeps_few: bool = False) -> None:
        """Keep the first point of each bucket, or every second one; the next kept point takes over
        the ages of those dropped."""
        kept: list[bytes] = []
        bucket_before = -1, -1
        dropped_age_ns = 0
        for at, record in enumerate(self._points):
            bucket = bucket_of(now_ns - at_ns_of(record), at_ns_of(record))
            if bucket is None:
                continue
            if keeps_few:
                bucket = 0, (len(self._points) - at) // 2  # the newest one stays
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
