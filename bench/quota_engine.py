"""An engine and its log's index without a disk: what the bench of backlog quotas drives."""

from __future__ import annotations

from collections.abc import Callable

from headgate.base.ack_set import AckSet
from headgate.base.names import parse_topic
from headgate.base.positions import Position
from headgate.base.units import MIB, NS_PER_MS, NS_PER_S
from headgate.engine.consumer import Consumer
from headgate.engine.engine import Engine
from headgate.engine.engine_policies import EnginePolicies
from headgate.engine.eviction import Eviction
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer, UnboundedPort
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.flow.quota.backlog_quota import Quota, Quotas
from headgate.fs import MemFs
from headgate.ledger import CommitLog, LedgerSettings

START_NS = 1_000 * NS_PER_S
START_MS = 1_700_000_000_000
BATCH_ENTRIES = 100


class _Port(UnboundedPort):
    """A connection that takes everything and says nothing."""

    writable = True

    def send_refused(self, _id: int, _sequence: int, reason: str, /) -> None:
        raise RuntimeError(reason)

    def send_failed(self, _id: int, _sequence: int, reason: str, /) -> None:
        raise RuntimeError(reason)

    def send_receipt(self, _id: int, _sequence: int, _high: int, _at: Position, /) -> None:
        """Taken."""

    def close_producer(self, _id: int, /) -> None:
        raise RuntimeError("a producer was closed")

    def close_consumer(self, _id: int, /) -> None:
        """Taken."""

    def send_entry(
        self,
        _consumer: Consumer,
        _at: Position,
        _partition: int,
        _count: int,
        _body: bytes,
        _left: tuple[int, ...],
        /,
    ) -> bool:
        """Taken."""
        return False

    def end_reached(self, _id: int, /) -> None:
        """Taken."""

    def active_consumer_changed(self, _id: int, _is_active: bool, /) -> None:
        """Taken."""


class _Effects:
    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self.now_ms = START_MS

    def append(self, log: EntryLog, message_count: int, _log_ms: int, body: bytes, /) -> int:
        return self._log.stage_entry(log, message_count, self.now_ms, 0, body)

    def sequence_of(self, _body: bytes, /) -> None:
        """No topic has deduplication."""

    def name_test(self, _name: str, /) -> Callable[[bytes], object]:
        """No topic has deduplication."""
        return bool

    def track_sequences(self, _log: EntryLog, _is_on: bool, /) -> None:
        """No topic has deduplication."""

    def chunk_of(self, _body: bytes, /) -> None:
        """There are no chunks."""

    def read(self, _subscription: Subscription, _ordinal: int, /) -> None:
        raise RuntimeError("everything is in memory")

    def is_looked_up(
        self, _topic: Topic, _action: Callable[[], object], _again: Callable[[], None], /
    ) -> bool:
        raise RuntimeError("everything is in memory")

    def acks_changed(self, subscription: Subscription, /) -> None:
        subscription.acks_dirty = False

    def may_release(self, _topic: Topic, /) -> None:
        """Nothing is trimmed."""

    def policies_changed(self, _topic: Topic, /) -> None:
        """Nothing expires."""

    def topic_unloaded(self, _topic: Topic, /) -> None:
        """Nothing is trimmed."""

    def work_pending(self) -> None:
        """Flushed by the rig."""

    def quota_state_changed(self, _topic: Topic, _quota: Quota, _exceeded: bool, /) -> None:
        """Nobody listens."""

    def evicted(self, _topic: Topic, _eviction: Eviction, /) -> None:
        """Nobody listens."""


class Rig:
    """Topics with one subscription each, and one producer on the first."""

    def __init__(
        self,
        quotas: Quotas,
        *,
        topics: int = 1,
        body_bytes: int = 1_024,
        retain_bodies: bool = True,
    ) -> None:
        self._quotas = quotas
        self._fs = MemFs()
        self._log = CommitLog.open(
            self._fs,
            "data",
            topic_numbers=range(topics),
            entropy=bytes,
            settings=LedgerSettings(segment_bytes=MIB),
        )
        self._effects = _Effects(self._log)
        self.engine = Engine(
            self._effects,
            policies=EnginePolicies(quotas_of=lambda _: self._quotas),
            now_ns=START_NS,
            now_ms=START_MS,
        )
        self._body = bytes(body_bytes)
        self.entry_bytes = body_bytes
        self._retain_bodies = retain_bodies
        self._port = _Port()
        self._topics = []
        for number in range(topics):
            name = parse_topic(f"persistent://acme/ns/t{number}")
            topic = self.engine.load_topic(name, self._log.topic(number))
            topic.add_subscription("s", AckSet(), cursor_id=number)
            self._topics.append(topic)
        self.topic = self._topics[0]
        self.subscription = self.topic.subscriptions["s"]
        self._producer = Producer(1, "p", self._port)
        self.topic.add_producer(self._producer)
        self._consumer = Consumer(1, "c", self._port)
        self._next = 0

    def set_quotas(self, quotas: Quotas) -> None:
        """Other quotas are in force on all topics."""
        self._quotas = quotas
        for topic in self._topics:
            self.engine.reload_quotas(topic)

    def settle(self) -> None:
        """Everything that is to be done at this instant."""
        while self.engine.flush():
            pass

    def _turn(self) -> None:
        now_ns = self.engine.now_ns + NS_PER_MS
        self._effects.now_ms = START_MS + (now_ns - START_NS) // NS_PER_MS
        self.engine.begin_turn(now_ns, self._effects.now_ms, self._effects.now_ms)

    def _publish(self, topic: Topic, producer: Producer, count: int) -> None:
        for _ in range(count):
            if not topic.publishing.publish(producer, self._next, 0, 1, self._body):
                raise RuntimeError("it was held")
            self._next += 1

    def _commit(self) -> None:
        batch = self._log.seal_batch()
        if batch is None:
            return
        for log in self._log.complete(batch):
            topic = self.engine.by_number[log.number]
            topic.publishing.entries_durable(0)
            if not self._retain_bodies:
                topic.cache.clear()

    def cycle(self, entries: int) -> None:
        """Publish and acknowledge so many entries, a hundred a turn."""
        for _ in range(entries // BATCH_ENTRIES):
            self._turn()
            self._publish(self.topic, self._producer, BATCH_ENTRIES)
            self._commit()
            self.settle()
            end = self.topic.log.end
            for ordinal in range(end - BATCH_ENTRIES, end):
                self.subscription.ack_entry(self._consumer, ordinal)
            self.settle()

    def one_each(self) -> None:
        """One entry on every topic, unacknowledged."""
        self._turn()
        for topic in self._topics:
            self._publish(topic, self._producer, 1)
        self._commit()
        self.settle()

    def publish_only(self, entries: int) -> None:
        """A backlog of so many entries."""
        for _ in range(entries // BATCH_ENTRIES):
            self._turn()
            self._publish(self.topic, self._producer, BATCH_ENTRIES)
            self._commit()
            self.settle()

    def ack_every_other(self) -> None:
        """Acknowledge the second, fourth, ... entry of the backlog."""
        for ordinal in range(1, self.topic.log.end, 2):
            self.subscription.ack_entry(self._consumer, ordinal)
