"""Takes the SENDs of one connection and writes their receipts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from headgate.base.drained import drained
from headgate.base.errors import StorageError
from headgate.base.identity import Identity
from headgate.base.park_cause import ParkCause
from headgate.base.positions import Position
from headgate.base.work_units import CLIENT_CLOSED, METADATA_BYTES_PER_UNIT, SEND
from headgate.broker.connection.bounds import FORGET_CLOSED_NS, OBJECTS_MAX
from headgate.broker.connection.client_connection import ClientConnection
from headgate.broker.connection.delayed_sends import DelayedSends
from headgate.broker.connection.ended_connection import ENDED
from headgate.broker.connection.frame_writer import FrameWriter
from headgate.broker.connection.producer_attempt import ProducerAttempt
from headgate.broker.connection.throttle_tracker import ThrottleTracker
from headgate.broker.work.scheduler import Steps
from headgate.engine.engine import Engine
from headgate.engine.producer import Producer, ProducerTurns
from headgate.engine.topic import Topic
from headgate.policy.settings import Settings
from headgate.storage.publish_buffer import PublishBuffer
from headgate.wire import encode
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.entry import checksum_ok
from headgate.wire.errors import RemoteProtocolError
from headgate.wire.frame import Frame, FrameDecoder
from headgate.wire.limits import METADATA_BYTES_MAX
from headgate.wire.message_counts import check_message_count
from headgate.wire.messages import BaseCommand, CommandSend
from headgate.wire.metadata_head import head_of, metadata_bytes_of

CLOSED_MAX: Final = OBJECTS_MAX
CLOSED_BYTES: Final = 160
"""Producers that the broker closed and whose SENDs it drops for a while, and what the id of each
takes. A client may have so many; one that has more closed loses its connection if it sends to the
first of them."""


class ConnectionProducers:
    """Takes the SENDs of one connection and writes their receipts. Implements
    :class:`headgate.engine.producer.ProducerPort`."""

    __slots__ = (
        "__weakref__",
        "_buffer",
        "_closed_ns",
        "_connection",
        "_engine",
        "_frames",
        "_message_bytes_max",
        "_settings",
        "by_id",
        "delays",
        "parked_bytes",
        "pending_count",
        "refusals",
        "throttle",
        "waiting",
    )

    def __init__(
        self,
        connection: ClientConnection,
        frames: FrameWriter,
        delays: DelayedSends,
        throttle: ThrottleTracker,
        engine: Engine,
        settings: Settings,
        buffer: PublishBuffer,
    ) -> None:
        """``buffer`` has the SENDs of all connections that are not durable yet."""
        self._buffer = buffer
        self._connection = connection
        self._frames = frames
        self.delays = delays
        self.refusals = delays.refusals
        self.throttle = throttle
        self._engine = engine
        self._settings = settings
        self._message_bytes_max = settings.maxMessageSize
        self.by_id = connection.producers
        self.pending_count = 0
        """SENDs that are staged and not answered yet."""
        self.parked_bytes = 0
        self.waiting = ProducerTurns()
        self._closed_ns: OrderedDict[int, int] = OrderedDict()
        """When the broker closed each producer, by id, oldest first: thousands in a second, if
        their client breaks what each of them sends. Of an ordinary table, the first of thousands
        would be looked for anew each time that one is forgotten."""

    def forget_connection(self) -> None:
        """Refer to the connection no more, which has ended."""
        self._connection = ENDED
        self.delays.forget_connection()

    def next_frame_of(self, decoder: FrameDecoder) -> Callable[[], Frame | None]:
        """What finds the next command of the connection. While too many bytes wait to be durable it
        leaves a SEND in the receive buffer, and the connection is not read."""
        if not self.by_id or not self._buffer.is_full:
            return decoder.next_frame
        return partial(self._next_unless_held, decoder)

    def _next_unless_held(self, decoder: FrameDecoder) -> Frame | None:
        send_bytes = decoder.send_bytes
        if send_bytes and self._buffer.holds(send_bytes):
            self.throttle.set_buffer_full(True)
            self._connection.pause_reading()
            return None
        frame = decoder.next_frame()
        if frame is not None and not send_bytes and frame[0].type == CommandType.SEND:
            raise RemoteProtocolError("a SEND names another type first")
        return frame

    def send(self, command: BaseCommand, body: bytes | None) -> int:
        """Carry out a SEND. Returns the work units of that.

        Raises:
            RemoteProtocolError: it breaks the protocol.
        """
        send = command.send
        producer_id = send.producer_id
        connected = self.by_id.get(producer_id)
        if connected is None:
            closed_ns = self._closed_ns.get(producer_id)
            if closed_ns is None or self._engine.now_ns - closed_ns > FORGET_CLOSED_NS:
                raise RemoteProtocolError(f"SEND for producer {producer_id}, which does not exist")
            return SEND
        producer, topic = connected
        if body is None:
            raise RemoteProtocolError("SEND without a message")
        sequence_id = send.sequence_id
        if not checksum_ok(body):
            code, text = ServerError.CHECKSUM_ERROR, "Checksum failed on the broker"
            self._frames.write(encode.send_error(producer_id, sequence_id, code, text))
            if topic.publishing.deduplication is not None:
                # Else later SENDs would be stored, and this one a duplicate when it is sent again.
                self.close_after_failure(producer_id)
            return SEND
        units = SEND
        if len(body) > METADATA_BYTES_PER_UNIT:
            metadata_bytes = metadata_bytes_of(body)
            if metadata_bytes > METADATA_BYTES_MAX:
                self._refuse_metadata(producer, sequence_id, metadata_bytes)
                return SEND
            units += metadata_bytes // METADATA_BYTES_PER_UNIT
        message_count = send.num_messages
        delay_ms = check_message_count(message_count, body, self._message_bytes_max)
        if delay_ms and not self.delays.admit(
            producer, topic, sequence_id, message_count, delay_ms
        ):
            return units
        if topic.send_rules is not None and not self._keeps_rules(producer, topic, send, body):
            return units
        highest_sequence_id = send.highest_sequence_id
        maximum = self._settings.maxPendingPublishRequestsPerConnection
        if send.is_chunk:
            producer.chunks_published += 1
            topic.may_have_chunks()
        if 0 < maximum <= self.pending_count:
            topic.publishing.park(producer, sequence_id, highest_sequence_id, message_count, body)
            return units
        try:
            # A parked SEND counts once it is staged, unless its producer closes before.
            publish = topic.publishing.publish
            if publish(producer, sequence_id, highest_sequence_id, message_count, body):
                self.pending_count += 1
        except StorageError as error:
            self.send_refused(producer_id, sequence_id, str(error))
        return units

    def _refuse_metadata(self, producer: Producer, sequence_id: int, size_bytes: int) -> None:
        text = f"Message metadata of {size_bytes} bytes: {METADATA_BYTES_MAX} are allowed"
        self.refusals.refuse(producer, sequence_id, ServerError.NOT_ALLOWED_ERROR, text)

    def _keeps_rules(
        self, producer: Producer, topic: Topic, send: CommandSend, body: bytes
    ) -> bool:
        """Whether a SEND keeps the rules of its topic; else it is refused."""
        rules = topic.send_rules
        if rules is None:
            return True
        if rules.encrypted and not head_of(body).HasField("encryption_keys"):
            code, text = ServerError.METADATA_ERROR, "Messages must be encrypted"
        elif 0 < rules.message_bytes_max < len(body) and not send.is_chunk:
            code, text = ServerError.NOT_ALLOWED_ERROR, "Exceed maximum message size"
        else:
            return True
        self.refusals.refuse(producer, send.sequence_id, code, text)
        return False

    def send_receipt(
        self, producer_id: int, sequence_id: int, highest_sequence_id: int, position: Position
    ) -> None:
        # Reading, if it was paused, resumes behind this part of the commit's receipts.
        self.pending_count -= 1
        ledger_id, entry_id = position
        self._frames.write(
            encode.send_receipt(producer_id, sequence_id, ledger_id, entry_id, highest_sequence_id)
        )
        if self.refusals.by_producer:
            self.refusals.send_answered(producer_id)

    def send_staged(self) -> None:
        self.pending_count += 1

    def send_unstaged(self) -> None:
        self.pending_count -= 1

    @property
    def has_room(self) -> bool:
        maximum = self._settings.maxPendingPublishRequestsPerConnection
        return not 0 < maximum <= self.pending_count

    @property
    def brings_acks(self) -> bool:
        return bool(self._connection.consumers)

    @property
    def identity(self) -> Identity:
        """Who the client is."""
        return self._connection.identity

    async def is_alive(self) -> bool:
        return await self._connection.is_alive()

    def throttled(self, cause: ParkCause) -> None:
        self.throttle.mark(cause)

    def unthrottled(self, cause: ParkCause) -> None:
        self.throttle.unmark(cause)

    def pause_for_parked(self) -> None:
        self.throttle.set_over_bound(True)
        self._connection.pause_reading()

    def resume_for_parked(self) -> None:
        self.throttle.set_over_bound(False)
        self._connection.resume_soon()

    def send_refused(self, producer_id: int, sequence_id: int, reason: str) -> None:
        self._refuse(producer_id, sequence_id, reason)
        self.close_after_failure(producer_id)

    def send_failed(self, producer_id: int, sequence_id: int, reason: str) -> None:
        self.pending_count -= 1
        self._refuse(producer_id, sequence_id, reason)
        connected = self.by_id.get(producer_id)
        if connected is not None and connected[0].pending_count == 0:
            self.close_after_failure(producer_id)

    def _refuse(self, producer_id: int, sequence_id: int, reason: str) -> None:
        code = ServerError.PERSISTENCE_ERROR
        self._frames.write(encode.send_error(producer_id, sequence_id, code, reason))

    def close_after_failure(self, producer_id: int) -> None:
        """Close a producer after one of its SENDs was not stored. Later SENDs may be on their way
        and would overtake it; the client reconnects and sends all of them again."""
        connected = self.by_id.get(producer_id)
        if connected is not None:
            self.close_producer(producer_id)
            connected[1].remove_producer(connected[0])

    def close_producer(self, producer_id: int) -> None:
        if self.forget(producer_id):
            now_ns, closed = self._engine.now_ns, self._closed_ns
            closed.pop(producer_id, None)
            while closed and (
                len(closed) >= CLOSED_MAX or now_ns - next(iter(closed.values())) > FORGET_CLOSED_NS
            ):
                closed.popitem(last=False)
            closed[producer_id] = now_ns
            self._connection.close_at_client(encode.close_producer(producer_id))

    @property
    def closed_bytes(self) -> int:
        """Memory of the ids of closed producers. They are forgotten together."""
        closed = self._closed_ns
        if closed and self._engine.now_ns - next(reversed(closed.values())) > FORGET_CLOSED_NS:
            closed.clear()
        return CLOSED_BYTES * len(closed)

    @property
    def held_bytes(self) -> int:
        """Memory beside the producers."""
        return self.closed_bytes + self.refusals.held_bytes

    def forget(self, producer_id: int) -> bool:
        """Remove a producer, whose receipts no longer count; False if there is none."""
        connected = self.by_id.pop(producer_id, None)
        if connected is None:
            return False
        self.pending_count -= connected[0].pending_count
        self.refusals.forget(producer_id)
        self._engine.admission.recheck_pending_limits()
        self._connection.resume()
        return True

    def disconnect_all(self) -> Steps:
        """Disconnect all producers, because the connection has ended: it answers nothing more."""
        self.throttle.stop()
        creating = list(self._connection.creating.values())
        self._connection.creating.clear()  # what waits is cancelled in slices: nobody wants it
        connected = list(self.by_id.values())
        self.by_id.clear()
        return self._disconnect(creating, connected)

    @staticmethod
    def _disconnect(creating: list[object], connected: list[tuple[Producer, Topic]]) -> Steps:
        for attempt in drained(creating):
            if isinstance(attempt, ProducerAttempt):
                attempt.end()
                yield CLIENT_CLOSED
        for producer, topic in drained(connected):
            if not producer.closed:
                topic.remove_producer(producer)
            yield CLIENT_CLOSED
