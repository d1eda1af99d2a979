from __future__ import annotations

import random

import pytest

from headgate.wire import replies
from pyspark_pulsar import frame_reader
from pyspark_pulsar.commands import CommandType, StoredEntry
from pyspark_pulsar.frame_reader import BUFFER_BYTES, FrameReader
from tests.unit.pyspark_pulsar.fake_broker import Clock, message_frame

SUCCESS = replies.success(1)


class Pieces:
    """A peer that gives one piece for each call; a number is a wait, and the end is one of 0 s."""

    def __init__(self, clock: Clock, *pieces: bytes | float | None) -> None:
        self.clock, self.pieces, self.timeout_s = clock, list(pieces), 0.0

    def settimeout(self, value: float | None) -> None:
        assert value is not None
        assert value > 0
        self.timeout_s = value

    def recv_into(self, buffer: memoryview) -> int | None:
        piece = self.pieces.pop(0) if self.pieces else b""
        if isinstance(piece, float):
            self.clock.now_s += min(self.timeout_s, piece)
            if piece > self.timeout_s:
                self.pieces.insert(0, piece - self.timeout_s)
                raise TimeoutError
            return self.recv_into(buffer)
        if piece is None:
            return None
        count = min(len(buffer), len(piece))
        buffer[:count] = piece[:count]
        if count < len(piece):
            self.pieces.insert(0, piece[count:])
        return count

    def sendall(self, data: bytes) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


def reader(*pieces: bytes | float | None) -> tuple[FrameReader, Clock]:
    clock = Clock()
    return FrameReader(Pieces(clock, *pieces), clock), clock


def all_frames(frames: FrameReader) -> list[StoredEntry | CommandType]:
    found: list[StoredEntry | CommandType] = []
    while True:
        try:
            frame = frames.buffered_entry() or frames.next_frame(100.0)
        except EOFError:
            return found
        assert frame is not None
        found.append(frame if isinstance(frame, StoredEntry) else CommandType(frame.type))


@pytest.mark.parametrize("seed", range(12))
def test_every_frame_comes_however_the_bytes_arrive(seed: int) -> None:
    chance = random.Random(seed)
    sent: list[StoredEntry | CommandType] = []
    data = bytearray()
    for _ in range(120):
        if chance.random() < 0.2:
            sent.append(CommandType.SUCCESS)
            data += SUCCESS
            continue
        ledger_id = chance.choice((0, 1, 9, 127, 128, 1 << 20, (1 << 63) - 1))
        entry_id = chance.choice((0, 8, 127, 128, 16_383, 16_384, 1 << 40, (1 << 63) - 1))
        body = chance.randbytes(chance.choice((0, 1, 10, 1_000, 40_000)))
        sent.append(StoredEntry(ledger_id, entry_id, body))
        data += message_frame(sent[-1])
    pieces: list[bytes] = []
    while data:
        size = chance.choice((1, 3, 1_000, 70_000, 400_000))
        pieces.append(bytes(data[:size]))
        del data[:size]
    assert all_frames(reader(*pieces)[0]) == sent


def test_entries_of_one_ledger_take_the_fast_path() -> None:
    sent = [StoredEntry(300, 200 + number, b"x" * number) for number in range(50)]
    frames, _ = reader(b"".join(map(message_frame, sent)))
    assert frames.buffered_entry() is None
    assert frames.next_frame(1.0) == sent[0]
    assert [frames.buffered_entry() for _ in sent[1:]] == sent[1:]
    assert frames.buffered_entry() is None


def test_a_large_frame_takes_memory_as_it_arrives_and_gives_it_back() -> None:
    large = StoredEntry(1, 1, bytes(3 * BUFFER_BYTES))
    frame = message_frame(large)
    frames, _ = reader(frame[:1_000], 5.0, frame[1_000:], SUCCESS)
    assert frames.next_frame(1.0) is None
    assert len(frames._buffer) == BUFFER_BYTES
    assert frames.next_frame(100.0) == large
    assert len(frames._buffer) == len(frame)
    frames.next_frame(100.0)
    assert len(frames._buffer) == BUFFER_BYTES


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"HTTP/1.1 400 Bad Request", "of which"),
        ((frame_reader.FRAME_BYTES_MAX + 1).to_bytes(4, "big") + b"\0\0\0\1", "of which"),
        (bytes(8), "a frame of 0 bytes"),
        (b"\0\0\0\4\0\0\0\0", "a command of 0 bytes"),
        (b"\0\0\0\4\0\0\0\1", "a command of 1 bytes"),
        (b"\0\x20\0\0\0\x11\0\0", "a command of"),
        (b"\0\0\0\6\0\0\0\2\xff\xff", "no command"),
        (b"\0\0\0\6\0\0\0\2\x12\x00", "no command"),
        (message_frame(StoredEntry((1 << 64) - 1, 1, b"")), "an entry -1:1"),
    ],
)
def test_what_is_no_frame(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        reader(data)[0].next_frame(1.0)


def test_what_damages_the_fast_path_is_no_entry() -> None:
    good = message_frame(StoredEntry(300, 200, b""))
    bad = (8).to_bytes(4, "big") + good[4:]  # a frame that ends within its command
    frames, _ = reader(good + bad)
    assert frames.next_frame(1.0) == (300, 200, b"")
    assert frames.buffered_entry() is None
    with pytest.raises(ValueError, match="a frame of 8 bytes"):
        frames.next_frame(1.0)


def test_a_wait_has_a_bound_within_a_frame() -> None:
    """A peer that drips: what it sent is kept for the next call."""
    frame = message_frame(StoredEntry(3, 4, b"body"))
    pieces = [piece for byte in frame for piece in (bytes([byte]), 0.3)]
    frames, clock = reader(*pieces)
    calls = 0
    while (found := frames.next_frame(clock() + 1.0)) is None:
        calls += 1
    assert found == (3, 4, b"body")
    assert calls == pytest.approx(len(frame) * 0.3, abs=3)


def test_a_flood_of_bytes_without_a_frame_has_a_bound() -> None:
    """Bytes that cost no time do not keep a call beyond its deadline."""
    frames, clock = reader(*([None] * 5), b"\0", b"\0", b"\0")
    clock.now_s = 10.0
    assert frames.next_frame(9.0) is None


def test_a_deadline_that_has_passed_takes_what_is_there() -> None:
    frames, clock = reader(SUCCESS)
    clock.now_s = 10.0
    found = frames.next_frame(9.0)
    assert found is not None
    assert found.type == CommandType.SUCCESS


def test_silence_is_counted_by_waits() -> None:
    frames, clock = reader(30.0, SUCCESS, 5.0)
    assert frames.next_frame(10.0) is None
    clock.now_s = 100.0  # the time between calls is no silence
    assert frames.next_frame(105.0) is None
    assert frames.silent_s == pytest.approx(15.0)
    assert frames.next_frame(150.0) is not None
    assert frames.silent_s == 0.0


def test_the_begin_of_a_frame_may_be_the_end_of_the_buffer() -> None:
    """Its fifth byte was taken for the begin of a command like the last one."""
    longer = replies.success(1_000)
    count, rest_bytes = divmod(BUFFER_BYTES - len(longer), len(SUCCESS))
    assert 4 < rest_bytes < 8
    begun = (4).to_bytes(4) + b"\xff" * (rest_bytes - 4)
    frames, _ = reader(longer + SUCCESS * count + begun)
    assert all_frames(frames) == [CommandType.SUCCESS] * (count + 1)
