"""The index of entries from their records: whole, with gaps, and without any."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, segment_name
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.rebuilt_block import rebuild_block
from tests.unit.ledger.support import DIRECTORY, append, open_log


class Stored:
    """A log with entries of two topics, and what its index says."""

    def __init__(self) -> None:
        fs = MemFs()
        log = open_log(fs)
        for at in range(6):
            append(log, 1, b"a" * (10 + at), received_ms=1_000 + at)
            append(log, 2, b"other", received_ms=1_000)
        self.topic = log.topic(1)
        file = fs.open(f"{DIRECTORY}/{segment_name(1)}")
        self.data = bytearray(file.read_at(0, file.size()))
        self.columns = self.topic.columns(0, 6)

    def rebuild(self) -> tuple[object, bool]:
        begin = self.columns.offsets[0]
        data = bytes(self.data[begin:])
        totals = self.topic.totals(0), self.topic.totals(6)
        return rebuild_block(data, begin, 1, 0, 6, *totals)


def test_whole_records_give_the_same_index() -> None:
    stored = Stored()
    assert stored.rebuild() == (stored.columns, True)


@pytest.mark.parametrize("lost", range(6))
def test_one_damaged_record_costs_one_entry(lost: int) -> None:
    stored = Stored()
    stored.data[stored.columns.offsets[lost] + ENTRY_HEAD_BYTES + 2] ^= 0xFF
    columns, is_whole = stored.rebuild()
    assert not is_whole
    for at in range(6):
        if at != lost:
            assert columns.offsets[at] == stored.columns.offsets[at]
    assert columns.offsets[lost] == stored.columns.offsets[max(lost - 1, 0)]
    assert columns.sizes[-1] == stored.columns.sizes[-1]
    assert columns.messages[-1] == stored.columns.messages[-1]


def test_a_hole_in_the_middle_is_passed() -> None:
    stored = Stored()
    low, high = stored.columns.offsets[2], stored.columns.offsets[4]
    stored.data[low:high] = bytes(high - low)
    columns, is_whole = stored.rebuild()
    assert not is_whole
    assert list(columns.offsets[4:]) == list(stored.columns.offsets[4:])
    assert list(columns.sizes[5:]) == list(stored.columns.sizes[5:])


def test_without_records_the_totals_are_right() -> None:
    before, after = TopicTotals(5, 50, 1_000, 3), TopicTotals(11, 500, 2_000, 4)
    columns, is_whole = rebuild_block(b"", 64, 1, 10, 13, before, after)
    assert not is_whole
    assert list(columns.offsets) == [64, 64, 64]
    assert list(columns.messages) == [5, 9, 10, 11]
    assert list(columns.sizes) == [50, 500, 500, 500]
    assert list(columns.received) == [1_000] * 4
