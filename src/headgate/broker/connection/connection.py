"""One client connection: decodes received bytes into commands and carries them out in order.

SEND, FLOW and ACK are carried out at once, without a task or a future for each; other commands have
handlers, which the connection receives (:mod:`.connection_host`). A client that breaks the protocol
loses its own connection and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from itertools import chain
from typing import Any, cast

from headgate.base.errors import HeadgateError, InvariantError
from headgate.base.identity import NOBODY, Identity
from headgate.base.work_units import (
    CLIENT_CLOSED,
    COLD,
    COLD_BYTES_PER_UNIT,
    CONNECTION_ENDED,
    CREDENTIALS_CHECKED,
    GROWN_BYTES_PER_UNIT,
    HOT_BYTES_PER_UNIT,
    READ,
    SLICE_UNITS,
    TURN_UNITS,
    WAITED,
)
from headgate.broker.connection.address_counts import address_of
from headgate.broker.connection.bounds import (
    CLOSE_TIMEOUT_S,
    SAMPLE_COMMANDS,
    SMALL_REST_BYTES,
    UNREAD_BYTES_MAX,
    work_expected,
)
from headgate.broker.connection.client_connection import Watcher, owner_of
from headgate.broker.connection.command_budget import LaterEnd
from headgate.broker.connection.connection_host import CommandHandlers, ConnectionHost
from headgate.broker.connection.connection_limits import memory_units_of
from headgate.broker.connection.consumers import ConnectionConsumers
from headgate.broker.connection.delayed_sends import DelayedSends
from headgate.broker.connection.ended_connection import ENDED_TRANSPORT, counted, ended
from headgate.broker.connection.frame_writer import FrameWriter
from headgate.broker.connection.handshake import Handshake
from headgate.broker.connection.keep_alive import KeepAlive
from headgate.broker.connection.open_connections import OpenConnections
from headgate.broker.connection.producers import ConnectionProducers
from headgate.broker.connection.receive_buffers import receive_buffer
from headgate.broker.connection.refusals import RefusalLogger, protocol_error, unrequested_error
from headgate.broker.connection.throttle_tracker import ThrottleTracker
from headgate.broker.connection.waiting_commands import WaitingCommands
from headgate.broker.held_memory import CONNECTION_BYTES, HeldMemory
from headgate.broker.work.scheduler import JobClass, Steps
from headgate.engine.consumer import Consumer
from headgate.engine.engine import Engine
from headgate.engine.errors import NotAllowedError
from headgate.engine.producer import Producer
from headgate.engine.subscription import Subscription
from headgate.engine.topic import Topic
from headgate.policy.settings import Settings
from headgate.security.provider import Principal
from headgate.wire import commands, encode
from headgate.wire.codes import CommandType
from headgate.wire.errors import CommandTooLongError, RemoteProtocolError
from headgate.wire.frame import FrameDecoder
from headgate.wire.limits import BUFFER_BYTES_START, CONNECT_BYTES_MAX, frame_bytes_max
from headgate.wire.messages import BaseCommand
from headgate.wire.peer import Peer
from headgate.wire.state_machine import ProtocolStateMachine

logger = logging.getLogger("headgate.connection")

# As plain numbers: a member of an enumeration costs a look-up for each frame.
_SEND, _ACK, _FLOW = int(CommandType.SEND), int(CommandType.ACK), int(CommandType.FLOW)
_PING, _PONG = int(CommandType.PING), int(CommandType.PONG)
_HANDSHAKE = frozenset((CommandType.CONNECT, CommandType.AUTH_RESPONSE))

_BEGINNING_WORK = TURN_UNITS + READ


class Connection(asyncio.BufferedProtocol):
    """The server's side of one connection."""

    def __init__(
        self,
        host: ConnectionHost,
        connections: OpenConnections,
        engine: Engine,
        settings: Settings,
        handlers: CommandHandlers,
    ) -> None:
        self._host = host
        self._connections = connections
        self._settings = settings
        self._check = handlers.check
        self._handlers = handlers.by_type
        self._acknowledge = handlers.acknowledge
        self.peer: Peer | None = None
        self.address = ""
        self.identity: Identity = NOBODY
        self.producers: dict[int, tuple[Producer, Topic]] = {}
        self.consumers: dict[int, tuple[Consumer, Subscription]] = {}
        self.watchers: dict[int, Watcher] = {}
        self.creating: dict[tuple[str, int], object] = {}
        self.described_bytes: dict[tuple[str, int], int] = {}
        self.memory_units = 1
        """How much an idle connection like this takes, in CONNECTION_BYTES."""
        self.working_bytes = 0
        self.is_open = self.socket_paused = False
        self._commands_paused = False
        """Whether received commands wait. The socket is paused until they are carried out."""
        self._budget = host.command_budget
        self._is_in_line = False
        """Whether the commands that arrived wait until other connections have had their turn."""
        self._work_owed = 0
        """Work that was done while all connections together had used up their budget."""
        self._unfinished: Iterator[int] | None = None
        """The remaining slices of a long command."""
        self._refusal_logger = RefusalLogger(connections.lines, connections.role_lines)
        self.keep_alive = KeepAlive(self, host.loop, host.work, settings, self._refusal_logger)
        counts, memory = connections.counts, connections.memory
        self.throttle = ThrottleTracker(self.producers, counts, self.keep_alive.send_pongs_while)
        left = connections.left_acknowledgements
        self._waiting_commands = WaitingCommands(self, host.loop, memory, left)
        self._frames = FrameWriter(
            host.at_end_of_turn,
            lambda: self.consumer_port.flushed(),
            self._answers_pile_up,
            self._buffer_grew,
            self._unread_bytes_max,
        )
        self.write = self._frames.write
        self.consumer_port: ConnectionConsumers = ConnectionConsumers(self, self._frames, memory)
        delays = DelayedSends(self, self._refusal_logger, counts)
        self.producer_port = ConnectionProducers(
            self, self._frames, delays, self.throttle, engine, settings, host.publish_buffer
        )
        self._state_machine = ProtocolStateMachine()
        self._handshake = Handshake(
            self, self._state_machine, host.authentication, self._check, settings, host.info,
            self._refusal_logger, accept=self._accept, certificate=self._certificate,
        )  # fmt: skip
        self._frame_bytes_max = frame_bytes_max(settings.maxMessageSize)
        self._decoder = FrameDecoder(
            min(CONNECT_BYTES_MAX, self._frame_bytes_max),
            on_growth=self._buffer_grew,
            may_grow=connections.memory.has_room_to_spare,
            new_buffer=receive_buffer,
        )
        self._abort_timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    # -- asyncio's callbacks ---------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if not self._connections.admit(transport):
            self._transport.abort()
            return
        self.address = address_of(transport.get_extra_info("peername"))
        if refusal := self._connections.refusal(self.address):
            self._transport.write(unrequested_error(refusal))  # it does not wait for the CONNECT
            self._transport.close()
            return
        self.memory_units = memory_units_of(transport)
        self.is_open = True
        self._frames.open(self._transport)
        self._connections.add(self)
        self.keep_alive.await_handshake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._decoder.advance(nbytes)
        self.keep_alive.peer_active = True
        self._process()

    def pause_writing(self) -> None:
        self._frames.pause()
        self._buffer_grew(self.unsent_bytes())
        self.consumer_port.writable = False
        self.keep_alive.peer_active = True

    def resume_writing(self) -> None:
        self._frames.resume()
        self.keep_alive.peer_active = True  # the peer read what it was sent
        self._host.begin_turn()
        if self.is_open and not self._frames.peer_blocked:
            self.consumer_port.resume()
            self.resume()

    def eof_received(self) -> bool:
        """The client has left. The loop closes the transport, unless this is True: where thousands
        leave at once, all but a few are closed in later iterations."""
        budget = self._budget
        if budget.left > 0 or budget.renew() or not self._transport.can_write_eof():
            budget.left -= CONNECTION_ENDED
            if not self._transport.can_write_eof():
                self._transport.close()  # with what waits to be encrypted, which no loop knows
            return False
        budget.wait(LaterEnd(budget, self.close), owner_of(self), CONNECTION_ENDED)
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._connections.closing.discard(self)
        if self._abort_timer is not None:
            self._abort_timer.cancel()
        self._release()
        self._decoder.close()
        for part in (
            self.keep_alive, self._waiting_commands, self._frames, self.consumer_port,
            self.producer_port, self._handshake,
        ):  # fmt: skip
            part.forget_connection()
        self._transport = ENDED_TRANSPORT

    def _release(self) -> None:
        """Release everything that this connection holds, before its socket is closed."""
        if not self.is_open:
            return
        self.is_open = self.consumer_port.writable = False
        self._frames.close()
        self._host.begin_turn()
        self._connections.discard(self)
        self.keep_alive.stop()
        self._handshake.stop()
        self._disconnect_clients()
        self._unfinished = None

    def _disconnect_clients(self) -> None:
        """Disconnect its clients and cancel what waits: few at once, many in slices of its role."""
        units = (self.objects_count + self._waiting_commands.count) * CLIENT_CLOSED
        watchers, waiting = ended(list(self.watchers.values())), self._waiting_commands.cancel()
        self.watchers.clear()
        clients = self.producer_port.disconnect_all(), self.consumer_port.disconnect_all()
        steps: Steps = chain(watchers, waiting, *clients)
        if units <= SLICE_UNITS and (self._budget.left > 0 or self._budget.renew()):
            self._budget.left -= units
            for _ in steps:
                pass
        else:
            owner, leave = owner_of(self), self._connections.memory.left.leave
            steps = counted(steps, sum(self.described_bytes.values()), leave, owner)
            self._host.work.run("closing a connection", JobClass.COMMAND, steps, owner)

    # -- commands --------------------------------------------------------------------------

    def _process(self) -> None:
        """Carry out every whole command that arrived, unless reading is paused.

        After :data:`TURN_UNITS` the rest waits, and reading pauses, until other connections
        have had their turn. If all connections together have used up the budget, it waits in line.
        """
        budget = self._budget
        if budget.left <= 0 and not budget.renew():
            self._wait_in_line()
            return
        self._host.begin_turn()
        next_frame = self.producer_port.next_frame_of(self._decoder)
        receive, send = self._state_machine.receive, self.producer_port.send
        flow, work, decoder = self.consumer_port.flow, TURN_UNITS, self._decoder
        try:
            while not self._commands_paused and self.is_open:
                if self._unfinished is not None:
                    done = next(self._unfinished, None)
                    if done is None:
                        self._unfinished = None
                    elif (work := work - done) <= 0:
                        self._end_turn()
                    continue
                frame = next_frame()
                if frame is None:
                    self._all_processed()
                    return
                command, body = frame
                kind = command.type
                receive(kind)
                if kind == _SEND:
                    work -= send(command, body) + decoder.command_size // HOT_BYTES_PER_UNIT
                elif kind == _ACK:
                    work -= self._acknowledge(self, command)
                    work -= decoder.command_size // HOT_BYTES_PER_UNIT
                elif kind == _FLOW:
                    flow(command)
                    work -= 1 + decoder.command_size // HOT_BYTES_PER_UNIT
                elif kind == _PING:
                    self.write(encode.pong())
                    work -= 1 + decoder.command_size // HOT_BYTES_PER_UNIT
                elif kind == _PONG:
                    self.keep_alive.pong()
                    work -= 1 + decoder.command_size // HOT_BYTES_PER_UNIT
                else:
                    self._carry_out_other(kind, command)
                    work -= COLD + decoder.command_size // COLD_BYTES_PER_UNIT
                if work <= 0:
                    self._end_turn()
        except Exception as error:
            work -= COLD + decoder.command_size // COLD_BYTES_PER_UNIT  # it was parsed, too
            self._ended_by(error)
        finally:
            budget.left += work - _BEGINNING_WORK

    def _ended_by(self, error: Exception) -> None:
        """Handle an error in a command: most end this connection."""
        if isinstance(error, CommandTooLongError):
            self._refuse_too_long(error)
        elif isinstance(error, RemoteProtocolError):
            self._refusal_logger.broke_protocol(self, error)
            self.close()
        elif isinstance(error, InvariantError):
            raise error
        else:
            logger.error("%s is disconnected after an internal error", self.address, exc_info=error)
            self.close()

    def _wait_in_line(self) -> None:
        if not self._is_in_line:
            self._is_in_line = True
            self._budget.wait(self, owner_of(self), self._work_in_line())
            if self._decoder.lacks_room:
                self._pause_socket()  # a line of thousands must not make their buffers grow
        else:
            # Only now: most send nothing more until their turn, and it costs more than to wait.
            self._pause_socket()

    def _work_in_line(self) -> int:
        """About how much work the commands that have arrived are."""
        if self._unfinished is not None:
            return TURN_UNITS
        found, times = self._decoder.arrived(SAMPLE_COMMANDS)
        if not found:
            # Nothing can be carried out. The rest of a large frame does not come with one read.
            return TURN_UNITS if self._decoder.missing_bytes > SMALL_REST_BYTES else 1
        return int(times * sum(work_expected(kind, size) for kind, size in found))

    def turn_came(self) -> None:
        self._is_in_line = False
        self._process_again()
        self._budget.left -= WAITED + self._work_owed
        self._work_owed = 0

    def _all_processed(self) -> None:
        """Continue to read, unless too many bytes wait to be durable."""
        if self.producer_port.pending_count and self._host.publish_buffer_full():
            self.throttle.set_buffer_full(True)
            self.pause_reading()
        elif not self._commands_paused and (not self._decoder.has_part or self._takes_room()):
            self._resume_socket()

    def _takes_room(self) -> bool:
        """Take the room for the rest of a frame before its bytes are read. False if the broker has
        none: then it reads this connection no more until it has."""
        if self.throttle.is_memory_full:
            return False
        growth_bytes = self._decoder.growth_bytes
        if growth_bytes:
            if not self._connections.memory.may_grow(self, growth_bytes):
                return False
            self._decoder.get_buffer()
        return True

    def _resume_socket(self) -> None:
        if self.socket_paused and not self.throttle.is_memory_full:
            self.socket_paused = False
            self.keep_alive.peer_active = True  # no sign of life could arrive until now
            self._transport.resume_reading()

    def _end_turn(self) -> None:
        """Let other connections have their turn before the next command."""
        if self.is_open and not self._commands_paused:
            self.pause_reading()
            self._host.loop.call_soon(self.resume)

    def _refuse_too_long(self, error: CommandTooLongError) -> None:
        """Refuse a command that the decoder skipped; end the connection if the protocol has no such
        answer."""
        if self.peer is None or not self.refuse(error.command, NotAllowedError(str(error))):
            self.close()
        self._end_turn()

    @property
    def is_partial(self) -> bool:
        return self._decoder.is_partial

    def run_in_slices(self, slices: Iterator[int]) -> None:
        memory, size_bytes = self._connections.memory, self._decoder.command_size
        self._unfinished = memory.while_held(self, slices, size_bytes)

    def run_waiting(self, coroutine: Coroutine[Any, Any, None], command: BaseCommand) -> None:
        self._waiting_commands.add(coroutine, command)
        if self._waiting_commands.is_full:
            self.pause_reading()

    def _carry_out_other(self, kind: int, command: BaseCommand) -> None:
        if kind in _HANDSHAKE:
            if self._host.authentication is not None:
                self._budget.left -= CREDENTIALS_CHECKED
            if kind == CommandType.CONNECT:
                self._handshake.connect(command)
            else:
                self._handshake.auth_response(command)
        elif (handler := self._handlers.get(kind)) is not None:
            try:
                self._check(self, command)
                coroutine = handler(self, command)
            except RemoteProtocolError:
                raise
            except HeadgateError as error:
                self.refuse(command, error)
                return
            if coroutine is not None:
                self.run_waiting(coroutine, command)
        else:
            name = CommandType(kind).name
            self.refuse(command, NotAllowedError(f"{name} is not supported by this broker"))

    def refuse(self, command: BaseCommand, error: HeadgateError) -> bool:
        code, text = protocol_error(error)
        self._refusal_logger.refused(self, command.type, code, error)
        reply = commands.refuse(command, code, text)
        if reply is not None:
            self.write(reply)
        return reply is not None

    def _accept(self, peer: Peer) -> None:
        """The client may send commands from now on."""
        self._decoder.set_limits(self._frame_bytes_max, self._settings.headgateMaxCommandBytes)
        self.peer = peer
        self._connections.authenticated(self)
        self.consumer_port.is_old = not peer.knows_checksums
        self.write(
            encode.connected(
                protocol_version=peer.version,
                message_bytes_max=self._settings.maxMessageSize,
                server_version=self._host.info.version,
                watches_topics=self._settings.enableBrokerSideSubscriptionPatternEvaluation,
            )
        )
        self.keep_alive.begin()

    def _certificate(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._transport.get_extra_info("peercert")
        return found

    def forget_producer(self, producer_id: int) -> bool:
        return self.producer_port.forget(producer_id)

    @property
    def principals(self) -> tuple[Principal, ...]:
        """Whose credentials were accepted: the client's, and those of the client behind it that a
        proxy forwarded."""
        return self._handshake.principals

    async def is_alive(self) -> bool:
        return await self.keep_alive.is_alive()

    # -- flow control of the socket --------------------------------------------------------

    @property
    def peer_blocked(self) -> bool:
        return self._frames.peer_blocked

    def _unread_bytes_max(self) -> int:
        """Bytes of answers that a peer that does not read may leave: none while all connections
        hold too much."""
        return 0 if self._connections.memory.is_over else UNREAD_BYTES_MAX

    def _answers_pile_up(self) -> None:
        self.pause_reading()
        self._connections.memory.slow(self)  # then it is resumed when there is room

    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size() + self._frames.kept_bytes

    def pause_reading(self) -> None:
        if not self._commands_paused:
            self._commands_paused = True
            self._pause_socket()
            self._connections.paused[self] = None

    def _pause_socket(self) -> None:
        if not self.socket_paused:
            self.socket_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume if every bound that paused this connection has room again: first the commands that
        wait, then the socket."""
        host = self._host
        if not host.publish_buffer_full():
            self.throttle.set_buffer_full(False)
        if self.throttle.pauses_commands or not self._waiting_commands.has_room:
            return
        if self._unfinished is None and self._frames.has_much_unread:
            return  # a command that has begun is in memory until it is done
        if not self.is_open or host.publish_buffer_full():
            return
        self._commands_paused = False
        self._connections.paused.pop(self, None)
        host.loop.call_soon(self._process_again)

    def resume(self) -> None:
        if self._commands_paused:
            self.resume_reading()

    def resume_soon(self) -> None:
        if self._commands_paused:
            self._host.loop.call_soon(self.resume)

    def _process_again(self) -> None:
        if self.is_open:
            self._process()

    # -- the bound on memory ---------------------------------------------------------------

    @property
    def objects_count(self) -> int:
        return len(self.producers) + len(self.consumers) + len(self.watchers) + len(self.creating)

    def _buffer_grew(self, size_bytes: int) -> None:
        work = max(size_bytes, 0) // GROWN_BYTES_PER_UNIT
        if self._budget.left > 0:
            self._budget.left -= work
        else:
            self._work_owed += work
        memory = self._connections.memory
        memory.charge(size_bytes)
        if memory.is_over and size_bytes > 0:
            # Not at once: uvloop crashes if reading is paused while it asks for a buffer.
            self._host.loop.call_soon(memory.slow, self)

    def held_memory(self, *, is_scarce: bool) -> HeldMemory:
        if is_scarce:
            self._decoder.shrink()
        described = self.described_bytes
        if len(described) > self.objects_count:
            present: dict[str, Mapping[int, object]] = {
                "producer": self.producers,
                "consumer": self.consumers,
                "watcher": self.watchers,
            }
            described = {
                key: size
                for key, size in described.items()
                if key[1] in present[key[0]] or key in self.creating
            }
            self.described_bytes = described
        return HeldMemory(
            CONNECTION_BYTES * self.memory_units,
            self._decoder.buffer_bytes - BUFFER_BYTES_START,
            self.unsent_bytes(),
            sum(described.values()) + self.producer_port.held_bytes,
            self._waiting_commands.taken_bytes + self.working_bytes,
            self.consumer_port.held_bytes() if self.consumers else 0,
        )

    def pause_for_memory(self) -> None:
        # Commands that have arrived are carried out: then their bytes are free.
        self.throttle.set_memory_full(True)
        self._pause_socket()

    def resume_for_memory(self) -> None:
        self.throttle.set_memory_full(False)
        if self._commands_paused:
            self.resume_reading()
        elif not self._is_in_line and self._takes_room():
            self._resume_socket()

    def close_for_memory(self, reason: str) -> None:
        if self.peer_blocked:
            self.abort()
            return
        self.write(unrequested_error(reason))
        self.close()

    # -- the end ---------------------------------------------------------------------------

    def close_at_client(self, frame: bytes) -> None:
        if self.peer is not None and self.peer.knows_close:
            self.write(frame)
        else:
            self._host.loop.call_soon(self.close)

    def close(self) -> None:
        self._state_machine.close()
        if self.is_open:
            self._frames.finish()
            self._release()
            self._connections.closing.add(self)
            self._transport.close()
            self._abort_timer = self._host.loop.call_later(CLOSE_TIMEOUT_S, self._transport.abort)

    def abort(self) -> None:
        self._state_machine.close()
        self._release()
        self._transport.abort()
