"""An engine on fakes: a log in a list, ports that remember, a clock that a test moves."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

from headgate.base.ack_set import AckSet
from headgate.base.chunk import Chunk
from headgate.base.names import parse_topic
from headgate.base.park_cause import ParkCause
from headgate.base.positions import EARLIEST, LATEST, Position
from headgate.base.sequence_table import SequenceTable
from headgate.base.stored_total import StoredTotal
from headgate.base.units import NS_PER_MS, NS_PER_S
from headgate.engine.consumer import Consumer
from headgate.engine.engine import Engine
from headgate.engine.engine_policies import EnginePolicies
from headgate.engine.eviction import Eviction
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer, UnboundedPort
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.engine.types import SubscriptionType
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.quota.backlog_quota import NO_QUOTAS, Quota, Quotas
from tests.unit.engine.indexed_log import IndexedLog

START_NS = 1_000 * NS_PER_S
START_MS = 1_700_000_000_000


class FakeLog(IndexedLog):
    """Entries of one topic in lists; ``end`` moves when a test says that they are durable."""

    def is_lost(self, ordinal: int) -> bool:
        return False

    def lost_from(self, ordinal: int, stop: int) -> int:
        return stop

    def lost_ranges(self) -> list[tuple[int, int]]:
        return []

    def last_kept(self) -> int:
        return self.end - 1

    def __init__(self, number: int) -> None:
        self.number = number
        self.sequences: SequenceTable | None = None
        self.stored_total = StoredTotal()
        self.first = 0
        self.end = 0
        self.bodies: list[bytes] = []
        self.counts: list[int] = []
        self.times: list[int] = []

    @property
    def staged_end(self) -> int:
        return len(self.bodies)

    def position(self, ordinal: int) -> Position:
        return Position(7, ordinal)

    def ordinal_at_or_after(self, ledger_id: int, entry_id: int) -> int:
        if (ledger_id, entry_id) == EARLIEST or ledger_id < 7:
            return self.first
        if (ledger_id, entry_id) == LATEST or ledger_id > 7:
            return self.end
        return min(max(entry_id, self.first), self.end)

    def live_bytes(self, first: int, end: int) -> int:
        return sum(map(len, self.bodies[first:end]))

    def message_count(self, ordinal: int) -> int:
        return self.counts[ordinal]

    def size_bytes(self, ordinal: int) -> int:
        return len(self.bodies[ordinal])

    def received_ms(self, ordinal: int) -> int:
        return self.times[ordinal]

    def messages_before(self, ordinal: int) -> int:
        return sum(self.counts[:ordinal])

    def bytes_before(self, ordinal: int) -> int:
        return sum(map(len, self.bodies[:ordinal]))

    def ordinal_received_at_or_after(self, received_ms: int) -> int:
        return bisect_left(self.times, received_ms)


class FakePort(UnboundedPort):
    """A connection that remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.causes: Counter[ParkCause] = Counter()
        """By what producers of it are held now."""
        self.is_paused = False
        self.writable = True
        self.entries: list[tuple[int, int, bytes]] = []
        """(ordinal, redelivery count, body) of each entry handed over."""
        self.left: dict[int, tuple[int, ...]] = {}
        """What was said to be left of partly acknowledged entries, by ordinal, last."""
        self.times_ns: list[int] = []
        self.receipts: list[tuple[int, Position]] = []
        self.failures: list[tuple[int, str]] = []
        self.closed: list[int] = []
        self.staged_count = 0
        """SENDs that waited and were staged then."""
        self.unstaged_count = 0
        """SENDs that were staged and wait again."""
        self.refusals: list[tuple[int, str]] = []
        self.active: list[tuple[int, bool]] = []
        self.ends: list[int] = []
        self.engine: Engine | None = None

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        count: int,
        body: bytes,
        left: tuple[int, ...],
    ) -> bool:
        self.entries.append((position.entry_id, count, body))
        if left:
            self.left[position.entry_id] = left
        if self.engine is not None:
            self.times_ns.append(self.engine.now_ns)
        return not self.writable

    def send_receipt(self, producer_id: int, sequence: int, high: int, position: Position) -> None:
        self.receipts.append((sequence, position))

    def send_staged(self) -> None:
        self.staged_count += 1

    def send_unstaged(self) -> None:
        self.unstaged_count += 1

    def throttled(self, cause: ParkCause) -> None:
        self.causes[cause] += 1

    def unthrottled(self, cause: ParkCause) -> None:
        self.causes[cause] -= 1

    def pause_for_parked(self) -> None:
        self.is_paused = True

    def resume_for_parked(self) -> None:
        self.is_paused = False

    def send_refused(self, producer_id: int, sequence: int, reason: str) -> None:
        self.refusals.append((sequence, reason))

    def send_failed(self, producer_id: int, sequence: int, reason: str) -> None:
        self.failures.append((sequence, reason))

    def end_reached(self, consumer_id: int) -> None:
        self.ends.append(consumer_id)

    def close_consumer(self, consumer_id: int) -> None:
        self.closed.append(consumer_id)

    def close_producer(self, producer_id: int) -> None:
        self.closed.append(producer_id)

    def active_consumer_changed(self, consumer_id: int, is_active: bool) -> None:
        self.active.append((consumer_id, is_active))

    @property
    def ordinals(self) -> list[int]:
        """Entries handed over, in order."""
        return [ordinal for ordinal, _, _ in self.entries]


class FakeEffects:
    """What the engine asked for; reads are answered when a test says so."""

    def __init__(self) -> None:
        self.reads: list[tuple[Subscription, int]] = []
        self.moved: list[Subscription] = []
        self.work_count = 0
        self.turns: list[tuple[str, bool]] = []
        """Quotas that were reached (True) or have room again."""
        self.evictions: list[Eviction] = []
        self.now_ms = START_MS

    def append(self, log: EntryLog, message_count: int, log_ms: int, body: bytes) -> int:
        assert isinstance(log, FakeLog)
        log.bodies.append(body)
        log.counts.append(message_count)
        log.times.append(self.now_ms)
        return len(log.bodies) - 1

    def sequence_of(self, body: bytes) -> tuple[str, int, int] | None:
        """``name first last ...``; other bodies have no sequence ids."""
        parts = body.decode().split()
        return (parts[0], int(parts[1]), int(parts[2])) if len(parts) > 2 else None

    def name_test(self, name: str) -> Callable[[bytes], bool]:
        return lambda body: False

    def track_sequences(self, log: EntryLog, is_on: bool) -> None:
        log.sequences = SequenceTable() if is_on else None

    def chunk_of(self, body: bytes) -> Chunk | None:
        """``c7:0`` is the first chunk of message 7."""
        if not body.startswith(b"c"):
            return None
        message, index = body[1:].split(b":")
        return Chunk(int(message), is_first=index == b"0")

    def read(self, subscription: Subscription, ordinal: int) -> None:
        self.reads.append((subscription, ordinal))

    def acks_changed(self, subscription: Subscription) -> None:
        self.moved.append(subscription)

    def may_release(self, _topic: Topic) -> None: ...

    def policies_changed(self, _topic: Topic) -> None: ...

    def topic_unloaded(self, _topic: Topic) -> None: ...

    def work_pending(self) -> None:
        self.work_count += 1

    def quota_state_changed(self, topic: Topic, quota: Quota, exceeded: bool) -> None:
        self.turns.append((quota.type.label, exceeded))

    def evicted(self, topic: Topic, eviction: Eviction) -> None:
        self.evictions.append(eviction)


class Rig:
    """One engine with one topic, and short words for what tests do to it."""

    def __init__(
        self,
        *,
        topic_limit: RateLimit | None = None,
        subscription_limit: RateLimit | None = None,
        quotas: Quotas = NO_QUOTAS,
        deduplicates: bool = False,
        name: str = "persistent://acme/ns/t",
    ) -> None:
        self.effects = FakeEffects()
        self.topic_limit = topic_limit
        self.subscription_limit = subscription_limit
        self.quotas = quotas
        self.publish_limit: RateLimit | None = None
        self.deduplicates = deduplicates
        self.log = FakeLog(1)
        self.engine = Engine(
            self.effects,
            policies=EnginePolicies(
                limit_of=self._limit_of,
                quotas_of=lambda _: self.quotas,
                publish_limit_of=lambda at: self.publish_limit if at.log is self.log else None,
                deduplicates=lambda _: self.deduplicates,
            ),
            now_ns=START_NS,
            now_ms=START_MS,
            log_ms=START_MS,
        )
        self.engine.limits.parked_send_bytes = 0  # so that bounds are sums of bodies
        self.topic = self.engine.load_topic(parse_topic(name), self.log)
        self.port = FakePort()
        self.port.engine = self.engine
        self.producer = Producer(1, "p", self.port)
        self.topic.add_producer(self.producer)
        self._sequence = 0

    def _limit_of(self, topic: Topic, subscription: str | None) -> RateLimit | None:
        return self.topic_limit if subscription is None else self.subscription_limit

    def set_broker_limit(self, limit: RateLimit | None) -> None:
        """Put the broker's dispatch limit in force on all topics."""
        self.engine.set_broker_limit(limit)
        for topic in self.engine.live_topics():
            self.engine.reload_limits(topic)

    def set_broker_publish_limit(self, limit: RateLimit | None) -> None:
        """Put the broker's publish limit in force on all topics."""
        self.engine.admission.set_broker_limit(limit)
        for topic in self.engine.live_topics():
            self.engine.admission.put_in_force(topic)

    def publish(self, count: int = 1, *, messages: int = 1, body: bytes = b"body") -> None:
        """Store ``count`` durable entries and dispatch what is possible."""
        self.send(count, messages=messages, body=body)
        self.commit()

    def send(self, count: int = 1, *, messages: int = 1, body: bytes = b"body") -> None:
        """Send entries; those that were admitted are staged."""
        for _ in range(count):
            self.topic.publishing.publish(self.producer, self._sequence, 0, messages, body)
            self._sequence += 1

    def commit(self) -> None:
        """What is staged is durable."""
        self.log.end = self.log.staged_end
        self.topic.publishing.entries_durable(0)
        self.flush()

    def subscribe(self, name: str = "s", *, at: int = 0, durable: bool = True) -> Subscription:
        return self.topic.add_subscription(name, AckSet(at - 1), cursor_id=1 if durable else None)

    def consumer(
        self,
        subscription: Subscription,
        kind: SubscriptionType = SubscriptionType.EXCLUSIVE,
        *,
        consumer_id: int = 1,
        name: str = "c",
        permits: int = 0,
        priority_level: int = 0,
    ) -> tuple[Consumer, FakePort]:
        port = FakePort()
        port.engine = self.engine
        consumer = Consumer(consumer_id, name, port, priority_level=priority_level)
        subscription.add_consumer(consumer, kind)
        if permits:
            subscription.flow(consumer, permits)
        self.flush()
        return consumer, port

    def flush(self) -> None:
        """Run the engine until nothing is left to do at this instant."""
        while self.engine.flush():
            pass

    def advance(self, duration_ms: int) -> None:
        """Let time pass, waking the engine exactly when it asks for it."""
        end_ns = self.engine.now_ns + duration_ms * NS_PER_MS
        while (wake_ns := self.engine.next_wake_ns()) is not None and wake_ns <= end_ns:
            self._at(max(wake_ns, self.engine.now_ns))
        self._at(end_ns)

    def _at(self, now_ns: int) -> None:
        now_ms = START_MS + (now_ns - START_NS) // NS_PER_MS
        self.effects.now_ms = now_ms
        self.engine.begin_turn(now_ns, now_ms, now_ms)
        self.flush()
