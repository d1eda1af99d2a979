"""Shares the event loop among the connections over TLS, record by record.

What a record costs is not told by its bytes: OpenSSL makes new keys for each KEY_UPDATE, 27 bytes
that take up to 30 us and reach no protocol, so that no protocol counts them. A loop hands over
whatever one read of a socket brought, and reads all sockets in one iteration. So between the socket
and TLS a reader counts the records, which have their length in clear text, hands over a few at a
time, and stops when all connections have used up the time of this iteration. What is left waits
for the next ones, and its socket is not read meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, Protocol, cast

from headgate.app.tls.handshake_steps import STEP_BYTES, HandshakeSteps, new_thread, put_off
from headgate.app.tls.hello import HEADER_BYTES, harmless_bytes
from headgate.base.fair_queue import NestedFairQueue
from headgate.base.units import KIB
from headgate.broker.connection.address_counts import wide_network_of
from headgate.broker.connection.ended_connection import ENDED_TRANSPORT

RECORDS_TURN_S: Final = 0.008
"""Time for records in one iteration of the loop, with what their protocols do at once; the last
piece may exceed it."""

ROUND_S: Final = 0.002
"""Behind it this time is over when each network that waits had a turn. Who is served at once waits
for the end of the iteration to be read again: a network that always has more would make it long."""

PIECE_RECORDS: Final = 32
"""Records that are handed over at once: a millisecond, if all of them make new keys."""

SHORT_RECORDS: Final = 4
"""With no more records a connection is served before those with many."""

READ_BYTES: Final = 64 * KIB
"""What a connection takes from its socket at once. TLS has two buffers that stay as large as the
largest read, as long as the connection lives; the loop would read 256 KiB."""

HANDSHAKE_BYTES_MAX: Final = STEP_BYTES[-1]
"""What TLS gets of a connection before its handshake is done, behind the first record: a second
hello, all of :data:`~headgate.app.tls.client_chains.CHAIN_BYTES_MAX`, which is of PEM, and its
proof."""

HANDSHAKES_TURN_S: Final = 0.004
"""Time for what handshakes do on the loop in one turn, beside :data:`RECORDS_TURN_S`; the last
piece may exceed it, by a millisecond or two."""

BUSY_READ_BYTES: Final = 16 * KIB
"""A connection that cannot be served in this iteration takes no more from its socket if it is one
of a crowd, nor does one whose handshake is not done. Others take :data:`READ_BYTES`: they get one
read in an iteration, and few bytes would make them slow."""

LEAST_READ_BYTES: Final = KIB
"""What one takes at least that is read while :data:`READ_BYTES` or more wait to be handed over."""

AMPLE_READS_MAX: Final = 8
"""While so many connections of a wide network wait they are a crowd."""

NETWORKS_MAX: Final = 64
"""While so many wide networks wait, all of them are one. So 32 MiB are read beyond the rest."""


class Piece(NamedTuple):
    """A part of received bytes."""

    stop: int
    """One past its last byte."""
    begun_records: int
    left_bytes: int
    """Bytes behind it that belong to its last record, and have not come yet."""


def piece_of(data: memoryview, left_bytes: int, records_max: int) -> Piece:
    """The first piece of ``data``, which begins with ``left_bytes`` of an earlier record: at most
    so many further records, the last one as far as it has come, and no part of a header."""
    at, size, count = left_bytes, len(data), 0
    while count < records_max and at + HEADER_BYTES <= size:
        at += HEADER_BYTES + (data[at + 3] << 8 | data[at + 4])
        count += 1
    return Piece(size, count, at - size) if at >= size else Piece(at, count, 0)


class Reads(Protocol):
    """A connection with records that wait."""

    network: str
    """That of its client; empty if it is not known."""

    @property
    def handshake_of(self) -> str | None:
        """The network of a client whose handshake is not done; None if it is."""

    @property
    def has_few_records(self) -> bool:
        """Whether not many of them wait."""

    def hand_over(self) -> bool:
        """Hand a piece to TLS; returns whether there is another for which it may be called now."""


class RecordTurns:
    """The turns of one loop.

    The first half of each iteration's time goes to connections with few records: who sends one
    command does not wait behind thousands that sent as much as a buffer holds. In both halves wide
    networks take turns, and networks in one: a piece may take a millisecond, and thousands of
    connections of one machine may have one at any time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, now_s: Callable[[], float]) -> None:
        """``now_s`` moves within an iteration, other than the time of uvloop."""
        self._loop = loop
        self._now_s = now_s
        self._few: NestedFairQueue[Reads] = NestedFairQueue()
        self._many: NestedFairQueue[Reads] = NestedFairQueue()
        self._handshakes: NestedFairQueue[Reads] = NestedFairQueue()
        """Those whose handshakes are not done, by wide network and network: a crowd of one makes
        its own wait."""
        self.steps = HandshakeSteps(partial(new_thread, loop))
        """What handshakes do beside the loop."""
        self._has_handshake_turn = False
        self._used_s = 0.0
        self._is_armed = False

    @property
    def waiting_count(self) -> int:
        """Connections that wait for a turn."""
        return len(self._few) + len(self._many) + len(self._handshakes)

    @property
    def has_time(self) -> bool:
        """Whether a connection may hand something over in this iteration, before others."""
        return self._used_s < RECORDS_TURN_S and not self._many

    def has_room(self, network: str) -> bool:
        """Whether a connection from ``network`` may take a whole read, although others have their
        turn before it: if few of its wide network wait, and not very many networks."""
        wide, lines = wide_network_of(network), (self._few, self._many)
        if sum(line.group_count for line in lines) >= NETWORKS_MAX:
            return False
        return sum(line.count_of(wide) for line in lines) < AMPLE_READS_MAX

    def hand_over(self, buffer_updated: Callable[[int], object], size_bytes: int) -> None:
        """Tell TLS of so many bytes in its buffer, and count the time that it takes."""
        if not self._is_armed:
            self._arm()
        begun_s = self._now_s()
        try:
            buffer_updated(size_bytes)
        finally:
            self._used_s += self._now_s() - begun_s

    def wait(self, reads: Reads) -> None:
        """Let a connection hand its records over in its turn. It waits once at a time."""
        network = reads.handshake_of
        if network is not None:
            self._handshakes.add(wide_network_of(network), network, reads)
            if not self._has_handshake_turn:
                self._has_handshake_turn = True
                self._loop.call_soon(self._turn_of_handshakes)
            return
        line = self._few if reads.has_few_records else self._many
        line.add(wide_network_of(reads.network), reads.network, reads)
        if not self._is_armed:
            self._arm()

    def _arm(self) -> None:
        self._is_armed = True
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_armed = False
        self._used_s = 0.0
        if self._few or self._many:
            self._arm()  # first: a failure must not hold up the others
        self._serve(self._few, RECORDS_TURN_S / 2)
        self._serve(self._many, RECORDS_TURN_S)
        self._serve(self._few, RECORDS_TURN_S)

    def _serve(self, line: NestedFairQueue[Reads], until_s: float) -> None:
        served: set[str] = set()
        round_s = ROUND_S
        if self._handshakes:
            round_s += HANDSHAKES_TURN_S  # no less than these have
        while line and self._used_s < until_s:
            network = line.next_group
            if self._used_s >= round_s and network in served:
                break  # nobody waits who had no turn: others are read first
            served.add(network)
            reads = line.take()
            begun_s = self._now_s()
            try:
                has_more = reads.hand_over()
            finally:
                self._used_s += self._now_s() - begun_s
            if has_more:
                self.wait(reads)

    def _turn_of_handshakes(self) -> None:
        """At least one piece."""
        begun_s, used_s = self._now_s(), 0.0
        try:
            while self._handshakes and used_s < HANDSHAKES_TURN_S:
                reads = self._handshakes.take()
                if reads.hand_over():
                    self.wait(reads)
                used_s = self._now_s() - begun_s
        finally:
            self._has_handshake_turn = bool(self._handshakes)
            if self._has_handshake_turn:
                self._loop.call_soon(self._turn_of_handshakes)


class Writes(Protocol):
    """What writes to TLS."""

    def go_on(self) -> None:
        """The socket's transport takes bytes again."""

    def finish(self) -> None:
        """The client has sent its last byte, and the connection ends: write all that waits, and
        nothing behind it."""

    def has_many_answers(self) -> bool:
        """Whether TLS itself has more to send than a client may leave, while the socket's transport
        takes nothing."""

    def has_much_unread(self) -> bool:
        """Whether TLS has as much that its protocol has not taken as makes it stop the socket: it
        has the socket read again when little is left."""

    def forget_connection(self) -> None:
        """The connection has ended."""


class _NoWrites:
    def has_many_answers(self) -> bool:
        return False

    has_much_unread = has_many_answers

    def go_on(self) -> None:
        """Nothing waits."""

    finish = forget_connection = go_on


_NO_WRITES: Final = _NoWrites()


class RecordReads(asyncio.BufferedProtocol):
    """What the socket's transport of one connection hands its bytes to, in the place of TLS."""

    def __init__(
        self,
        tls: asyncio.BaseProtocol,
        plain: asyncio.Transport,
        turns: RecordTurns,
        handshake_of: str | None = None,
        *,
        has_whole_hello: bool = False,
    ) -> None:
        """``handshake_of`` is the network of a client whose handshake is not done, and
        ``has_whole_hello`` whether TLS has its whole ClientHello."""
        self.network = handshake_of or ""
        self.handshake_of = handshake_of
        self._left_to_give = sys.maxsize if handshake_of is None else HANDSHAKE_BYTES_MAX
        self._has_whole_hello = has_whole_hello
        self._tls = cast(asyncio.BufferedProtocol, tls)
        self._plain = plain
        self._turns = turns
        self._room = memoryview(b"")
        self._kept = bytearray()
        """Bytes that TLS does not have yet."""
        self._left_bytes = 0
        """How many of the next bytes belong to a record that TLS has a part of."""
        self._is_waiting = False
        self._is_paused = False
        self._has_ended = False
        """Whether the client has sent its last byte, while others wait."""
        self._harmless_bytes = 0
        """How many of the first bytes can hold no costly certificate."""
        self._step: Callable[[], bool] | None = None
        """What a thread does for the handshake, or is to do. TLS must not be called meanwhile."""
        self._is_stepping = False
        """Whether a thread does it."""
        self._end_of_step: list[Callable[[], object]] = []
        """What TLS is to be told then."""
        self.is_lost = False
        """Whether the connection has ended."""
        self.is_full = False
        """Whether the socket's transport takes no more bytes now."""
        self.writes: Writes = _NO_WRITES
        """What writes to this connection."""

    # -- what the socket's transport calls ---------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        room = cast(memoryview, self._tls.get_buffer(sizehint))
        turns = self._turns
        is_ample = self.handshake_of is None and (turns.has_time or turns.has_room(self.network))
        # TLS may have the socket read while much is kept for it.
        left_bytes = max(READ_BYTES - len(self._kept), LEAST_READ_BYTES)
        self._room = room[: min(READ_BYTES if is_ample else BUSY_READ_BYTES, left_bytes)]
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        data, self._room = self._room[:nbytes], memoryview(b"")
        is_free = self._turns.has_time and self.handshake_of is None
        if is_free and not (self._kept or self._is_paused):
            first = piece_of(data, self._left_bytes, PIECE_RECORDS)
            if nbytes - first.stop < HEADER_BYTES:
                self._left_bytes = first.left_bytes
                self._kept += data[first.stop :]
                self._turns.hand_over(self._tls.buffer_updated, first.stop)
                self._check_answers()
                return
        self.keep(data)

    def keep(self, data: bytes | bytearray | memoryview) -> None:
        """Hand ``data`` over in turn; the socket is not read meanwhile."""
        self._kept += data
        if self._has_piece:
            self._plain.pause_reading()
            self._wait()

    def eof_received(self) -> bool | None:
        if self._is_waiting:
            self._has_ended = True
            return True
        return self._end()

    def pause_writing(self) -> None:
        self.is_full = True
        self._tls.pause_writing()

    def resume_writing(self) -> None:
        if self._step is not None:
            self._end_of_step.append(self.resume_writing)
            return
        self.is_full = False
        self._tls.resume_writing()
        self.writes.go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if self._is_stepping:
            self._end_of_step.append(partial(self.connection_lost, exc))
            return
        if self._step is not None:
            self._step, self._end_of_step = None, []
            self._turns.steps.lost()
        writes, self.writes = self.writes, _NO_WRITES  # it leads to what leads here
        tls, self._tls = self._tls, asyncio.BufferedProtocol()
        self._plain, self._kept = ENDED_TRANSPORT, bytearray()
        tls.connection_lost(exc)
        writes.forget_connection()

    # -- what the transport of TLS calls -----------------------------------------------------

    def pause_reading(self) -> None:
        """Take no more bytes from the socket, and hand none over."""
        self._is_paused = True
        self._plain.pause_reading()

    def resume_reading(self) -> None:
        """Go on, first with what was taken before."""
        self._is_paused = False
        if self._has_piece:
            self._wait()
        elif not self._is_waiting:
            self._go_on()

    def handshake_is_done(self) -> None:
        """TLS may have all that comes."""
        self.handshake_of, self._left_to_give = None, sys.maxsize
        if not self._is_paused:
            self.resume_reading()

    # -- in turns ------------------------------------------------------------------------------

    @property
    def has_few_records(self) -> bool:
        """Whether not many records wait."""
        first = piece_of(memoryview(self._kept), self._left_bytes, SHORT_RECORDS)
        return first.stop == len(self._kept)

    @property
    def _has_piece(self) -> bool:
        """Whether something can be handed over: a part of a header cannot."""
        given = min(len(self._kept), self._left_to_give)
        return given >= (1 if self._left_bytes else HEADER_BYTES)

    @property
    def _is_held(self) -> bool:
        """Whether TLS gets no more before the handshake is done."""
        return self._left_to_give < HEADER_BYTES

    def _wait(self) -> None:
        if not (self._is_waiting or self._is_paused):
            self._is_waiting = True
            self._turns.wait(self)

    def hand_over(self) -> bool:
        """Hand a piece of what is kept to TLS; returns whether another can be handed over now."""
        if self._has_piece and not self._is_paused:
            if self.handshake_of is None:
                self._hand_over(self._take_piece(len(self._kept)))
            else:
                self._hand_over_of_handshake(self.handshake_of)
            if self._step is not None:
                return False
            self._check_answers()
        return self._is_left()

    def _hand_over_of_handshake(self, network: str) -> None:
        """The first bytes are for the loop, and what follows for threads: in pieces, because a
        client with few certificates waits less, whatever comes behind them."""
        given = HANDSHAKE_BYTES_MAX - self._left_to_give
        if not given:
            self._harmless_bytes = harmless_bytes(self._kept, self._has_whole_hello)
        for bound in (self._harmless_bytes, *STEP_BYTES):
            data = self._take_piece(max(0, bound - given))
            if data:
                break
        self._left_to_give -= len(data)
        self._hand_over(data, puts_off=bound > self._harmless_bytes)
        if self._step is not None:
            self._turns.steps.add(network, given + len(data), self)

    def _take_piece(self, size_max: int) -> bytes:
        """Remove a piece of at most so many bytes; empty if they are but a part of a header."""
        with memoryview(self._kept) as kept, kept[:size_max] as given:
            first = piece_of(given, self._left_bytes, PIECE_RECORDS)
            data = bytes(given[: first.stop])
        del self._kept[: first.stop]
        self._left_bytes = first.left_bytes
        return data

    def step(self) -> Callable[[], bool] | None:
        """What a thread is to do now."""
        self._is_stepping = self._step is not None
        return self._step

    def step_is_done(self) -> None:
        """It has done so: tell TLS, and go on."""
        self._step, self._is_stepping = None, False
        ends, self._end_of_step = self._end_of_step, []
        for end in ends:
            end()
        if self.is_lost:
            return
        self._tell(0, puts_off=True)
        self._check_answers()
        if self._is_left():
            self._turns.wait(self)

    def _is_left(self) -> bool:
        if self._has_piece and not self._is_paused:
            return True
        self._is_waiting = False
        if not self._is_paused:
            self._go_on()
        return False

    def _hand_over(self, data: bytes, *, puts_off: bool = False) -> None:
        at = 0
        while at < len(data):
            room = cast(memoryview, self._tls.get_buffer(len(data) - at))
            some = data[at : at + len(room)]
            room[: len(some)] = some
            self._tell(len(some), puts_off=puts_off)
            at += len(some)

    def _tell(self, size_bytes: int, *, puts_off: bool) -> None:
        """Tell TLS of bytes in its buffer; ``puts_off`` lets it put a step off."""
        if not puts_off:
            self._tls.buffer_updated(size_bytes)
            return
        later: list[Callable[[], bool]] = []
        token = put_off.set(later)
        try:
            self._tls.buffer_updated(size_bytes)
        finally:
            put_off.reset(token)
        if later:
            self._step = later[0]

    def _check_answers(self) -> None:
        """End a connection whose client has TLS answer, as KEY_UPDATE does, and reads nothing. One
        whose protocol has paused amid what TLS got is not read."""
        if self.is_full and self.writes.has_many_answers():
            self._plain.abort()
        elif self.writes.has_much_unread():
            self._plain.pause_reading()

    def _go_on(self) -> None:
        """Read the socket again, or end as its client did."""
        if self._has_ended:
            self._has_ended = False
            if not self._end():
                self._plain.close()
        elif not (self._is_held or self._plain.is_closing() or self.writes.has_much_unread()):
            self._plain.resume_reading()

    def _end(self) -> bool | None:
        """Tell TLS that the client has sent its last byte. It may still read, and the socket's
        transport, which is closed next, gets all that was written."""
        was_full = self.is_full
        if was_full:
            self._tls.resume_writing()
        self.writes.finish()
        if was_full:
            self._tls.pause_writing()  # until there is room: it ends then
        return self._tls.eof_received()
