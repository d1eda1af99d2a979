"""The verdict: the cause of a backlog, from the account of time.

It applies the law of ``docs/telemetry.md`` section 1 to a frozen :class:`Evidence`, so that the
broker's explain and the pipeline's history judge alike:

1. NONE, if the oldest deliverable unacknowledged message stayed young, the backlog did not grow and
   no backlog quota evicted and no TTL expired anything. A healthy busy subscription always has
   messages in flight. In a window longer than :data:`GROWTH_NS_MAX` growth does not matter: if all
   messages are young, the waiting ones came in the last seconds. An eviction or expiry before the
   acknowledgement is no sign of health, however young the message was.
2. Otherwise the class with the largest share of blame, by seconds.
3. Before it blames a limiter: if consumers hold more and more, and acknowledge no more than the
   limit allows, the limiter is a bystander, because a slow consumer's queue is still filling.
   Messages that were delivered and evicted or expired before the acknowledgement count as still
   held.
4. If two classes are within 5 % of each other, it names both, with low confidence.
5. An account that is inferred from counters is less certain than a measured one: it multiplies the
   confidence by :data:`INFERRED_CONFIDENCE`.

The counterfactual: at the rate that the consumer has demonstrated, would the backlog have grown
without that limit too?

``headgate.pipeline.kernels.verdict_arrays`` applies the same law to arrays. Change both together;
its test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from headgate.base.errors import InputError
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.flow.account.account import CELL_COUNT, LABELS, State
from headgate.flow.limits.rate_limit import Dimension, Level

YOUNG_NS = 2 * NS_PER_S
"""A message younger than this is in flight, not in a backlog (an option of :func:`judge`)."""
CLOSE_SHARE = 0.05
"""If two shares are this close, the verdict names both classes."""
GROWTH_SHARE_MIN = 0.05
"""What consumers hold counts as growing if it grew by more than this part of what they got ..."""
IN_FLIGHT_NS = 250 * NS_PER_MS
"""... and by more than this time's deliveries: clients group acknowledgements for 100 ms."""
GROWTH_NS_MAX = 10 * YOUNG_NS
"""In a longer window, growth shows nothing that age does not: a consumer that falls behind for a
tenth of the window has an old message at its end."""
MEASURED: Final = "measured"
INFERRED: Final = "inferred"
"""What evidence rests on: a broker's own account of time, or one inferred from counters."""
INFERRED_CONFIDENCE = 0.6
"""Counters do not show whether a consumer was hungry, nor what happened between two snapshots."""


class Verdict(Enum):
    """The cause of a backlog. The values appear in REST, tables and sentences."""

    NONE = "NONE"
    CONSUMER = "CONSUMER"
    NO_CONSUMER = "NO_CONSUMER"
    THROTTLED_SUBSCRIPTION = "THROTTLED_SUBSCRIPTION"
    THROTTLED_TOPIC = "THROTTLED_TOPIC"
    THROTTLED_BROKER = "THROTTLED_BROKER"
    BROKER = "BROKER"


THROTTLED = (
    Verdict.THROTTLED_SUBSCRIPTION,
    Verdict.THROTTLED_TOPIC,
    Verdict.THROTTLED_BROKER,
)
"""Indexed by :class:`Level`."""

_BLAME = {
    State.TRANSITION: Verdict.BROKER,
    State.CAUGHT_UP: Verdict.NONE,
    State.AWAITING_ACK: Verdict.CONSUMER,
    State.NO_CONSUMER: Verdict.NO_CONSUMER,
    State.UNACKED_LIMIT: Verdict.CONSUMER,
    State.NO_PERMITS: Verdict.CONSUMER,
    State.SOCKET_FULL: Verdict.CONSUMER,
    State.KEY_BLOCKED: Verdict.CONSUMER,
    State.STORAGE: Verdict.BROKER,
    State.DISPATCHING: Verdict.BROKER,
    State.NOT_DUE: Verdict.NONE,
    State.STUCK: Verdict.BROKER,
}


def _blame(index: int) -> Verdict:
    labels = LABELS[index]
    if labels.level is None:
        return _BLAME[labels.state]
    return THROTTLED[labels.level] if labels.consumer == "hungry" else Verdict.CONSUMER


BLAME: tuple[Verdict, ...] = tuple(_blame(index) for index in range(CELL_COUNT))
"""The class that each cell blames, indexed by ``account.Cell``: exactly one."""

_BLAME_PLACES = tuple(list(Verdict).index(verdict) for verdict in BLAME)
"""For each cell, the place of that class in the enumeration."""


@dataclass(frozen=True, slots=True)
class LimitFact:
    """A limit in force at one level, as rates; None for a dimension without a limit."""

    level: Level
    messages_per_s: float | None
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The inputs of the law: one subscription over one window.

    Message counts are taken at the start and end of the window, or are sums over it. ``cells_ns``
    has the nanoseconds in each cell (``account.difference`` of two snapshots), ``sub_windows_ns``
    the same for any number of parts of the window. ``oldest_age_ns_max`` is the largest age of the
    oldest deliverable unacknowledged message. ``unacked`` messages are with consumers. ``evicted``
    messages were evicted by a backlog quota, or expired by their age, before they were
    acknowledged; a later acknowledgement of them is not in ``acked``. ``demonstrated_ack_per_s`` is
    the rate that the consumers have demonstrated, None if they have not. ``completeness`` (0..1)
    says how much of the window is covered and how well the growth adds up. ``is_inferred`` says
    that the cells come from counters.
    """

    window_ns: int
    cells_ns: Sequence[int]
    backlog_start: int
    backlog_end: int
    oldest_age_ns_max: int
    appended: int
    delivered: int
    acked: int
    unacked_start: int = 0
    unacked_end: int = 0
    evicted: int = 0
    delivered_bytes: int = 0
    limits: Sequence[LimitFact] = ()
    sub_windows_ns: Sequence[Sequence[int]] = ()
    demonstrated_ack_per_s: float | None = None
    completeness: float = 1.0
    is_inferred: bool = False

    def __post_init__(self) -> None:
        if self.window_ns < 1:
            raise InputError(f"window_ns is {self.window_ns}; a window is longer than nothing")
        if any(len(cells) != CELL_COUNT for cells in (self.cells_ns, *self.sub_windows_ns)):
            raise InputError(f"an account has {CELL_COUNT} cells")
        if not 0.0 <= self.completeness <= 1.0:
            raise InputError(f"completeness is {self.completeness}; it lies in 0..1")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, with its reasons.

    ``second`` is another class to name: one within 5 %, or a limiter that is a ``bystander``. The
    ``shares`` of all classes sum to 1. ``dimension`` is what the blamed limiter (or the bystander)
    counts. ``would_have_grown`` says whether the backlog would have grown without that limit; it is
    None if no limiter is blamed or the consumer has demonstrated no rate. ``growth`` is in
    messages. ``is_inferred`` is that of the evidence.
    """

    verdict: Verdict
    second: Verdict | None
    bystander: bool
    shares: Mapping[Verdict, float]
    dimension: Dimension | None
    confidence: float
    would_have_grown: bool | None
    growth: int
    is_inferred: bool = False


def blame_shares(cells_ns: Sequence[int]) -> dict[Verdict, float]:
    """The part of the time for which each class is to blame; they sum to 1. Without any time, all
    of it is NONE."""
    # By place, because explain asks 20 times for each subscription, and a member's hash is slow.
    blamed_ns = [0] * len(Verdict)
    for cell, ns in enumerate(cells_ns):
        blamed_ns[_BLAME_PLACES[cell]] += ns
    total_ns = sum(blamed_ns)
    if not total_ns:
        return {verdict: float(verdict is Verdict.NONE) for verdict in Verdict}
    return {verdict: ns / total_ns for verdict, ns in zip(Verdict, blamed_ns, strict=True)}


def blamed_shares(
    shares: Mapping[Verdict, float], verdict: Verdict, second: Verdict | None, *, bystander: bool
) -> dict[Verdict, float]:
    """Shares that agree with the verdict; they sum to 1.

    With NONE, all of the time is NONE, because the other shares are messages in flight. The share
    of a bystander goes to the consumer.
    """
    if verdict is Verdict.NONE:
        return {each: float(each is Verdict.NONE) for each in Verdict}
    found = dict(shares)
    if bystander and second is not None:
        found[Verdict.CONSUMER] += found[second]
        found[second] = 0.0
    return found


def nobody_text(shares: Mapping[Verdict, float]) -> str:
    """The text that stands for the shares if the verdict is NONE."""
    in_flight = 1.0 - shares[Verdict.NONE]
    return f"nobody; messages were in flight for {100 * in_flight:.0f} % of it"


def judge(evidence: Evidence, *, young_ns: int = YOUNG_NS) -> Judgement:
    """Apply the law. A message younger than ``young_ns`` is in flight."""
    shares = blame_shares(evidence.cells_ns)
    growth = evidence.backlog_end - evidence.backlog_start
    certainty = INFERRED_CONFIDENCE if evidence.is_inferred else 1.0
    if _is_healthy(evidence, growth, young_ns):
        margin = 1.0 - evidence.oldest_age_ns_max / young_ns
        return Judgement(
            verdict=Verdict.NONE,
            second=None,
            bystander=False,
            shares=shares,
            dimension=None,
            confidence=max(0.0, min(1.0, margin)) * evidence.completeness * certainty,
            would_have_grown=None,
            growth=growth,
            is_inferred=evidence.is_inferred,
        )
    first, next_best = _two_largest(shares)
    # A backlog, although the account says that nothing waited: the evidence contradicts itself.
    margin = 0.0 if first is Verdict.NONE else shares[first] - shares[next_best]
    second = next_best if shares[next_best] > 0 and margin <= CLOSE_SHARE else None
    bystander = False
    limiter = first if first in THROTTLED else None
    if first in THROTTLED and _stands_by(evidence, first):
        bystander, second, first = True, first, Verdict.CONSUMER
        margin = _growth_margin(evidence)
    elif second in THROTTLED and first is not Verdict.NONE:
        limiter = limiter or second
    return Judgement(
        verdict=first,
        second=second,
        bystander=bystander,
        shares=shares,
        dimension=None if limiter is None else _dimension(evidence.cells_ns, limiter),
        confidence=(
            margin * evidence.completeness * _agreement(evidence, first, second) * certainty
        ),
        would_have_grown=None if first not in THROTTLED else _would_have_grown(evidence, first),
        growth=growth,
        is_inferred=evidence.is_inferred,
    )


def _is_healthy(evidence: Evidence, growth: int, young_ns: int) -> bool:
    """Whether all messages are young, and the backlog does not grow beyond what is in flight.

    The mean rate of a window says little about a producer that began late in it. But if no message
    got older than clients take to acknowledge, all messages were in flight, whatever the rate.
    """
    if evidence.evicted:
        return False
    if evidence.oldest_age_ns_max <= min(young_ns, IN_FLIGHT_NS):
        return True
    if evidence.oldest_age_ns_max >= young_ns:
        return False
    in_flight = evidence.appended * IN_FLIGHT_NS / evidence.window_ns
    return evidence.window_ns > GROWTH_NS_MAX or growth <= max(1.0, in_flight)


def _two_largest(shares: Mapping[Verdict, float]) -> tuple[Verdict, Verdict]:
    """The two classes with the most blame. NONE counts only if no other class has a share."""
    blamed = [verdict for verdict in Verdict if verdict is not Verdict.NONE]
    blamed.sort(key=lambda verdict: -shares[verdict])
    if shares[blamed[0]] == 0:
        return Verdict.NONE, blamed[0]
    return blamed[0], blamed[1]


def _stands_by(evidence: Evidence, limiter: Verdict) -> bool:
    """Whether the limiter holds back only what a slow consumer could not take anyway."""
    grown = _unacked_growth(evidence)
    in_flight = evidence.delivered * IN_FLIGHT_NS / evidence.window_ns
    if grown <= max(1.0, in_flight, GROWTH_SHARE_MIN * evidence.delivered):
        return False
    acked_per_s = evidence.acked * NS_PER_S / evidence.window_ns
    limit_per_s = _limit_messages_per_s(evidence, limiter)
    return limit_per_s is None or acked_per_s <= limit_per_s


def _unacked_growth(evidence: Evidence) -> int:
    """By how much the messages with the consumers grew, plus those that were evicted while they had
    them: at most what was delivered and is neither acknowledged nor still there."""
    grown = evidence.unacked_end - evidence.unacked_start
    gone = evidence.delivered - evidence.acked - grown
    return grown + max(0, min(evidence.evicted, gone))


def _limit_messages_per_s(evidence: Evidence, limiter: Verdict) -> float | None:
    """The limit of the limiter in messages a second; a limit in bytes is converted by the mean size
    of the delivered messages. None if it is unknown, as with the counters of another cluster."""
    dimension = _dimension(evidence.cells_ns, limiter)
    for limit in evidence.limits:
        if limit.level == THROTTLED.index(limiter):
            if dimension == Dimension.MESSAGES:
                return limit.messages_per_s
            if limit.bytes_per_s is not None and evidence.delivered_bytes > 0:
                return limit.bytes_per_s * evidence.delivered / evidence.delivered_bytes
    return None


def _growth_margin(evidence: Evidence) -> float:
    """How far the consumers fell behind what they got, 0..1."""
    return min(1.0, _unacked_growth(evidence) / evidence.delivered) if evidence.delivered else 0.0


def _dimension(cells_ns: Sequence[int], limiter: Verdict) -> Dimension:
    """The dimension in which the limiter held for the longer time."""
    held_ns = [0, 0]
    for ns, labels in zip(cells_ns, LABELS, strict=True):
        if labels.level is not None and THROTTLED[labels.level] is limiter:
            held_ns[Dimension[labels.dimension.upper()]] += ns
    return Dimension.BYTES if held_ns[1] > held_ns[0] else Dimension.MESSAGES


def _would_have_grown(evidence: Evidence, limiter: Verdict) -> bool | None:
    """Whether the backlog would have grown without the limit: the consumer then takes the rate that
    it has demonstrated, and never less than with the limit."""
    if limiter not in THROTTLED or evidence.demonstrated_ack_per_s is None:
        return None
    acked_per_s = evidence.acked * NS_PER_S / evidence.window_ns
    appended_per_s = evidence.appended * NS_PER_S / evidence.window_ns
    return appended_per_s > max(evidence.demonstrated_ack_per_s, acked_per_s)


def _agreement(evidence: Evidence, first: Verdict, second: Verdict | None) -> float:
    """The part of the sub-windows, by time, that blame the same class or the second one; 1 without
    sub-windows that blame a class.

    It goes by time, because the last sub-window is often short: a second must not outvote a minute.
    """
    agreeing_ns = asked_ns = 0
    for cells_ns in evidence.sub_windows_ns:
        winner, _ = _two_largest(blame_shares(cells_ns))
        if winner is not Verdict.NONE:
            ns = sum(cells_ns)
            asked_ns += ns
            agreeing_ns += ns if winner in (first, second) else 0
    return agreeing_ns / asked_ns if asked_ns else 1.0
