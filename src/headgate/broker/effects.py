"""Carries out the effects that the engine asks for, on the logs of one broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headgate.base.chunk import Chunk
from headgate.base.log_time import published_in_log_ms
from headgate.broker.quota_logger import QuotaLogger
from headgate.engine.eviction import Eviction
from headgate.engine.ports import EntryLog
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota
from headgate.storage.log_clock import LogClock
from headgate.storage.managed_logs import ManagedLogs
from headgate.wire.chunks import chunk_of
from headgate.wire.publish_time import publish_time_ms_of
from headgate.wire.sequence_ids import entry_sequence, name_test


class TouchedTopics(Protocol):
    """The topics to look at soon, for entries to trim or messages that expire."""

    def touch(self, topic: Topic, /) -> None:
        """Look at a topic soon."""

    def forget(self, topic: Topic, /) -> None:
        """Do not look at a topic that is unloaded."""


class EngineEffects:
    """Implements :class:`headgate.engine.effects.Effects` on the logs of one broker."""

    logs: ManagedLogs
    """Set before the first topic is loaded: the logs need the engine, which needs its effects."""
    trimming: TouchedTopics
    message_expiry: TouchedTopics
    """Both are set before the first topic is loaded."""

    def __init__(
        self, log_clock: LogClock, quota_logger: QuotaLogger, schedule_flush: Callable[[], None]
    ) -> None:
        self._log_clock = log_clock
        self._quota_logger = quota_logger
        self.work_pending = schedule_flush
        """The engine calls this after each event. A method would cost one more call."""

    def append(self, log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        """Stage an entry in its topic's log and return its ordinal."""
        self.work_pending()
        publish_ms = publish_time_ms_of(body)
        if skew_ms := self._log_clock.skew_ms:
            publish_ms = published_in_log_ms(publish_ms, log_ms, skew_ms)
        stage = self.logs.numbered(log.number).log.stage_entry
        return stage(log, message_count, log_ms, publish_ms, body)

    def sequence_of(self, body: bytes) -> tuple[str, int, int] | None:
        """The producer's name and the first and last sequence id in an entry's metadata."""
        return entry_sequence(body)

    def name_test(self, name: str) -> Callable[[bytes], object]:
        """A quick test whether an entry names this producer."""
        return name_test(name)

    def track_sequences(self, log: EntryLog, is_on: bool) -> None:
        """Have a topic's log keep the sequence ids of its producers, or no longer."""
        self.work_pending()
        self.logs.numbered(log.number).log.track_sequences(log, is_on=is_on)

    def chunk_of(self, body: bytes) -> Chunk | None:
        """The chunk that an entry is; None if it is none."""
        return chunk_of(body)

    def read(self, subscription: Subscription, ordinal: int) -> None:
        """Read entries into the topic's cache, off the loop."""
        self.logs.of(subscription.topic).reader.read(subscription, ordinal)

    def is_looked_up(
        self, topic: Topic, action: Callable[[], object], again: Callable[[], None]
    ) -> bool:
        """Whether a look-up of entries needs nothing from the disk; else the read lane brings that,
        and ``again`` follows."""
        return self.logs.of(topic).index.is_looked_up(action, again)

    def acks_changed(self, subscription: Subscription) -> None:
        """Store a subscription's acknowledgements with one of the next commits. They may have
        released messages."""
        self.trimming.touch(subscription.topic)
        self.logs.of(subscription.topic).committer.acks_changed(subscription)

    def may_release(self, topic: Topic) -> None:
        """Look soon whether something of a topic can be trimmed."""
        self.trimming.touch(topic)

    def policies_changed(self, topic: Topic) -> None:
        """Look soon what of a topic can be trimmed and what expires."""
        self.trimming.touch(topic)
        self.message_expiry.touch(topic)

    def topic_unloaded(self, topic: Topic) -> None:
        """Trim and expire nothing of a topic that is unloaded."""
        self.trimming.forget(topic)
        self.message_expiry.forget(topic)

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool) -> None:
        """Log that a backlog quota was reached."""
        self._quota_logger.quota_state_changed(topic, quota, exceeded=exceeded)

    def evicted(self, topic: Topic, eviction: Eviction) -> None:
        """Log what a backlog quota evicted."""
        self._quota_logger.evicted(topic, eviction)
