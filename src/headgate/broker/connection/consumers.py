"""Delivers messages to the consumers of one connection."""

from __future__ import annotations

from functools import partial

from headgate.base.drained import drained
from headgate.base.identity import Identity
from headgate.base.positions import Position
from headgate.base.units import INT32_MAX
from headgate.base.work_units import CLIENT_CLOSED
from headgate.broker.client_memory import ClientMemory
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.ended_connection import ENDED
from headgate.broker.connection.frame_writer import FrameWriter
from headgate.broker.held_memory import PENDING_ENTRY_BYTES
from headgate.broker.work.scheduler import Steps
from headgate.engine.consumer import Consumer
from headgate.engine.dispatch_shared import GIVE_BACK_ENTRIES
from headgate.engine.subscription import Subscription
from headgate.wire import encode
from headgate.wire.entry import batch_size, strip_checksum
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.messages import BaseCommand
from headgate.wire.metadata_head import head_of


class ConnectionConsumers:
    """Delivers messages to the consumers of one connection. Implements
    :class:`headgate.engine.consumer.ConsumerPort`."""

    __slots__ = ("_connection", "_early_notices", "_frames", "_memory", "_writable", "by_id",
                 "is_old")  # fmt: skip

    def __init__(
        self, connection: ClientConnection, frames: FrameWriter, memory: ClientMemory
    ) -> None:
        self._connection = connection
        self._memory = memory
        self._early_notices: dict[int, bool] = {}
        """First notices for consumers that have not asked for messages."""
        self._frames = frames
        self.by_id = connection.consumers
        self._writable = True
        self.is_old = False
        """Whether the client is too old to know checksums, or even batches."""

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED
        self._memory.deliver_no_more(self)

    @property
    def writable(self) -> bool:
        """Whether the connection takes entries. Over TLS one that its peer does not read takes as
        much memory as it has bytes, and each consumer gets at least one."""
        if self._memory.is_crowded:
            return self._writable and self._memory.may_deliver(self, self._connection.identity)
        return self._writable

    @writable.setter
    def writable(self, is_writable: bool) -> None:
        self._writable = is_writable

    def deliver_again(self) -> int:
        """There is room for messages; returns how many consumers were told."""
        if not self._writable or self._frames.peer_blocked:
            return 0
        self.resume()
        return len(self.by_id)

    def flow(self, command: BaseCommand) -> None:
        """Carry out a FLOW: grant a consumer permits for more messages.

        Raises:
            RemoteProtocolError: the number of permits is invalid.
        """
        request = command.flow
        permits = request.messagePermits
        if not 1 <= permits <= INT32_MAX:
            # The field is unsigned: a Java client's negative number arrives as one above this.
            raise RemoteProtocolError(f"FLOW of {permits} permits: 1 to {INT32_MAX} are allowed")
        if self._early_notices:
            self._send_early_notice(request.consumer_id)
        connected = self.by_id.get(request.consumer_id)
        if connected is not None:
            consumer, subscription = connected
            # The total stays in the range of a Java int, for Java clients and tools.
            permits = min(permits, INT32_MAX - consumer.permits)
            if permits > 0:
                subscription.flow(consumer, permits)

    def held_bytes(self) -> int:
        """Memory of the entries that its consumers have and did not acknowledge, with their shares
        of what is acknowledged out of order or in part on their subscriptions, waits there for
        redelivery, or is remembered of entries."""
        size_bytes = 0
        for consumer, subscription in self.by_id.values():
            size_bytes += len(consumer.held) * PENDING_ENTRY_BYTES
            shared_bytes = subscription.dispatcher.remembered_bytes + subscription.acks.blocks_bytes
            if subscription.acks.partials is not None:
                shared_bytes += subscription.acks.partial_bytes
            if shared_bytes:
                size_bytes += shared_bytes // max(len(subscription.consumers), 1)
        return size_bytes

    @property
    def identity(self) -> Identity:
        """Who the client is."""
        return self._connection.identity

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        redelivery_count: int,
        body: bytes,
        left: tuple[int, ...],
    ) -> bool:
        if self.is_old:
            if not self._takes(body):
                # Its connection ends; another consumer, or a newer client, gets the entry.
                self.writable = False
                self._connection.close_at_client(encode.close_consumer(consumer.consumer_id))
                return True
            body = strip_checksum(body)
        ledger_id, entry_id = position
        head = encode.message_frame_head(
            consumer.consumer_id,
            ledger_id,
            entry_id,
            partition,
            redelivery_count,
            left,
            consumer.epoch,
            len(body),
        )
        if self._frames.write_entry(head, body):
            return self._memory.is_crowded and not self.writable
        self._writable = False
        return True

    def _takes(self, body: bytes) -> bool:
        """Whether the client knows entries like this one."""
        peer = self._connection.peer
        knows_batches = peer is not None and peer.knows_batches
        if knows_batches:
            return True
        try:
            return batch_size(head_of(body)) is None
        except RemoteProtocolError:
            return True  # the client refuses it, or takes what its producer sent

    def close_consumer(self, consumer_id: int) -> None:
        if self.by_id.pop(consumer_id, None) is not None:
            self._connection.close_at_client(encode.close_consumer(consumer_id))

    def subscribed(self, consumer_id: int) -> None:
        """The client of a consumer has its answer. Its first notice follows with its first FLOW,
        or after the delay of a failover: Go's client drops one that comes at once."""
        if consumer_id in self._early_notices:
            engine = self.by_id[consumer_id][1].topic.engine
            when_ns = engine.now_ns + engine.limits.failover_delay_ns
            engine.wake_at(when_ns, partial(self._send_early_notice, consumer_id))

    def _send_early_notice(self, consumer_id: int) -> None:
        is_active = self._early_notices.pop(consumer_id, None)
        if is_active is not None and consumer_id in self.by_id:
            self.active_consumer_changed(consumer_id, is_active)

    def active_consumer_changed(self, consumer_id: int, is_active: bool) -> None:
        if consumer_id in self._early_notices or consumer_id not in self.by_id:
            if ("consumer", consumer_id) in self._connection.creating or consumer_id in self.by_id:
                self._early_notices[consumer_id] = is_active
            return
        peer = self._connection.peer
        if peer is not None and peer.knows_active_consumer_change:
            frame = encode.active_consumer_change(consumer_id, is_active=is_active)
            self._frames.write(frame)

    def end_reached(self, consumer_id: int) -> None:
        peer = self._connection.peer
        if peer is not None and peer.knows_end_of_topic:
            self._frames.write(encode.reached_end_of_topic(consumer_id))

    def flushed(self) -> None:
        """Deliver more if only the bound for one turn stopped delivery and the peer still reads."""
        if not self._writable and not self._frames.peer_blocked:
            self.resume()

    def resume(self) -> None:
        """Deliver more, because the connection takes entries again."""
        self.writable = True
        for consumer, subscription in self.by_id.values():
            subscription.consumer_ready(consumer)

    def disconnect_all(self) -> Steps:
        """Disconnect all consumers, because the connection has ended: it sends nothing more."""
        connected = list(self.by_id.values())
        self.by_id.clear()
        return self._disconnect(connected)

    @staticmethod
    def _disconnect(connected: list[tuple[Consumer, Subscription]]) -> Steps:
        for consumer, subscription in drained(connected):
            held_count = min(len(consumer.held), GIVE_BACK_ENTRIES)
            units = CLIENT_CLOSED + held_count + subscription.dispatcher.forgotten_units()
            subscription.remove_consumer(consumer)
            yield units
