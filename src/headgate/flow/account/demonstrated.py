"""What an account says of the consumers: what they have shown they can do, and what stopped them.

A consumer proves its rate only in a stretch in which it had as much as it could take: an old
message waited, somebody was connected, and no limiter held anything back. Where all is young it
takes what is published, however fast it is. Where a backlog quota evicted messages nothing is
proven either: an acknowledgement that comes after that counts nowhere, so the rate says too little.
The broker asks over its own history and the pipeline over stored minutes; both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.base.units import NS_PER_S
from headgate.flow.account.account import LABELS, State
from headgate.flow.account.verdict import BLAME, YOUNG_NS, Verdict
from headgate.flow.limits.rate_limit import Level

HELD_SHARE_MAX = 0.05
"""A stretch proves a rate if at most this part of its time is in :data:`HELD_BY_OTHERS`."""

PROVEN_PERCENTILE = 0.95
"""Which of the rates of all proving stretches counts: nearly the best, but no single fluke."""

HELD_BY_OTHERS: tuple[bool, ...] = tuple(
    labels.level is not None
    or labels.state in (State.CAUGHT_UP, State.NO_CONSUMER, State.TRANSITION)
    for labels in LABELS
)
"""By cell: whether time in it says nothing of what the consumers can do."""

CONSUMER_STATES: frozenset[State] = frozenset(
    labels.state
    for labels, blamed in zip(LABELS, BLAME, strict=True)
    if blamed is Verdict.CONSUMER and labels.level is None
)
"""Those in which nobody but a consumer stops a subscription."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One subscription over one stretch of time.

    ``covered_ns`` is how much of it is accounted for, ``cells_ns`` nanoseconds per cell in it
    (``account.difference`` of two snapshots), ``acked`` messages acknowledged in it, ``evicted``
    those that a backlog quota took.
    ``oldest_age_ns``: how old a message waited in it, as far as is known: the smaller of the ages
    at its two ends, or, where these are not kept, the largest in it (then 0 if either end had no
    backlog).
    """

    covered_ns: int
    cells_ns: Sequence[int]
    acked: int
    oldest_age_ns: int
    evicted: int = 0


def proven_ack_per_s(stretches: Iterable[Stretch], *, young_ns: int = YOUNG_NS) -> float | None:
    """Acknowledged messages a second that the consumers have shown they can do; None if no stretch
    proves any. A message younger than ``young_ns`` is in flight, not waiting."""
    rates = sorted(
        stretch.acked * NS_PER_S / stretch.covered_ns
        for stretch in stretches
        if _proves(stretch, young_ns)
    )
    if not rates:
        return None
    return rates[min(len(rates) - 1, int(PROVEN_PERCENTILE * len(rates)))]


def _proves(stretch: Stretch, young_ns: int) -> bool:
    if stretch.covered_ns <= 0 or stretch.oldest_age_ns < young_ns or stretch.evicted:
        return False
    held_ns = sum(ns for ns, held in zip(stretch.cells_ns, HELD_BY_OTHERS, strict=True) if held)
    return held_ns <= HELD_SHARE_MAX * stretch.covered_ns


def stopped_by(cells_ns: Sequence[int]) -> str:
    """The consumer state that took most of the time, as its label; empty if none took any."""
    held = [
        (ns, labels.state.value)
        for ns, labels in zip(cells_ns, LABELS, strict=True)
        if ns > 0 and labels.state in CONSUMER_STATES
    ]
    return max(held)[1] if held else ""


def hungry_share(cells_ns: Sequence[int], level: Level | None) -> float | None:
    """The part of all time in which the limiter of ``level`` held a hungry consumer; None without
    a level or any time."""
    total_ns = sum(cells_ns)
    if level is None or not total_ns:
        return None
    hungry_ns = sum(
        ns
        for ns, labels in zip(cells_ns, LABELS, strict=True)
        if labels.level is level and labels.consumer == "hungry"
    )
    return hungry_ns / total_ns
