"""The account of time, inferred from the counters of a broker that has no account.

The input is two snapshots of a subscription, some seconds apart, and what was counted between them.
As ``docs/telemetry.md`` section 5 says, each snapshot stands for the half of the time next to it,
by the order of states of the account. If a snapshot shows waiting messages and a consumer, the
throttled events give the part of that time that limiters held; the rest is the consumer's.

A backlog is in entries, as brokers count it: a batch is one. So are its changes
(:class:`BacklogChanges`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell, throttled_cell
from headgate.flow.account.verdict import YOUNG_NS
from headgate.flow.limits.rate_limit import Dimension, Level

EVENT_NS = NS_PER_S
"""A throttled event stands for at most this much time: a Pulsar broker retries after it."""

BUSY_NS = YOUNG_NS
"""A consumer that holds messages for longer than this on average is busy."""

EVENT_COUNT = len(Level) * len(Dimension)


@dataclass(frozen=True, slots=True)
class SubscriptionSnapshot:
    """A subscription at one instant.

    ``backlog`` and ``delayed``, the part of it that is not due yet, are entries. ``unacked`` are
    messages with consumers; a Pulsar broker counts them for Shared and Key_Shared only, and reports
    0 for other types. ``permits`` is the sum over all consumers, None if the broker does not report
    it.
    """

    backlog: int
    delayed: int = 0
    unacked: int = 0
    consumers: int = 0
    blocked: bool = False
    permits: int | None = None

    @property
    def deliverable(self) -> int:
        """Entries that are due and not acknowledged."""
        return max(0, self.backlog - max(0, self.delayed))


@dataclass(frozen=True, slots=True)
class SnapshotPair:
    """Two snapshots, and what was counted between them.

    ``acked`` is in messages; ``entry_messages`` is their mean number in an entry, at least 1.
    ``events`` are throttled events by level, then dimension.

    Raises :class:`InputError` if the time is not positive or the number of events is wrong.
    """

    elapsed_ns: int
    start: SubscriptionSnapshot
    end: SubscriptionSnapshot
    acked: int = 0
    entry_messages: float = 1.0
    events: Sequence[int] = (0,) * EVENT_COUNT

    def __post_init__(self) -> None:
        if self.elapsed_ns < 1:
            raise InputError(f"elapsed_ns is {self.elapsed_ns}; looks lie some time apart")
        if len(self.events) != EVENT_COUNT:
            raise InputError(f"{len(self.events)} kinds of events; there are {EVENT_COUNT}")


def inferred_cells(between: SnapshotPair) -> tuple[int, ...]:
    """Nanoseconds per cell (index :class:`Cell`); their sum is ``elapsed_ns``."""
    cells = [0] * CELL_COUNT
    first_ns = between.elapsed_ns // 2
    halves = ((between.start, first_ns), (between.end, between.elapsed_ns - first_ns))
    contested = []
    for look, ns in halves:
        cell = _plain_cell(look, between.entry_messages)
        if cell is None:
            contested.append((look, ns))
        else:
            cells[cell] += ns
    contested_ns = sum(ns for _, ns in contested)
    # Several limiters may count the same wait, so their events are not added up.
    throttled_ns = min(contested_ns, max(between.events) * EVENT_NS)
    shares = proportional_parts(throttled_ns, [ns for _, ns in contested])
    for (look, ns), held_ns in zip(contested, shares, strict=True):
        has_room = _has_room(look, between)
        for index, part_ns in enumerate(proportional_parts(held_ns, between.events)):
            level, dimension = divmod(index, len(Dimension))
            cells[throttled_cell(Level(level), Dimension(dimension), hungry=has_room)] += part_ns
        # Only reported free permits clear a consumer; without them it is the likelier cause.
        idle = has_room and look.permits is not None
        cells[Cell.DISPATCHING if idle else Cell.NO_PERMITS] += ns - held_ns
    return tuple(cells)


def _plain_cell(look: SubscriptionSnapshot, entry_messages: float) -> Cell | None:
    """The state that a snapshot shows; None if a limiter, the consumers or the broker may be the
    cause."""
    if not look.deliverable:
        return Cell.CAUGHT_UP
    if look.consumers <= 0:
        return Cell.NO_CONSUMER
    if look.unacked >= look.deliverable * entry_messages:
        return Cell.AWAITING_ACK
    return Cell.UNACKED_LIMIT if look.blocked else None


def _has_room(look: SubscriptionSnapshot, between: SnapshotPair) -> bool:
    """Whether the consumers could take more: half of their room is free or, if permits are unknown,
    they acknowledge soon what they hold."""
    if look.permits is not None:
        return look.permits > 0 and look.permits >= look.unacked
    return look.unacked * between.elapsed_ns <= BUSY_NS * between.acked


def proportional_parts(total: int, weights: Sequence[int]) -> list[int]:
    """Divide ``total`` into whole parts in proportion to the weights, which are not negative. The
    parts sum to ``total``, or to 0 if no weight is positive."""
    whole = sum(weights)
    parts: list[int] = []
    given = running = 0
    for weight in weights:
        running += weight
        upto = total * running // whole if whole else 0
        parts.append(upto - given)
        given = upto
    return parts


def scaled_cells(cells_ns: Sequence[int], elapsed_ns: int) -> tuple[int, ...]:
    """A broker's own account between two scrapes, scaled to the time between them, because the
    instants at which the broker wrote the texts are not known exactly. An empty account stays
    empty."""
    return tuple(proportional_parts(elapsed_ns, cells_ns))


@dataclass(frozen=True, slots=True)
class BacklogChanges:
    """What changed a backlog, in entries: it grew by ``appended + rewound - acked - skipped -
    evicted``, less what expired."""

    appended: int
    rewound: int
    acked: int
    skipped: int
    evicted: int


@dataclass(frozen=True, slots=True)
class GrowthCounters:
    """The known figures of a backlog's growth.

    ``growth`` and ``expired`` are entries, ``published`` is in messages. ``was_acked`` says whether
    any acknowledgement was counted. ``acked_at_most`` is in entries, from the broker's
    acknowledgement rate; it matters only if a quota ``evicted`` something.
    """

    growth: int
    published: int
    entry_messages: float = 1.0
    expired: int = 0
    was_acked: bool = True
    evicted: bool = False
    acked_at_most: int = 0


def backlog_changes(counted: GrowthCounters) -> BacklogChanges:
    """The causes of a growth, which broker counters do not report; they always add up to it.

    Growth beyond everything published was rewound. What left the backlog was acknowledged, except
    what a quota evicted; if nothing was acknowledged, it was skipped.
    """
    needed = counted.growth + counted.expired
    published = max(0, counted.published)
    if not counted.was_acked and not counted.evicted and 0 <= needed <= published:
        # Everything published is still there, so the mean batch size is not needed.
        appended = needed
    else:
        by_size = round(published / max(1.0, counted.entry_messages))
        appended = min(published, max(by_size, needed))
    rewound = max(0, needed - appended)
    passed = appended + rewound - needed
    if counted.evicted:
        acked = min(passed, max(0, counted.acked_at_most))
        return BacklogChanges(appended, rewound, acked, 0, passed - acked)
    if not counted.was_acked:
        return BacklogChanges(appended, rewound, 0, passed, 0)
    return BacklogChanges(appended, rewound, passed, 0, 0)


def oldest_age_ns(waiting: int, appended: int, elapsed_ns: int) -> int | None:
    """Age of the oldest of ``waiting`` entries, if ``appended`` entries came at an even rate in
    ``elapsed_ns`` and leave in order.

    It is at most ``elapsed_ns``, although the entry may be older than the first snapshot. An entry
    that may have just arrived counts as new. None if nothing waits.
    """
    if waiting <= 0:
        return None
    if appended <= 0:
        return elapsed_ns
    return min(elapsed_ns, (waiting - 1) * elapsed_ns // appended)
