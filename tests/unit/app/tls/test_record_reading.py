"""Records of TLS are handed over a few at a time, and all connections share each iteration."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from headgate.app.tls.record_reading import (
    AMPLE_READS_MAX,
    BUSY_READ_BYTES,
    HANDSHAKE_BYTES_MAX,
    HANDSHAKES_TURN_S,
    LEAST_READ_BYTES,
    NETWORKS_MAX,
    PIECE_RECORDS,
    READ_BYTES,
    RECORDS_TURN_S,
    ROUND_S,
    Piece,
    RecordReads,
    RecordTurns,
    piece_of,
)
from headgate.testing.clock import ManualClock
from headgate.testing.loop import SimLoop


def record(size: int = 22) -> bytes:
    """By default as long as a KEY_UPDATE."""
    return b"\x17\x03\x03" + size.to_bytes(2) + bytes(size)


class Tls(asyncio.BufferedProtocol):
    """Notes what is handed over."""

    def __init__(self) -> None:
        self.room = bytearray(64 * 1024)
        self.parts: list[bytes] = []
        self.lost = self.ended = False

    @property
    def data(self) -> bytes:
        return b"".join(self.parts)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.room)

    def buffer_updated(self, nbytes: int) -> None:
        self.parts.append(bytes(self.room[:nbytes]))

    def eof_received(self) -> None:
        self.ended = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


class Wire(asyncio.Transport):
    """A socket's transport."""

    def __init__(self) -> None:
        super().__init__()
        self.is_paused = self.is_closed = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class One:
    """A connection."""

    def __init__(self, turns: RecordTurns, handshake_of: str | None = None) -> None:
        self.tls, self.wire = Tls(), Wire()
        self.reads = RecordReads(self.tls, self.wire, turns, handshake_of)

    def read(self, data: bytes) -> None:
        room = self.reads.get_buffer(-1)
        room[: len(data)] = data
        self.reads.buffer_updated(len(data))


def play(story: Callable[[RecordTurns], Any], step_s: float) -> None:
    """``step_s``: what each look at the clock takes, so a piece, too."""
    loop, looks = SimLoop(ManualClock()), itertools.count(1)
    try:
        loop.run_until_complete(story(RecordTurns(loop, lambda: next(looks) * step_s)))
    finally:
        loop.close()


def test_a_piece_ends_with_a_record_or_with_the_bytes() -> None:
    two = memoryview(record(10) + record(20))
    assert piece_of(two, 0, 9) == Piece(40, 2, 0)
    assert piece_of(two, 0, 1) == Piece(15, 1, 0)
    assert piece_of(two[:30], 0, 9) == Piece(30, 2, 10)
    assert piece_of(two[30:], 10, 9) == Piece(10, 0, 0)
    assert piece_of(two[30:35], 10, 9) == Piece(5, 0, 5)
    assert piece_of(two[:18], 0, 9) == Piece(15, 1, 0), "a part of a header stays behind"


def test_what_a_quiet_broker_reads_is_handed_over_at_once() -> None:
    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        data = record(16_000) * 4
        one.read(data[:50_000])
        one.read(data[50_000:])
        assert one.tls.parts == [data[:50_000], data[50_000:]]
        assert not one.wire.is_paused

    play(story, 0.0)


def test_a_read_is_no_larger_than_what_a_connection_may_keep() -> None:
    """TLS keeps buffers as large as the largest read. 300 clients without credentials that had
    sent a megabyte took 200 MB as long as they stayed."""

    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        one.tls.room = bytearray(256 * 1024)
        assert len(one.reads.get_buffer(-1)) == READ_BYTES

    play(story, 0.0)


def test_who_is_read_while_much_waits_gives_little_more() -> None:
    """TLS has the socket read when its protocol has taken most of what TLS got, although more is
    kept for TLS: who pauses and resumes at the right moments would add to that each time."""

    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        one.tls.room = bytearray(256 * 1024)
        one.reads.pause_reading()
        one.read(record(60_000))
        kept = len(record(60_000))
        for _ in range(100):
            room = len(one.reads.get_buffer(-1))
            assert 0 < room <= max(READ_BYTES - kept, LEAST_READ_BYTES)
            one.reads.buffer_updated(room)
            kept += room

    play(story, 0.0)


def test_thousands_of_small_records_take_many_turns() -> None:
    """The socket is not read meanwhile, and nothing is lost or out of order."""

    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        data = b"".join(record(22 + number % 3) for number in range(2_000))
        one.read(data)
        most, before = 0, 0
        while one.tls.data != data:
            assert one.wire.is_paused
            await asyncio.sleep(0)
            most, before = max(most, len(one.tls.parts) - before), len(one.tls.parts)
        assert most == 4, "pieces in an iteration"
        assert max(map(len, one.tls.parts)) <= 29 * PIECE_RECORDS
        assert not one.wire.is_paused

    play(story, ROUND_S / 3.9)


def test_who_sends_little_passes_those_that_send_much() -> None:
    async def story(turns: RecordTurns) -> None:
        many = [One(turns) for _ in range(50)]
        for one in many:
            one.read(record() * 500)
        few = One(turns)
        assert len(few.reads.get_buffer(-1)) == BUSY_READ_BYTES
        few.read(record(100))
        await asyncio.sleep(0)
        assert few.tls.data == record(100)
        assert turns.waiting_count == 50
        while turns.waiting_count:
            await asyncio.sleep(0)
        assert {one.tls.data for one in many} == {record() * 500}

    play(story, RECORDS_TURN_S / 3.9)


def test_the_busy_connections_of_one_network_wait_for_each_other_alone() -> None:
    """A piece may take a millisecond, so 400 connections of one machine held up all others that
    had as much to send for 0.8 s in each of their pieces."""

    async def story(turns: RecordTurns) -> None:
        crowd = [One(turns, "192.0.2.1") for _ in range(50)]
        honest = One(turns, "198.51.100.1")
        for one in (*crowd, honest):
            one.reads.handshake_is_done()
        for size in (3, 2 * PIECE_RECORDS):
            for one in (*crowd, honest):
                one.tls.parts.clear()
                one.read(record() * size)
            iterations = 0
            while honest.tls.data != record() * size:
                await asyncio.sleep(0)
                iterations += 1
            assert iterations <= 4
            while turns.waiting_count:
                await asyncio.sleep(0)
            assert {one.tls.data for one in crowd} == {record() * size}

    play(story, RECORDS_TURN_S / 3.9)


def test_beside_a_crowd_of_another_network_reads_are_whole() -> None:
    """Who waits is read once in an iteration. With 16 KiB in each, a message of 5 MB took 3 s
    beside 40 connections that sent KEY_UPDATEs, whose bytes had come in a tenth of a second."""

    async def story(turns: RecordTurns) -> None:
        crowd = [One(turns, f"192.0.2.{number}") for number in range(2 * AMPLE_READS_MAX)]
        honest = One(turns, "198.51.100.1")
        for one in (*crowd, honest):
            one.tls.room = bytearray(256 * 1024)
            one.reads.handshake_is_done()
        ample = 0
        for one in crowd:
            ample += len(one.reads.get_buffer(-1)) == READ_BYTES
            one.read(record() * 500)
        assert ample == AMPLE_READS_MAX
        assert len(honest.reads.get_buffer(-1)) == READ_BYTES
        for number in range(NETWORKS_MAX - 1):
            one = One(turns, f"203.0.{number}.1")
            one.reads.handshake_is_done()
            one.read(record() * 500)
        assert len(honest.reads.get_buffer(-1)) == BUSY_READ_BYTES

    play(story, RECORDS_TURN_S)


def test_a_crowd_that_always_has_more_does_not_make_each_iteration_long() -> None:
    """Who is served at once waits for the end of the iteration to be read again: beside a crowd
    each read took as much time as all records may have."""

    async def story(turns: RecordTurns) -> None:
        crowd = [One(turns, "192.0.2.1") for _ in range(50)]
        others = [One(turns, f"198.51.{number}.1") for number in range(6)]
        for one in (*crowd, *others):
            one.reads.handshake_is_done()
        for one in crowd:
            one.read(record() * 500)
        for others_now, pieces in (others[:1], 4), (others, 7):
            before = sum(len(one.tls.parts) for one in (*crowd, *others))
            for one in others_now:
                one.read(record() * 2 * PIECE_RECORDS)
            await asyncio.sleep(0)
            assert sum(len(one.tls.parts) for one in (*crowd, *others)) == before + pieces
            assert all(one.tls.parts for one in others_now)

    play(story, ROUND_S / 3.9)


def test_before_its_handshake_is_done_tls_gets_few_bytes_of_a_client() -> None:
    """OpenSSL decodes what a certificate needs when it has come: 94 KB took 240 ms in one piece."""

    async def story(turns: RecordTurns) -> None:
        one = One(turns, "10.0.0.1")
        data = record(9_000) * 5
        for at in range(0, len(data), 5_000):
            if not one.wire.is_paused:
                assert len(one.reads.get_buffer(-1)) == BUSY_READ_BYTES
            one.read(data[at : at + 5_000])  # the loop may have it already
            await asyncio.sleep(0)
        assert one.tls.data == data[:HANDSHAKE_BYTES_MAX]
        assert one.wire.is_paused
        one.reads.handshake_is_done()
        while one.wire.is_paused:
            await asyncio.sleep(0)
        assert one.tls.data == data
        one.read(record(50))
        assert one.tls.data == data + record(50)

    play(story, 0.0)


def test_records_right_behind_a_handshake_wait_and_are_not_lost() -> None:
    async def story(turns: RecordTurns) -> None:
        for size in (100, 16_000):
            one = One(turns, "10.0.0.1")
            data = record(size) * (15_000 // size + 1)
            one.read(data[:BUSY_READ_BYTES])
            one.reads.handshake_is_done()
            one.read(data[BUSY_READ_BYTES:])
            while one.wire.is_paused:
                await asyncio.sleep(0)
            assert one.tls.data == data
            held = One(turns, "10.0.0.1")
            held.read(record(HANDSHAKE_BYTES_MAX - 8)[:BUSY_READ_BYTES])
            await asyncio.sleep(0)
            held.read(record(HANDSHAKE_BYTES_MAX - 8)[BUSY_READ_BYTES:] + record(50))
            await asyncio.sleep(0)
            assert held.tls.data == record(HANDSHAKE_BYTES_MAX - 8), (
                "a part of a header is no piece"
            )
            assert held.wire.is_paused
            held.reads.pause_reading()
            held.reads.handshake_is_done()
            await asyncio.sleep(0)
            assert held.wire.is_paused
            held.reads.resume_reading()
            await asyncio.sleep(0)
            assert held.tls.data == record(HANDSHAKE_BYTES_MAX - 8) + record(50)

    play(story, 0.0)


def test_a_crowd_amid_its_handshakes_keeps_nobody_waiting() -> None:
    """60 clients without credentials, each with certificates of 94 KB, made all others over TLS
    wait for ten seconds."""

    async def story(turns: RecordTurns) -> None:
        crowd = [One(turns, "10.0.0.1") for _ in range(100)]
        for one in crowd:
            one.read(record(5_000))
        assert {one.tls.data for one in crowd} == {b""}
        other, done = One(turns, "10.0.0.2"), One(turns)
        other.read(record(60))
        done.read(record(70))
        assert done.tls.data == record(70)
        for _ in range(2):
            await asyncio.sleep(0)
        assert other.tls.data == record(60)
        assert sum(bool(one.tls.data) for one in crowd) == 1, "each takes a whole turn"
        while turns.waiting_count:
            await asyncio.sleep(0)
        assert {one.tls.data for one in crowd} == {record(5_000)}

    play(story, HANDSHAKES_TURN_S)


def test_costly_handshakes_leave_others_as_much_time() -> None:
    """The loop serves records between any two pieces that take a whole turn."""

    async def story(turns: RecordTurns) -> None:
        crowd = [One(turns, f"10.0.{number}.1") for number in range(10)]
        for one in crowd:
            one.read(record(100))
        busy = One(turns)
        busy.read(record() * 500)
        parts = []
        while turns.waiting_count:
            await asyncio.sleep(0)
            parts.append((sum(bool(one.tls.data) for one in crowd), len(busy.tls.parts)))
        begun = [number for number, _ in parts]
        assert max(later - one for one, later in itertools.pairwise(begun)) <= 2, "two turns"
        assert all(served >= number - 1 for number, served in parts)

    play(story, HANDSHAKES_TURN_S)


def test_a_header_in_two_reads() -> None:
    async def story(turns: RecordTurns) -> None:
        for cut in range(1, 5):
            one = One(turns)
            one.read(record(30) + record(40)[:cut])
            assert not one.wire.is_paused, "the rest of it must come"
            one.read(record(40)[cut:])
            await asyncio.sleep(0)
            assert one.tls.data == record(30) + record(40)
            assert not one.wire.is_paused

    play(story, 0.0)


def test_while_its_protocol_pauses_nothing_is_handed_over() -> None:
    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        one.read(record() * 100)
        await asyncio.sleep(0)
        handed = len(one.tls.parts)
        one.reads.pause_reading()
        one.read(record() * 100)  # the loop had it already
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(one.tls.parts) == handed
        assert one.wire.is_paused
        one.reads.resume_reading()
        while one.wire.is_paused:
            await asyncio.sleep(0)
        assert one.tls.data == record() * 200
        one.reads.pause_reading()
        assert one.wire.is_paused
        one.reads.resume_reading()
        assert not one.wire.is_paused

    play(story, RECORDS_TURN_S)


def test_the_last_records_of_a_client_that_leaves_come_first() -> None:
    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        one.read(record() * 200)
        assert one.reads.eof_received()
        assert not one.tls.ended
        while turns.waiting_count:
            await asyncio.sleep(0)
        assert one.tls.data == record() * 200
        assert one.tls.ended
        assert one.wire.is_closed
        quiet = One(turns)
        assert not quiet.reads.eof_received()
        assert quiet.tls.ended

    play(story, RECORDS_TURN_S)


def test_one_that_is_lost_leaves_nothing_behind() -> None:
    async def story(turns: RecordTurns) -> None:
        one = One(turns)
        one.read(record() * 200)
        await asyncio.sleep(0)
        one.reads.connection_lost(None)
        handed = len(one.tls.parts)
        while turns.waiting_count:
            await asyncio.sleep(0)
        one.reads.resume_reading()
        assert one.tls.lost
        assert len(one.tls.parts) == handed

    play(story, RECORDS_TURN_S)
