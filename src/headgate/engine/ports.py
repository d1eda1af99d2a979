"""What the engine asks of the outside: the stored entries, the connections, the effects.

The engine calls these in the order in which the effects must happen. None of them may block, and
none may call back into the engine before it returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from headgate.base.park_cause import ParkCause
from headgate.base.positions import Position

if TYPE_CHECKING:
    from headgate.engine.consumer import Consumer
    from headgate.engine.eviction import Eviction
    from headgate.engine.producer import Producer
    from headgate.engine.subscription import Subscription
    from headgate.engine.topic import Topic
    from headgate.flow.adaptive.cycle import Decision
    from headgate.flow.quota.backlog_quota import Quota


class LedgerRange(Protocol):
    """One ledger of a topic: a range of message ids. ``headgate.ledger.LedgerInfo`` is one."""

    @property
    def ledger_id(self) -> int:
        """Pulsar's number of the ledger."""

    @property
    def first_ordinal(self) -> int:
        """The ordinal of the ledger's entry 0."""

    @property
    def entries(self) -> int:
        """Entries that the ledger ever got, trimmed ones included."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the ledger's retained entries."""

    @property
    def created_ms(self) -> int:
        """When the ledger was opened, in the time of the log."""


class EntryLog(Protocol):
    """One topic's stored entries, known by ordinal. ``headgate.ledger.TopicLog`` is one.

    The ordinals are plain attributes because each message reads them. ``first`` is the first
    retained entry, ``end`` is one past the last durable entry (only these are visible) and
    ``staged_end`` is one past the last entry that was handed over for storing.
    """

    number: int
    """The topic's number in the log. The log identifies topics by it and never reuses it."""
    first: int
    end: int
    staged_end: int
    damage: str
    """Where and what the topic lost on the disk; empty if nothing or if that was accepted."""

    @property
    def current_ledger_entries(self) -> int:
        """Entries in the last ledger; 0 if there is no ledger."""

    @property
    def current_ledger_bytes(self) -> int:
        """Retained bytes in the last ledger; 0 if there is no ledger."""

    def ledgers(self) -> Sequence[LedgerRange]:
        """The ledgers with retained entries and the last ledger, oldest first."""

    def is_lost(self, ordinal: int, /) -> bool:
        """Whether the disk is known to have lost a retained entry."""

    def position(self, ordinal: int, /) -> Position:
        """Pulsar's message id of a retained or staged entry."""

    def ordinal_at_or_after(self, ledger_id: int, entry_id: int, /) -> int:
        """The entry with this id, else the next retained one; ``end`` if there is none."""

    def ordinal_received_at_or_after(self, received_ms: int, /) -> int:
        """The first durable entry that the broker received then or later; ``end`` if none."""

    def ordinal_published_at_or_after(self, publish_ms: int, /) -> int:
        """The first durable entry that was published then or later; ``end`` if none."""

    def message_count(self, ordinal: int, /) -> int:
        """Messages in the entry: more than one for a batch."""

    def size_bytes(self, ordinal: int, /) -> int:
        """Bytes of the entry as the client sent it."""

    def received_ms(self, ordinal: int, /) -> int:
        """When the broker received it, ms since the epoch, never falling along the topic."""

    def messages_before(self, ordinal: int, /) -> int:
        """Messages in all entries below ``ordinal``, since the topic was created."""

    def bytes_before(self, ordinal: int, /) -> int:
        """Bytes in all entries below ``ordinal``, since the topic was created."""


class ProducerPort(Protocol):
    """The connection of a producer, as far as the engine needs it."""

    parked_bytes: int
    """Memory that SENDs of all its producers take that wait before their append. The engine
    counts."""
    waiting: deque[Producer]
    """Producers that wait until more of what was sent over it is answered. The engine's."""

    @property
    def has_room(self) -> bool:
        """Whether one more SEND may be appended before others are answered."""

    @property
    def brings_acks(self) -> bool:
        """Whether consumers acknowledge over it: reading on may be what makes room."""

    def throttled(self, cause: ParkCause, /) -> None:
        """SENDs of one more producer wait, for that reason."""

    def unthrottled(self, cause: ParkCause, /) -> None:
        """SENDs of one producer, of which it was told with that reason, wait no longer for it."""

    def pause_for_parked(self) -> None:
        """Too much waits: read no further."""

    def resume_for_parked(self) -> None:
        """Little enough waits again."""

    def send_staged(self) -> None:
        """A SEND that waited is staged now: its receipt or failure follows."""

    def send_unstaged(self) -> None:
        """A SEND that was staged was not stored and waits again."""

    def send_refused(self, producer_id: int, sequence_id: int, reason: str, /) -> None:
        """A SEND that waited cannot be staged: tell its producer, and end it."""

    def send_receipt(
        self, producer_id: int, sequence_id: int, highest_sequence_id: int, position: Position, /
    ) -> None:
        """The message is durable: tell its producer."""

    def send_failed(self, producer_id: int, sequence_id: int, reason: str, /) -> None:
        """The message was not stored: tell its producer."""

    def close_producer(self, producer_id: int, /) -> None:
        """The broker ends this producer; the client may create it again."""


class UnboundedPort:
    """What a producer's port is that has no connection and no bounds: nothing waits for it."""

    has_room = True
    brings_acks = False

    def __init__(self) -> None:
        self.parked_bytes = 0
        self.waiting: deque[Producer] = deque()

    def throttled(self, _cause: ParkCause, /) -> None:
        """Nobody is told."""

    def unthrottled(self, _cause: ParkCause, /) -> None:
        """Nobody is told."""

    def pause_for_parked(self) -> None:
        """There is no socket."""

    def resume_for_parked(self) -> None:
        """There is no socket."""

    def send_staged(self) -> None:
        """No answer is counted."""

    def send_unstaged(self) -> None:
        """No answer is counted."""


class ConsumerPort(Protocol):
    """The connection of a consumer, as far as the engine needs it."""

    writable: bool
    """False while the socket's buffer is over its high mark: nothing more should be sent."""

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        redelivery_count: int,
        body: bytes,
        /,
    ) -> None:
        """Hand one entry to the connection."""

    def close_consumer(self, consumer_id: int, /) -> None:
        """The broker ends this consumer; the client may create it again."""

    def active_consumer_changed(self, consumer_id: int, is_active: bool, /) -> None:
        """A failover subscription chose its active consumer (anew)."""


class Effects(Protocol):
    """What the engine asks of the broker's shell."""

    def append(self, topic: Topic, message_count: int, body: bytes, /) -> int:
        """Stage an entry for the next group commit and return its ordinal."""

    def read(self, subscription: Subscription, ordinal: int, /) -> None:
        """Bring entries of the topic, from ``ordinal`` on, into its cache, then call
        :meth:`Subscription.entries_read`."""

    def acks_changed(self, subscription: Subscription, /) -> None:
        """The subscription acknowledged more, or was moved: persist it soon."""

    def work_pending(self) -> None:
        """Something is to be dispatched: run :meth:`Engine.flush` before the loop rests."""

    def quota_turned(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        """As :meth:`Observer.quota_turned`: tell whoever runs the broker."""

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        """As :meth:`Observer.evicted`: tell whoever runs the broker."""


class Observer(Protocol):
    """Who wants to know what comes, goes and is limited anew. It may look, never change anything.

    Nothing on the way of a message calls it.
    """

    def topic_loaded(self, topic: Topic, /) -> None:
        """A topic became live; its limits and subscriptions follow."""

    def topic_unloaded(self, topic: Topic, /) -> None:
        """A topic, with all its subscriptions, is about to be forgotten."""

    def subscription_added(self, subscription: Subscription, /) -> None:
        """A subscription became live; its limit follows."""

    def subscription_removed(self, subscription: Subscription, /) -> None:
        """A subscription is about to be forgotten."""

    def limits_changed(self, topic: Topic | None, subscription: Subscription | None, /) -> None:
        """The limit of a topic, of one of its subscriptions or (None, None) of the broker was put
        in force, perhaps as it was."""

    def publish_limits_changed(self, topic: Topic | None, /) -> None:
        """The publish limit of a topic, static or adaptive, or (None) of the broker was put in
        force, perhaps as it was. Of topics that never had one nothing is told."""

    def quota_turned(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None:
        """A topic reached a quota that stops producers, or has room again."""

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None:
        """A quota took messages from subscriptions of a topic."""

    def decided(self, topic: Topic, decision: Decision, /) -> None:
        """The adaptive controller began, changed or ended a limit, or would have."""


class NoObserver:
    """The observer of an engine that nobody watches."""

    def topic_loaded(self, topic: Topic, /) -> None: ...

    def topic_unloaded(self, topic: Topic, /) -> None: ...

    def subscription_added(self, subscription: Subscription, /) -> None: ...

    def subscription_removed(self, subscription: Subscription, /) -> None: ...

    def limits_changed(self, topic: Topic | None, subscription: Subscription | None, /) -> None: ...

    def publish_limits_changed(self, topic: Topic | None, /) -> None: ...

    def quota_turned(self, topic: Topic, quota: Quota, exceeded: bool, /) -> None: ...

    def evicted(self, topic: Topic, eviction: Eviction, /) -> None: ...

    def decided(self, topic: Topic, decision: Decision, /) -> None: ...
