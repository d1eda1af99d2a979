"""Reads backlog entries that are no longer in memory, on the read lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from headgate.base.clock import Clock
from headgate.base.errors import CorruptionError, InvariantError, StorageError, broken
from headgate.base.fair_queue import FairQueue
from headgate.base.sparse_counter import SparseCounter
from headgate.base.units import MIB, NS_PER_S
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.ledger import CommitLog, FetchedBlock, ReadPlan, entries_of
from headgate.ledger.format.records import segment_name
from headgate.storage.committer import Committer
from headgate.storage.index_piece import fetch_piece
from headgate.storage.lanes import Lane
from headgate.storage.lost_entries import LostEntriesLogger
from headgate.storage.read_pacing import BREAK_NS, COMMIT_WAIT_S, COMMIT_WAITS_MAX, next_slice

logger = logging.getLogger("headgate.reads")

READ_ENTRIES_MAX = 512
READ_BYTES_MAX = 4 * MIB
"""Bounds of one read. It serves every topic that waits for entries in the same range of the log."""

OPEN_READS_MAX = 16
"""Reads whose bytes are in memory or being fetched; further reads wait. Fewer are on the lane if
they take long: what is there runs in order, whoever it is for."""

FIRST_READS_MAX = 16
"""Beyond those, so many reads of tenants that have none of them. The reads of one tenant are
decoded a slice of each in turn, so all end late: who waited for the first would wait for all."""

CACHE_PARTS = 4
"""One read fetches at most the cache's size divided by this, so that it does not evict itself."""

RETRY_NS = NS_PER_S
"""The pause after a failed read."""


def _is_accepted_loss(subscription: Subscription, ordinal: int) -> bool:
    """Whether an entry is lost and an administrator has accepted that."""
    log = subscription.topic.log
    return log.is_lost(ordinal) and not log.damage


def _owner_of(subscription: Subscription) -> str:
    """Whose turn is used up by a read: one tenant may have thousands of subscriptions that read."""
    return subscription.topic.name.tenant


@dataclass(slots=True)
class OpenRead:
    """Bytes that were fetched for a subscription and are not fully decoded."""

    subscription: Subscription
    plan: ReadPlan
    entries: Iterator[tuple[int, int, bytes]]
    left: int
    """Entries of the subscription's own topic that are not decoded."""

    @property
    def owner(self) -> str:
        """The tenant."""
        return _owner_of(self.subscription)


class EntryReader:
    """Reads entries from the disk for subscriptions that wait for them.

    The reader repeats a failed read until it succeeds. It never serves a damaged entry and does not
    read it again: the subscription stops before it, in state ``storage``, until an operator skips
    the entry.
    """

    def __init__(
        self,
        log: CommitLog,
        lane: Lane,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        begin_turn: Callable[[], None],
        committer: Committer,
        clock: Clock,
    ) -> None:
        self._log = log
        self._lane = lane
        self._engine = engine
        self._loop = loop
        self._begin_turn = begin_turn
        self._committer = committer
        self._clock = clock
        self._queue: FairQueue[tuple[Subscription, int]] = FairQueue()
        """The subscriptions that wait for a read, each with its first ordinal, by tenant."""
        self._waiting_counts: SparseCounter[int] = SparseCounter()
        """How many subscriptions wait for entries of a topic, by topic number."""
        self._fetching = 0
        self._in_hand: SparseCounter[str] = SparseCounter()
        """Reads that are being fetched or decoded, by tenant."""
        self._open: FairQueue[OpenRead] = FairQueue()
        """Reads that are being decoded, by tenant: a slice of each in turn."""
        self._busy_since_ns = 0
        """Since when reading has been busy, not counting breaks shorter than :data:`BREAK_NS`."""
        self._busy_until_ns = -BREAK_NS
        """When the last slice was decoded."""
        self._slice_timer: asyncio.Handle | None = None
        """The timer that begins the next slice."""
        self._waits_left = 0
        """How many more times the next slice may wait for a commit."""
        self._closed = False
        self._damaged: dict[tuple[int, int], str] = {}
        """The damage of entries, by topic number and ordinal."""
        self._lost_logger = LostEntriesLogger()

    def read(self, subscription: Subscription, ordinal: int) -> None:
        """Bring entries from ``ordinal`` on into the topic's cache."""
        if self._closed:
            return
        number = subscription.topic.log.number
        damage = self._damaged.get((number, ordinal))
        if damage is not None and not _is_accepted_loss(subscription, ordinal):
            self._stop_at_damage(subscription, ordinal, damage)
            return
        now_ns = self._engine.now_ns
        if self.is_idle() and now_ns - self._busy_until_ns >= BREAK_NS:
            self._busy_since_ns = now_ns
        self._waiting_counts[number] += 1
        self._queue.add(_owner_of(subscription), (subscription, ordinal))
        self._fetch()

    def _stop_at_damage(self, subscription: Subscription, ordinal: int, damage: str) -> None:
        subscription.read_abandoned()
        # A subscription that reads ahead reaches the entry later.
        if subscription.next_ordinal() == ordinal:
            self._engine.damaged_topics.add(subscription.topic.log.number)
            subscription.damaged_entry = subscription.read_failed = damage

    def _skip_lost(self, subscription: Subscription, first: int) -> None:
        """Skip the lost entries from ``first`` on, up to :data:`READ_ENTRIES_MAX`: an administrator
        accepted their loss. Nothing is read for it."""
        log = subscription.topic.log
        self._lost_logger.skipped(subscription.topic)
        for ordinal in range(first, log.lost_from(first, min(first + READ_ENTRIES_MAX, log.end))):
            subscription.skip_lost(ordinal)
        self._no_longer_waiting(log.number)
        subscription.read_completed()

    def damaged_entries(self, number: int) -> list[int]:
        """Entries of a topic that were read and found damaged since the start."""
        return sorted(ordinal for topic, ordinal in self._damaged if topic == number)

    def is_idle(self) -> bool:
        """Whether no read is queued, in flight or being decoded."""
        return not (self._waiting_counts or self._fetching or self._open)

    def close(self) -> None:
        """Start no more reads; waiting subscriptions get no answer. The lane finishes its job."""
        self._closed = True
        self._queue.clear()
        self._open.clear()
        self._in_hand.clear()
        self._waiting_counts.clear()
        if self._slice_timer is not None:
            self._slice_timer.cancel()

    # -- from the disk into memory ---------------------------------------------------------

    def _fetch(self) -> None:
        while (taken := self._take()) is not None:
            subscription, ordinal = taken
            if not self._is_over(subscription, ordinal):
                self._prepare(subscription, ordinal)

    def _take(self) -> tuple[Subscription, int] | None:
        """Take the next read of those that wait; None if none may begin."""
        count = self._fetching + len(self._open)
        if not self._queue or self._fetching >= self._lane.at_once(OPEN_READS_MAX):
            return None
        if count >= OPEN_READS_MAX + FIRST_READS_MAX:
            return None
        if count < OPEN_READS_MAX:
            return self._queue.take()
        owner = self._queue.owner_among(lambda owner: owner not in self._in_hand)
        return None if owner is None else self._queue.take_of(owner)

    def _count_fetching(self, subscription: Subscription, more: int) -> None:
        self._fetching += more
        self._in_hand[_owner_of(subscription)] += more

    def _is_over(self, subscription: Subscription, ordinal: int) -> bool:
        """Whether nobody needs a read that was waiting; then it is done."""
        topic = subscription.topic
        if subscription.removed:
            self._no_longer_waiting(topic.log.number)
        elif ordinal < topic.log.first or (
            ordinal in topic.cache and topic.log.is_indexed(ordinal)
        ):
            # It was trimmed, or another read fetched it, while this read was in the queue. What is
            # in memory without its index is no longer read, but its index is.
            self._no_longer_waiting(topic.log.number)
            subscription.read_completed()
        else:
            return False
        return True

    def _prepare(
        self, subscription: Subscription, ordinal: int, held: tuple[object, ...] = ()
    ) -> None:
        """Read; bring the blocks of the index that it needs into memory first. ``held`` is what
        earlier tries brought: it stays there, however small the cache is, so that each try needs
        fewer blocks than the one before."""
        entries_max = min(READ_ENTRIES_MAX, subscription.entries_to_read(ordinal))
        missing = self._log.missing_index(subscription.topic.log, ordinal, entries_max)
        if not missing and _is_accepted_loss(subscription, ordinal):
            self._skip_lost(subscription, ordinal)
            return
        if not missing:
            self._submit(subscription, ordinal)
            return
        self._count_fetching(subscription, 1)
        self._lane.submit(
            partial(fetch_piece, self._log, missing, self._clock),
            partial(self._prepared, subscription, ordinal, held),
        )

    def _prepared(
        self,
        subscription: Subscription,
        ordinal: int,
        held: tuple[object, ...],
        blocks: list[FetchedBlock],
        error: BaseException | None,
    ) -> None:
        self._count_fetching(subscription, -1)
        if self._closed:
            return
        self._begin_turn()
        if isinstance(error, InvariantError):
            raise error
        if error is None:
            error = self._log.keep_index(blocks)
        if error is not None and not subscription.removed:
            self._no_longer_waiting(subscription.topic.log.number)
            self._retry_later(subscription, error)
        elif not self._is_over(subscription, ordinal):
            # If the entries lie in another file by now, their blocks are fetched again.
            self._prepare(subscription, ordinal, (*held, blocks))
        self._fetch()

    def _submit(self, subscription: Subscription, ordinal: int) -> None:
        bytes_max = min(READ_BYTES_MAX, self._engine.cache.size_bytes_max // CACHE_PARTS)
        entries_max = min(READ_ENTRIES_MAX, subscription.entries_to_read(ordinal))
        plan = self._log.locate(subscription.topic.log, ordinal, entries_max, bytes_max)
        plan.wanted_topics.update(self._waiting_counts)
        self._count_fetching(subscription, 1)
        self._lane.submit(
            partial(self._log.fetch, plan), partial(self._fetched, subscription, plan)
        )

    def _fetched(
        self,
        subscription: Subscription,
        plan: ReadPlan,
        data: bytes,
        error: BaseException | None,
    ) -> None:
        self._count_fetching(subscription, -1)
        if self._closed:
            return
        self._begin_turn()
        if error is None and not self._log.has_segment(plan.segment):
            # Deleted meanwhile: its file may be that of another segment by now.
            text = f"{segment_name(plan.segment)} was deleted while it was read"
            error = StorageError(text, retryable=True)
        if error is None:
            read = OpenRead(subscription, plan, entries_of(plan, data), plan.count)
            self._open.add(read.owner, read)
            self._in_hand[read.owner] += 1
            if self._slice_timer is None:
                self._next_slice()
            self._fetch()
            return
        self._no_longer_waiting(plan.topic_number)
        if isinstance(error, InvariantError):
            raise error
        if not subscription.removed:
            if self._log.is_outdated(plan):
                subscription.read_completed()  # it asks again for what it still needs
            else:
                self._retry_later(subscription, error)
        self._fetch()

    def _retry_later(self, subscription: Subscription, error: BaseException) -> None:
        """Repeat a failed read later, also after an internal error, because reading changes
        nothing. The log line of an internal error has a traceback; explain shows all alike."""
        is_expected = isinstance(error, StorageError)
        reason = str(error) if is_expected else f"internal error, {error!r}"
        if subscription.read_failed != reason:
            names = subscription.topic.name, subscription.name
            trace = None if is_expected else error
            logger.error("reading %s for %s: %s", *names, reason, exc_info=trace)
        subscription.read_failed = reason
        engine = self._engine
        engine.wake_at(engine.now_ns + RETRY_NS, partial(self._try_again, subscription))

    @staticmethod
    def _try_again(subscription: Subscription) -> None:
        if not subscription.removed:
            subscription.read_completed()

    def _no_longer_waiting(self, number: int) -> None:
        self._waiting_counts[number] -= 1

    # -- from memory to the subscriptions --------------------------------------------------

    def _slice_due(self) -> None:
        if self._waits_left and self._committer.in_flight:
            # A slice now would delay the receipts of that commit.
            self._waits_left -= 1
            self._slice_timer = self._loop.call_later(COMMIT_WAIT_S, self._slice_due)
            return
        self._slice_timer = None
        if self._open:
            self._begin_turn()
            self._next_slice()

    def _next_slice(self) -> None:
        try:
            self._decode_slice()
        except Exception as error:
            # Otherwise subscriptions would wait for these entries without end.
            raise broken("dispatching entries that were read", error) from error

    def _decode_slice(self) -> None:
        """Decode a slice of the open reads, then pause."""
        now_ns = self._busy_until_ns = self._engine.now_ns
        allowed = next_slice(now_ns - self._engine.written_ns, now_ns - self._busy_since_ns)
        entries_max, bytes_max = allowed.entries_max, allowed.bytes_max
        for _ in range(len(self._open)):
            read = self._open.take()
            entries, size_bytes, is_over = self._decode(read, entries_max, bytes_max)
            if is_over:
                self._in_hand[read.owner] -= 1
            else:
                self._open.add(read.owner, read)
            entries_max -= entries
            bytes_max -= size_bytes
            if entries_max <= 0 or bytes_max <= 0:
                break
        self._fetch()
        if allowed.pause_s:
            self._waits_left = COMMIT_WAITS_MAX
            self._slice_timer = self._loop.call_later(allowed.pause_s, self._slice_due)
        else:
            self._waits_left = 0
            self._slice_timer = self._loop.call_soon(self._slice_due)

    def _decode(self, read: OpenRead, entries_max: int, bytes_max: int) -> tuple[int, int, bool]:
        """Decode entries into the caches of their topics. Returns their number, their bytes, and
        whether the read is complete."""
        subscription, number = read.subscription, read.plan.topic_number
        if subscription.removed:
            if read.left:
                self._no_longer_waiting(number)
            return 0, 0, True
        taken: list[tuple[int, int, bytes]] = []
        size_bytes = 0
        damage: CorruptionError | None = None
        bug: Exception | None = None
        try:
            for entry in islice(read.entries, entries_max):
                taken.append(entry)
                size_bytes += len(entry[2])
                if size_bytes >= bytes_max:
                    break
        except CorruptionError as error:
            damage = error
        except InvariantError:
            raise
        except Exception as error:
            bug = error
        cache, by_number = self._engine.cache, self._engine.by_number
        own_count = 0
        # Backwards: if the cache cannot hold them all, it keeps those that are sent first.
        for topic_number, ordinal, body in reversed(taken):
            topic = by_number.get(topic_number)
            if topic is not None and ordinal >= topic.log.first:
                cache.put(topic.cache, ordinal, body)
                topic.entries_read += 1
            own_count += topic_number == number
        if bug is not None:
            # The entries before the error are in memory; the repeated read serves them.
            if read.left:
                self._no_longer_waiting(number)
                self._retry_later(subscription, bug)
            return len(taken), size_bytes, True
        is_over = damage is not None or (len(taken) < entries_max and size_bytes < bytes_max)
        if read.left:
            is_over |= self._serve(read, own_count, damage)
        return len(taken), size_bytes, is_over

    def _serve(self, read: OpenRead, own_count: int, damage: CorruptionError | None) -> bool:
        """Wake the subscription, because more entries are in memory. Returns whether it needs no
        more of this read because its position moved."""
        subscription, plan = read.subscription, read.plan
        if own_count:
            subscription.read_failed = ""
        read.left -= own_count
        stop = plan.first_ordinal + plan.count
        has_moved = False
        if damage is not None and stop - read.left < subscription.topic.log.first:
            damage, read.left = None, 0  # it was trimmed meanwhile, and its space freed
        if damage is not None:
            self._note_damage(subscription, stop - read.left, damage)
            read.left = 0
        elif read.left:
            first = subscription.next_ordinal()
            is_known = first in subscription.topic.cache
            has_moved = first >= 0 and not is_known and not stop - read.left <= first < stop
        if read.left and not has_moved:
            subscription.wake()
        else:
            self._no_longer_waiting(plan.topic_number)
            subscription.read_completed()
        return has_moved

    def _note_damage(
        self, subscription: Subscription, ordinal: int, error: CorruptionError
    ) -> None:
        """Record and log a damaged entry, once: a read that begins there gets this damage."""
        key = subscription.topic.log.number, ordinal
        if key not in self._damaged:
            self._damaged[key] = str(error)
            self._lost_logger.damage_found(key[0])
            name = subscription.topic.name
            logger.error("reading %s for %s: %s", name, subscription.name, error)
