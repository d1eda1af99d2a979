"""Footers there and back, and with every byte flipped."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import TopicLog
from headgate.ledger.index import footer
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.footer import (
    TRAILER_BYTES,
    Directory,
    Footer,
    FooterBuilder,
    read_directory,
    read_footer,
)
from tests.unit.ledger.support import footer_without_blocks

DATA_END = 5000


def built() -> list[bytes]:
    builder = FooterBuilder(3, DATA_END)
    for number in (4, 9):
        topic = TopicLog(number)
        topic.restart_at(100, TopicTotals(500, 900, 0, 0))
        topic.open_run(2)
        topic.append(1, 10, 5, 2, 64)
        topic.open_run(3)
        for at in range(number):
            topic.append(2, 20, 7 + at, 3, 64 + at)
        builder.add(topic)
    builder.add(TopicLog(5))
    return builder.finish()


def read(parts: list[bytes], segment: int = 3) -> Footer | None:
    fs = MemFs()
    fs.make_directory("/d")
    file = fs.create("/d/x")
    file.write_at(DATA_END, parts)
    return read_footer(file, segment, file.size())


def long_topic(count: int) -> TopicLog:
    topic = TopicLog(4)
    topic.open_run(3)
    for at in range(count):
        topic.append(1 + at % 3, at, 1_000 + at, at % 7, 64 + 40 * at)
    topic.end = topic.staged_end
    return topic


def sparse(parts: list[bytes]) -> Directory | None:
    fs = MemFs()
    fs.make_directory("/d")
    file = fs.create("/d/x")
    file.write_at(DATA_END, parts)
    return read_directory(file, 3, file.size())


def test_there_and_back() -> None:
    found = read(built())
    assert found is not None
    assert found.data_end == DATA_END
    assert [(run.topic_number, run.first_ordinal) for run in found.runs] == [(4, 101), (9, 101)]
    columns = found.runs[0].columns
    assert list(columns.offsets) == [64, 65, 66, 67]
    assert list(columns.received) == [5, 7, 8, 9, 10]
    assert list(columns.publish_lags) == [2, 3, 3, 3, 3]
    assert list(columns.messages) == [501, 503, 505, 507, 509]
    assert list(columns.sizes) == [910, 930, 950, 970, 990]
    assert columns.totals_before() == TopicTotals(501, 910, 5, 2)


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


@pytest.mark.parametrize("version", [1, 4])
def test_a_footer_of_another_version_is_refused(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(footer, "FOOTER_VERSION", version)
        parts = built()
    with pytest.raises(CorruptionError, match=f"0000000000000003 has version {version}"):
        read(parts)


def test_a_long_run_has_several_blocks() -> None:
    topic = long_topic(300)
    builder = FooterBuilder(3, DATA_END)
    builder.add(topic)
    parts = builder.finish()
    found = read(parts)
    assert found is not None
    assert found.runs[0].columns == topic.columns(0, 300)
    directory = sparse(parts)
    assert directory is not None
    assert directory == builder.directory
    (run,) = directory.runs
    assert (run.first, run.entries, run.blocks) == (0, 300, 3)
    assert run.after == topic.totals(300)
    for block in range(3):
        first = run.first_of(block)
        values = [column[run.row + block] for column in run.sparse]
        assert values == [column[0] for column in topic.columns(first, first + 1)]


def test_the_directory_alone_is_readable_if_a_block_is_damaged() -> None:
    whole = b"".join(built())
    expected = sparse([whole])
    for at in range(sum(map(len, built()[:2]))):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        assert sparse([bytes(damaged)]) == expected
        with pytest.raises(CorruptionError, match="damaged at the index of topic"):
            read([bytes(damaged)])


def test_a_footer_of_version_2_is_read_as_a_whole() -> None:
    topic = long_topic(300)
    parts = footer_without_blocks(3, DATA_END, [topic])
    found = read(parts)
    assert found is not None
    assert found.data_end == DATA_END
    assert found.runs[0].columns == topic.columns(0, 300)
    assert sparse(parts) is None
    damaged = [b"".join(parts).replace(b"\x40", b"\x41", 1)]
    with pytest.raises(CorruptionError, match="damaged at the index of topic 4"):
        read(damaged)


def test_a_footer_of_another_segment_is_damage() -> None:
    with pytest.raises(CorruptionError):
        read(built(), segment=4)
