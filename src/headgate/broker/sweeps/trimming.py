"""The sweep that trims entries which no subscription and no retention policy needs.

As in Pulsar, the broker trims whole ledgers, so that the list of ledgers shows what is retained.
It closes a topic's last ledger at other times than Pulsar:

* as a last resort, if the disk stays full for some seconds after everything else was trimmed;
* at the next sweep after a subscription acknowledged a part of the ledger, even if nothing is
  published, unless a connected reader is behind that part;
* otherwise by age and size as Pulsar does, but even if nothing is published. So messages that no
  subscription read, or that a reader still needs, stay as long as in Pulsar.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from headgate.base.names import TopicName
from headgate.base.units import MIB, MS_PER_S, NS_PER_S, S_PER_MINUTE
from headgate.broker.slices import Turns, live_topics
from headgate.engine.engine import Engine
from headgate.engine.topic import Topic
from headgate.flow.retention import releasable_end, trimmable_end
from headgate.ledger import CommitLog
from headgate.metadata.policies import Retention
from headgate.storage.managed_logs import ManagedLogs

SLICE_TRIMS: Final = 20
"""Topics that one slice trims: they take longer than topics with nothing to trim."""

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
    ) -> None:
        self._engine = engine
        self._logs = logs
        self._retention_of = retention_of
        self._turns = turns
        self._full_rounds = 0
        self._trimmed_ns = 0
        self._trimmed_segment = 0
        """When, and in which segment of the main log, the last sweep began."""

    async def trim_if_needed(self) -> None:
        """Trim at once if the disk is full or much was published since the last sweep.

        Call it about once a second.
        """
        is_full = self._logs.main.log.full
        self._full_rounds = self._full_rounds + 1 if is_full else 0
        if is_full or self._has_grown():
            await self.trim()

    def _has_grown(self) -> bool:
        since_ns = self._engine.now_ns - self._trimmed_ns
        segments = self._logs.main.log.active_segment() - self._trimmed_segment
        return segments >= GROWN_SEGMENTS and since_ns >= GROWN_PERIOD_NS

    async def trim(self) -> None:
        """Trim every live topic, in slices."""
        self._trimmed_ns = self._engine.now_ns
        self._trimmed_segment = self._logs.main.log.active_segment()
        trimmed_count = 0
        self._turns.begin_turn()
        async for topic in live_topics(self._engine, self._turns):
            first = topic.log.first
            if first == topic.log.end or topic.slowest_durable_ordinal() <= first:
                continue  # most topics, most of the time
            if topic.log.damage:
                continue  # it is not known what its subscriptions still need
            self._trim_topic(topic)
            trimmed_count += 1
            if trimmed_count % SLICE_TRIMS == 0:
                await asyncio.sleep(0)
                self._turns.begin_turn()
        for managed in self._logs:
            managed.committer.commit_if_idle()

    def _trim_topic(self, topic: Topic) -> None:
        log = self._logs.of(topic).log
        retention = self._retention_of(topic.name)
        is_last_resort = self._full_rounds >= FULL_ROUNDS
        end = close_and_find_end(
            log, topic, retention, self._engine.log_ms, is_last_resort=is_last_resort
        )
        if end <= topic.log.first:
            return
        for subscription in topic.subscriptions.values():
            if not subscription.is_durable and subscription.acks.mark_delete + 1 < end:
                subscription.skip_to(end)
        log.stage_trim(topic.log, end)


def close_and_find_end(
    log: CommitLog, topic: Topic, retention: Retention, log_ms: int, *, is_last_resort: bool
) -> int:
    """Close the topic's last ledger if that is due; return one past the entries to trim."""
    entries = topic.log
    if entries.first == entries.end:
        return entries.first
    releasable = releasable_end(
        entries, topic.slowest_durable_ordinal(), *_bounds(retention), log_ms
    )
    if releasable <= entries.first:
        return entries.first
    if releasable > entries.ledgers()[-1].first_ordinal and (
        is_last_resort or _is_acknowledged(topic, releasable) or log.ledger_is_over(entries, log_ms)
    ):
        log.roll_ledger(entries, log_ms)
    closed = entries.ledgers()[:-1]
    ends = (ledger.first_ordinal + ledger.entries for ledger in closed)
    return trimmable_end(entries.first, ends, releasable)


def _bounds(retention: Retention) -> tuple[int, int]:
    """The bounds of a retention in milliseconds and bytes, -1 for none."""
    minutes, megabytes = retention.retention_time_in_minutes, retention.retention_size_in_mb
    time_ms = minutes * S_PER_MINUTE * MS_PER_S if minutes >= 0 else -1
    return time_ms, megabytes * MIB if megabytes >= 0 else -1


def _is_acknowledged(topic: Topic, end: int) -> bool:
    """Whether a durable subscription has acknowledged the entries before ``end``, and no
    subscription is behind that."""
    subscriptions = topic.subscriptions.values()
    return any(s.is_durable for s in subscriptions) and all(
        s.acks.mark_delete + 1 >= end for s in subscriptions
    )
