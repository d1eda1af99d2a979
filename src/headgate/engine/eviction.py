"""Eviction: a backlog quota moves subscriptions forward, to the entry (law 4.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, Protocol

from headgate.base.ack_set import BLOCK_ORDINALS, AckSet
from headgate.base.block_sums import pieces_of
from headgate.engine.ports import EntryLog
from headgate.flow.quota.backlog import acked_bytes_within, learn_some
from headgate.flow.quota.backlog_quota import (
    Quota,
    QuotaType,
    age_evicted_ms,
    size_after_eviction,
)


class QuotaSubscription(Protocol):
    """A subscription, as far as backlog quotas need it."""

    name: str
    cursor_id: int | None
    acks: AckSet
    done_bytes: int
    removed: bool

    def oldest_unacked_ms(self) -> int | None:
        """When the broker received the oldest unacknowledged message; None without backlog."""

    def is_oldest_known(self, again: Callable[[], None], /) -> bool:
        """Whether :meth:`oldest_unacked_ms` is exact; else ``again`` follows when it is."""

    def entries_passed(self, last: int, /) -> list[int]:
        """The entries whose index a move to behind ``last`` looks up."""

    def evict_to(self, ordinal: int, quota: Quota, /) -> tuple[int, int]:
        """Drop everything below ``ordinal``; returns the messages and bytes that were lost."""


class SubscriptionLoss(NamedTuple):
    """What an eviction took from one subscription."""

    subscription: str
    messages: int
    bytes: int


class Eviction(NamedTuple):
    """One eviction on a topic."""

    quota: Quota
    backlog_bytes_before: int
    age_ms_before: int
    """Age of the oldest unacknowledged message; -1 if there is none."""
    losses: list[SubscriptionLoss]
    """The largest loss first."""
    backlog_bytes: int
    age_ms: int
    arrived_bytes: int = 0
    """Bytes that arrived or became durable while the eviction waited for the index on the disk. It
    left them to the next one."""

    @property
    def messages(self) -> int:
        """Messages that all subscriptions lost together."""
        return sum(loss.messages for loss in self.losses)

    @property
    def bytes(self) -> int:
        """Bytes that all subscriptions lost together."""
        return sum(loss.bytes for loss in self.losses)


class EvictedAmounts(NamedTuple):
    """What evictions took from all subscriptions of a topic together."""

    evictions: int
    messages: int
    bytes: int


NOTHING_EVICTED = EvictedAmounts(0, 0, 0)

EVICTED_IN_STEP: Final = 16
"""Subscriptions that one step of a pass moves: about 0.2 ms. A client can have an eviction on each
of very many topics begin at once, by a message to each."""

ENTRIES_LIKE_MOVE: Final = 64
"""Acknowledged entries that are looked at in the time in which a subscription is moved."""

PART_ENTRIES: Final = 256
"""Where an eviction ends is looked for run by run among so many entries."""


class TopicEvictions:
    """The evictions of one topic since it was loaded, by :class:`QuotaType`."""

    __slots__ = ("amounts", "last_ns")

    def __init__(self) -> None:
        self.amounts = [NOTHING_EVICTED, NOTHING_EVICTED]
        self.last_ns: list[int | None] = [None, None]
        """When each type last evicted; None if it never did."""

    def add(self, eviction: Eviction, now_ns: int) -> None:
        """Count an eviction that happened now."""
        kind = eviction.quota.type
        count, messages, size = self.amounts[kind]
        self.amounts[kind] = EvictedAmounts(
            count + 1, messages + eviction.messages, size + eviction.bytes
        )
        self.last_ns[kind] = now_ns


class LookUps(Protocol):
    """Looks entries up whose index may be on the disk: the topic."""

    def is_looked_up(self, action: Callable[[], object], again: Callable[[], None], /) -> bool:
        """Whether a look-up of entries succeeded; else ``again`` follows when the index is read,
        which is held until ``again`` returns."""


class EvictionPass:
    """Moves subscriptions forward, one after another, until none exceeds a quota.

    What a move looks up may be on the disk. Each subscription is moved in the turn in which its
    part of the index was read. So a pass ends after one read for each part, however many
    subscriptions there are, and however few parts the cache holds. The bounds are those of the
    pass's beginning: messages that arrive meanwhile do not prolong it.
    """

    __slots__ = ("_end", "_left", "_log", "_log_ms", "awaits_index", "is_outdated", "left_bytes",
                 "losses", "moved_count", "quota", "staged_bytes")  # fmt: skip

    def __init__(
        self,
        log: EntryLog,
        subscriptions: Iterable[QuotaSubscription],
        quota: Quota,
        staged_bytes: int,
        log_ms: int,
    ) -> None:
        """``log_ms`` is the time of the log."""
        self._log = log
        self._left = list(subscriptions)
        self._left.reverse()
        self.staged_bytes = staged_bytes
        """Bytes of all entries that the topic had ever staged when it began."""
        self.left_bytes = staged_bytes
        """What came after so many bytes is left to the next pass: if this one waits, also what was
        not durable when it began."""
        self._log_ms = log_ms
        self.quota = quota
        self.losses: list[SubscriptionLoss] = []
        """What subscriptions lost so far."""
        self.awaits_index = False
        """Whether a part of the index is being read for it."""
        self.moved_count = 0
        """Subscriptions that it passed so far, and one for each :data:`ENTRIES_LIKE_MOVE` of the
        acknowledged entries that it had to look at."""
        self._end = log.end
        self.is_outdated = False
        """Whether subscriptions came, or moved back, since it began."""

    def satisfied(self, staged_bytes: int, log_ms: int) -> Quota | None:
        """The quota, if another pass for it, now that this one is over, would move nobody: what was
        staged and durable, or too old, when it began is all that is."""
        is_all = (staged_bytes, self._log.end) == (self.staged_bytes, self._end)
        is_all &= self.quota.type is QuotaType.SIZE or log_ms == self._log_ms
        return self.quota if is_all and not self.is_outdated else None

    def run(self, look_ups: LookUps, again: Callable[[], None]) -> bool:
        """Go on for up to :data:`EVICTED_IN_STEP` subscriptions; True at the end of the pass, False
        if it goes on in a later turn, or has to wait for a part of the index, after which ``again``
        must call this."""
        left, log = self._left, self._log
        stop = self.moved_count + EVICTED_IN_STEP
        self.awaits_index = False
        while left and self.moved_count < stop:
            subscription = left[-1]
            if not subscription.removed:
                action = partial(self._look_ahead, subscription, stop)
                if log.first >= log.memory_first:
                    action()
                elif not look_ups.is_looked_up(action, again):
                    self.left_bytes = min(self.left_bytes, log.bytes_before(log.end))
                    self.awaits_index = True
                    return False
                if self.moved_count >= stop:
                    break
                self._move(subscription)
            left.pop()
            self.moved_count += 1
        return not left

    def _move(self, subscription: QuotaSubscription) -> None:
        acks, ordinal = subscription.acks, self._stop(subscription)
        ends = {(acks.mark_delete + 1) // BLOCK_ORDINALS, ordinal // BLOCK_ORDINALS}
        # In the blocks at both ends of a move each run is looked at.
        self.moved_count += sum(map(acks.acked_in_block, ends)) // ENTRIES_LIKE_MOVE
        messages, size = subscription.evict_to(ordinal, self.quota)
        if messages:
            self.losses.append(SubscriptionLoss(subscription.name, messages, size))

    def _look_ahead(self, subscription: QuotaSubscription, count_max: int) -> None:
        """Look up what the move of a subscription looks up, and move nothing. First find the sums
        of what is acknowledged, as far as ``moved_count`` stays below ``count_max``: of a topic
        that was loaded again none are known, and a move would go through very many runs at once."""
        log, acks = self._log, subscription.acks
        first = max(acks.mark_delete + 1, log.first)
        entries_max = (count_max - self.moved_count) * ENTRIES_LIKE_MOVE
        self.moved_count += learn_some(log, acks, first, log.end, entries_max) // ENTRIES_LIKE_MOVE
        if self.moved_count < count_max and log.first < log.memory_first:
            log.index_of(subscription.entries_passed(self._stop(subscription) - 1))

    def _stop(self, subscription: QuotaSubscription) -> int:
        return _stop(self._log, subscription, self.quota, self.staged_bytes, self._log_ms)


def _stop(
    log: EntryLog,
    subscription: QuotaSubscription,
    quota: Quota,
    staged_bytes: int,
    log_ms: int,
) -> int:
    """Where a subscription stands after an eviction; what is before its position if it loses
    nothing."""
    if quota.type is QuotaType.TIME:
        last_ms = log_ms - age_evicted_ms(quota.limit)
        return log.ordinal_received_at_or_after(last_ms + 1)
    excess_bytes = staged_bytes - subscription.done_bytes - size_after_eviction(quota.limit)
    return first_kept(log, subscription.acks, excess_bytes) if excess_bytes > 0 else 0


def first_kept(log: EntryLog, acks: AckSet, excess_bytes: int) -> int:
    """The first entry that a subscription keeps when it loses at least ``excess_bytes`` of its
    oldest unacknowledged entries, and not one entry more; the topic's end if it loses all."""
    at = max(acks.mark_delete + 1, log.first)
    for piece in pieces_of(acks, at, log.end):
        if piece.sums is not None:
            unacked_bytes = log.bytes_before(piece.stop) - log.bytes_before(at) - piece.sums[2]
            if unacked_bytes < excess_bytes:
                excess_bytes -= unacked_bytes
                at = piece.stop
                continue
        for part in range(piece.first, piece.stop, PART_ENTRIES):
            stop = min(part + PART_ENTRIES, piece.stop)
            acked_bytes = acked_bytes_within(log, acks, part, stop)
            unacked_bytes = log.bytes_before(stop) - log.bytes_before(at) - acked_bytes
            if unacked_bytes >= excess_bytes:
                return _kept_before(log, acks, at, stop, excess_bytes)
            excess_bytes -= unacked_bytes
            at = stop
    return _after(log, at, log.end, excess_bytes)


def _kept_before(log: EntryLog, acks: AckSet, at: int, stop: int, excess_bytes: int) -> int:
    """:func:`first_kept` of the entries from ``at`` to before ``stop``, which have enough."""
    for first, last in acks.acked_ranges(stop, at):
        if first > at:
            unacked_bytes = log.bytes_before(first) - log.bytes_before(at)
            if unacked_bytes >= excess_bytes:
                return _after(log, at, first, excess_bytes)
            excess_bytes -= unacked_bytes
        at = last + 1
    return _after(log, at, stop, excess_bytes)


def _after(log: EntryLog, first: int, stop: int, size_bytes: int) -> int:
    """The least ordinal up to ``stop`` such that the entries from ``first`` to before it have
    ``size_bytes``; ``stop`` if all of them have less."""
    return log.ordinal_with_bytes_before(log.bytes_before(first) + size_bytes, first, stop)
