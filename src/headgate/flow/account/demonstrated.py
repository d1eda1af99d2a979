"""The rate that a subscription's consumers have demonstrated, from its account of time.

Consumers demonstrate their rate only in an interval in which they had as much as they could take:
an old message waited, a consumer was connected, and no limiter held anything back. While all
messages are young, consumers take what is published, however fast they are. An interval in which a
backlog quota evicted messages demonstrates nothing either: an acknowledgement after the eviction
does not count, so the rate would be too low. The broker applies these rules to its own history, the
pipeline to stored minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import LABELS, Cell, State
from headgate.flow.account.verdict import BLAME, YOUNG_NS, Verdict
from headgate.flow.limits.rate_limit import Level

HELD_SHARE_MAX = 0.05
"""An interval demonstrates a rate if at most this part of it is in :data:`HELD_BY_OTHERS`."""

DEMONSTRATED_PERCENTILE = 0.95
"""The percentile of the demonstrated rates that counts: nearly the best, but not one outlier."""

HELD_BY_OTHERS: tuple[bool, ...] = tuple(
    labels.level is not None
    or labels.state in (State.CAUGHT_UP, State.NOT_DUE, State.NO_CONSUMER, State.TRANSITION)
    or labels.state is State.STUCK
    for labels in LABELS
)
"""By cell: whether time in it shows nothing about the rate of the consumers."""

CONSUMER_STATES: frozenset[State] = frozenset(
    labels.state
    for labels, blamed in zip(LABELS, BLAME, strict=True)
    if blamed is Verdict.CONSUMER and labels.level is None
)
"""The states in which only a consumer stops a subscription."""


@dataclass(frozen=True, slots=True)
class Interval:
    """One subscription over one interval.

    ``covered_ns`` is the time that the account covers, ``cells_ns`` the nanoseconds in each cell
    (``account.difference`` of two snapshots). ``acked`` messages were acknowledged, ``evicted``
    messages were evicted by a backlog quota, or expired. ``oldest_age_ns`` is the age of the oldest
    waiting message: the smaller of the ages at the two ends or, if these are not kept, the largest
    age in between (0 if either end had no backlog).
    """

    covered_ns: int
    cells_ns: Sequence[int]
    acked: int
    oldest_age_ns: int
    evicted: int = 0


def demonstrated_ack_per_s(
    intervals: Iterable[Interval], *, young_ns: int = YOUNG_NS
) -> float | None:
    """The demonstrated rate in acknowledged messages per second; None if no interval demonstrates
    one. A message younger than ``young_ns`` is in flight, not waiting."""
    rates = sorted(
        interval.acked * NS_PER_S / interval.covered_ns
        for interval in intervals
        if _demonstrates(interval, young_ns)
    )
    if not rates:
        return None
    return rates[min(len(rates) - 1, int(DEMONSTRATED_PERCENTILE * len(rates)))]


def _demonstrates(interval: Interval, young_ns: int) -> bool:
    if interval.covered_ns <= 0 or interval.oldest_age_ns < young_ns or interval.evicted:
        return False
    held_ns = sum(ns for ns, held in zip(interval.cells_ns, HELD_BY_OTHERS, strict=True) if held)
    return held_ns <= HELD_SHARE_MAX * interval.covered_ns


def stopped_by(cells_ns: Sequence[int]) -> str:
    """The label of the consumer state that took the most time; empty if none took any."""
    held = [
        (ns, labels.state.value)
        for ns, labels in zip(cells_ns, LABELS, strict=True)
        if ns > 0 and labels.state in CONSUMER_STATES
    ]
    return max(held)[1] if held else ""


def stuck_share(cells_ns: Sequence[int]) -> float:
    """The part of the time in which the broker's dispatcher was stuck; 0 if no time passed."""
    total_ns = sum(cells_ns)
    return cells_ns[Cell.STUCK] / total_ns if total_ns else 0.0


def hungry_share(cells_ns: Sequence[int], level: Level | None) -> float | None:
    """The part of the time in which the limiter of ``level`` held a hungry consumer; None without a
    level, or if no time passed."""
    total_ns = sum(cells_ns)
    if level is None or not total_ns:
        return None
    hungry_ns = sum(
        ns
        for ns, labels in zip(cells_ns, LABELS, strict=True)
        if labels.level is level and labels.consumer == "hungry"
    )
    return hungry_ns / total_ns
