"""A topic: its producers, its subscriptions, and the way of an entry from SEND to receipt.

An entry is staged for the next group commit and stays invisible (no receipt, no dispatch, no last
id) until the log says that it is durable; then receipts go out in send order and every subscription
is looked at.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headgate.base.ack_set import AckSet
from headgate.base.errors import NoRoomError, StorageError
from headgate.base.names import TopicName
from headgate.engine.cache import TopicCache
from headgate.engine.errors import (
    DamagedError,
    ProducerBusyError,
    ProducerFencedError,
    SubscriptionBusyError,
    TopicFencedError,
)
from headgate.engine.parked_send import ParkedSend
from headgate.engine.parking import Parking
from headgate.engine.ports import EntryLog
from headgate.engine.producer import Producer
from headgate.engine.rate_meter import RateMeter
from headgate.engine.subscription import Subscription
from headgate.engine.topic_quota import ALWAYS, NO_MARK, TopicQuota
from headgate.engine.types import AccessMode
from headgate.engine.write_histograms import (
    NO_WRITES,
    RecentWrites,
    WriteHistograms,
    count_latency,
    count_sizes,
)
from headgate.flow.adaptive.topic import TopicControl
from headgate.flow.limits.gate import TopicGate
from headgate.flow.limits.rate_limit import RateLimit
from headgate.flow.limits.relative import PublishRate

if TYPE_CHECKING:
    from headgate.engine.engine import Engine


class Topic:
    """State of one loaded topic (one partition, if it is partitioned)."""

    __slots__ = (
        "_arrivals",
        "_arrived_ns",
        "_pending",
        "_sizes",
        "_writes",
        "adaptive_limit",
        "admit_below",
        "bytes_in_before_load",
        "bytes_out_removed",
        "cache",
        "control",
        "created_ms",
        "delays_ignored",
        "ending",
        "engine",
        "entries_in_before_load",
        "entries_read",
        "fenced",
        "gate",
        "idle_since_ns",
        "incarnation",
        "is_held",
        "is_system",
        "last_publish_ms",
        "limit",
        "loaded_ms",
        "log",
        "messages_in_before_load",
        "messages_out_removed",
        "name",
        "parking",
        "partition",
        "producers",
        "publish_gate",
        "publish_limit",
        "publish_rate",
        "publish_throttled_count",
        "quota",
        "rates",
        "staged_bytes",
        "subscriptions",
        "visible",
    )

    def __init__(
        self,
        engine: Engine,
        name: TopicName,
        log: EntryLog,
        gate: TopicGate,
        *,
        incarnation: int = 0,
        created_ms: int = 0,
        is_system: bool = False,
    ) -> None:
        self.engine = engine
        self.name = name
        self.partition = name.partition
        self.log = log
        self.gate = gate
        gate.owner = self
        self.incarnation = incarnation
        self.created_ms = created_ms
        self.loaded_ms = engine.now_ms
        """What it counts, it counts since then."""
        self.is_system = is_system
        self.cache: TopicCache = {}
        self.producers: dict[str, Producer] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self._pending: deque[tuple[Producer, int, int, int, int, bytes]] = deque()
        """Producer, sequence ids, charged messages, messages and body of each."""
        self._arrivals: deque[tuple[int, int]] = deque()
        """For each turn in which entries were staged: the first of them, and when."""
        self._arrived_ns = -1
        self._sizes: list[int] = []
        """Bytes of each entry that is staged and not yet durable."""
        self._writes: RecentWrites | None = None
        self.fenced = False
        self.visible = log.end
        """One past the last entry whose receipt went out."""
        self.last_publish_ms = 0
        self.idle_since_ns = engine.now_ns
        self.messages_in_before_load = log.messages_before(log.end)
        self.bytes_in_before_load = log.bytes_before(log.end)
        self.entries_in_before_load = log.end
        self.entries_read = 0
        """Entries that were brought from disk since the topic was loaded."""
        self.messages_out_removed = self.bytes_out_removed = 0
        self.delays_ignored = 0  # messages that asked to be delivered later, and were not
        self.publish_throttled_count = 0
        """Times that a connection with a producer here began to be throttled, whatever for."""
        self.rates = RateMeter(4)
        self.limit: RateLimit | None = None
        """As it is set; the gate has what it amounts to."""
        self.publish_rate: PublishRate | None = None
        """Followed while a relative limit concerns it."""
        self.staged_bytes = log.bytes_before(log.staged_end)
        """Bytes of all entries that were ever stored or are staged."""
        self.quota: TopicQuota | None = None
        """Made when the topic first has a backlog quota."""
        self.publish_limit: RateLimit | None = None
        self.adaptive_limit: RateLimit | None = None
        """The tighter of both holds; the adaptive controller's is its alone."""
        self.publish_gate: TopicGate | None = None
        """Made at the first of them."""
        self.control: TopicControl | None = None
        self.admit_below = NO_MARK
        """While fewer bytes are staged, nothing that is sent has to wait."""
        self.is_held = False
        """Whether a quota is exceeded or SENDs wait for it, so that it is told of acks."""
        self.parking: Parking | None = None
        """SENDs that wait; made at the first one."""
        self.ending: list[Producer] | None = None
        """Producers that are closed when what they staged is answered."""

    # -- publishing ------------------------------------------------------------------------

    def add_producer(self, producer: Producer) -> None:
        """Connect a producer.

        Raises:
            TopicFencedError: the topic is being closed; the client may try again.
            DamagedError: something of it is lost, and nobody has accepted that.
            ProducerFencedError: it wants the topic for itself and is not alone.
            ProducerBusyError: its name is taken, or another has the topic for itself.
        """
        if self.fenced:
            raise TopicFencedError("Topic is temporarily unavailable")
        self.check_sound()
        if producer.access_mode is AccessMode.EXCLUSIVE and self.producers:
            raise ProducerFencedError("Topic has other connected producers")
        if any(p.access_mode is AccessMode.EXCLUSIVE for p in self.producers.values()):
            raise ProducerBusyError("Topic has an existing exclusive producer")
        if producer.name in self.producers:
            raise ProducerBusyError(
                f"Producer with name '{producer.name}' is already connected to topic"
            )
        self.producers[producer.name] = producer
        producer.topic = self

    def check_sound(self) -> None:
        """Raises :class:`DamagedError` while something of it is lost that nobody has accepted."""
        if self.log.damage:
            raise DamagedError(str(self.name), self.log.damage)

    def remove_producer(self, producer: Producer) -> None:
        """Disconnect a producer; what it has staged is still stored, its receipts go nowhere.
        What it parked is forgotten."""
        producer.closed = True
        self.engine.admission.producer_left(producer)
        self.read_on(producer)
        producer.topic = None
        if self.ending and producer in self.ending:
            self.ending.remove(producer)
            self.settle_admission()
        if self.producers.get(producer.name) is producer:
            del self.producers[producer.name]
            self._touch_idle()

    def publish(
        self,
        producer: Producer,
        sequence_id: int,
        highest_sequence_id: int,
        message_count: int,
        body: bytes,
        charged: int = 0,
    ) -> bool:
        """Stage one entry; its receipt follows when it is durable, in send order.

        False: it waits, for room in a backlog quota or on the disk, or under a publish limit. It is
        staged when it may (:meth:`ProducerPort.send_staged`), or forgotten when its producer is
        closed before. ``charged`` messages of one that waited are charged already.

        Raises:
            StorageError: the disk failed; or it is full, and this is a topic of the system.
        """
        engine = self.engine
        if self.staged_bytes >= self.admit_below:
            charged = engine.admission.admit(self, producer, message_count, len(body))
            if charged < 0:
                send = (sequence_id, highest_sequence_id, message_count, body, engine.now_ns)
                engine.admission.park(self, producer, ParkedSend(*send))
                return False
        try:
            ordinal = engine.effects.append(self, message_count, body)
        except StorageError as error:
            self._give_back(charged, len(body))
            if self.is_system or not isinstance(error, NoRoomError):
                raise
            send = (sequence_id, highest_sequence_id, message_count, body, engine.now_ns)
            engine.disk_hold.no_room(self, producer, ParkedSend(*send))
            return False
        if self.subscriptions:
            engine.cache.put(self.cache, ordinal, body)
        if engine.now_ns != self._arrived_ns:
            self._arrived_ns = engine.now_ns
            self._arrivals.append((ordinal, engine.now_ns))
        size = len(body)
        self._sizes.append(size)
        self.staged_bytes += size
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
        """Have a SEND wait until its connection has fewer unanswered ones."""
        engine = self.engine
        send = ParkedSend(sequence_id, highest_sequence_id, message_count, body, engine.now_ns)
        engine.admission.wait_for_answers(self, producer, send)

    def stage_parked(self, producer: Producer, send: ParkedSend, charged: int) -> None:
        """Stage a SEND that waited and may go now. Where the disk has failed, its producer is told
        and ended."""
        self.admit_below = NO_MARK
        sequence_id, highest_sequence_id, message_count, body, _ = send
        ids = (sequence_id, highest_sequence_id)
        try:
            is_staged = self.publish(producer, *ids, message_count, body, charged)
        except StorageError as error:
            self.settle_admission()
            producer.port.send_refused(producer.producer_id, sequence_id, str(error))
        else:
            self.settle_admission()
            if is_staged:
                producer.port.send_staged()

    def settle_admission(self) -> None:
        """Set up to how many staged bytes nothing that is sent has to wait."""
        if self.parking or self.ending or self.engine.admission.is_limited(self):
            self.admit_below = ALWAYS
        else:
            self.admit_below = NO_MARK if self.quota is None else self.quota.mark

    def _give_back(self, charged: int, size_bytes: int) -> None:
        """An entry was charged and is not stored."""
        if charged and self.publish_gate is not None:
            self.publish_gate.give_back(self.engine.now_ns, charged, size_bytes)
            self.engine.effects.work_pending()

    def pause_reading(self, producer: Producer, *, for_parked: bool = False) -> None:
        """The connection of a producer is not read because too much waits; ``for_parked``: too much
        that it parked itself."""
        if self.parking is None:
            self.parking = Parking()
        self.parking.pause(producer, for_parked, self.engine.now_ns)

    def read_on(self, producer: Producer) -> None:
        """It is read again, or the producer is gone."""
        if self.parking is not None:
            self.parking.resume(producer, self.engine.now_ns)

    def discard_parked(self, producer: Producer) -> None:
        """Forget what a producer has waiting: it is never stored."""
        self.engine.admission.discard(producer)

    def end_producer(self, producer: Producer) -> None:
        """Close a producer as soon as what it staged is answered: no receipt is lost, so its
        client sends nothing again that is stored. What it parked, and sends until then, is
        forgotten."""
        if producer.ending:
            return
        producer.ending = True
        if self.quota is not None and self.quota.over is not None:
            self.quota.stopping().closed += 1
        self.discard_parked(producer)
        if producer.pending_count:
            self.ending = [*(self.ending or ()), producer]
            self.settle_admission()
        else:
            self._close(producer)

    def _close(self, producer: Producer) -> None:
        producer.port.close_producer(producer.producer_id)
        self.remove_producer(producer)

    def _answered(self) -> None:
        """What was staged is durable, or failed: close who waited for that, and see whether the
        quotas allow more, or less, than before."""
        for producer in list(self.ending or ()):
            if not producer.pending_count:
                self._close(producer)
        if self.quota is not None and self.staged_bytes >= self.quota.mark:
            self.quota.evaluate()
        self.settle_admission()

    def durable(self, storage_ns: int) -> None:
        """The log's end moved, by a commit that took it ``storage_ns``: send the receipts, then
        have the subscriptions looked at."""
        log = self.log
        first = self.visible
        pending = self._pending
        position = log.position
        for ordinal in range(self.visible, log.end):
            producer, sequence_id, highest_sequence_id, _, messages, body = pending.popleft()
            producer.pending_count -= 1
            producer.messages_published += messages
            producer.bytes_published += len(body)
            if not producer.closed:
                producer.port.send_receipt(
                    producer.producer_id, sequence_id, highest_sequence_id, position(ordinal)
                )
        self.visible = log.end
        self.last_publish_ms = self.engine.now_ms
        if self.publish_rate is not None:
            self.engine.relative.published(self, first)
        for subscription in self.subscriptions.values():
            if not subscription.throttled:
                subscription.wake()
        if first < log.end:
            self._count_writes(first, log.end, storage_ns)
        if self.staged_bytes >= self.admit_below:
            self._answered()

    def _count_writes(self, first: int, end: int, storage_ns: int) -> None:
        """Account entries that became durable now: once for each turn that staged some."""
        now_ns = self.engine.now_ns
        if self._writes is None:
            self._writes = RecentWrites(now_ns)
        figures = self._writes.current(now_ns)
        entries = end - first
        sizes = self._sizes
        if len(sizes) == entries:
            self._sizes = []
        else:
            sizes = sizes[:entries]
            del self._sizes[:entries]
        if not self.is_system:
            self.engine.written_ns = now_ns
            if self.engine.published is not None:
                self.engine.published[self] = None
        figures.size_bytes += sum(sizes)
        count_sizes(figures.sizes, sizes)
        count_latency(figures.storage, storage_ns, entries)
        figures.storage_ns += storage_ns * entries
        arrivals = self._arrivals
        while first < end:
            while len(arrivals) > 1 and arrivals[1][0] <= first:
                arrivals.popleft()
            stop = min(end, arrivals[1][0]) if len(arrivals) > 1 else end
            took_ns = now_ns - arrivals[0][1]
            count_latency(figures.latency, took_ns, stop - first)
            figures.latency_ns += took_ns * (stop - first)
            first = stop

    def writes_last_minute(self) -> WriteHistograms:
        """What was written in the last whole minute."""
        if self._writes is None:
            return NO_WRITES
        return self._writes.last(self.engine.now_ns)

    def fail_pending(self, error: StorageError) -> None:
        """Nothing staged since the last durable entry was stored: say so to every producer."""
        for ordinal in range(self.log.end, self.log.end + len(self._pending)):
            self.cache.pop(ordinal, None)
        sizes, self._sizes = self._sizes, []
        self._arrivals.clear()
        self._arrived_ns = -1
        for size in sizes:
            producer, sequence_id, _, charged, _, _ = self._pending.popleft()
            self._give_back(charged, size)
            producer.pending_count -= 1
            if not producer.closed:
                producer.port.send_failed(producer.producer_id, sequence_id, str(error))
        self.staged_bytes = self.log.bytes_before(self.log.staged_end)
        self._answered()

    def restage_pending(self) -> None:
        """A commit failed for a moment: stage once more what was staged since the last durable
        entry, under the same ordinals."""
        for _, _, _, _, message_count, body in self._pending:
            self.engine.effects.append(self, message_count, body)

    def park_pending(self) -> None:
        """The disk has no room for what was staged since the last durable entry: it waits until
        there is some, each producer's before what that sent later."""
        taken: list[tuple[Producer, ParkedSend]] = []
        ordinal, arrivals = self.log.end, self._arrivals
        for producer, sequence_id, highest_sequence_id, charged, messages, body in self._pending:
            while len(arrivals) > 1 and arrivals[1][0] <= ordinal:
                arrivals.popleft()
            self.cache.pop(ordinal, None)
            ordinal += 1
            self._give_back(charged, len(body))
            producer.pending_count -= 1
            if not producer.closed:
                send = (sequence_id, highest_sequence_id, messages, body, arrivals[0][1])
                taken.append((producer, ParkedSend(*send)))
        self._pending.clear()
        self._sizes.clear()
        arrivals.clear()
        self._arrived_ns = -1
        self.staged_bytes = self.log.bytes_before(self.log.staged_end)
        self.engine.disk_hold.take_back(self, taken)
        self._answered()

    @property
    def pending_count(self) -> int:
        """Entries staged and not yet durable."""
        return len(self._pending)

    # -- subscriptions ---------------------------------------------------------------------

    def add_subscription(
        self,
        name: str,
        acks: AckSet,
        *,
        cursor_id: int | None,
        properties: dict[str, str] | None = None,
    ) -> Subscription:
        """Make a subscription whose cursor stands at ``acks``; ``cursor_id`` None for a reader."""
        gate = self.gate.retired.take(name, self.engine.now_ns, is_reader=cursor_id is None)
        subscription = Subscription(
            self,
            name,
            acks,
            gate or self.gate.waiter(),
            cursor_id=cursor_id,
            properties=properties,
            now_ns=self.engine.now_ns,
            now_ms=self.engine.now_ms,
        )
        self.subscriptions[name] = subscription
        self.engine.observer.subscription_added(subscription)
        self.engine.limits_of_subscription(subscription)
        subscription.trimmed()
        subscription.wake()
        if self.quota is not None:
            self.quota.subscription_changed(subscription)
        return subscription

    def remove_subscription(self, name: str) -> None:
        """Forget a subscription without consumers.

        Raises:
            SubscriptionBusyError: it has consumers.
        """
        subscription = self.subscriptions[name]
        if subscription.consumers:
            raise SubscriptionBusyError("Subscription has active connected consumers")
        self.engine.observer.subscription_removed(subscription)
        subscription.close(self.engine.now_ns)
        del self.subscriptions[name]
        self.messages_out_removed += subscription.messages_sent
        self.bytes_out_removed += subscription.bytes_sent
        if subscription.limit is not None and subscription.limit.relative:
            self.engine.relative.limits_set(self)
        if self.quota is not None:
            self.quota.subscription_changed(subscription)
        self._touch_idle()

    def slowest_durable_ordinal(self) -> int:
        """The first entry that some stored subscription still owes; the end if there is none."""
        end = self.log.end
        return min(
            (s.acks.mark_delete + 1 for s in self.subscriptions.values() if s.is_durable),
            default=end,
        )

    def trimmed(self) -> None:
        """The log gave up entries: no subscription waits for them."""
        for subscription in list(self.subscriptions.values()):
            subscription.trimmed()

    # -- life ------------------------------------------------------------------------------

    @property
    def is_live(self) -> bool:
        """Whether it is still loaded: whoever waited with a topic in hand has to ask."""
        return self.engine.by_number.get(self.log.number) is self

    def is_unused(self) -> bool:
        """No producer, no subscription: a candidate for inactive-topic deletion."""
        return not self.producers and not self.subscriptions and not self._pending

    def _touch_idle(self) -> None:
        if self.is_unused():
            self.idle_since_ns = self.engine.now_ns

    def fence(self) -> None:
        """Refuse newcomers and close everybody: the topic is unloaded or deleted next."""
        self.fenced = True
        for producer in list(self.producers.values()):
            producer.port.close_producer(producer.producer_id)
            self.remove_producer(producer)
        for subscription in list(self.subscriptions.values()):
            subscription.disconnect_consumers()

    def messages_in(self) -> int:
        """Messages stored since the topic was loaded."""
        return self.log.messages_before(self.log.end) - self.messages_in_before_load

    def bytes_in(self) -> int:
        """Bytes stored since the topic was loaded."""
        return self.log.bytes_before(self.log.end) - self.bytes_in_before_load

    def counters(self) -> tuple[int, int, int, int]:
        """Messages, bytes and entries stored, entries read from disk, since the load: for the
        rates."""
        entries_in = self.log.end - self.entries_in_before_load
        return self.messages_in(), self.bytes_in(), entries_in, self.entries_read

    def backlog_bytes(self) -> int:
        """The largest exact backlog of a stored subscription."""
        return max(
            (s.backlog_bytes for s in self.subscriptions.values() if s.is_durable), default=0
        )

    def storage_bytes(self) -> int:
        """Bytes of all entries held."""
        return self.log.bytes_before(self.log.end) - self.log.bytes_before(self.log.first)
