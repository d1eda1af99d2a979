"""The index of entries from their records: whole, with gaps, and without any."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger.format.records import (
    CRC,
    ENTRY_FIXED_BYTES,
    ENTRY_HEAD_BYTES,
    ENTRY_REST,
    KIND_ENTRY,
    RECORD_VERSION,
    crc32c,
    segment_name,
)
from headgate.ledger.index.columns import TopicTotals
from headgate.ledger.index.rebuilt_block import rebuild_block
from headgate.ledger.index.topic_log import TopicLog
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


FORGED = 3


def log_with_a_forgery() -> tuple[bytearray, TopicLog, int]:
    """A log in which a message of topic 2 has bytes that look like entry 3 of topic 1; and where
    they are. The real entry follows."""
    rest = ENTRY_REST.pack(
        ENTRY_FIXED_BYTES + 9, KIND_ENTRY, RECORD_VERSION, 0, 1, 1, 1, FORGED, 1_003, 0
    )
    forged = CRC.pack(crc32c(rest + b"forged!!!")) + rest + b"forged!!!"
    fs = MemFs()
    log = open_log(fs)
    for at in range(6):
        if at == FORGED:
            append(log, 2, b"x" * 40 + forged, received_ms=1_000)
        append(log, 1, b"a" * (10 + at), received_ms=1_000 + at)
    file = fs.open(f"{DIRECTORY}/{segment_name(1)}")
    data = bytearray(file.read_at(0, file.size()))
    return data, log.topic(1), data.index(forged)


@pytest.mark.parametrize("place", ["body", "length"])
@pytest.mark.parametrize("loses_real", [False, True])
def test_bytes_in_a_damaged_message_are_not_taken_for_another_topics_entry(
    place: str, loses_real: bool
) -> None:
    """The first bytes that looked like the entry were taken for it."""
    data, topic, forged_at = log_with_a_forgery()
    columns = topic.columns(0, 6)
    message_at = forged_at - 40 - ENTRY_HEAD_BYTES
    if place == "body":
        data[message_at + ENTRY_HEAD_BYTES + 3] ^= 0xFF
    else:
        data[message_at + 4 : message_at + 8] = b"\xff\xff\xff\x7f"
    if loses_real:
        data[columns.offsets[FORGED] + ENTRY_HEAD_BYTES] ^= 0xFF
    begin = columns.offsets[0]
    totals = topic.totals(0), topic.totals(6)
    found, is_whole = rebuild_block(bytes(data[begin:]), begin, 1, 0, 6, *totals)
    assert is_whole is not loses_real
    if not loses_real:
        assert found == columns
    elif place == "body":
        assert found.offsets[FORGED] == columns.offsets[FORGED - 1]


def test_of_two_candidates_that_damage_parts_none_is_taken() -> None:
    data, topic, forged_at = log_with_a_forgery()
    columns = topic.columns(0, 6)
    begin = columns.offsets[0]
    forged = bytes(data[forged_at : columns.offsets[FORGED]])
    # Damage before the forgery, and between it and the real entry.
    part = bytes(data[begin : columns.offsets[FORGED - 1]]) + b"\xff" * 60
    whole = (
        part
        + forged[: ENTRY_HEAD_BYTES + 9]
        + b"\xff" * 60
        + bytes(data[columns.offsets[FORGED] :])
    )
    found, is_whole = rebuild_block(whole, begin, 1, 0, 6, topic.totals(0), topic.totals(6))
    assert not is_whole
    assert list(found.offsets[: FORGED - 1]) == list(columns.offsets[: FORGED - 1])
    assert len(set(found.offsets[FORGED - 2 : FORGED + 1])) == 1
    assert found.offsets[FORGED + 1] == begin + whole.index(b"a" * 14) - ENTRY_HEAD_BYTES
