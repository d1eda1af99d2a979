"""The last hour of each subscription, as a track of points.

A sweep looks at every subscription about once a second; one that did nothing costs a comparison and
no memory. With very many that do something, each is recorded less often: first the rounds are less
frequent, then a round records only a part of the subscriptions in turn. Counters are cumulative, so
that loses resolution and no amounts. Those with a backlog, or held by a limit, have a part of their
own, so that many healthy ones do not make explain coarser where it matters.

An hour of a subscription takes up to 9 KB. While the process nears the limit on its memory, those
of the tenants with the most topics and subscriptions keep few points.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.base.chunks import Chunks
from headgate.engine.subscription import Subscription
from headgate.explain.points import Point
from headgate.explain.track import Track
from headgate.flow.account.account import Cell
from headgate.observe.history.present import point_now

ROUND_CHANGED_MAX = 1_000
"""Most changed subscriptions of a round each second. With more, rounds are less frequent, so the
history takes at most about one percent of the loop's time."""
ROUND_PERIOD_S_MAX = 5

ROUND_RECORDED_MAX = 10_000
"""Healthy subscriptions, and as many others, that one round records: with a round in five seconds
each takes about 1.5 percent of the loop's time."""
HEALTHY_PARTS_MAX = 12
"""A healthy subscription is recorded at least in every twelfth round: once a minute."""
TROUBLED_PARTS_MAX = 4
"""Any other at least in every fourth round: in 20 s."""

LOOKED_AT_MIN = 2_048
LOOKED_AT_PARTS = 4
"""A round looks for removed subscriptions among so many, or among a fourth of all if these are
more: to look at 100,000 took 17 to 37 ms."""

FORGOTTEN_MAX = 256
"""The last reference to each that is forgotten is often here, and to free one takes 6 us: a fourth
of 99,000 that had ended together took 0.14 s."""

HEALTHY_CELLS = frozenset(
    (Cell.CAUGHT_UP, Cell.NOT_DUE, Cell.AWAITING_ACK, Cell.DISPATCHING, Cell.TRANSITION)
)
"""States in which a subscription without backlog may be recorded less often."""


class ObservedTrack(Track):
    """A track, with what the rounds need to know of it."""

    __slots__ = ("chunk", "signature", "slot")

    def __init__(self, point: Point, slot: int = 0) -> None:
        """``slot`` decides in which rounds its subscription is recorded, if not in all."""
        super().__init__(point)
        self.slot = slot
        self.chunk = 0
        """Its place in the history's order."""
        self.signature: tuple[object, ...] = (-1,)


class History:
    """The tracks of all subscriptions of one broker."""

    def __init__(self) -> None:
        self._tracks: dict[Subscription, ObservedTrack] = {}
        self._order: Chunks[Subscription] = Chunks()
        self._walk: Iterator[list[Subscription]] | None = None
        """The rest of those that are looked at for removed ones."""
        self._not_looked_at = 0
        """So many are to be looked at in this round."""
        self._changed = self._healthy = self._troubled = 0
        """Of this round: those recorded, and those recorded or left for another round by health."""
        self._skip = 0
        self._round = 0
        self._healthy_parts = self._troubled_parts = 1
        """A round records one of so many parts."""
        self._made_count = 0

    def __len__(self) -> int:
        return len(self._tracks)

    def begin_round(self) -> bool:
        """Whether a round is due; if so, some removed subscriptions are forgotten, the others by
        :meth:`forget_some`. Call it once a second."""
        if self._skip > 0:
            self._skip -= 1
            return False
        self._skip = min(self._changed // ROUND_CHANGED_MAX, ROUND_PERIOD_S_MAX - 1)
        self._healthy_parts = min(1 + self._healthy // ROUND_RECORDED_MAX, HEALTHY_PARTS_MAX)
        self._troubled_parts = min(1 + self._troubled // ROUND_RECORDED_MAX, TROUBLED_PARTS_MAX)
        self._changed = self._healthy = self._troubled = 0
        self._round += 1
        self._not_looked_at = max(LOOKED_AT_MIN, len(self._tracks) // LOOKED_AT_PARTS)
        self.forget_some()
        return True

    def forget_some(self) -> bool:
        """Forget removed subscriptions among the next part of all, about :data:`FORGOTTEN_MAX` at
        once; returns whether this round has more to look at."""
        walk = self._order.walk() if self._walk is None else self._walk
        forgotten = 0
        for subscriptions in walk:
            for subscription in subscriptions:
                if subscription.removed:
                    self._order.remove(subscription, self._tracks.pop(subscription).chunk)
                    forgotten += 1
            self._not_looked_at -= len(subscriptions)
            if self._not_looked_at <= 0 or forgotten >= FORGOTTEN_MAX:
                self._walk = walk
                return self._not_looked_at > 0
        self._walk = None
        return False

    def observe(self, subscription: Subscription) -> bool:
        """Record one subscription if it did anything since the last time and this is its round;
        returns whether it was recorded. If not, that costs a comparison."""
        track = self._tracks.get(subscription)
        if track is None:
            self._made_count += 1
            point = point_now(subscription, keep=True)
            track = self._tracks[subscription] = ObservedTrack(point, self._made_count)
            track.chunk = self._order.add(subscription)
        else:
            before = track.signature
            # Most that changed were published to: then no signature is made.
            if before[0] == subscription.topic.log.end and before == _signature(subscription):
                track.seen_ns = subscription.topic.engine.now_ns
                return False
            if not self._is_its_round(track, subscription):
                return False
            topic = subscription.topic
            is_large = not topic.engine.memory_part.may_keep_more(topic.name.tenant)
            track.add(point_now(subscription, keep=True), keeps_few=is_large)
        self._changed += 1
        track.signature = _signature(subscription)
        return True

    def _is_its_round(self, track: ObservedTrack, subscription: Subscription) -> bool:
        if subscription.account.cell in HEALTHY_CELLS and not track.phase.has_backlog:
            self._healthy += 1
            parts = self._healthy_parts
        else:
            self._troubled += 1
            parts = self._troubled_parts
        return parts == 1 or (self._round + track.slot) % parts == 0

    def track(self, subscription: Subscription) -> ObservedTrack | None:
        """The track of a subscription; None before the first round after its creation."""
        return self._tracks.get(subscription)

    def tracks(self) -> Iterator[tuple[Subscription, ObservedTrack]]:
        """All tracks, in no order."""
        return iter(self._tracks.items())


def _signature(subscription: Subscription) -> tuple[object, ...]:
    """Differs whenever anything but time has changed: its counters, or the limits that are set."""
    topic, account = subscription.topic, subscription.account
    # The counters first: for most of those that changed the comparison then ends there.
    return (
        topic.log.end,
        subscription.done_messages,
        subscription.messages_sent,
        account.since_ns,
        account.cell,
        subscription.redelivered_messages,
        subscription.limit,
        topic.limit,
        topic.engine.broker_limit,
    )
