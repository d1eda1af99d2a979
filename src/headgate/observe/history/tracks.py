"""The broker's own memory of the last hour: what each subscription's counters were, and when.

Explain answers "since when, and why" from here, without telemetry and without Spark. A sweep looks
at every subscription about once a second; one that did nothing costs a comparison and no memory.
What is kept becomes coarser with age: a point a second for 10 s, each 5 s for a minute, each minute
for ten and each five minutes for the hour. All values are cumulative, so a coarser grid loses
resolution, never amounts.

The history also knows when a backlog began: see :class:`Calm`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from headgate.base.units import NS_PER_MS, NS_PER_S, S_PER_MINUTE
from headgate.engine.subscription import Subscription
from headgate.flow.account.account import CELL_COUNT, Cell
from headgate.flow.account.verdict import IN_FLIGHT_NS, YOUNG_NS
from headgate.flow.limits.rate_limit import Level

MINUTE_NS = S_PER_MINUTE * NS_PER_S
HOUR_NS = 60 * MINUTE_NS

ROUND_CHANGED_MAX = 1_000
"""Changed subscriptions that a round each second may have; with more, rounds come less often, so
that the history never takes more than about one percent of the loop."""
ROUND_PERIOD_S_MAX = 5

RISING_NS = 5 * NS_PER_S
"""A young backlog that sets no new peak for so long does not grow."""

STEADY_NS = NS_PER_S // 2
"""Looks closer together than this tell no rate."""

RESTART_NS = 10 * NS_PER_S
"""Changes of a level's limit that follow each other faster do not begin a new situation each."""

MARK_BITS = 21
"""Length of what tells the limits of one level from others; three levels fit into 63 bits."""
MARK_MAX = (1 << MARK_BITS) - 1

_GRIDS_NS = (
    (10 * NS_PER_S, 1),
    (MINUTE_NS + 5 * NS_PER_S, 5 * NS_PER_S),
    (10 * MINUTE_NS, MINUTE_NS),
    (HOUR_NS + 5 * MINUTE_NS, 5 * MINUTE_NS),
)
"""Up to which age points are kept on which grid. Each grid divides the next, so that the first
point of a coarse cell was the first of its finer one and survives."""
_THIN_EVERY_POINTS = 16
_HEAD = struct.Struct("<16q")
_AT = struct.Struct("<q")


def grid_cell(age_ns: int, at_ns: int) -> tuple[int, int] | None:
    """Of all points in the same cell of the grid for their age the first is kept; None: too old."""
    for until_ns, grid_ns in _GRIDS_NS:
        if age_ns < until_ns:
            return grid_ns, at_ns // grid_ns
    return None


@dataclass(frozen=True, slots=True)
class Point:
    """One subscription at one instant. Counts are messages, cumulative, but for the levels
    ``in_flight`` and the ages. ``appended - done`` is the backlog. ``age_ns``: of the oldest
    unacknowledged message then; ``age_ns_max``: the largest since the point before. ``cells_ns``
    are those of the account; ``cell`` the one it was in."""

    cell: Cell
    cells_ns: tuple[int, ...]
    at_ns: int
    appended: int
    done: int
    sent: int
    sent_bytes: int
    acked: int
    skipped: int
    rewound: int
    expired: int
    evicted: int
    redelivered: int
    in_flight: int
    age_ns: int
    age_ns_max: int
    limits: int
    """Differs where other limits are in force: see :func:`changed_levels`."""

    @property
    def backlog(self) -> int:
        """Messages not acknowledged."""
        return self.appended - self.done


def age_ns(subscription: Subscription, log_ms: int) -> int:
    """How old its oldest unacknowledged message is; 0 without backlog."""
    oldest_ms = subscription.oldest_unacked_ms()
    return 0 if oldest_ms is None else max(0, log_ms - oldest_ms) * NS_PER_MS


def look(subscription: Subscription, now_ns: int, log_ms: int, *, keep: bool = False) -> Point:
    """The subscription as it stands. ``keep``: the point will be kept, so its account is booked."""
    log, account = subscription.topic.log, subscription.account
    if keep and subscription.throttled:
        subscription.dispatcher.settle_late(now_ns)
    age = age_ns(subscription, log_ms)
    return Point(
        at_ns=now_ns,
        appended=log.messages_before(log.end),
        done=subscription.done_messages,
        sent=subscription.messages_sent,
        sent_bytes=subscription.bytes_sent,
        acked=subscription.acked_messages,
        skipped=subscription.skipped_messages,
        rewound=subscription.rewound_messages,
        expired=subscription.expired_messages,
        evicted=subscription.evicted_messages,
        redelivered=subscription.redelivered_messages,
        in_flight=subscription.dispatcher.in_flight_messages(),
        age_ns=age,
        age_ns_max=age,
        limits=_limits_mark(subscription),
        cell=account.cell,
        cells_ns=account.snapshot(now_ns) if keep else account.peek(now_ns),
    )


def _limits_mark(subscription: Subscription) -> int:
    """A number of :data:`MARK_BITS` for each level, 0 where it has no limit."""
    if not subscription.gate.limited:
        return 0
    # As they are set: what moves with the publish rate is the same limit all the time.
    topic = subscription.topic
    mark = 0
    for level, limit in zip(
        Level, (subscription.limit, topic.limit, topic.engine.broker_limit), strict=True
    ):
        if limit is not None:
            mark |= (hash(limit) % (MARK_MAX - 1) + 1) << MARK_BITS * level
    return mark


def changed_levels(before: Point, after: Point) -> frozenset[Level]:
    """The levels whose limits are others at the second look."""
    different = before.limits ^ after.limits
    return frozenset(level for level in Level if different >> MARK_BITS * level & MARK_MAX)


def _encode(point: Point) -> bytes:
    """Head, then the cells that are not zero: an account visits five of 22 in its life."""
    mask = 0
    held = []
    for index, ns in enumerate(point.cells_ns):
        if ns:
            mask |= 1 << index
            held.append(ns)
    return struct.pack(
        f"<{16 + len(held)}q",
        point.at_ns,
        point.appended,
        point.done,
        point.sent,
        point.sent_bytes,
        point.acked,
        point.skipped,
        point.rewound,
        point.expired,
        point.evicted,
        point.redelivered,
        point.in_flight,
        point.age_ns,
        point.age_ns_max,
        point.limits,
        point.cell << CELL_COUNT | mask,
        *held,
    )


def _decode(record: bytes) -> Point:
    *figures, where = _HEAD.unpack_from(record)
    cells = [0] * CELL_COUNT
    offset = _HEAD.size
    for index in range(CELL_COUNT):
        if where >> index & 1:
            cells[index] = _AT.unpack_from(record, offset)[0]
            offset += _AT.size
    return Point(Cell(where >> CELL_COUNT), tuple(cells), *figures)


def _at_ns(record: bytes) -> int:
    at_ns: int = _AT.unpack_from(record)[0]
    return at_ns


def later(point: Point, at_ns: int) -> Point:
    """The same subscription at a later instant, having done nothing but wait."""
    elapsed_ns = at_ns - point.at_ns
    cells = list(point.cells_ns)
    cells[point.cell] += elapsed_ns
    age = point.age_ns + elapsed_ns if point.backlog else 0
    return replace(point, at_ns=at_ns, age_ns=age, age_ns_max=age, cells_ns=tuple(cells))


class Calm(NamedTuple):
    """Whether a subscription has nothing but messages in flight, and when that was last so.

    It is calm while its oldest message is young and its backlog is no more above the lowest one of
    this calm time than what is in flight at the present rate. One that stays young and sets no new
    peak for five seconds is calm again, on a higher level. What is judged begins at the last calm
    look, or where the limits last changed: what another limit did is no evidence against this one.
    """

    is_calm: bool
    was_old: bool
    """Whether the oldest message was not young at the last look."""
    since_ns: int
    """When the calm began; while it is not calm, the last calm look: then a backlog began."""
    begin_ns: int
    """From when on the present situation is to be judged."""
    changed_ns: int
    """When a change of the limits last moved ``begin_ns``."""
    changed: frozenset[Level]
    """Whose limits have done so with less than :data:`RESTART_NS` from one to the next."""
    low: int
    peak: int
    peak_ns: int
    in_flight: float
    """What the last known rate puts in flight."""
    before: Point
    """The last look."""

    def then(self, point: Point) -> Calm:
        """What a later look makes of it."""
        after = self._replace(before=point)
        if point.age_ns >= YOUNG_NS:
            return after._rise(self.before)._replace(was_old=True)
        if self.was_old:
            return begin_calm(point)
        elapsed_ns = max(point.at_ns - self.before.at_ns, IN_FLIGHT_NS)
        in_flight = (point.appended - self.before.appended) * IN_FLIGHT_NS / elapsed_ns
        if elapsed_ns < STEADY_NS and self.in_flight > in_flight:
            in_flight = self.in_flight  # too short a time to know a rate by
        after = after._replace(in_flight=in_flight)
        if point.backlog <= self.low + max(1.0, in_flight):
            if not self.is_calm:
                return begin_calm(point, in_flight)
            return after._replace(low=min(self.low, point.backlog))
        after = after._rise(self.before)
        return begin_calm(point, in_flight) if point.at_ns - after.peak_ns >= RISING_NS else after

    def _rise(self, before: Point) -> Calm:
        """It is not calm (any more), as the new look shows; ``before`` was the last one."""
        point, at_ns = self.before, self.before.at_ns
        if self.is_calm:
            return self._replace(
                is_calm=False,
                since_ns=before.at_ns,
                begin_ns=before.at_ns,
                peak=point.backlog,
                peak_ns=at_ns,
            )
        after = self
        levels = changed_levels(before, point)
        recent = self.changed if at_ns - self.changed_ns < RESTART_NS else frozenset()
        if levels - recent:
            after = after._replace(begin_ns=at_ns, changed_ns=at_ns, changed=levels | recent)
        if point.backlog > self.peak:
            after = after._replace(peak=point.backlog, peak_ns=at_ns)
        return after


def begin_calm(point: Point, in_flight: float = 0.0) -> Calm:
    """The first look at a subscription, or at a new calm."""
    old = point.age_ns >= YOUNG_NS
    return Calm(
        is_calm=not old,
        was_old=old,
        since_ns=point.at_ns,
        begin_ns=point.at_ns,
        changed_ns=point.at_ns - RESTART_NS,
        changed=frozenset(),
        low=point.backlog,
        peak=point.backlog,
        peak_ns=point.at_ns,
        in_flight=in_flight,
        before=point,
    )


class Track:
    """The history of one subscription."""

    __slots__ = ("_points", "calm", "last", "seen_ns", "signature")

    def __init__(self, point: Point) -> None:
        self._points = [_encode(point)]
        self.calm = begin_calm(point)
        self.last = self._points[0]
        """The newest kept point."""
        self.seen_ns = point.at_ns
        """Up to here nothing happened since the newest point."""
        self.signature: tuple[object, ...] = ()

    def add(self, point: Point) -> None:
        """Keep a point; first the one at which it was last seen to be as before."""
        if self.seen_ns > _at_ns(self.last):
            self._push(later(_decode(self.last), self.seen_ns))
        self._push(point)
        self.seen_ns = point.at_ns

    def _push(self, point: Point) -> None:
        self.last = _encode(point)
        self._points.append(self.last)
        self.calm = self.calm.then(point)
        if len(self._points) % _THIN_EVERY_POINTS == 0:
            self._thin(point.at_ns)

    def _thin(self, now_ns: int) -> None:
        """Of each cell of the grid for its age keep the first point; the ages of those dropped
        go to the next kept."""
        kept: list[bytes] = []
        cell_before = -1, -1
        dropped_age_ns = 0
        for record in self._points:
            cell = grid_cell(now_ns - _at_ns(record), _at_ns(record))
            if cell is None:
                continue
            if cell == cell_before:
                dropped_age_ns = max(dropped_age_ns, _decode(record).age_ns_max)
                continue
            cell_before = cell
            if dropped_age_ns:
                point = _decode(record)
                if point.age_ns_max < dropped_age_ns:
                    record = _encode(replace(point, age_ns_max=dropped_age_ns))
                dropped_age_ns = 0
            kept.append(record)
        self._points = kept

    def since(self, start_ns: int) -> list[Point]:
        """The kept points from ``start_ns`` on, in order. Never empty: when nothing has happened
        since then, the first is made up of what stood still."""
        points = [_decode(record) for record in self._points if _at_ns(record) >= start_ns]
        if points:
            return points
        last = _decode(self.last)
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
        """Call about once a second: whether a round is due now. Forgets what was removed."""
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

    def observe(self, subscription: Subscription, now_ns: int, log_ms: int) -> None:
        """Look at one subscription. One that did nothing since the last look costs a comparison."""
        track = self._tracks.get(subscription)
        if track is not None and track.signature == _signature(subscription):
            track.seen_ns = now_ns
            return
        self._changed += 1
        point = look(subscription, now_ns, log_ms, keep=True)
        if track is None:
            track = self._tracks[subscription] = Track(point)
        else:
            track.add(point)
        track.signature = _signature(subscription)

    def track(self, subscription: Subscription) -> Track | None:
        """What is known of it; None before the first round after it was made."""
        return self._tracks.get(subscription)

    def tracks(self) -> Iterator[tuple[Subscription, Track]]:
        """All of them, in no order."""
        return iter(self._tracks.items())


def _signature(subscription: Subscription) -> tuple[object, ...]:
    """Differs whenever anything but time has changed: what it did, and which limits are set."""
    account, topic = subscription.account, subscription.topic
    return (
        subscription.limit,
        topic.limit,
        topic.engine.broker_limit,
        account.since_ns,
        account.cell,
        subscription.topic.log.end,
        subscription.done_messages,
        subscription.messages_sent,
        subscription.redelivered_messages,
    )
