"""One client connection: bytes in, commands to the engine, frames out.

Hot commands (SEND, FLOW, ACK) are carried out right here, without a task or a future each; the
others are functions of :mod:`headgate.broker.commands.producing`,
:mod:`~headgate.broker.commands.consuming` and :mod:`~headgate.broker.commands.lookups`. Whatever a
client does wrong ends at most its own connection. Outgoing frames are gathered and written once per
turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from headgate.base.errors import HeadgateError, InvariantError, StorageError
from headgate.base.park_cause import ParkCause
from headgate.base.positions import Position
from headgate.broker.authorization import check_command
from headgate.broker.commands.acknowledging import acknowledge
from headgate.broker.commands.consuming import flow
from headgate.broker.commands.delayed_sends import DelayedSends
from headgate.broker.connection_bounds import (
    ACK_BYTES_PER_WORK,
    CLOSE_TIMEOUT_S,
    COLD_BYTES_PER_WORK,
    COLD_WORK,
    FORGET_CLOSED_NS,
    OUT_BYTES_MAX,
    TURN_WORK_MAX,
    UNREAD_BYTES_MAX,
)
from headgate.broker.keep_alive import KeepAlive
from headgate.broker.refusals import RefusalLog, protocol_error
from headgate.broker.throttle_tracker import ThrottleTracker
from headgate.broker.waiting_commands import WaitingCommands
from headgate.engine.consumer import Consumer
from headgate.engine.errors import NotAllowedError
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.metadata.errors import RefusalError
from headgate.wire import commands, encode
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.connection import Connection as ConnectionTable
from headgate.wire.connection import Peer, peer_of
from headgate.wire.entry import checksum_ok, strip_checksum
from headgate.wire.errors import CommandTooLongError, RemoteProtocolError
from headgate.wire.frame import FrameDecoder
from headgate.wire.limits import CONNECT_BYTES_MAX, frame_bytes_max
from headgate.wire.message_counts import check_message_count
from headgate.wire.messages import BaseCommand

if TYPE_CHECKING:
    from headgate.broker.commands.table import Handler
    from headgate.broker.service import Broker

logger = logging.getLogger("headgate.connection")

# As plain numbers: an enumeration's member costs a look-up for every frame.
_SEND, _ACK, _FLOW = int(CommandType.SEND), int(CommandType.ACK), int(CommandType.FLOW)


class Connection(asyncio.BufferedProtocol):
    """The server's side of one connection. Also the port of its producers and consumers."""

    def __init__(self, broker: Broker, handlers: Mapping[int, Handler]) -> None:
        self.broker = broker
        self.handlers = handlers
        self.peer: Peer | None = None
        self.address = ""
        self.producers: dict[int, tuple[Producer, Topic]] = {}
        self.consumers: dict[int, tuple[Consumer, Subscription]] = {}
        self.creating: dict[tuple[str, int], object] = {}
        """Producers and consumers that are half made: by (``producer`` or ``consumer``, id), who
        makes each. A CLOSE takes it out, and whoever made it gives up."""
        self.writable = True
        self.is_open = False
        self.refusal_log = RefusalLog()
        self.delays = DelayedSends(self)
        self.throttle = ThrottleTracker(self)
        self._table = ConnectionTable()
        self._message_bytes_max = broker.settings.maxMessageSize
        frame_size_max = frame_bytes_max(self._message_bytes_max)
        self._decoder = FrameDecoder(min(CONNECT_BYTES_MAX, frame_size_max))
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._strips_checksums = False
        self.write_paused = False
        """Whether the peer takes nothing more for now."""
        self.read_paused = False
        """Whether its socket is not read. It is read again when all that came before is carried
        out: until then more could only pile up."""
        self._is_held = False
        """Whether nothing more is carried out of what it sent for now."""
        self.parked_bytes = 0
        self.waiting: deque[Producer] = deque()
        self._pending_count = 0
        self._unfinished: Iterator[int] | None = None
        self._unread_bytes = 0
        self._closed_producers: dict[int, int] = {}
        self._waiting_commands = WaitingCommands(self)
        self.keep_alive = KeepAlive(self)
        self._cut_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    # -- asyncio's side --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.broker.door.refuses(transport):
            self._transport.abort()
            return
        peername = transport.get_extra_info("peername")
        self.address = f"/{peername[0]}:{peername[1]}" if peername else ""
        self.is_open = True
        self.broker.connections.add(self)
        self.broker.counts.connections_accepted += 1
        self.keep_alive.await_handshake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self.broker.begin_turn()
        self._decoder.advance(nbytes)
        self.keep_alive.heard = True
        self._process()

    def pause_writing(self) -> None:
        self.write_paused = True
        self.writable = False
        self.keep_alive.heard = True

    def resume_writing(self) -> None:
        self.write_paused = False
        self._unread_bytes = 0
        self.keep_alive.heard = True  # who takes what it is sent is alive
        self.broker.begin_turn()
        if self.is_open:
            self._writable_again()
            self.go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._cut_timer is not None:
            self._cut_timer.cancel()
        self._leave()
        self._decoder.close()

    def _leave(self) -> None:
        """Give up everything that this connection holds: others need not wait for its socket."""
        if not self.is_open:
            return
        self.is_open = False
        self.writable = False
        self.broker.begin_turn()
        self.broker.connections.discard(self)
        self.broker.counts.connections_closed += 1
        if self.peer is None:
            self.broker.counts.connections_failed += 1
        self.broker.read_paused.discard(self)
        self.keep_alive.stop()
        self._waiting_commands.cancel()
        self.throttle.stop()
        for producer, topic in self.producers.values():
            topic.remove_producer(producer)
        for consumer, subscription in list(self.consumers.values()):
            subscription.remove_consumer(consumer)
        self.producers.clear()
        self.consumers.clear()
        self._unfinished = None

    # -- frames in -------------------------------------------------------------------------

    def _process(self) -> None:
        """Carry out every whole frame that arrived, unless reading is paused.

        After a turn's worth of work the rest waits, and nothing more is read, until others had
        their turn.
        """
        next_frame, receive = self._decoder.next_frame, self._table.receive
        work = TURN_WORK_MAX
        try:
            while not self._is_held and self.is_open:
                if self._unfinished is not None:
                    done = next(self._unfinished, None)
                    if done is None:
                        self._unfinished = None
                    elif (work := work - done) <= 0:
                        self._end_turn()
                    continue
                frame = next_frame()
                if frame is None:
                    if self._pending_count and self.broker.publish_buffer_full():
                        self.throttle.set_buffer_full(True)
                        self._pause_reading()
                    elif self.read_paused:
                        self.read_paused = False
                        self.keep_alive.heard = True  # it could not be heard until now
                        self._transport.resume_reading()
                    return
                command, body = frame
                kind = command.type
                receive(kind)
                if kind == _SEND:
                    self._send(command, body)
                    work -= 1
                elif kind == _ACK:
                    work -= acknowledge(self, command)
                    work -= self._decoder.command_size // ACK_BYTES_PER_WORK
                elif kind == _FLOW:
                    flow(self, command)
                    work -= 1
                else:
                    self._cold(kind, command)
                    work -= COLD_WORK + self._decoder.command_size // COLD_BYTES_PER_WORK
                if work <= 0:
                    self._end_turn()
        except CommandTooLongError as error:
            self._too_long(error)
        except RemoteProtocolError as error:
            logger.info("%s broke the protocol and is cut off: %s", self.address, error)
            self.close()
        except InvariantError:
            raise
        except Exception:
            logger.exception("%s is cut off by an error of ours", self.address)
            self.close()

    def _end_turn(self) -> None:
        """Others come first now."""
        if self.is_open and not self._is_held:
            self._pause_reading()
            self.broker.loop.call_soon(self.go_on)

    def _too_long(self, error: CommandTooLongError) -> None:
        """Refuse a command that was read over; end the connection where nobody waits for that."""
        if self.peer is None or not self.refuse(error.command, NotAllowedError(str(error))):
            self.close()
        self._end_turn()

    @property
    def is_partial(self) -> bool:
        """Whether the present command goes on in the next one."""
        return self._decoder.is_partial

    def carry_on(self, slices: Iterator[int]) -> None:
        """Carry out a long command in slices, each of so much work, and nothing before its end.

        When the connection ends before, the rest is as if it had not arrived.
        """
        self._unfinished = slices

    def _cold(self, kind: int, command: BaseCommand) -> None:
        if kind == CommandType.PING:
            self.write(encode.pong())
        elif kind == CommandType.PONG:
            self.keep_alive.pong()
        elif kind == CommandType.CONNECT:
            self._connect(command)
        elif (handler := self.handlers.get(kind)) is not None:
            try:
                check_command(self, command)
            except RefusalError as error:
                self.refuse(command, error)
                return
            coroutine = handler(self, command)
            if coroutine is not None:
                self.spawn(coroutine, command)
        else:
            name = CommandType(kind).name
            self.refuse(command, NotAllowedError(f"{name} is not supported by this broker"))

    def refuse(self, command: BaseCommand, error: HeadgateError) -> bool:
        """Answer that a command failed; False if there is no such answer."""
        code, text = protocol_error(error)
        self.refusal_log.refused(self.address, command.type, code, text)
        reply = commands.refuse(command, code, text)
        if reply is not None:
            self.write(reply)
        return reply is not None

    def _connect(self, command: BaseCommand) -> None:
        try:
            check_command(self, command)
        except RefusalError as error:
            self.refuse(command, error)
            self.close()
            return
        settings = self.broker.settings
        self._decoder.set_limits(
            frame_bytes_max(self._message_bytes_max), settings.headgateMaxCommandBytes
        )
        self.peer = peer_of(command.connect)
        self.broker.counts.connections_established += 1
        self._strips_checksums = not self.peer.knows_checksums
        self.write(
            encode.connected(
                protocol_version=self.peer.version,
                message_bytes_max=settings.maxMessageSize,
                server_version=self.broker.info.version,
            )
        )
        self.keep_alive.begin()

    def _send(self, command: BaseCommand, body: bytes | None) -> None:
        send = command.send
        producer_id = send.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            closed_ns = self._closed_producers.get(producer_id)
            if closed_ns is None or self.broker.engine.now_ns - closed_ns > FORGET_CLOSED_NS:
                raise RemoteProtocolError(f"SEND for producer {producer_id}, which does not exist")
            return
        producer, topic = entry
        if body is None:
            raise RemoteProtocolError("SEND without a message")
        sequence_id = send.sequence_id
        if not checksum_ok(body):
            code, text = ServerError.CHECKSUM_ERROR, "Checksum failed on the broker"
            self.write(encode.send_error(producer_id, sequence_id, code, text))
            return
        message_count = send.num_messages
        is_delayed = check_message_count(message_count, body, self._message_bytes_max)
        if is_delayed and self.delays.refuses(producer, topic, sequence_id, message_count):
            return
        highest_sequence_id = send.highest_sequence_id
        maximum = self.broker.settings.maxPendingPublishRequestsPerConnection
        if send.is_chunk:
            producer.chunks_published += 1
        if 0 < maximum <= self._pending_count:
            topic.park(producer, sequence_id, highest_sequence_id, message_count, body)
            return
        try:
            # One that waits is counted when it is staged, unless its producer is closed before.
            if topic.publish(producer, sequence_id, highest_sequence_id, message_count, body):
                self._pending_count += 1
        except StorageError as error:
            self.send_refused(producer_id, sequence_id, str(error))

    # -- cold commands ---------------------------------------------------------------------

    def spawn(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        """Carry out a command that has to wait; what it refuses is answered to the client."""
        self._waiting_commands.add(coroutine, command)
        if self._waiting_commands.is_full:
            self._pause_reading()

    # -- frames out ------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        """Have ``frame`` written at the end of this turn, after everything written before."""
        if not self.is_open:
            return
        if self.write_paused:
            self._unread_bytes += len(frame)
            if self._unread_bytes > UNREAD_BYTES_MAX:
                self._pause_reading()
        if not self._out:
            self._write_at_end_of_turn()
        self._out.append(frame)

    def _write_at_end_of_turn(self) -> None:
        self.broker.on_flush.append(self._write_out)
        self.broker.schedule_flush()

    def _write_out(self) -> None:
        out, self._out = self._out, []
        self._out_bytes = 0
        if not self.is_open:
            return
        self._transport.writelines(out)
        if not self.write_paused and not self.writable:
            self._writable_again()

    def _writable_again(self) -> None:
        self.writable = True
        for consumer, subscription in self.consumers.values():
            subscription.dispatcher.consumer_ready(consumer)
            subscription.wake()

    def send_receipt(
        self, producer_id: int, sequence_id: int, highest_sequence_id: int, position: Position
    ) -> None:
        # Reading goes on, if it was paused, when the whole commit is answered.
        self._pending_count -= 1
        ledger_id, entry_id = position
        self.write(
            encode.send_receipt(producer_id, sequence_id, ledger_id, entry_id, highest_sequence_id)
        )
        if self.delays.behind:
            self.delays.answered(producer_id)

    def send_staged(self) -> None:
        self._pending_count += 1

    def send_unstaged(self) -> None:
        self._pending_count -= 1

    @property
    def has_room(self) -> bool:
        maximum = self.broker.settings.maxPendingPublishRequestsPerConnection
        return not 0 < maximum <= self._pending_count

    @property
    def brings_acks(self) -> bool:
        return bool(self.consumers)

    def throttled(self, cause: ParkCause) -> None:
        self.throttle.mark(cause)

    def unthrottled(self, cause: ParkCause) -> None:
        self.throttle.unmark(cause)

    def pause_for_parked(self) -> None:
        self.throttle.set_over_bound(True)
        self._pause_reading()

    def resume_for_parked(self) -> None:
        self.throttle.set_over_bound(False)
        if self._is_held:
            self.broker.loop.call_soon(self.go_on)

    def send_refused(self, producer_id: int, sequence_id: int, reason: str) -> None:
        self._refuse_send(producer_id, sequence_id, reason)
        self._end_producer(producer_id)

    def send_failed(self, producer_id: int, sequence_id: int, reason: str) -> None:
        self._pending_count -= 1
        self._refuse_send(producer_id, sequence_id, reason)
        entry = self.producers.get(producer_id)
        if entry is not None and entry[0].pending_count == 0:
            self._end_producer(producer_id)

    def _refuse_send(self, producer_id: int, sequence_id: int, reason: str) -> None:
        self.write(
            encode.send_error(producer_id, sequence_id, ServerError.PERSISTENCE_ERROR, reason)
        )

    def _end_producer(self, producer_id: int) -> None:
        """Close a producer one of whose SENDs was not stored: those after it, which may be on
        their way, would be stored before it. Its client comes back and sends all again."""
        entry = self.producers.get(producer_id)
        if entry is not None:
            self.close_producer(producer_id)
            entry[1].remove_producer(entry[0])

    def send_entry(
        self,
        consumer: Consumer,
        position: Position,
        partition: int,
        redelivery_count: int,
        body: bytes,
    ) -> None:
        if self._strips_checksums:
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
        if not self.is_open:
            return
        if not self._out:
            self._write_at_end_of_turn()
        self._out += (head, body)
        self._out_bytes += size
        if self._out_bytes > OUT_BYTES_MAX:
            self.writable = False

    def close_producer(self, producer_id: int) -> None:
        if self.forget_producer(producer_id):
            now_ns, closed = self.broker.engine.now_ns, self._closed_producers
            closed.pop(producer_id, None)
            while closed and now_ns - closed[oldest := next(iter(closed))] > FORGET_CLOSED_NS:
                del closed[oldest]
            closed[producer_id] = now_ns
            self._close_or(encode.close_producer(producer_id))

    def forget_producer(self, producer_id: int) -> bool:
        """Let go of a producer, and wait for none of its receipts; False if there is none."""
        entry = self.producers.pop(producer_id, None)
        if entry is None:
            return False
        self._pending_count -= entry[0].pending_count
        self.delays.forget(producer_id)
        self.broker.engine.admission.answered()
        self.go_on()
        return True

    def close_consumer(self, consumer_id: int) -> None:
        if self.consumers.pop(consumer_id, None) is not None:
            self._close_or(encode.close_consumer(consumer_id))

    def _close_or(self, frame: bytes) -> None:
        if self.peer is not None and self.peer.knows_close:
            self.write(frame)
        else:
            self.broker.loop.call_soon(self.close)

    def active_consumer_changed(self, consumer_id: int, is_active: bool) -> None:
        if self.peer is not None and self.peer.knows_active_consumer_change:
            self.write(encode.active_consumer_change(consumer_id, is_active=is_active))

    # -- bounds and life -------------------------------------------------------------------

    def _pause_reading(self) -> None:
        if not self._is_held:
            self._is_held = True
            if not self.read_paused:
                self.read_paused = True
                self._transport.pause_reading()
            self.broker.read_paused.add(self)

    def resume_reading(self) -> None:
        """Go on if half of what paused this connection is gone: with what came before, then with
        its socket."""
        if not self.broker.publish_buffer_full():
            self.throttle.set_buffer_full(False)
        if self.throttle.pauses_reading:
            return
        if not self._waiting_commands.has_room or self._unread_bytes > UNREAD_BYTES_MAX:
            return
        if not self.is_open or self.broker.publish_buffer_full():
            return
        self._is_held = False
        self.broker.read_paused.discard(self)
        self.broker.loop.call_soon(self._resumed)

    def unsent_bytes(self) -> int:
        """What the peer has not taken yet."""
        return self._transport.get_write_buffer_size()

    def go_on(self) -> None:
        """Something that may have held this connection is over."""
        if self._is_held:
            self.resume_reading()

    def _resumed(self) -> None:
        if self.is_open:
            self.broker.begin_turn()
            self._process()

    def close(self) -> None:
        """End the connection. What was gathered for it before is written first."""
        self._table.close()
        if self.is_open:
            if self._out:
                self._write_out()
            self._leave()
            self._transport.close()
            self._cut_timer = self.broker.loop.call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def cut_off(self) -> None:
        """End the connection with a peer that does not listen."""
        self._table.close()
        self._leave()
        self._transport.abort()
