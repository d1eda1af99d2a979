"""One subscription of a topic or partition: an account and an hour of points, from its looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import add
from typing import Final

from headgate.agent.consumer_windows import ConsumerWindows
from headgate.agent.infer import (
    STUCK_LOOKS,
    STUCK_NS,
    LimiterEvidence,
    Period,
    Sample,
    cells_between,
    is_doubtful,
    plain_cell,
)
from headgate.agent.looks import ConsumerLook, CursorLook, LimitsLook, ProofLook, SubscriptionLook
from headgate.agent.oldest_message import OldestMessage
from headgate.agent.undelivered import COUNTED_TYPES, Undelivered
from headgate.base.units import INT64_MAX, NS_PER_S
from headgate.explain.points import Point, limits_hash
from headgate.explain.track import Track
from headgate.flow.account.account import CELL_COUNT, Cell, throttled_cell
from headgate.flow.account.inferred import (
    EVENT_COUNT,
    BacklogChanges,
    GrowthCounters,
    backlog_changes,
)
from headgate.flow.limits.precedence import EffectiveLimit
from headgate.flow.limits.rate_limit import Dimension, Level

_NO_EVENTS = (0,) * EVENT_COUNT

PROOF_NS = 2 * NS_PER_S
"""A proof this close to a look is about the same instant, even while messages move."""


Rates = tuple[float | None, float | None]
"""Messages and bytes a second over the last two periods; None if not known."""

UNKNOWN_RATES: Final[Rates] = (None, None)


class InferredSubscription:
    """Follows one subscription from look to look. Call :meth:`note_look` in order of time."""

    __slots__ = (
        "_appended", "_at_ns", "_contradicts_limits", "_counts", "_entry_messages",
        "_first_limits", "_grown", "_is_reading", "_oldest", "_proof", "_published",
        "_reading_since", "_steps", "_still_looks", "_still_since_ns", "_undelivered",
        "_unknown_limits", "cells_ns", "events", "limits", "look", "looks", "name", "opened_ns",
        "published_unknown_ns", "rates", "sample", "sent_unknown_ns", "track", "windows",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.look: SubscriptionLook | None = None
        """The last one."""
        self.track: Track | None = None
        """None before the first look."""
        self.opened_ns = 0
        self.looks = 0
        self.cells_ns = [0] * CELL_COUNT
        self.sample = Sample(0.0)
        self.windows = ConsumerWindows()
        self.rates = UNKNOWN_RATES
        self.events: tuple[int, ...] | None = None
        """Throttled events since ``opened_ns`` by level, then dimension; None while not known."""
        self.limits: tuple[EffectiveLimit, ...] | None = None
        """In force by level; None while not known."""
        self._first_limits: tuple[EffectiveLimit, ...] | None = None
        self._unknown_limits = False
        self.published_unknown_ns: int | None = None
        """The last look with which it was not known what was published since the one before."""
        self.sent_unknown_ns: int | None = None
        """The same for what was sent to consumers."""
        self._contradicts_limits = False
        self._undelivered = Undelivered()
        self._oldest = OldestMessage()
        self._entry_messages = 1.0
        self._at_ns = 0
        self._published: int | None = None
        self._appended = 0
        self._counts = [0] * 8
        """sent, sent_bytes, acked, skipped, rewound, expired, evicted, events' sum."""
        self._steps: list[tuple[int, int | None, int | None]] = []
        """Time, messages and bytes sent of the last two periods."""
        self._grown: tuple[int, int | None, int] | None = None
        """Time, messages published and growth of the backlog of the last period."""
        self._still_since_ns: int | None = None
        self._still_looks = 0
        self._proof: tuple[ProofLook, CursorLook] | None = None
        """The last one, with its cursor."""
        self._reading_since: tuple[int, int] | None = None
        self._is_reading = False

    def forget_past(self, points: int) -> None:
        """Keep the two newest points, if there are more than ``points`` and no backlog: what the
        last period was like stays known."""
        track = self.track
        if track is not None and not track.phase.has_backlog:
            self._oldest.shorten()
            if len(track) > points:
                before, last = track.since(self.opened_ns)[-2:]
                self.track = Track(before)
                self.track.add(last)

    # -- what was seen -----------------------------------------------------------------------

    def note_limits(self, limits: LimitsLook) -> None:
        """The limits in force from now on."""
        of_subscription = limits.by_subscription.get(self.name, limits.dispatch[Level.SUBSCRIPTION])
        self.limits = (of_subscription, *limits.dispatch[Level.TOPIC :])
        self._unknown_limits = bool(limits.unknown)
        if self._first_limits is None:
            self._first_limits = self.limits

    def note_proof(self, proof: ProofLook) -> None:
        """``internalStats`` of its topic."""
        cursor = next((one for one in proof.cursors if one.subscription == self.name), None)
        if cursor is None:
            return
        before, self._proof = None if self._proof is None else self._proof[1], (proof, cursor)
        known = before is not None and None not in (before.read_position, cursor.read_position)
        stayed = known and before is not None and before.read_position == cursor.read_position
        self._is_reading = bool(
            stayed and before is not None and cursor.pending_reads and before.pending_reads
        )
        if known and not stayed:
            self._still_since_ns, self._still_looks = None, 0  # it reads, whatever it sends
        is_near = proof.at_ns - self._at_ns <= PROOF_NS or self._still_since_ns is not None
        if is_near and not cursor.has_pending_replay:
            self._undelivered.prove(proof, cursor, self.sample.due, self._entry_messages)

    def note_look(
        self,
        look: SubscriptionLook,
        at_ns: int,
        published: int | None,
        rates: Rates,
        *,
        was_reloaded: bool = False,
        is_fresher: bool = False,
    ) -> Point:
        """A look at the subscription, of whose topic ``published`` messages were counted, and whose
        subscriptions together got ``rates``. It must tell the backlog, and whether a consumer has
        permits (:func:`missing_figure`). ``is_fresher`` says that the look before was a survey's
        and this one is not."""
        elapsed_ns, is_first = at_ns - self._at_ns, self.track is None
        if is_fresher:
            self._bring_up(look, published, elapsed_ns)
        before = self.look
        arrived = _grown(published, self._published)
        sent = None if before is None else _grown(look.sent, before.sent)
        sent_bytes = None if before is None else _grown(look.sent_bytes, before.sent_bytes)
        events = None if before is None else _events_grown(look.events, before.events)
        entry_messages = self._mean_entry(look)
        consumers_changed = self.windows.note(
            look.consumers, counts_unacked=look.type in COUNTED_TYPES
        )
        backlog = look.backlog or 0
        self._count(look, before, arrived or 0, sent or 0, sent_bytes or 0, backlog)
        sample = self._sample(look, backlog, arrived, sent, consumers_changed or is_first)
        sample = self._with_stillness(sample, at_ns, sent, events, consumers_changed)
        if is_first:
            self.opened_ns = at_ns
        elif elapsed_ns > 0:
            self.published_unknown_ns = at_ns if arrived is None else self.published_unknown_ns
            self.sent_unknown_ns = at_ns if sent is None else self.sent_unknown_ns
            self._steps = [*self._steps[-1:], (elapsed_ns, sent, sent_bytes)]
            growth = 0 if before is None else backlog - (before.backlog or 0)
            self._grown = elapsed_ns, arrived, growth
            self.rates = _rates(self._steps)
            limiters = self._limiters(events, rates)
            self._contradicts_limits = any(
                one.events and one.is_at_limit is not True for one in limiters
            )
            period = Period(
                elapsed_ns,
                self.sample,
                sample,
                limiters,
                was_reloaded=was_reloaded,
            )
            for cell, ns in enumerate(cells_between(period)):
                self.cells_ns[cell] += ns
        self.look, self.sample, self._at_ns = look, sample, at_ns
        if events is not None or look.events is not None:
            self.events = tuple(map(add, self.events or _NO_EVENTS, events or _NO_EVENTS))
        self._published = self._published if published is None else published
        self._entry_messages = entry_messages
        self.looks += 1
        point = self._point(look, at_ns, sample, events, rates)
        if self.track is None:
            self.track = Track(point)
        else:
            self.track.add(point)
        return point

    @property
    def at_ns(self) -> int:
        """The instant of the last look."""
        return self._at_ns

    @property
    def period_ns(self) -> int:
        """The mean time between the last looks; 0 after the first."""
        return sum(step[0] for step in self._steps) // len(self._steps) if self._steps else 0

    @property
    def contradicts_limits(self) -> bool:
        """Whether a limiter counted events at a rate below its limit: the limit may be another by
        now."""
        return self._contradicts_limits

    @property
    def is_open(self) -> bool:
        """Whether it is not known what consumers have."""
        return is_doubtful(self.sample)

    @property
    def is_doubtful(self) -> bool:
        """Whether a proof would tell more: what consumers have is not known, or follows from counts
        that a proof makes exact, or nothing has moved since the look before."""
        is_counted = self.look is not None and self.look.type in COUNTED_TYPES
        return self.is_open or self._still_looks > is_counted

    @property
    def stuck_proof(self) -> tuple[ProofLook, CursorLook] | None:
        """What ``internalStats`` said since nothing moves any more, if the dispatcher is stuck."""
        found, since_ns = self._proof, self._still_since_ns
        if found is None or since_ns is None or not self.sample.is_stuck:
            return None
        return found if found[0].at_ns >= since_ns else None

    # -- what follows from it ------------------------------------------------------------------

    def _bring_up(self, look: SubscriptionLook, published: int | None, elapsed_ns: int) -> None:
        """Put what a close look shows in place of the survey before it.

        The figures of a survey are up to a minute old, so what has grown since then took longer
        than the time between the two looks. What is counted is what grows in that time by the last
        known rates; without one, nothing.
        """
        if self.look is None:
            return
        period_ns, arrived, growth = self._grown or (0, None, 0)
        part = min(1.0, elapsed_ns / period_ns) if period_ns else 0.0
        sent, sent_bytes = self._steps[-1][1:] if self._steps else (None, None)
        backlog = (look.backlog or 0) - round(part * growth)
        self._published = _less(published, self._published, arrived, part)
        self.look = replace(
            look,
            backlog=max(0, backlog),
            sent=_less(look.sent, self.look.sent, sent, part),
            sent_bytes=_less(look.sent_bytes, self.look.sent_bytes, sent_bytes, part),
            last_acked_ms=None,  # a survey does not tell
            mark_delete_moved_ms=None,
            events=None,
        )

    def _mean_entry(self, look: SubscriptionLook) -> float:
        """Mean number of messages in an entry, from the consumers; the last known one without."""
        known = [
            (consumer.entry_messages, consumer.sent or 1)
            for consumer in look.consumers
            if consumer.entry_messages is not None and consumer.entry_messages >= 1
        ]
        weight = sum(sent for _, sent in known)
        if not weight:
            return self._entry_messages
        self._entry_messages = sum(mean * sent for mean, sent in known) / weight
        return self._entry_messages

    def _count(
        self,
        look: SubscriptionLook,
        before: SubscriptionLook | None,
        arrived: int,
        sent: int,
        sent_bytes: int,
        backlog: int,
    ) -> None:
        """Add what happened since the look before."""
        self._appended += arrived
        if before is None:
            self._appended += round(backlog * self._entry_messages)
            return
        expired = _grown(look.expired, before.expired) or 0
        changes: BacklogChanges = backlog_changes(
            GrowthCounters(
                growth=backlog - (before.backlog or 0),
                published=arrived,
                entry_messages=self._entry_messages,
                expired=expired,
                was_acked=_was_acked(look, before),
            )
        )
        mean = self._entry_messages
        amounts = (changes.acked, changes.skipped, changes.rewound, expired, changes.evicted)
        self._counts[0] += sent
        self._counts[1] += sent_bytes
        for place, entries in enumerate(amounts, 2):
            self._counts[place] += round(entries * mean)

    def _sample(
        self,
        look: SubscriptionLook,
        backlog: int,
        arrived: int | None,
        sent: int | None,
        is_other: bool,
    ) -> Sample:
        mean = self._entry_messages
        delayed = min((look.delayed or 0), backlog) * mean
        due = backlog * mean - delayed
        left = None if is_other or arrived is None or sent is None else float(arrived - sent)
        self._undelivered.note(look, due, mean, left)
        consumers = _dispatched_to(look)
        open_ones = [one for one in consumers if not one.is_blocked]
        return Sample(
            backlog=backlog * mean,
            delayed=delayed,
            undelivered_least=self._undelivered.least,
            undelivered_most=self._undelivered.most,
            entry_messages=mean,
            consumers=len(look.consumers),
            has_permits=any((one.permits or 0) > 0 for one in open_ones),
            is_hungry=self.windows.is_hungry(open_ones),
            is_blocked=look.is_blocked or (bool(consumers) and not open_ones),
            is_key_blocked=_is_key_blocked(look, open_ones),
            is_reading=self._is_reading and not sent,
        )

    def _with_stillness(
        self,
        sample: Sample,
        at_ns: int,
        sent: int | None,
        events: tuple[int, ...] | None,
        consumers_changed: bool,
    ) -> Sample:
        """The sample, stuck if nothing has moved for long enough."""
        moved = sent is None or sent > 0 or consumers_changed
        # Where the broker tells no events, a limit with a long period looks the same.
        moved |= self._may_be_limited() if events is None else any(events)
        waits = plain_cell(sample) is None
        if moved or not waits:
            self._still_since_ns, self._still_looks = (at_ns, 1) if waits else (None, 0)
            return sample
        if self._still_since_ns is None:
            self._still_since_ns = at_ns
        self._still_looks += 1
        is_stuck = self._still_looks >= STUCK_LOOKS and at_ns - self._still_since_ns >= STUCK_NS
        return replace(sample, is_stuck=is_stuck)

    def _may_be_limited(self) -> bool:
        if self.limits is None or self._unknown_limits:
            return True
        return any(effective.limit is not None for effective in self.limits)

    def _limiters(self, events: tuple[int, ...] | None, rates: Rates) -> Sequence[LimiterEvidence]:
        """The six limiters, the ones without events and limit left out."""
        found = []
        for index in range(EVENT_COUNT):
            place, kind = divmod(index, len(Dimension))
            level, dimension = Level(place), Dimension(kind)
            limit = self._limit(level, dimension)
            count = None if events is None else events[index]
            is_hidden = events is not None and any(events[len(Dimension) * (level + 1) :])
            if not count and (limit is None or not (events is None or is_hidden)):
                continue
            # What a broker delivers in all is not known: most of its topics are surveyed alone.
            # So each event of its limit counts for a second at most.
            rate = (self.rates, rates, UNKNOWN_RATES)[level][dimension]
            is_known = self.limits is not None and not self._unknown_limits
            found.append(
                LimiterEvidence(
                    level,
                    dimension,
                    count,
                    rate,
                    limit,
                    burst_rate=self._burst_rate(level, dimension),
                    has_no_limit=is_known and limit is None,
                    is_hidden=is_hidden,
                )
            )
        return found

    def _limit(self, level: Level, dimension: Dimension) -> float | None:
        if self.limits is None or (limit := self.limits[level].limit) is None:
            return None
        # What comes on top of a publish rate is not known as a rate.
        return None if limit.relative else limit.per_second(dimension)

    def _burst_rate(self, level: Level, dimension: Dimension) -> float:
        """What one period of a limit allows, over the time of :attr:`rates`."""
        limit = None if self.limits is None else self.limits[level].limit
        elapsed_ns = sum(step[0] for step in self._steps)
        amount = None if limit is None or limit.relative else limit.amount(dimension)
        return amount * NS_PER_S / elapsed_ns if amount and elapsed_ns else 0.0

    def _cell(self, sample: Sample, events: tuple[int, ...] | None, rates: Rates) -> Cell:
        """The state at the look, for what shows one."""
        limiters = self._limiters(events, rates)
        cell = plain_cell(sample, is_throttled=bool(events and any(events)))
        if cell is not None:
            return cell
        at_limit = [one for one in limiters if one.is_at_limit]
        for one in at_limit or [one for one in limiters if one.is_at_limit is None and one.events]:
            return throttled_cell(one.level, one.dimension, hungry=sample.is_hungry)
        return Cell.DISPATCHING if sample.is_hungry else Cell.NO_PERMITS

    def _point(
        self,
        look: SubscriptionLook,
        at_ns: int,
        sample: Sample,
        events: tuple[int, ...] | None,
        rates: Rates,
    ) -> Point:
        sent, sent_bytes, acked, skipped, rewound, expired, evicted, _ = self._counts
        backlog, delayed = round(sample.backlog), round(sample.delayed)
        age_ns = self._oldest.note(
            at_ns,
            self._appended,
            sample.due,
            look.mark_delete_moved_ms,
            delayed=delayed > 0,
        )
        if look.oldest_age_s is not None and backlog:
            age_ns = max(age_ns, round(look.oldest_age_s * NS_PER_S))
        in_flight = look.unacked if look.type in COUNTED_TYPES else None
        if in_flight is None:
            in_flight = round(sample.due - sample.undelivered_least)
        return Point(
            cell=self._cell(sample, events, rates),
            cells_ns=tuple(self.cells_ns),
            at_ns=at_ns,
            appended=_in_64_bits(self._appended),
            done=_in_64_bits(self._appended - backlog),
            sent=_in_64_bits(sent),
            sent_bytes=_in_64_bits(sent_bytes),
            acked=_in_64_bits(acked),
            skipped=_in_64_bits(skipped),
            rewound=_in_64_bits(rewound),
            expired=_in_64_bits(expired),
            evicted=_in_64_bits(evicted),
            redelivered=0,
            in_flight=_in_64_bits(in_flight),
            delayed=_in_64_bits(delayed),
            age_ns=_in_64_bits(age_ns),
            age_ns_max=_in_64_bits(age_ns),
            limits=self._limits_hash(),
        )

    def _limits_hash(self) -> int:
        """As a history needs it: reading the limits for the first time is no change of them."""
        if self.limits is None or self.limits == self._first_limits:
            return 0
        return limits_hash([effective.limit for effective in self.limits])


def _in_64_bits(figure: int) -> int:
    """A figure as points and records can have it. What a cluster tells may add up to more, and must
    not keep its other topics from being seen."""
    return max(-INT64_MAX, min(figure, INT64_MAX))


def missing_figure(look: SubscriptionLook) -> str:
    """The figure without which a look says nothing of the account, in words; empty if none is
    missing."""
    if look.backlog is None:
        return "the backlog"
    open_ones = [one for one in _dispatched_to(look) if not one.is_blocked]
    permits = [one.permits for one in open_ones]
    if look.backlog and not look.is_blocked and None in permits:
        return "" if any((known or 0) > 0 for known in permits) else "the permits"
    return ""


def _less(now: int | None, before: int | None, grown: int | None, part: float) -> int | None:
    """A counter as it was, given what it grew by lately; None if it was not known."""
    if now is None or before is None:
        return None
    return max(0, now - round(part * (grown or 0)))


def _grown(now: int | None, before: int | None) -> int | None:
    """Growth of a counter; one that fell counts from zero."""
    if now is None or before is None:
        return None
    return now - before if now >= before else now


def _events_grown(
    now: tuple[int, ...] | None, before: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    if now is None or before is None:
        return None
    return tuple(_grown(b, a) or 0 for a, b in zip(before, now, strict=True))


def _was_acked(now: SubscriptionLook, before: SubscriptionLook) -> bool:
    if now.last_acked_ms is None and now.mark_delete_moved_ms is None:
        return True  # a survey tells neither
    return (now.last_acked_ms, now.mark_delete_moved_ms) != (
        before.last_acked_ms,
        before.mark_delete_moved_ms,
    )


def _dispatched_to(look: SubscriptionLook) -> tuple[ConsumerLook, ...]:
    """The consumers that the broker delivers to: of Failover, the active one."""
    if look.type != "Failover" or len(look.consumers) < 2:
        return look.consumers
    active = tuple(one for one in look.consumers if one.name == look.active_consumer)
    # Consumers in reserve keep all of their permits.
    return active or (min(look.consumers, key=lambda one: one.permits or 0),)


def _is_key_blocked(look: SubscriptionLook, open_ones: Sequence[ConsumerLook]) -> bool:
    """Whether messages wait for the consumers of their keys: those whose hashes drain, or, since
    Pulsar 4 reads on past them, one without permits."""
    if look.type != "Key_Shared" or not look.in_replay:
        return False
    return bool(look.draining_hashes) or any((one.permits or 0) <= 0 for one in open_ones)


def _rates(
    steps: Sequence[tuple[int, int | None, int | None]],
) -> tuple[float | None, float | None]:
    elapsed_ns = sum(step[0] for step in steps)
    return (_rate([step[1] for step in steps], elapsed_ns),
            _rate([step[2] for step in steps], elapsed_ns))  # fmt: skip


def _rate(amounts: Sequence[int | None], elapsed_ns: int) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts) or not elapsed_ns:
        return None
    return sum(known) * NS_PER_S / elapsed_ns
