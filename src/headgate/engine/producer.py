"""One producer of a topic, and what it has published."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from headgate.base.park_cause import ParkCause
from headgate.engine.ports import ProducerPort
from headgate.engine.rate_meter import RateMeter
from headgate.engine.types import AccessMode

if TYPE_CHECKING:
    from headgate.engine.parked_send import ParkedAt, ParkedSend
    from headgate.engine.topic import Topic
    from headgate.flow.limits.waiter_gate import WaiterGate


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
        "ending",
        "epoch",
        "gate",
        "is_paused",
        "is_paused_for_parked",
        "messages_published",
        "metadata",
        "name",
        "parked",
        "parked_at",
        "parked_at_since_ns",
        "parked_bytes",
        "parked_messages",
        "pending_count",
        "port",
        "producer_id",
        "rates",
        "throttled_by",
        "topic",
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
        self.closed = False
        self.pending_count = 0
        """SENDs staged and not yet answered."""
        self.parked: deque[ParkedSend] | None = None
        """SENDs that wait before their append, in their order."""
        self.parked_bytes = 0
        self.parked_messages = 0
        self.parked_at: ParkedAt | None = None
        """Where they wait; None while there are none."""
        self.parked_at_since_ns = 0
        self.throttled_by = ParkCause.TOPIC_RATE
        """What its connection was told of that."""
        self.is_paused = False
        """Whether its connection is not read because too much waits."""
        self.is_paused_for_parked = False
        """Whether that is what its connection parks."""
        self.topic: Topic | None = None
        """Of which it is a producer; None before and after."""
        self.gate: WaiterGate | None = None
        """Its turns under publish limits; made when there are any."""
        self.ending = False
        """Whether it takes no more, and is closed when what it staged is answered."""
        self.messages_published = 0
        """Of it and stored. What is staged may be taken back by a full disk, and no figure that is
        shown as a counter may fall."""
        self.bytes_published = 0
        self.chunks_published = 0
        self.rates = RateMeter(3)

    def counters(self) -> tuple[int, int, int]:
        """Messages, bytes and chunks published: for the rates."""
        return self.messages_published, self.bytes_published, self.chunks_published
