"""The publish side of a topic, which takes an entry from its SEND to its receipt.

An entry is staged for the next group commit. It stays invisible (no receipt, no dispatch, not the
last message id) until the log reports it durable; then receipts go out in send order.

An append that nothing limits costs one comparison: while fewer than
:attr:`TopicPublishing.admit_below` bytes are staged, a SEND is staged at once. Otherwise admission
control (:mod:`headgate.engine.admission`) decides whether the SEND is staged or parked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headgate.base.errors import NoRoomError, StorageError
from headgate.base.names import TopicName
from headgate.engine.cache import EntryCache, TopicCache
from headgate.engine.deduplication import UNTRACKED, Deduplication
from headgate.engine.engine_limits import EngineLimits
from headgate.engine.entry_appender import EntryAppender
from headgate.engine.parked_send import ParkedSend
from headgate.engine.parking import Parking
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer, ProducerPort
from headgate.engine.tenant_storage import TenantStorage, full_text
from headgate.engine.write_histograms import (
    NO_WRITES,
    RecentWrites,
    WriteHistograms,
    count_latency,
    count_sizes,
)
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.limits.gate import BrokerGate, TopicGate
from headgate.flow.limits.gate_node import NO_STATISTICS, GateStatistics
from headgate.flow.limits.rate_limit import RateLimit

if TYPE_CHECKING:
    from headgate.engine.topic_quota import TopicQuota

ADMIT_ALL = (1 << 63) - 1
"""Value of ``admit_below``: every SEND is staged at once."""
ADMIT_NONE = -1
"""Value of ``admit_below``: admission control decides about every SEND."""

ALL_ENTRIES = 1 << 62

PendingEntry = tuple[Producer, int, int, int, int, bytes]
"""A staged entry: its producer, sequence id, highest sequence id, charged messages, messages, body.

It is a plain tuple, which is always unpacked under these names, because it is made and read once
for each message: a slotted class costs 0.12 us more than the 0.06 us of a tuple, a NamedTuple 0.23.
"""


class Admission(Protocol):
    """Admission control, as far as publishing and its observers need it."""

    gate: BrokerGate
    """The publish limits of the broker, and below it of topics."""

    def is_limited(self, publishing: TopicPublishing, /) -> bool:
        """Whether a publish limit applies to the topic."""

    def admit(
        self, publishing: TopicPublishing, producer: Producer, messages: int, size_bytes: int, /
    ) -> int:
        """How many messages were charged for a SEND to be staged now; negative: park it."""

    def park(self, publishing: TopicPublishing, producer: Producer, send: ParkedSend, /) -> None:
        """Park a SEND that was not admitted."""

    def wait_for_answers(
        self, publishing: TopicPublishing, producer: Producer, send: ParkedSend, /
    ) -> None:
        """Park a SEND whose connection has as many unanswered SENDs as it may have."""

    def discard(self, producer: Producer, /) -> None:
        """Drop what a producer parked."""

    def producer_left(self, producer: Producer, /) -> None:
        """Drop what a producer parked, and its turns under publish limits."""


class DiskFullParking(Protocol):
    """The SENDs that wait for room on the disk, as far as publishing needs them."""

    is_full: bool
    """Whether the disk is full, so that every SEND to a user's topic is parked."""

    def no_room(self, publishing: TopicPublishing, producer: Producer, send: ParkedSend, /) -> None:
        """Park a SEND that the log refused because the disk is full."""

    def park_unstaged(
        self, publishing: TopicPublishing, unstaged: list[tuple[Producer, ParkedSend]], /
    ) -> None:
        """Park SENDs that were staged and not stored, oldest first."""

    def check_newcomer(self, port: ProducerPort, /) -> None:
        """Raise :class:`DiskFullError` if the connection has parked too much for a full disk."""


class PublishingEngine(Protocol):
    """The engine, as far as publishing needs it."""

    now_ns: int
    now_ms: int
    log_ms: int
    duplicates_dropped: int
    limits: EngineLimits
    cache: EntryCache

    @property
    def effects(self) -> EntryAppender:
        """Where entries are appended."""

    @property
    def admission(self) -> Admission:
        """What decides whether a SEND is staged or parked."""

    @property
    def disk_full_hold(self) -> DiskFullParking:
        """What parks SENDs while the disk is full."""

    @property
    def tenant_storage(self) -> TenantStorage:
        """What tenants store."""

    def work_pending(self) -> None:
        """Ask for a flush before the loop rests."""


class PublishedTopic(Protocol):
    """The topic, as far as its publish side needs it."""

    name: TopicName
    log: EntryLog
    cache: TopicCache
    fenced: bool
    is_system: bool
    quota: TopicQuota | None

    @property
    def engine(self) -> PublishingEngine:
        """The engine of the topic."""

    @property
    def subscriptions(self) -> Mapping[str, object]:
        """The topic's subscriptions by name."""

    @property
    def producers(self) -> Mapping[str, Producer]:
        """The topic's connected producers by name."""

    def entries_visible(self, first: int, /) -> None:
        """Entries from ``first`` on are durable: dispatch them."""

    def remove_producer(self, producer: Producer, /) -> None:
        """Disconnect a producer."""


class TopicPublishing:
    """The publish side of one topic: what is staged, parked and limited."""

    __slots__ = (
        "_arrivals",
        "_arrived_ns",
        "_cache",
        "_engine",
        "_log",
        "_pending",
        "_subscriptions",
        "_writes",
        "adaptive_limit",
        "admit_below",
        "control",
        "deduplication",
        "duplicates_dropped",
        "ending",
        "gate",
        "last_publish_ms",
        "limit",
        "parking",
        "staged_bytes",
        "throttled_count",
        "topic",
        "visible",
    )

    def __init__(self, topic: PublishedTopic) -> None:
        log = topic.log
        self.topic = topic
        self._engine = topic.engine
        self._log = log
        self._cache = topic.cache
        self._subscriptions = topic.subscriptions
        self._pending: deque[PendingEntry] = deque()
        self._arrivals: list[tuple[int, int]] = []
        """For each turn in which entries were staged: its first entry, and its time."""
        self._arrived_ns = -1
        self._writes: RecentWrites | None = None
        self.visible = log.end
        """One past the last entry whose receipt was sent."""
        self.staged_bytes = log.bytes_before(log.staged_end)
        """Bytes of all entries that were ever stored or are staged."""
        self.last_publish_ms = 0
        self.throttled_count = 0
        """Times that a connection with a producer here started to be throttled, for any cause."""
        self.limit: RateLimit | None = None
        """The publish limit as it is set."""
        self.adaptive_limit: RateLimit | None = None
        """The adaptive controller's limit. In each dimension the tighter of both applies."""
        self.gate: TopicGate | None = None
        """The budget of both limits; created with the first of them."""
        self.control: TopicControl | None = None
        """The adaptive controller's state of this topic."""
        self.admit_below = ADMIT_ALL
        """While fewer bytes are staged, a SEND is staged without asking admission control."""
        self.parking: Parking | None = None
        """The parked SENDs; created with the first of them."""
        self.deduplication: Deduplication | None = None
        """Finds messages that were stored before; None without message deduplication."""
        self.duplicates_dropped = 0
        """Messages that were not stored, because they had been before."""
        self.ending: dict[Producer, None] | None = None
        """Producers to close as soon as their staged entries are answered."""

    @property
    def pending_count(self) -> int:
        """Entries staged and not yet durable."""
        return len(self._pending)

    # -- what reports read -----------------------------------------------------------------

    @property
    def duplicates_if_any(self) -> int | None:
        """:attr:`duplicates_dropped`; None if the topic never had deduplication."""
        has_none = self.deduplication is None and not self.duplicates_dropped
        return None if has_none else self.duplicates_dropped

    @property
    def is_limited(self) -> bool:
        """Whether a publish limit applies, of the topic or of the broker."""
        return self._engine.admission.is_limited(self)

    @property
    def is_disk_full(self) -> bool:
        """Whether every SEND is parked because the disk is full."""
        return self._engine.disk_full_hold.is_full and not self.topic.is_system

    @property
    def tenant_full_text(self) -> str:
        """How much the tenant stores, if its producers are refused for it; else empty."""
        stored = self._log.stored_total
        return full_text(stored) if self._engine.tenant_storage.is_full(stored) else ""

    def limit_statistics(self) -> GateStatistics:
        """The figures of the topic's publish limit."""
        return NO_STATISTICS if self.gate is None else self.gate.statistics(self._engine.now_ns)

    def broker_limit_statistics(self) -> GateStatistics:
        """The figures of the broker's publish limit."""
        return self._engine.admission.gate.statistics(self._engine.now_ns)

    def check_newcomer(self, port: ProducerPort) -> None:
        """Refuse a new producer while a full quota stops producers, or after its connection parked
        too much for a full disk.

        Raises:
            ProducersHeldError: a quota holds producers.
            ProducersRefusedError: a quota refuses producers, or the tenant stores all that it may.
            DiskFullError: the connection has parked too much for the full disk.
        """
        if self.topic.quota is not None and not self.topic.fenced:
            self.topic.quota.check_newcomer()
        self._engine.disk_full_hold.check_newcomer(port)
        self._engine.tenant_storage.check_newcomer(self._log.stored_total)

    # -- one SEND --------------------------------------------------------------------------

    def publish(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        message_count: int,
        body: bytes,
        charged: int = 0,
    ) -> bool:
        """Stage one entry. Its receipt follows when the entry is durable, in send order.

        False: the SEND is parked, because of a backlog quota, a full disk or a publish limit. It is
        staged later (:meth:`ProducerPort.send_staged`), or dropped if its producer is closed first.
        Or deduplication answered it: it was stored before. Or its producer is closed, because its
        tenant stores all that it may.
        ``charged``: messages that were already charged for a SEND that was parked.

        Raises:
            StorageError: the disk failed, or it is full and this is a system topic.
        """
        engine, deduplication = self._engine, self.deduplication
        if deduplication is not None:
            checked_id = deduplication.check(
                producer, sequence_id, highest_sequence_id, message_count, body
            )
            if checked_id is None:
                self._refund(charged, len(body))
                return False
            last_id = checked_id
        if self.staged_bytes >= self.admit_below:
            charged = engine.admission.admit(self, producer, message_count, len(body))
            if charged < 0:
                send = (sequence_id, highest_sequence_id, message_count, body, engine.now_ns)
                engine.admission.park(self, producer, ParkedSend(*send))
                return False
        stored = self._log.stored_total
        if stored.bytes + len(body) > stored.body_end:
            self._refund(charged, len(body))
            engine.tenant_storage.refuse(stored, len(body))
            self.end_producer(producer)
            return False
        try:
            ordinal = engine.effects.append(self._log, message_count, engine.log_ms, body)
        except StorageError as error:
            self._refund(charged, len(body))
            if self.topic.is_system or not isinstance(error, NoRoomError):
                raise
            send = (sequence_id, highest_sequence_id, message_count, body, engine.now_ns)
            engine.disk_full_hold.no_room(self, producer, ParkedSend(*send))
            return False
        if deduplication is not None and last_id != UNTRACKED:
            table = deduplication.table
            if table is not None:  # as its entry_staged, without the call: the hot path
                name = producer.name
                table.staged[name] = last_id
                table.moves.append((ordinal, name, last_id))
        if self._subscriptions:
            engine.cache.put(self._cache, ordinal, body)
        if engine.now_ns != self._arrived_ns:
            self._arrived_ns = engine.now_ns
            self._arrivals.append((ordinal, engine.now_ns))
        self.staged_bytes += len(body)
        producer.pending_count += 1
        self._pending.append(
            (producer, sequence_id, highest_sequence_id, charged, message_count, body)
        )
        return True

    def park(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        message_count: int,
        body: bytes,
    ) -> None:
        """Park a SEND until its connection has fewer unanswered SENDs."""
        engine = self._engine
        send = ParkedSend(sequence_id, highest_sequence_id, message_count, body, engine.now_ns)
        engine.admission.wait_for_answers(self, producer, send)

    def stage_parked(self, producer: Producer, send: ParkedSend, charged: int) -> None:
        """Stage a SEND that was parked. If the disk has failed, refuse it and end its producer."""
        self.admit_below = ADMIT_ALL
        try:
            is_staged = self.publish(producer, *send[:4], charged)
        except StorageError as error:
            self.update_admit_below()
            producer.port.send_refused(producer.producer_id, send.sequence_id, str(error))
        else:
            self.update_admit_below()
            if is_staged:
                producer.port.send_staged()

    def set_deduplication(self, is_on: bool) -> None:
        """Drop messages that were stored before from now on, or no longer. The producers' earlier
        messages are not known: they count from the next entry on."""
        log, deduplication = self._log, self.deduplication
        if is_on is not (log.sequences is not None):
            self._engine.effects.track_sequences(log, is_on)
        if log.sequences is not None:
            log.sequences.names_max = self._engine.limits.deduplicated_producers_max
            if not self.topic.producers:
                log.sequences.all_disconnected(self._engine.log_ms)
        if deduplication is not None:
            deduplication.table = log.sequences
        elif log.sequences is not None:
            self.deduplication = Deduplication(self, self._engine, log, log.sequences)
        if deduplication is not None and deduplication.is_over:
            self.deduplication = None

    def update_admit_below(self) -> None:
        """Set ``admit_below`` from quota, limits, parked SENDs and ending producers."""
        if self.parking or self.ending or self._engine.admission.is_limited(self):
            self.admit_below = ADMIT_NONE
        else:
            quota = self.topic.quota
            self.admit_below = ADMIT_ALL if quota is None else quota.safe_below

    def _refund(self, charged: int, size_bytes: int) -> None:
        """Return to the budgets what was charged for an entry that is not stored."""
        if charged and self.gate is not None:
            self.gate.give_back(self._engine.now_ns, charged, size_bytes)
            self._engine.work_pending()

    # -- parked SENDs ----------------------------------------------------------------------

    def ensure_parking(self) -> Parking:
        """The parked SENDs; created when the topic first needs it."""
        if self.parking is None:
            self.parking = Parking()
        return self.parking

    def pause_reading(self, producer: Producer, *, for_parked: bool = False) -> None:
        """The connection of a producer is no longer read because too much is parked.

        ``for_parked``: the connection itself parked too much.
        """
        self.ensure_parking().pause(producer, for_parked, self._engine.now_ns)

    def resume_reading(self, producer: Producer) -> None:
        """The connection of a producer is read again, or the producer is gone."""
        if self.parking is not None:
            self.parking.resume(producer, self._engine.now_ns)

    def discard_parked(self, producer: Producer) -> None:
        """Drop what a producer parked: it is never stored."""
        self._engine.admission.discard(producer)

    # -- ending a producer -----------------------------------------------------------------

    def end_producer(self, producer: Producer) -> None:
        """:meth:`close_when_answered`, because of what its SENDs wait for."""
        quota = self.topic.quota
        if not producer.ending and quota is not None and quota.exceeded is not None:
            quota.stopping().closed_count += 1
        self.close_when_answered(producer)

    def close_when_answered(self, producer: Producer) -> None:
        """Close a producer as soon as its staged entries are answered.

        No receipt is lost, so its client sends nothing again that is stored. What the producer
        parked, and what it sends until then, is dropped.
        """
        if producer.ending:
            return
        producer.ending = True
        self.discard_parked(producer)
        if producer.pending_count:
            self.ending = self.ending or {}
            self.ending[producer] = None
            self.update_admit_below()
        else:
            self._close(producer)

    def producer_left(self, producer: Producer) -> None:
        """A producer is gone: drop what it parked, and do not wait for it any longer."""
        self._engine.admission.producer_left(producer)
        self.resume_reading(producer)
        if self.ending and producer in self.ending:
            del self.ending[producer]
            self.update_admit_below()

    def _close(self, producer: Producer) -> None:
        producer.port.close_producer(producer.producer_id)
        self.topic.remove_producer(producer)

    def _commit_ended(self) -> None:
        """Staged entries are durable or failed: close the producers that waited for that, and
        evaluate the quotas, which may now allow more or less."""
        for producer in list(self.ending or ()):
            if not producer.pending_count:
                self._close(producer)
        quota = self.topic.quota
        if quota is not None and self.staged_bytes >= quota.safe_below:
            quota.topic.engine.quotas.commit_ended(quota)
        self.update_admit_below()

    # -- the outcome of a commit ------------------------------------------------------------

    def entries_durable(self, storage_ns: int, entries_max: int = ALL_ENTRIES) -> bool:
        """The log's end moved, by a commit that took ``storage_ns``: send the receipts, then have
        the topic dispatch the entries. True if more than ``entries_max`` receipts are due, so that
        it must be called again."""
        log = self._log
        first = self.visible
        end = log.end
        if end - first > entries_max:
            end = first + entries_max
        sizes: list[int] = []
        deduplication = self.deduplication
        if deduplication is None:
            self._answer(first, end, sizes)
        else:
            deduplication.answer_in_order(first, end, partial(self._answer, sizes=sizes))
            if deduplication.is_over:
                self.deduplication = None
        self.visible = end
        self.last_publish_ms = self._engine.now_ms
        self.topic.entries_visible(first)
        if first < end:
            self._count_writes(first, end, sizes, storage_ns)
        if self.staged_bytes >= self.admit_below:
            self._commit_ended()
        return end < log.end

    def _answer(self, first: int, end: int, sizes: list[int]) -> None:
        """Send the receipts of durable entries, and append their sizes to ``sizes``."""
        pending = self._pending
        position = self._log.position
        for ordinal in range(first, end):
            producer, sequence_id, highest_sequence_id, _, messages, body = pending.popleft()
            producer.pending_count -= 1
            producer.messages_published += messages
            size = len(body)
            producer.bytes_published += size
            sizes.append(size)
            if not producer.closed:
                producer.port.send_receipt(
                    producer.producer_id, sequence_id, highest_sequence_id, position(ordinal)
                )

    def _count_writes(self, first: int, end: int, sizes: list[int], storage_ns: int) -> None:
        """Count the entries that became durable now, by the turn that staged them."""
        now_ns = self._engine.now_ns
        if self._writes is None:
            self._writes = RecentWrites(now_ns)
        figures = self._writes.current(now_ns)
        entries = end - first
        figures.size_bytes += sum(sizes)
        count_sizes(figures.sizes, sizes)
        count_latency(figures.storage, storage_ns, entries)
        figures.storage_ns += storage_ns * entries
        arrivals, at = self._arrivals, 0
        while first < end:
            while at + 1 < len(arrivals) and arrivals[at + 1][0] <= first:
                at += 1
            stop = min(end, arrivals[at + 1][0]) if at + 1 < len(arrivals) else end
            took_ns = now_ns - arrivals[at][1]
            count_latency(figures.latency, took_ns, stop - first)
            figures.latency_ns += took_ns * (stop - first)
            first = stop
        del arrivals[:at]

    def writes_last_minute(self) -> WriteHistograms:
        """What was written in the last whole minute."""
        if self._writes is None:
            return NO_WRITES
        return self._writes.last(self._engine.now_ns)

    def fail_pending(self, error: StorageError) -> None:
        """Answer every staged entry with an error: none of them was stored."""
        if self.deduplication is not None:
            self.deduplication.entries_lost(str(error))
        for ordinal in range(self._log.end, self._log.end + len(self._pending)):
            self._cache.pop(ordinal, None)
        self._arrivals.clear()
        self._arrived_ns = -1
        for _ in range(len(self._pending)):
            producer, sequence_id, _, charged, _, body = self._pending.popleft()
            self._refund(charged, len(body))
            producer.pending_count -= 1
            if not producer.closed:
                producer.port.send_failed(producer.producer_id, sequence_id, str(error))
        self.staged_bytes = self._log.bytes_before(self._log.staged_end)
        self._commit_ended()

    def restage_pending(self) -> None:
        """Stage every staged entry again, under the same ordinal: a commit failed briefly."""
        engine = self._engine
        for _, _, _, _, messages, body in self._pending:
            engine.effects.append(self._log, messages, engine.log_ms, body)

    def park_pending(self) -> None:
        """Park every staged entry: the disk has no room for it. Each producer's entries are parked
        in front of what the producer sent later."""
        if self.deduplication is not None:
            self.deduplication.entries_lost("the disk is full")
        unstaged: list[tuple[Producer, ParkedSend]] = []
        ordinal, arrivals, at = self._log.end, self._arrivals, 0
        for producer, sequence_id, highest_sequence_id, charged, messages, body in self._pending:
            while at + 1 < len(arrivals) and arrivals[at + 1][0] <= ordinal:
                at += 1
            self._cache.pop(ordinal, None)
            ordinal += 1
            self._refund(charged, len(body))
            producer.pending_count -= 1
            if not producer.closed:
                send = (sequence_id, highest_sequence_id, messages, body, arrivals[at][1])
                unstaged.append((producer, ParkedSend(*send)))
        self._pending.clear()
        arrivals.clear()
        self._arrived_ns = -1
        self.staged_bytes = self._log.bytes_before(self._log.staged_end)
        self._engine.disk_full_hold.park_unstaged(self, unstaged)
        self._commit_ended()
