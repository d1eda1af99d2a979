"""The law that makes an account of time of looks at a broker that keeps none.

A look shows the state *at its instant*, and each look stands for the half of the time next to it,
as with scrapes (:mod:`headgate.flow.account.inferred`); counters between two looks tell amounts.
The first line that applies is the state:

=================  ===============================================================  ===============
state              what a look shows                                                certainty
=================  ===============================================================  ===============
``caught_up``      no backlog                                                       sure
``not_due``        a backlog of delayed messages alone                              sure
``no_consumer``    a backlog and no consumer                                        sure
``unacked_limit``  the subscription, or each consumer, is at its limit              sure
``awaiting_ack``   no message of the backlog is undelivered                         sure, or good
                                                                                    (Exclusive)
``key_blocked``    Key_Shared: messages wait for redelivery, hashes drain or one        good
                   consumer has no permits, and another has
``no_permits``     no consumer has permits                                          sure
``storage``        two proofs show reads under way and the same read position       good
``stuck``          see :data:`STUCK_LOOKS` and :data:`STUCK_NS`                     good
*contested*        else: a consumer has permits, and messages wait for it
=================  ===============================================================  ===============

Contested time is a limiter's, the broker's or the consumer's:

1. A limiter whose throttled events grew, and whose limit is known, has all of it if the rate over
   the last two periods was at least :data:`AT_LIMIT_SHARE` of that limit, and nothing otherwise.
   A Pulsar broker sends what a limit allows for its period at once, and looks may just miss one
   such burst, which counts for the limiter.
   Several at their limits share it by their events. A Pulsar broker asks its own limit first, then
   the topic's, then the subscription's, and counts an event for the first that refuses. So events
   of a broader limiter stand for one that is at its limit, too.
2. A limiter whose limit or rate is not known has at most one second for each event.
3. Where a broker tells no events (surveys, Pulsar before 4.0.4), a limiter at its known limit has
   all of it.
4. The rest is ``dispatching`` if a consumer is hungry, because then only the broker is left, and
   ``no_permits`` otherwise.

A limiter's time counts as hungry or busy by the look: half of a consumer's largest known window
(:mod:`headgate.agent.consumer_windows`) decides. ``transition`` is at most :data:`RELOAD_NS` of a
period in which counters fell, because the topic was loaded again. ``socket_full`` cannot be seen
from outside; it shows as ``dispatching``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import CELL_COUNT, Cell, throttled_cell
from headgate.flow.account.inferred import EVENT_NS, proportional_parts
from headgate.flow.limits.rate_limit import Dimension, Level

AT_LIMIT_SHARE = 0.9
"""A rate of this part of a limit is at it."""

STUCK_LOOKS = 3
"""Looks at which the same messages waited for a consumer with permits, and nothing moved: no
message was sent, the read position stayed, no limiter counted an event ..."""
STUCK_NS = 15 * NS_PER_S
"""... over at least this time."""

RELOAD_NS = 5 * NS_PER_S
"""Most time that the loading of a topic takes: the rest of that period is what the look shows."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One subscription at the instant of a look, with what earlier looks add to it.

    Amounts are messages. ``undelivered_least`` and ``undelivered_most`` bound what no consumer has.
    """

    backlog: float
    delayed: float = 0.0
    undelivered_least: float = 0.0
    undelivered_most: float = 0.0
    entry_messages: float = 1.0
    consumers: int = 0
    has_permits: bool = False
    is_hungry: bool = False
    is_blocked: bool = False
    is_key_blocked: bool = False
    is_reading: bool = False
    is_stuck: bool = False

    @property
    def due(self) -> float:
        """Messages of the backlog that may be delivered."""
        return max(0.0, self.backlog - self.delayed)


@dataclass(frozen=True, slots=True)
class LimiterEvidence:
    """What two looks say about one limiter of a subscription in one dimension.

    ``events`` is None where the broker tells none. ``is_hidden`` says that a broader limiter
    counted events, which hides those of this one. ``rate`` and ``limit`` are amounts a second, the
    rate over the last two periods; None if not known. ``has_no_limit`` says that none is set.
    ``burst_rate`` is what one period of the limit allows, as a rate over the same time.
    """

    level: Level
    dimension: Dimension
    events: int | None = None
    rate: float | None = None
    limit: float | None = None
    has_no_limit: bool = False
    is_hidden: bool = False
    burst_rate: float = 0.0

    @property
    def is_at_limit(self) -> bool | None:
        """Whether the rate reaches the limit; None if that is not known. Events without a limit
        show that one was set since the limits were read."""
        if self.has_no_limit:
            return None if self.events else False
        if self.limit is None or self.rate is None:
            return None
        burst_rate = self.burst_rate if self.events else 0.0
        return self.rate + burst_rate >= AT_LIMIT_SHARE * self.limit


@dataclass(frozen=True, slots=True)
class Period:
    """The time between two looks. ``was_reloaded``: counters fell, or the topic has another
    owner."""

    elapsed_ns: int
    start: Sample
    end: Sample
    limiters: Sequence[LimiterEvidence] = ()
    was_reloaded: bool = False


def cells_between(period: Period) -> tuple[int, ...]:
    """Nanoseconds in each cell (index :class:`Cell`); their sum is ``elapsed_ns``."""
    cells = [0] * CELL_COUNT
    elapsed_ns = period.elapsed_ns
    if period.was_reloaded:
        cells[Cell.TRANSITION] = min(elapsed_ns, RELOAD_NS)
        elapsed_ns -= cells[Cell.TRANSITION]
    first_ns = 0 if period.was_reloaded else elapsed_ns // 2
    contested = []
    for sample, ns in ((period.start, first_ns), (period.end, elapsed_ns - first_ns)):
        cell = plain_cell(sample, is_throttled=_has_events(period.limiters))
        if cell is None:
            contested.append((sample, ns))
        else:
            cells[cell] += ns
    held = _held_ns(period.limiters, sum(ns for _, ns in contested))
    by_half = [proportional_parts(held_ns, [ns for _, ns in contested]) for held_ns in held]
    for half, (sample, ns) in enumerate(contested):
        rest_ns = ns
        for limiter, parts in zip(period.limiters, by_half, strict=True):
            part_ns = parts[half]
            cell = throttled_cell(limiter.level, limiter.dimension, hungry=sample.is_hungry)
            cells[cell] += part_ns
            rest_ns -= part_ns
        cells[Cell.DISPATCHING if sample.is_hungry else Cell.NO_PERMITS] += rest_ns
    return tuple(cells)


def plain_cell(sample: Sample, *, is_throttled: bool = False) -> Cell | None:
    """The state that a look shows; None for *contested* time. ``is_throttled`` says that a limiter
    held something meanwhile, so that not everything can be with the consumers."""
    if sample.backlog <= 0:
        return Cell.CAUGHT_UP
    if sample.due <= 0:
        return Cell.NOT_DUE
    if sample.consumers <= 0:
        return Cell.NO_CONSUMER
    if sample.is_blocked:
        return Cell.UNACKED_LIMIT
    if _is_delivered(sample, is_throttled=is_throttled):
        return Cell.AWAITING_ACK
    if sample.is_key_blocked and sample.has_permits:
        return Cell.KEY_BLOCKED
    if not sample.has_permits:
        return Cell.NO_PERMITS
    if sample.is_reading:
        return Cell.STORAGE
    return Cell.STUCK if sample.is_stuck else None


def is_doubtful(sample: Sample) -> bool:
    """Whether it is not known if consumers have the whole backlog: a proof would tell."""
    return (
        sample.due > 0
        and sample.consumers > 0
        and sample.has_permits
        and sample.undelivered_least <= sample.entry_messages < sample.undelivered_most
    )


def _is_delivered(sample: Sample, *, is_throttled: bool) -> bool:
    """Whether consumers have the whole backlog. What is not known counts as delivered unless a
    limiter holds something: a broker sends at once what it may."""
    if sample.undelivered_most <= sample.entry_messages:
        return not is_throttled or sample.undelivered_most <= 0
    if sample.undelivered_least > sample.entry_messages:
        return False
    return not is_throttled and sample.has_permits


def _has_events(limiters: Sequence[LimiterEvidence]) -> bool:
    return any(limiter.events and limiter.is_at_limit is not False for limiter in limiters)


def _held_ns(limiters: Sequence[LimiterEvidence], contested_ns: int) -> list[int]:
    """How much of the contested time each limiter has."""
    at_limit = [
        bool(limiter.is_at_limit and (limiter.is_hidden or limiter.events != 0))
        for limiter in limiters
    ]
    if any(at_limit):
        weights = [
            max(limiter.events or 0, 1) if is_at else 0
            for limiter, is_at in zip(limiters, at_limit, strict=True)
        ]
        return proportional_parts(contested_ns, weights)
    events = [(limiter.events or 0) if limiter.is_at_limit is None else 0 for limiter in limiters]
    # Several limiters may count the same wait, so their events are not added up.
    throttled_ns = min(contested_ns, max(events, default=0) * EVENT_NS)
    return proportional_parts(throttled_ns, events)
