"""Messages survive the way through a file; damage is found at its byte."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import CorruptionError
from headgate.record.fields import MESSAGE_BYTES_MAX
from headgate.record.frames import framed, frames


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_messages_come_back(messages: list[bytes]) -> None:
    data = b"".join(framed(each) for each in messages)
    assert list(frames(io.BytesIO(data).read)) == messages


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=4), st.data())
def test_a_file_that_was_cut_gives_its_whole_messages_and_then_an_error(
    messages: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(framed(each) for each in messages)
    ends = {0}
    for each in messages:
        ends.add(max(ends) + len(framed(each)))
    cut = data.draw(st.integers(0, len(whole) - 1).filter(lambda at: at not in ends))
    found: list[bytes] = []
    with pytest.raises(CorruptionError, match="ends within the record at byte"):
        found.extend(_each(whole[:cut], found))
    assert found == messages[: len(found)]
    assert len(found) == sum(1 for end in ends if 0 < end <= cut)


def _each(data: bytes, found: list[bytes]) -> list[bytes]:
    for message in frames(io.BytesIO(data).read):
        found.append(message)
    return []


def test_changed_bytes_are_found() -> None:
    data = bytearray(framed(b"first") + framed(b"second"))
    data[-1] ^= 1
    source = frames(io.BytesIO(data).read)
    assert next(source) == b"first"
    with pytest.raises(CorruptionError, match=r"the record at byte 13 was changed"):
        next(source)


def test_a_length_that_lies_takes_no_memory() -> None:
    data = (MESSAGE_BYTES_MAX + 1).to_bytes(4, "big") + bytes(4)
    asked: list[int] = []

    def read(size: int) -> bytes:
        asked.append(size)
        return data

    with pytest.raises(CorruptionError, match=r"length of 1,048,577 bytes"):
        list(frames(read))
    assert asked == [8]
