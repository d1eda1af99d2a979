"""One producer of a topic, and the port through which the engine answers it."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from headgate.base.park_cause import ParkCause
from headgate.base.positions import Position
from headgate.engine.parked_send import ParkedAt, ParkedSend
from headgate.engine.rate_meter import RateMeter
from headgate.engine.types import AccessMode

if TYPE_CHECKING:
    from headgate.flow.limits.waiter_gate import WaiterGate


class ProducerTurns:
    """Producers in the order of their turns. One that leaves costs no look at the others: thousands
    may leave in any order."""

    __slots__ = ("_order",)

    def __init__(self) -> None:
        self._order: OrderedDict[Producer, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Producer]:
        return iter(self._order)

    @property
    def first(self) -> Producer:
        """The one whose turn it is; there must be one."""
        return next(iter(self._order))

    def append(self, producer: Producer) -> None:
        """A producer that is not among them waits behind the others."""
        self._order[producer] = None

    def remove(self, producer: Producer) -> None:
        """A producer that is among them waits no more."""
        del self._order[producer]

    def pass_turn(self) -> None:
        """The first one has had its turn, and waits behind the others."""
        self._order.move_to_end(self.first)


class ProducerPort(Protocol):
    """The connection of a producer, as far as the engine needs it."""

    parked_bytes: int
    """Memory that the parked SENDs of all its producers take. Only the engine changes it."""
    waiting: ProducerTurns
    """Producers that wait until more SENDs of the connection are answered. Only the engine changes
    it."""

    @property
    def has_room(self) -> bool:
        """Whether one more SEND may be appended before others are answered."""

    @property
    def brings_acks(self) -> bool:
        """Whether consumers acknowledge over it, so that reading it may make room."""

    async def is_alive(self) -> bool:
        """Whether the client shows a sign of life; a dead connection is ended."""

    def throttled(self, cause: ParkCause, /) -> None:
        """One more producer has parked SENDs, for this cause."""

    def unthrottled(self, cause: ParkCause, /) -> None:
        """A producer that :meth:`throttled` reported with this cause no longer waits for it."""

    def pause_for_parked(self) -> None:
        """Too much is parked: stop reading."""

    def resume_for_parked(self) -> None:
        """Little enough is parked again: resume reading."""

    def send_staged(self) -> None:
        """A parked SEND is staged now: its receipt or failure follows."""

    def send_unstaged(self) -> None:
        """A staged SEND was not stored and is parked."""

    def send_refused(self, producer_id: int, sequence_id: int, reason: str, /) -> None:
        """A parked SEND cannot be staged: answer it with an error and end its producer."""

    def send_receipt(
        self, producer_id: int, sequence_id: int, highest_sequence_id: int, position: Position, /
    ) -> None:
        """The message is durable: send its receipt."""

    def send_failed(self, producer_id: int, sequence_id: int, reason: str, /) -> None:
        """The message was not stored: answer it with an error."""

    def close_producer(self, producer_id: int, /) -> None:
        """The broker ends this producer; the client may create it again."""


class UnboundedPort:
    """The port of a producer without a connection: it has no bounds and sends no answers."""

    has_room = True
    brings_acks = False

    def __init__(self) -> None:
        self.parked_bytes = 0
        self.waiting = ProducerTurns()

    async def is_alive(self) -> bool:
        """There is no connection that could end."""
        return True

    def throttled(self, _cause: ParkCause, /) -> None:
        """There is no connection."""

    def unthrottled(self, _cause: ParkCause, /) -> None:
        """There is no connection."""

    def pause_for_parked(self) -> None:
        """There is no connection."""

    def resume_for_parked(self) -> None:
        """There is no connection."""

    def send_staged(self) -> None:
        """Answers are not counted."""

    def send_unstaged(self) -> None:
        """Answers are not counted."""


class ProducerTopic(Protocol):
    """The publish side of a producer's topic, as far as code needs it that only has the
    producer."""

    @property
    def topic(self) -> object:
        """The producer's topic."""

    def end_producer(self, producer: Producer, /) -> None:
        """Close a producer as soon as its staged entries are answered."""


class Producer:
    """State of one connected producer."""

    __slots__ = (
        "access_mode",
        "address",
        "bytes_published",
        "chunks_published",
        "client_version",
        "closed",
        "connected_ms",
        "duplicates_dropped",
        "ending",
        "epoch",
        "gate",
        "is_encrypting",
        "is_partial",
        "is_paused",
        "is_paused_for_parked",
        "messages_published",
        "metadata",
        "name",
        "names_itself",
        "parked",
        "parked_at",
        "parked_at_since_ns",
        "parked_bytes",
        "parked_messages",
        "pending_count",
        "port",
        "producer_id",
        "publishing",
        "rates",
        "throttled_by",
    )

    def __init__(
        self,
        producer_id: int,
        name: str,
        port: ProducerPort,
        *,
        epoch: int = 0,
        access_mode: AccessMode = AccessMode.SHARED,
        metadata: dict[str, str] | None = None,
        address: str = "",
        client_version: str = "",
        connected_ms: int = 0,
        is_partial: bool = False,
        is_encrypting: bool = False,
    ) -> None:
        self.producer_id = producer_id
        self.name = name
        self.port = port
        self.epoch = epoch
        self.access_mode = access_mode
        self.metadata = metadata or {}
        self.address = address
        self.client_version = client_version
        self.connected_ms = connected_ms
        self.is_partial = is_partial
        """Whether its client may leave out partitions, so that statistics match by name."""
        self.is_encrypting = is_encrypting
        """Whether its client encrypts messages."""
        self.closed = False
        self.pending_count = 0
        """SENDs staged and not yet answered."""
        self.parked: deque[ParkedSend] | None = None
        """SENDs that wait before their append, in order."""
        self.parked_bytes = 0
        self.parked_messages = 0
        self.parked_at: ParkedAt | None = None
        """Where they wait; None while there are none."""
        self.parked_at_since_ns = 0
        self.throttled_by = ParkCause.TOPIC_RATE
        """The cause that was last reported to its connection."""
        self.is_paused = False
        """Whether its connection is not read because too much is parked."""
        self.is_paused_for_parked = False
        """Whether its own connection parked too much."""
        self.publishing: ProducerTopic | None = None
        """The publish side of its topic; None before it is added and after it is removed."""
        self.gate: WaiterGate | None = None
        """Its turns under publish limits; created when there is a limit."""
        self.ending = False
        """Whether it takes no more and is closed when its staged entries are answered."""
        self.messages_published = 0
        """Messages that were stored. Staged ones do not count: a full disk may still park them, and
        a counter must not fall."""
        self.bytes_published = 0
        self.chunks_published = 0
        self.names_itself: Callable[[bytes], object] | None = None
        """Whether an entry of the usual shape has this producer's name; made when deduplication
        first needs it."""
        self.duplicates_dropped = 0
        """Messages that were not stored, because they had been before."""
        self.rates = RateMeter(3)

    def counters(self) -> tuple[int, int, int]:
        """Messages, bytes and chunks published, for the rates."""
        return self.messages_published, self.bytes_published, self.chunks_published
