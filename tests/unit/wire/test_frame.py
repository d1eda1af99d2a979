from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.positions import Position
from headgate.wire import client, encode, limits
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.entry import build_entry
from headgate.wire.errors import LocalProtocolError, RemoteProtocolError
from headgate.wire.frame import DecoderStatistics, Frame, FrameDecoder, encode_frame
from headgate.wire.messages import BaseCommand, MessageMetadata

BODY = build_entry(MessageMetadata(producer_name="p", sequence_id=1, publish_time=2), b"x" * 50)
FRAMES = [
    client.connect(),
    client.producer(1, 2, "persistent://public/default/t", name="p"),
    client.send(2, 0, BODY),
    client.send(2, 1, b""),
    client.send(2, 2, BODY * 200),
    client.subscribe(3, 4, "t", "s", start=Position(-1, -1), properties={"k": "\u00fc"}),
    client.flow(4, 1000),
    client.ack(4, [Position(1, 2), Position(-1, -1)]),
    client.ping(),
    encode.send_receipt(2, 0, 1, 0),
    encode.message_frame_head(4, 1, 0, -1, 0, (), -1, len(BODY)) + BODY,
    encode.error(1, ServerError.UNKNOWN_ERROR, "why"),
    client.pong(),
]
STREAM = b"".join(FRAMES)
NOT_TEXT_DEEP_INSIDE = FRAMES[5].replace("\u00fc".encode(), b"\xff\xff")


def drain(decoder: FrameDecoder) -> list[Frame]:
    frames = []
    while (frame := decoder.next_frame()) is not None:
        frames.append(frame)
    return frames


def decode_in_pieces(data: bytes, size: int, **options: int) -> list[Frame]:
    decoder = FrameDecoder(**options)
    frames = []
    for start in range(0, len(data), size):
        decoder.feed(data[start : start + size])
        frames += drain(decoder)
    return frames


def raw_frame(command: bytes, *, total_size: int | None = None, body: bytes = b"") -> bytes:
    total = 4 + len(command) + len(body) if total_size is None else total_size
    return struct.pack(">II", total, len(command)) + command + body


def test_whole_and_byte_by_byte_give_the_same() -> None:
    whole = decode_in_pieces(STREAM, len(STREAM))
    assert [command.type for command, _ in whole] == [2, 5, 6, 6, 6, 4, 11, 10, 18, 7, 9, 14, 19]
    assert [body for _, body in whole if body is not None] == [BODY, BODY * 200, BODY]
    assert decode_in_pieces(STREAM, 1) == whole
    assert decode_in_pieces(STREAM, 7) == whole
    assert decode_in_pieces(STREAM, 4096) == whole


@given(st.lists(st.sampled_from(FRAMES), max_size=30), st.integers(1, 9000))
def test_any_cut_of_any_sequence(frames: list[bytes], size: int) -> None:
    decoded = decode_in_pieces(b"".join(frames), size)
    assert decoded == [decode_in_pieces(frame, len(frame))[0] for frame in frames]


def test_body_is_an_independent_copy() -> None:
    decoder = FrameDecoder()
    decoder.feed(client.send(1, 1, b"first"))
    frame = decoder.next_frame()
    decoder.feed(client.send(1, 2, b"other"))
    assert frame is not None
    assert frame[1] == b"first"


def test_a_caller_that_stops_pulling_gets_nothing_parsed() -> None:
    decoder = FrameDecoder()
    decoder.feed(client.ping() + raw_frame(b"\xff\xff"))
    assert decoder.next_frame() is not None
    assert decoder.statistics().pending_bytes == len(raw_frame(b"\xff\xff"))


def test_large_frame_grows_the_buffer_and_leaves_it_small() -> None:
    body = bytes(range(256)) * (limits.MESSAGE_BYTES_MAX_DEFAULT // 256)
    data = memoryview(client.send(1, 1, body) + client.ping())
    decoder = FrameDecoder()
    frames = []
    for start in range(0, len(data), 100_000):
        decoder.feed(data[start : start + 100_000])
        frames += drain(decoder)
        held = decoder.statistics()
        assert held.buffer_bytes <= max(limits.BUFFER_BYTES_STEADY, 2 * start + 300_000)
    assert [command.type for command, _ in frames] == [CommandType.SEND, CommandType.PING]
    assert frames[0][1] == body
    assert len(decoder.get_buffer()) == limits.BUFFER_BYTES_STEADY
    assert decoder.statistics() == DecoderStatistics(limits.BUFFER_BYTES_STEADY, 0)


def test_a_claimed_size_allocates_nothing() -> None:
    decoder = FrameDecoder()
    decoder.feed(struct.pack(">II", limits.FRAME_BYTES_MAX_DEFAULT, 10))
    assert decoder.next_frame() is None
    decoder.get_buffer()
    assert decoder.statistics().buffer_bytes == limits.BUFFER_BYTES_START


def test_frames_of_nearly_the_steady_buffer_do_not_make_it_grow() -> None:
    frame = client.send(1, 1, b"x" * 60_000)
    decoder = FrameDecoder()
    for _ in range(20):
        for start in range(0, len(frame), 7_000):
            decoder.feed(frame[start : start + 7_000])
            drain(decoder)
            assert decoder.statistics().buffer_bytes <= limits.BUFFER_BYTES_STEADY


def test_an_idle_connection_keeps_the_small_buffer() -> None:
    decoder = FrameDecoder()
    for _ in range(1000):
        decoder.feed(client.ping())
        assert len(drain(decoder)) == 1
    assert decoder.statistics() == DecoderStatistics(limits.BUFFER_BYTES_START, 0)


def test_a_closed_one_holds_no_memory_and_no_frame() -> None:
    """Something may still refer to it for long."""
    decoder = FrameDecoder()
    decoder.feed(client.ping()[:-1])
    decoder.close()
    assert decoder.next_frame() is None
    assert decoder.statistics().buffer_bytes == 0


def test_a_busy_connection_gets_larger_reads() -> None:
    decoder = FrameDecoder()
    for _ in range(10):
        room = decoder.get_buffer(-1)
        frames = client.ping() * (len(room) // len(client.ping()) + 1)
        room[:] = frames[: len(room)]
        decoder.advance(len(room))
        drain(decoder)
        decoder.feed(frames[len(room) :])
        drain(decoder)
    assert decoder.statistics() == DecoderStatistics(limits.BUFFER_BYTES_STEADY, 0)
    decoder.shrink()
    assert decoder.statistics() == DecoderStatistics(limits.BUFFER_BYTES_START, 0)
    decoder.feed(client.ping())
    assert len(drain(decoder)) == 1


def test_it_reports_growth_and_gives_an_empty_buffer_back() -> None:
    grown: list[int] = []
    decoder = FrameDecoder(on_growth=grown.append)
    frame = raw_frame(b"x" * (limits.BUFFER_BYTES_STEADY * 2))
    decoder.feed(frame[:-1])
    size = decoder.buffer_bytes
    assert sum(grown) == size - limits.BUFFER_BYTES_START > limits.BUFFER_BYTES_STEADY
    decoder.shrink()
    assert decoder.buffer_bytes == size, "a frame is on its way"


def test_a_buffer_shrinks_to_what_has_arrived() -> None:
    """A flood that pauses in the middle of a command leaves no 64 KiB behind."""
    decoder = FrameDecoder()
    ping = client.ping()
    decoder.feed(ping * (limits.BUFFER_BYTES_START // len(ping) + 1))
    room = decoder.get_buffer()
    room[: len(ping)] = ping
    decoder.advance(len(ping))
    while decoder.statistics().pending_bytes > len(ping):
        assert decoder.next_frame() is not None
    assert decoder.buffer_bytes > limits.BUFFER_BYTES_START
    decoder.shrink()
    assert decoder.statistics() == DecoderStatistics(limits.BUFFER_BYTES_START, len(ping))
    assert len(drain(decoder)) == 1


def test_reads_do_not_grow_where_memory_is_scarce_but_frames_get_the_room_they_need() -> None:
    decoder = FrameDecoder(may_grow=lambda: False)
    ping = client.ping()
    for _ in range(5):
        room = decoder.get_buffer()
        frames = ping * (len(room) // len(ping) + 1)
        room[:] = frames[: len(room)]
        decoder.advance(len(room))
        drain(decoder)
        decoder.feed(frames[len(room) :])
        drain(decoder)
    assert decoder.buffer_bytes == limits.BUFFER_BYTES_START
    frame = raw_frame(b"x" * (limits.BUFFER_BYTES_STEADY * 2))
    decoder.feed(frame[: limits.BUFFER_BYTES_START])
    assert decoder.next_frame() is None
    assert decoder.lacks_room
    assert decoder.growth_bytes == limits.BUFFER_BYTES_START, "it doubles"
    assert decoder.has_part
    decoder.feed(frame[limits.BUFFER_BYTES_START : -1])
    assert decoder.next_frame() is None
    assert not decoder.lacks_room, "the whole frame fits"
    assert decoder.growth_bytes == 0


def test_it_says_whether_a_frame_is_on_its_way() -> None:
    decoder = FrameDecoder()
    ping = client.ping()
    for data, has_part in ((ping, False), (ping[:3], True), (ping[3:9], True), (ping[9:], False)):
        decoder.feed(data)
        drain(decoder)
        assert decoder.has_part is has_part


def test_a_torn_frame_behind_others_needs_no_larger_buffer() -> None:
    """A connection must not count as one that grows because its last frame arrived in part."""
    decoder = FrameDecoder(may_grow=lambda: False)
    ping = client.ping()
    room = decoder.get_buffer()
    room[:] = (ping * (len(room) // len(ping) + 1))[: len(room)]
    decoder.advance(len(room))
    drain(decoder)
    assert 0 < decoder.statistics().pending_bytes < len(ping)
    assert not decoder.lacks_room
    decoder.get_buffer()
    assert decoder.buffer_bytes == limits.BUFFER_BYTES_START


def test_frames_that_nobody_pulls_are_our_fault() -> None:
    decoder = FrameDecoder(frame_size_max=20_000)
    with pytest.raises(LocalProtocolError, match="next_frame"):
        decoder.feed(client.ping() * 20_000)


@pytest.mark.parametrize("size", [-1, 10**9])
def test_advancing_beyond_the_buffer_is_our_fault(size: int) -> None:
    decoder = FrameDecoder()
    decoder.get_buffer()
    with pytest.raises(LocalProtocolError, match="advance"):
        decoder.advance(size)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">I", 0), "cannot hold"),
        (struct.pack(">I", 4), "cannot hold"),
        (struct.pack(">II", 0, 0), "cannot hold"),
        (struct.pack(">II", 8, 5), "cannot hold"),
        (struct.pack(">II", 100, 2**32 - 1), "cannot hold"),
        (struct.pack(">I", limits.FRAME_BYTES_MAX_DEFAULT + 1), "limit"),
        (struct.pack(">II", 2**31, 10), "limit"),
        (struct.pack(">II", 2**32 - 1, 10), "limit"),
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (raw_frame(b""), "no valid command"),
        (raw_frame(b"\xff\xff"), "no valid command"),
        (raw_frame(b"\x08\x63"), "no valid command"),
        (raw_frame(b"\x08\x0b"), "without its fields"),
        (raw_frame(b"\x08\x06"), "without its fields"),
        (raw_frame(b"\x08\x0b\x5a\x00"), "no valid command"),
        (raw_frame(b"\x08\x0b\x5a\x04\x08\x01\x10\x01", body=b"x"), "payload"),
        (raw_frame(b"\x08\x17\xba\x01\x05\x0a\x01\xff\x10\x01"), "UTF-8"),
        (NOT_TEXT_DEEP_INSIDE, "UTF-8"),
    ],
)
def test_bad_frames_break_the_decoder(data: bytes, reason: str) -> None:
    decoder = FrameDecoder()
    decoder.feed(data)
    with pytest.raises(RemoteProtocolError, match=reason):
        decoder.next_frame()
    decoder.feed(client.ping())
    with pytest.raises(RemoteProtocolError, match=reason):
        decoder.next_frame()
    assert decoder.statistics().buffer_bytes <= limits.BUFFER_BYTES_STEADY


def test_the_limit_itself_is_allowed() -> None:
    head = client.send_head(1, 1, 0)
    limit = 5_000
    frame = client.send(1, 1, b"x" * (limit - len(head) + 4))
    assert len(decode_in_pieces(frame, 1000, frame_size_max=limit)) == 1
    with pytest.raises(RemoteProtocolError, match="limit"):
        decode_in_pieces(frame, 1000, frame_size_max=limit - 1)


def test_unknown_fields_are_tolerated() -> None:
    ping = raw_frame(b"\x08\x12\x92\x01\x00\xc8\x3e\x01")
    assert decode_in_pieces(ping, len(ping))[0][0].type == CommandType.PING


def test_an_incomplete_command_of_our_own_is_our_fault() -> None:
    with pytest.raises(LocalProtocolError, match="not complete"):
        encode_frame(BaseCommand(type=CommandType.LOOKUP, lookupTopic={}))


def only_remote_errors(data: bytes, size: int) -> None:
    with contextlib.suppress(RemoteProtocolError):
        decode_in_pieces(data, size)


@given(st.binary(max_size=400), st.integers(1, 400))
def test_random_bytes(data: bytes, size: int) -> None:
    only_remote_errors(data, size)


@given(st.binary(max_size=100), st.binary(max_size=30))
def test_random_commands_in_sound_frames(command: bytes, body: bytes) -> None:
    only_remote_errors(raw_frame(command, body=body), 1000)


@given(st.sampled_from(FRAMES), st.data())
def test_flipped_bits(frame: bytes, data: st.DataObject) -> None:
    damaged = bytearray(frame)
    draw: Callable[..., int] = data.draw
    for _ in range(draw(st.integers(1, 4))):
        bit = draw(st.integers(0, len(damaged) * 8 - 1))
        damaged[bit // 8] ^= 1 << bit % 8
    only_remote_errors(bytes(damaged) + STREAM, 5000)


def test_what_has_arrived_is_known_before_it_is_parsed() -> None:
    decoder = FrameDecoder()
    assert decoder.arrived(3) == ([], 1.0)
    ping = client.ping()
    kind, size = int(CommandType.PING), len(ping) - 8
    decoder.feed(ping + ping + ping[:-1])
    assert decoder.arrived(3) == ([(kind, size)] * 2, 1.0), "the third has not arrived whole"
    decoder.feed(ping[-1:] + ping * 9)
    assert decoder.arrived(3) == ([(kind, size)] * 3, 4.0), "four times as many"
    while decoder.next_frame() is not None:
        pass
    decoder.feed(bytes(12))
    assert decoder.arrived(3) == ([(0, 0)] * 2, 1.0), "no command"


def test_what_is_missing_of_the_first_frame_is_known_once_its_length_has_arrived() -> None:
    decoder = FrameDecoder()
    assert decoder.missing_bytes == 0
    frame = encode_frame(BaseCommand(type=CommandType.PING, ping={}))
    decoder.feed(frame[:7])
    assert decoder.missing_bytes == 0, "its length is not complete"
    decoder.feed(frame[7:9])
    assert decoder.missing_bytes == len(frame) - 9
    decoder.feed(frame[9:] + frame)
    assert decoder.missing_bytes == 0
