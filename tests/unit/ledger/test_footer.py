"""Footers there and back, and with every byte flipped."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import TopicLog
from headgate.ledger.footer import TRAILER_BYTES, Footer, FooterBuilder, read_footer

DATA_END = 5000


def built() -> list[bytes]:
    builder = FooterBuilder(3, DATA_END)
    for number in (4, 9):
        topic = TopicLog(number)
        topic.restart_at(100, 500, 900)
        topic.open_run(2)
        topic.append(1, 10, 1, 64)
        topic.open_run(3)
        for at in range(number):
            topic.append(2, 20, 7, 64 + at)
        builder.add(topic)
    builder.add(TopicLog(5))
    return builder.finish()


def read(parts: list[bytes], segment: int = 3) -> Footer | None:
    fs = MemFs()
    fs.make_directory("/d")
    file = fs.create("/d/x")
    file.write_at(DATA_END, parts)
    return read_footer(file, segment, file.size())


def test_there_and_back() -> None:
    footer = read(built())
    assert footer is not None
    assert footer.data_end == DATA_END
    assert [(run.topic_number, run.first_ordinal) for run in footer.runs] == [(4, 101), (9, 101)]
    run = footer.runs[0]
    assert list(run.offsets) == [64, 65, 66, 67]
    assert list(run.received) == [7] * 4
    assert list(run.messages) == [501, 503, 505, 507, 509]
    assert list(run.sizes) == [910, 930, 950, 970, 990]


def test_a_file_without_one_has_none() -> None:
    assert read([b"x" * 200]) is None
    fs = MemFs()
    fs.make_directory("/d")
    assert read_footer(fs.create("/d/y"), 3, 10) is None


def test_every_flipped_byte_is_noticed() -> None:
    whole = b"".join(built())
    magic = len(whole) - TRAILER_BYTES
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        if magic <= at < magic + 8:
            assert read([bytes(damaged)]) is None
            continue
        with pytest.raises(CorruptionError, match="segment 0000000000000003 is damaged"):
            read([bytes(damaged)])


def test_a_footer_of_another_segment_is_damage() -> None:
    with pytest.raises(CorruptionError):
        read(built(), segment=4)
