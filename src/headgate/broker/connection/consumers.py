"""The engine's port to the consumers of one connection."""

from __future__ import annotations

from headgate.base.positions import Position
from headgate.broker.commands.ports import ClientConnection
from headgate.broker.connection.bounds import OUT_BYTES_MAX
from headgate.broker.connection.frame_writer import FrameWriter
from headgate.engine.consumer import Consumer
from headgate.wire import encode
from headgate.wire.entry import strip_checksum


class ConnectionConsumers:
    """Delivers messages to the consumers of one connection. Implements
    :class:`headgate.engine.ports.ConsumerPort`."""

    __slots__ = ("_frames", "by_id", "connection", "strips_checksums", "writable")

    def __init__(self, connection: ClientConnection, frames: FrameWriter) -> None:
        self.connection = connection
        self._frames = frames
        self.by_id = connection.consumers
        self.writable = True
        self.strips_checksums = False
        """Whether the client is too old to know checksums."""

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        redelivery_count: int,
        body: bytes,
    ) -> None:
        if self.strips_checksums:
            body = strip_checksum(body)
        size = len(body)
        ledger_id, entry_id = position
        head = encode.message_frame_head(
            consumer.consumer_id,
            ledger_id,
            entry_id,
            partition,
            redelivery_count,
            (),
            consumer.epoch,
            size,
        )
        frames = self._frames
        if not frames.is_open:
            return
        if not frames.gathered:
            frames.schedule()
        frames.gathered += (head, body)
        frames.entry_bytes += size
        if frames.entry_bytes > OUT_BYTES_MAX:
            self.writable = False

    def close_consumer(self, consumer_id: int) -> None:
        if self.by_id.pop(consumer_id, None) is not None:
            self.connection.write_or_close(encode.close_consumer(consumer_id))

    def active_consumer_changed(self, consumer_id: int, is_active: bool) -> None:
        peer = self.connection.peer
        if peer is not None and peer.knows_active_consumer_change:
            frame = encode.active_consumer_change(consumer_id, is_active=is_active)
            self._frames.write(frame)

    def flushed(self) -> None:
        """Deliver more if only the bound for one turn stopped delivery and the peer still reads."""
        if not self.writable and not self._frames.is_paused:
            self.resume()

    def resume(self) -> None:
        """Deliver more, because the connection takes entries again."""
        self.writable = True
        for consumer, subscription in self.by_id.values():
            subscription.dispatcher.consumer_ready(consumer)
            subscription.wake()

    def disconnect_all(self) -> None:
        """Disconnect all consumers, because the connection has ended."""
        self.writable = False
        for consumer, subscription in list(self.by_id.values()):
            subscription.remove_consumer(consumer)
        self.by_id.clear()
