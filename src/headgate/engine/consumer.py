"""One consumer of a subscription, and the port through which the engine sends to it."""

from __future__ import annotations

from typing import Protocol

from headgate.base.positions import Position
from headgate.engine.rate_meter import RateMeter
from headgate.engine.types import NotReady


class ConsumerPort(Protocol):
    """The connection of a consumer, as far as the engine needs it."""

    writable: bool
    """False while the socket's buffer is over its high mark: nothing more should be sent."""

    async def is_alive(self) -> bool:
        """Whether the client shows a sign of life; a dead connection is ended."""

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        redelivery_count: int,
        body: bytes,
        left: tuple[int, ...],
        /,
    ) -> bool:
        """Hand one entry to the connection; returns whether :attr:`writable` is false now. ``left``
        says which messages of a partly acknowledged batch are left
        (:mod:`headgate.base.ack_words`); empty if all are."""

    def close_consumer(self, consumer_id: int, /) -> None:
        """The broker ends this consumer; the client may create it again."""

    def active_consumer_changed(self, consumer_id: int, is_active: bool, /) -> None:
        """Notify the client that a failover subscription made this consumer active or inactive."""

    def end_reached(self, consumer_id: int, /) -> None:
        """Notify the client that the topic is terminated and everything in it acknowledged."""


class Consumer:
    """State of one connected consumer.

    Permits count messages, as Pulsar's FLOW does; they may go below zero because an entry is never
    split. ``window`` is the largest permit total it ever had: its receiver queue as the broker can
    see it (docs/telemetry.md 1).

    Messages of a batch that were acknowledged before it was sent cost no permits
    (``uncharged_messages``). Some clients return permits for them all the same. So permits beyond
    the window are taken for these as far as there are any, and the window does not grow by them.
    """

    __slots__ = (
        "address",
        "blocked_on_unacked",
        "bytes_sent",
        "client_version",
        "connected_ms",
        "connection_key",
        "consumer_id",
        "entries_sent",
        "epoch",
        "held",
        "in_ready",
        "last_acked_ms",
        "last_flow_ms",
        "last_sent_ms",
        "messages_acked",
        "messages_redelivered",
        "messages_sent",
        "metadata",
        "name",
        "not_ready",
        "permits",
        "port",
        "priority_level",
        "rates",
        "ring_distance",
        "takes_any_schema",
        "told_active",
        "told_end",
        "unacked_messages",
        "uncharged_messages",
        "window",
    )

    def __init__(
        self,
        consumer_id: int,
        name: str,
        port: ConsumerPort,
        *,
        priority_level: int = 0,
        metadata: dict[str, str] | None = None,
        address: str = "",
        client_version: str = "",
        connected_ms: int = 0,
        epoch: int = -1,
        takes_any_schema: bool = False,
    ) -> None:
        """``takes_any_schema``: it decodes each message by the schema of its producer."""
        self.consumer_id = consumer_id
        self.name = name
        self.port = port
        self.priority_level = priority_level
        self.metadata = metadata or {}
        self.address = address
        self.client_version = client_version
        self.connected_ms = connected_ms
        self.epoch = epoch
        self.takes_any_schema = takes_any_schema
        self.connection_key = id(port)
        self.permits = 0
        self.window = 0
        self.uncharged_messages = 0
        """Messages sent without permits for which the client has not returned any."""
        self.held: dict[int, int] = {}
        """Entries of a shared subscription that it got and that are not acknowledged, in order; how
        many messages of each are acknowledged."""
        self.unacked_messages = 0
        """Unacknowledged messages of the entries that it holds, and of those that it gave back and
        that are not queued for redelivery yet."""
        self.blocked_on_unacked = False
        self.in_ready = False
        self.not_ready: NotReady | None = None
        """Of a shared subscription: why it was not ready when it was looked at; None while it may
        be."""
        self.told_active: bool | None = None
        """The last notice on whether it is the active consumer; None before the first."""
        self.told_end = False
        """Whether its client knows that it has acknowledged all of a terminated topic."""
        self.ring_distance = -1
        """Of a failover subscription: how far behind the topic its first place on the hash ring is;
        -1 while nobody has asked."""
        self.messages_sent = 0
        self.bytes_sent = 0
        self.entries_sent = 0
        self.messages_acked = 0
        self.messages_redelivered = 0
        self.last_sent_ms = 0
        self.last_acked_ms = 0
        self.last_flow_ms = 0
        self.rates = RateMeter(4)

    @property
    def is_ready(self) -> bool:
        """Whether it can take the next entry."""
        return self.permits > 0 and not self.blocked_on_unacked and self.port.writable

    def add_permits(self, count: int, now_ms: int) -> None:
        """Account a FLOW of ``count`` messages."""
        self.permits += count
        if self.permits > self.window:
            if self.uncharged_messages:
                self._take_uncharged(count)
            self.window = max(self.window, self.permits)
        self.last_flow_ms = now_ms

    def _take_uncharged(self, count: int) -> None:
        """Take back permits that the client returned though it was not charged for them. It keeps
        as many as the FLOW has: a client that waits for them would else wait for ever."""
        excess = min(self.permits - max(self.window, count), self.uncharged_messages)
        if excess > 0:
            self.permits -= excess
            self.uncharged_messages -= excess

    def account_sent(self, entries: int, messages: int, size_bytes: int, now_ms: int) -> None:
        """Account that entries were sent to it."""
        self.permits -= messages
        self.messages_sent += messages
        self.bytes_sent += size_bytes
        self.entries_sent += entries
        self.last_sent_ms = now_ms

    def counters(self) -> tuple[int, int, int, int]:
        """Messages and bytes sent, messages acknowledged, messages redelivered, for the rates."""
        return (
            self.messages_sent,
            self.bytes_sent,
            self.messages_acked,
            self.messages_redelivered,
        )
