"""The benches' client must count right, whatever pieces the stream arrives in."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.client import FrameCounter, entry
from headgate.wire import encode
from headgate.wire.codes import CommandType, ServerError
from headgate.wire.entry import batch_size, checksum_ok, parse_metadata

MESSAGE = encode.message_frame_head(0, 1, 2, -1, 0, (), -1, 300) + bytes(300)
RECEIPT = encode.send_receipt(0, 1, 1, 1)


@example([MESSAGE, encode.ping()], [len(MESSAGE) + 10])
@given(st.lists(st.sampled_from([MESSAGE, encode.ping()])), st.lists(st.integers(1, 400)))
def test_whole_frames_are_counted_whatever_the_pieces(frames: list[bytes], cuts: list[int]) -> None:
    counter = FrameCounter(CommandType.MESSAGE)
    stream, at, counted = b"".join(frames), 0, 0
    for size in [*cuts, len(stream)]:
        counted += counter.take(stream[at : at + size])
        at = min(at + size, len(stream))
        assert counted == _whole_messages(frames, at)
    assert counter.pings == frames.count(encode.ping())


def _whole_messages(frames: list[bytes], end: int) -> int:
    at = count = 0
    for frame in frames:
        at += len(frame)
        count += at <= end and frame is MESSAGE
    return count


def test_an_error_is_not_counted_as_a_receipt() -> None:
    counter = FrameCounter(CommandType.SEND_RECEIPT)
    assert counter.take(RECEIPT) == 1
    refusal = encode.send_error(0, 2, ServerError.PERSISTENCE_ERROR, "the disk is full")
    with pytest.raises(RuntimeError, match="SEND_ERROR"):
        counter.take(RECEIPT + refusal)


def test_entries_are_what_a_producer_sends() -> None:
    single, batch = entry(1_024), entry(10, 64)
    assert checksum_ok(single)
    assert batch_size(parse_metadata(single)) is None
    assert batch_size(parse_metadata(batch)) == 64
    assert abs(len(single) - len(batch)) < 32
