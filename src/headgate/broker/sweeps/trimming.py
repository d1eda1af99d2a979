"""The sweep that trims entries which no subscription and no retention policy needs.

As in Pulsar, the broker trims whole ledgers, so that the list of ledgers shows what is retained.
It closes a topic's last ledger at other times than Pulsar:

* as a last resort, if the disk stays full for some seconds after everything else was trimmed;
* at the next sweep after a subscription acknowledged a part of the ledger, even if nothing is
  published, unless a connected reader is behind that part;
* if nothing was published for an hour (``managedLedgerInactiveLedgerRolloverTimeSeconds``), so that
  an idle topic keeps no segment that nothing needs;
* otherwise by age and size as Pulsar does, but even if nothing is published.

Events touch their topic: acknowledgements, skips, evictions and seeks, a removed subscription, a
changed policy, a new ledger, a load, accepted damage. The broker looks at a touched topic soon
after. Each topic with entries that time or publishing will release also has a time of its next
look. So the walk of all topics is a net that finds nothing: ``found_by_walk`` counts what it finds.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Final

from headgate.base.errors import StorageError
from headgate.base.names import TopicName
from headgate.base.units import MIB, MS_PER_S, NS_PER_S, S_PER_MINUTE
from headgate.base.work_units import (
    CURSORS_ORDERED_PER_UNIT,
    PIECE_UNITS,
    READER_MOVED,
    SUBSCRIPTION_LOOKED_AT,
    SUBSCRIPTIONS_ASKED_PER_UNIT,
    TOPIC_TRIMMED,
)
from headgate.broker.slices import Pace, Turns, live_topics
from headgate.broker.sweeps.due_topics import DueTopics
from headgate.broker.sweeps.tenant_lines import Measured, TenantLines
from headgate.engine.cursor_order import SCANNED_MAX
from headgate.engine.engine import Engine
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.retention import (
    RECHECK_MS,
    OldestLedger,
    next_look_ms,
    releasable_end,
    trimmable_end,
)
from headgate.ledger import CommitLog
from headgate.metadata.policies import Retention
from headgate.storage.managed_logs import ManagedLogs

logger = logging.getLogger("headgate.sweeps")

TOUCHED_NS: Final = 30 * NS_PER_S
"""From the first event of a topic since the last look to the next look. The pause spares a busy
topic a ledger and a record each second, and lets a subscription seek back a little."""

READERS_AT_ONCE: Final = PIECE_UNITS // READER_MOVED
"""Readers whose index is read together: each may be in a block of its own."""

READERS_LEFT_MAX: Final = 128
"""Readers that a trim may move in its one step: those that came while others were moved."""

MOVES_MAX: Final = 6
"""How often it looks for more than those before it leaves the topic to a later look. Clients may
add readers, or seek back, as fast as readers are moved, and the trims of other topics wait."""

SOONEST_MS: Final = 1 * MS_PER_S
"""From a look at a topic to the next one, if time releases entries."""

FULL_ROUNDS: Final = 10
"""After this many rounds on a full disk the broker also closes last ledgers to trim them."""

GROWN_SEGMENTS: Final = 2
GROWN_PERIOD_NS: Final = 5 * NS_PER_S
"""After this many new segments, and this long, the broker trims before the next sweep is due."""


class Trimming:
    """Trims the topics of one broker."""

    def __init__(
        self,
        engine: Engine,
        logs: ManagedLogs,
        retention_of: Callable[[TopicName], Retention],
        turns: Turns,
        idle_ms: int,
        measured: Measured,
    ) -> None:
        """``idle_ms`` is the time without a publish after which a last ledger is closed; 0 leaves
        it open."""
        self._engine = engine
        self._logs = logs
        self._retention_of = retention_of
        self._turns = turns
        self._idle_ms = idle_ms
        self._touched: OrderedDict[Topic, int] = OrderedDict()
        """Topics to look at soon, and since when, the oldest first."""
        self._due = DueTopics()
        """When to look at other topics."""
        self._staged: dict[Topic, int] = {}
        """The ``first`` of topics once their last trim is durable."""
        self._truncated: dict[Topic, int] = {}
        """Topics to trim up to an entry, whatever retention says, when no subscription needs it."""
        self.found_by_walk = 0
        """Topics in which a periodic walk of all topics found something to trim that no event had
        announced."""
        self._lines = TenantLines("the trimming sweep", self._take, turns, measured, self._commit)
        self._awaited: set[Topic] = set()
        """Of the topics in the lines those that were touched or due."""
        self._full_rounds = 0
        self._trimmed_ns = 0
        self._trimmed_segment = 0
        """When, and in which segment of the main log, the last sweep began."""

    async def trim_if_needed(self) -> None:
        """Trim at once if the disk is full or much was published since the last sweep.

        Call it about once a second.
        """
        self._turns.begin_turn()
        is_full = self._logs.main.log.full
        self._full_rounds = self._full_rounds + 1 if is_full else 0
        self._touch_rolled()
        if is_full or self._has_grown():
            await self._walk()
        else:
            await self._trim_each(self._take_due())

    def touch(self, topic: Topic) -> None:
        """Look at a topic soon: something may have released entries of it."""
        if topic not in self._touched:
            self._touched[topic] = self._engine.now_ns

    def forget(self, topic: Topic) -> None:
        """Do not look at a topic that is unloaded."""
        for waiting in (self._touched, self._staged, self._truncated):
            waiting.pop(topic, None)
        self._due.discard(topic)
        self._lines.forget(topic)
        self._awaited.discard(topic)

    def stop(self) -> None:
        """End what is under way: the broker ends."""
        self._lines.stop()

    async def trim_now(self, topic: Topic) -> None:
        """Trim what can be trimmed of one topic, for an administrator."""
        self._turns.begin_turn()
        await self._look(topic, Pace(self._turns), is_awaited=True)
        self._commit()

    async def begin_truncation(self, topic: Topic) -> int:
        """Close the last ledger of a topic, and note that retention does not cover what it has up
        to now. Returns one past its last entry, which is answered; subscriptions must pass it.

        Raises:
            TopicFencedError: the topic was unloaded meanwhile.
            StorageError: the last entries could not be stored.
        """
        managed, entries = self._logs.of(topic), topic.log
        managed.log.roll_ledger(entries, self._engine.log_ms)
        end = entries.staged_end
        await managed.committer.when_answered(topic)  # what has no receipt yet is not trimmed
        self._turns.begin_turn()
        topic.check_loaded()
        end = min(end, entries.end)  # the rest found no room; others may have its places
        self._truncated[topic] = end
        self.touch(topic)
        return end

    def _truncated_end(self, topic: Topic, acknowledged_end: int) -> int:
        """One past the entries that a truncation removes now; 0 if there are none."""
        end = self._truncated.get(topic, 0)
        if end <= topic.log.first:
            self._truncated.pop(topic, None)
            return 0
        return end if end <= acknowledged_end else 0

    def _touch_rolled(self) -> None:
        """Touch the topics that opened or filled a ledger: those before it, or it, may be freed."""
        for managed in self._logs:
            for number in managed.log.take_topics_with_new_ledgers():
                topic = self._engine.by_number.get(number)
                if topic is not None:
                    self.touch(topic)

    def _take_due(self) -> Iterator[Topic]:
        """The topics to look at now, each removed from those that wait."""
        until_ns = self._engine.now_ns - TOUCHED_NS
        log_ms = self._engine.log_ms
        touched = self._touched
        while touched:
            topic, since_ns = next(iter(touched.items()))
            if since_ns > until_ns:
                break
            del touched[topic]
            yield topic
        yield from self._due.take(log_ms)

    def _has_grown(self) -> bool:
        since_ns = self._engine.now_ns - self._trimmed_ns
        segments = self._logs.main.log.active_segment() - self._trimmed_segment
        return segments >= GROWN_SEGMENTS and since_ns >= GROWN_PERIOD_NS

    async def trim(self) -> None:
        """Trim every live topic, in slices. Those of tenants with very much to do may be trimmed
        some time later."""
        self._touch_rolled()
        await self._walk()

    async def _walk(self) -> None:
        """Have every live topic looked at that may have something to trim."""
        self._trimmed_ns = self._engine.now_ns
        self._trimmed_segment = self._logs.main.log.active_segment()
        log_ms = self._engine.log_ms
        self._turns.begin_turn()
        async for topic in live_topics(self._engine, self._turns):
            is_awaited = self._touched.pop(topic, None) is not None
            due_ms = self._due.due_ms(topic)
            is_awaited |= due_ms is not None and due_ms <= log_ms + RECHECK_MS
            if is_awaited:
                self._awaited.add(topic)
            if is_awaited or len(topic.subscriptions) > SCANNED_MAX or _may_release(topic):
                # Few topics, most of the time. Many cursors are ordered in the tenant's line.
                self._lines.add(topic)
        await self._lines.wait()

    async def _trim_each(self, topics: Iterator[Topic]) -> None:
        """Have these topics looked at."""
        pace = Pace(self._turns)
        for topic in topics:
            self._awaited.add(topic)
            self._lines.add(topic)
            if pace.spent(SUBSCRIPTION_LOOKED_AT):
                await pace.give_way()
        await self._lines.wait()

    async def _take(self, topic: Topic, pace: Pace) -> None:
        """Look at a topic whose turn has come."""
        is_awaited = topic in self._awaited
        self._awaited.discard(topic)
        await self._look(topic, pace, is_awaited)

    async def _look(self, topic: Topic, pace: Pace, is_awaited: bool) -> None:
        """Trim what can be trimmed of a topic. It ``is_awaited`` if something announced it."""
        await order_cursors(topic, pace)
        if is_awaited:
            self._touch_again(topic)
        if topic.is_live and _may_release(topic):
            is_trimmed = await self._trim_loaded(topic, pace)
            is_awaited |= topic in self._touched  # while its index was read
            self.found_by_walk += is_trimmed and not is_awaited
        if pace.spent(TOPIC_TRIMMED):
            await pace.give_way()

    def _touch_again(self, topic: Topic) -> None:
        """Look at a topic again if its slowest subscription has acknowledgements that are not
        staged. Of those between two commits, only the first one touches the topic. Or if the
        receipts of what nobody needs any more are not sent, which touches no topic."""
        if not topic.is_live:
            return
        oldest = topic.cursors.oldest_durable()
        is_acknowledging = oldest is not None and oldest.acks_dirty
        if is_acknowledging or topic.publishing.visible < topic.slowest_durable_ordinal():
            self.touch(topic)

    async def _trim_loaded(self, topic: Topic, pace: Pace) -> bool:
        """Load what trimming a topic looks up of its index, then trim it."""
        index = self._logs.of(topic).index
        # Each subscription is asked for what it has yet to forget, and for what it passes.
        if pace.spent(len(topic.subscriptions) / SUBSCRIPTIONS_ASKED_PER_UNIT):
            await pace.give_way()
            if not topic.is_live:
                return False
        try:
            await index.look_up(partial(self._releasable_end, topic), is_upkeep=True)
            if not (topic.is_live and self._may_trim(topic)):
                return False
            self._turns.begin_turn()
            end = self._close_last(topic)
            if not (await self._move_readers(topic, end, pace) and self._few_are_left(topic, end)):
                return False
            await index.look_up(partial(self._look_ahead, topic, end), is_upkeep=True)
        except StorageError as error:
            logger.error("trimming %s waits: %s", topic.name, error)
            self.touch(topic)
            return False
        await order_cursors(topic, pace)
        if not (topic.is_live and self._may_trim(topic) and self._few_are_left(topic, end)):
            return False
        return self._trim_topic(topic, end)

    def _may_trim(self, topic: Topic) -> bool:
        """Whether to look at a topic now: not while one of its subscriptions has yet to forget
        what its cursor passed, because that takes the index of these entries."""
        if not _may_release(topic):
            return False
        if any(s.dispatcher.needs_passed for s in topic.subscriptions.values()):
            self.touch(topic)
            return False
        return True

    async def _move_readers(self, topic: Topic, end: int, pace: Pace) -> bool:
        """Move the readers that are before ``end``, which hold nothing back. False if the topic was
        unloaded meanwhile."""
        for _ in range(MOVES_MAX):
            await order_cursors(topic, pace)
            oldest = topic.cursors.oldest_reader()
            if oldest is None or not _is_behind(oldest, end):
                return topic.is_live
            behind = [each for each in topic.subscriptions.values() if _is_behind(each, end)]
            await self._move(topic, behind, end, pace)
            if not topic.is_live:
                return False
            if len(behind) <= READERS_AT_ONCE:
                return True
            if pace.spent(len(topic.subscriptions) / SUBSCRIPTIONS_ASKED_PER_UNIT):
                await pace.give_way()
        return topic.is_live

    def _few_are_left(self, topic: Topic, end: int) -> bool:
        """Whether few readers are before ``end`` that came while others were moved, or while the
        index was read after that, for as long as clients added some. Otherwise a later look
        follows."""
        oldest = topic.cursors.oldest_reader()
        if oldest is None or not _is_behind(oldest, end):
            return True
        behind = [each for each in topic.subscriptions.values() if _is_behind(each, end)]
        if len(behind) > READERS_LEFT_MAX:
            self.touch(topic)
            return False
        return True

    async def _move(self, topic: Topic, behind: list[Subscription], end: int, pace: Pace) -> None:
        """Move readers to ``end``, a few at once: a topic may have tens of thousands, each in a
        block of the index of its own."""
        index = self._logs.of(topic).index
        for start in range(0, len(behind), READERS_AT_ONCE):
            part = behind[start : start + READERS_AT_ONCE]

            def find(part: list[Subscription] = part) -> object:
                there = [each for each in part if _is_behind(each, end)]
                passed = [ordinal for each in there for ordinal in each.entries_passed(end - 1)]
                return topic.log.index_of(passed)

            held = await index.look_up(find, is_upkeep=True)
            self._turns.begin_turn()
            for each in part:
                if _is_behind(each, end):
                    each.skip_to(end)
            del held
            if pace.spent(len(part) * READER_MOVED):
                await pace.give_way()
            if not topic.is_live:
                return

    def _releasable_end(self, topic: Topic) -> int:
        """Look up how much of a topic nothing needs any more."""
        bounds = _bounds(self._retention_of(topic.name))
        acknowledged_end = _unneeded_end(topic)
        return releasable_end(topic.log, acknowledged_end, *bounds, self._engine.log_ms)

    def _close_last(self, topic: Topic) -> int:
        """Close the last ledger of a topic if that is due; returns one past what to trim."""
        end = close_and_find_end(
            self._logs.of(topic).log,
            topic,
            self._retention_of(topic.name),
            self._engine.log_ms,
            idle_ms=self._idle_ms,
            is_last_resort=self._full_rounds >= FULL_ROUNDS,
        )
        return max(end, self._truncated_end(topic, _unneeded_end(topic)))

    def _look_ahead(self, topic: Topic, end_max: int) -> None:
        """Look up what trimming a topic up to ``end_max`` looks up, so that it is in memory
        then."""
        entries = topic.log
        if entries.first >= entries.memory_first:
            return
        acknowledged_end = _unneeded_end(topic)
        bounds = _bounds(self._retention_of(topic.name))
        releasable = releasable_end(entries, acknowledged_end, *bounds, self._engine.log_ms)
        starts = entries.ledger_starts()
        end = trimmable_end(entries.first, starts[1:], releasable)
        end = min(max(end, self._truncated_end(topic, acknowledged_end)), end_max)
        for ordinal in (end, acknowledged_end):
            if entries.first <= ordinal <= entries.end:
                entries.bytes_before(ordinal)
        came = (each for each in topic.subscriptions.values() if _is_behind(each, end))
        for subscription in islice(came, READERS_LEFT_MAX):  # again after each read
            entries.index_of(subscription.entries_passed(end - 1))
        for start in starts[1:]:
            if start > releasable:
                entries.received_ms(start - 1)
                break

    def _commit(self) -> None:
        for managed in self._logs:
            managed.committer.commit_if_idle()

    def _trim_topic(self, topic: Topic, end_max: int) -> bool:
        """Trim what can be trimmed of one topic up to ``end_max``; returns whether that was
        something. What can be trimmed since is left to a later look: all readers would have to
        move again, in one step."""
        log = self._logs.of(topic).log
        retention = self._retention_of(topic.name)
        end = max(min(self._close_last(topic), end_max), topic.log.first)
        self._schedule(topic, end, retention)
        if end <= topic.log.first:
            self._staged.pop(topic, None)
            return False
        for subscription in topic.cursors.before(end):  # readers
            subscription.skip_to(end)
        if not self._may_trim(topic):
            return False  # a reader has yet to forget very many entries
        is_new = end > self._staged.get(topic, 0)
        self._staged[topic] = end
        log.stage_trim(topic.log, end)
        return is_new

    def _schedule(self, topic: Topic, end: int, retention: Retention) -> None:
        """Note when to look at a topic again, whose entries before ``end`` are trimmed."""
        entries = topic.log
        log_ms = self._engine.log_ms
        due_ms = None
        if end < entries.end:
            acknowledged_end = _unneeded_end(topic)
            due_ms = next_look_ms(
                entries,
                self._ledger_of(topic, end),
                acknowledged_end,
                *_bounds(retention),
                log_ms,
                is_acknowledged=acknowledged_end > end
                and topic.cursors.oldest_durable() is not None,
            )
        if due_ms is None:
            self._due.discard(topic)
            return
        self._due.set(topic, max(due_ms, log_ms + SOONEST_MS))

    def _ledger_of(self, topic: Topic, first: int) -> OldestLedger:
        """The ledger of the retained entry ``first``."""
        entries = topic.log
        for stop in entries.ledger_starts()[1:]:
            if stop > first:
                return OldestLedger(first, stop, None)
        ends_ms = self._logs.of(topic).log.ledger_due_ms(entries)
        if self._idle_ms:
            ends_ms = min(ends_ms, entries.received_ms(entries.end - 1) + self._idle_ms)
        return OldestLedger(first, entries.end, ends_ms)


def _is_behind(subscription: Subscription, end: int) -> bool:
    """Whether a subscription is a reader's, which trimming to ``end`` moves."""
    if subscription.is_durable or subscription.removed:
        return False
    return subscription.acks.mark_delete + 1 < end


async def order_cursors(topic: Topic, pace: Pace) -> None:
    """Find the cursors that are furthest behind, in pieces: very many may have moved. Each is
    looked at once: clients may move them as fast, and sweeps of all topics wait for this. The next
    question for the furthest looks at the rest."""
    left = len(topic.subscriptions)
    while left >= 0:
        count = max(1, int(pace.left * CURSORS_ORDERED_PER_UNIT / 2))
        if topic.cursors.settle(count):
            return
        left -= count
        await pace.give_way()


def close_and_find_end(
    log: CommitLog,
    topic: Topic,
    retention: Retention,
    log_ms: int,
    *,
    idle_ms: int = 0,
    is_last_resort: bool,
) -> int:
    """Close the topic's last ledger if that is due; return one past the entries to trim."""
    entries = topic.log
    if entries.first == entries.end:
        return entries.first
    releasable = releasable_end(entries, _unneeded_end(topic), *_bounds(retention), log_ms)
    if releasable <= entries.first:
        return entries.first
    if releasable > entries.ledger_starts()[-1] and (
        is_last_resort
        or _is_acknowledged(topic, releasable)
        or log.ledger_is_over(entries, log_ms)
        or 0 < idle_ms <= log_ms - entries.received_ms(entries.end - 1)
    ):
        log.roll_ledger(entries, log_ms)
    return trimmable_end(entries.first, entries.ledger_starts()[1:], releasable)


def _may_release(topic: Topic) -> bool:
    """Whether subscriptions no longer need all of a topic, and it is known what they need."""
    first = topic.log.first
    if first == topic.log.end or _unneeded_end(topic) <= first:
        return False
    return not topic.log.damage


def _unneeded_end(topic: Topic) -> int:
    """The first entry that a durable subscription has not acknowledged, or whose receipt is not
    sent: a commit that trims that would wait for receipts, and with it all that is stored."""
    return min(topic.slowest_durable_ordinal(), topic.publishing.visible)


def _bounds(retention: Retention) -> tuple[int, int]:
    """The bounds of a retention in milliseconds and bytes, -1 for none."""
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    time_ms = minutes * S_PER_MINUTE * MS_PER_S if minutes >= 0 else -1
    return time_ms, megabytes * MIB if megabytes >= 0 else -1


def _is_acknowledged(topic: Topic, end: int) -> bool:
    """Whether a durable subscription has acknowledged the entries before ``end``, and no
    subscription is behind that."""
    oldest, reader = topic.cursors.oldest_durable(), topic.cursors.oldest_reader()
    if oldest is None or oldest.acks.mark_delete + 1 < end:
        return False
    return reader is None or reader.acks.mark_delete + 1 >= end
