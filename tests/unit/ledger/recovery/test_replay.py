"""Replay of single records that a sound log never holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.base.errors import CorruptionError
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    CRC,
    ENTRY_FIXED_BYTES,
    ENTRY_REST,
    KIND_BATCH,
    KIND_DELETE,
    KIND_ENTRY,
    RECORD_VERSION,
    crc32c,
    record,
    segment_header,
)
from headgate.ledger.index.footer import FooterEntry
from headgate.ledger.index.state import LogState
from headgate.ledger.index.topic_log import TopicLog
from headgate.ledger.recovery import replay as replay_module
from headgate.ledger.recovery.replay import Replay


def segment(*records: bytes, number: int = 1, previous: int = 0) -> bytes:
    size = 80 + sum(map(len, records))
    payload = BATCH.pack(BATCH_MAGIC, number, previous, 1, 1, 1, 9, len(records), size)
    return segment_header(1, 9) + record(KIND_BATCH, payload, number) + b"".join(records)


def replay(data: bytes) -> tuple[LogState, int]:
    state = LogState(topics={1: TopicLog(1)})
    return state, Replay(state, [1]).segment(data, 1, len(data))


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(CorruptionError, match="offset 144: a record of unknown kind 77"):
        replay(segment(record(77, b"?", 1)))


@pytest.mark.parametrize("version", [1, 3])
def test_another_version_is_named(version: int) -> None:
    rest = bytearray(record(77, b"?", 1)[4:])
    rest[5] = version
    named = f"a record of version {version}; this release reads 2"
    with pytest.raises(CorruptionError, match=named):
        replay(segment(CRC.pack(crc32c(bytes(rest))) + bytes(rest)))


def test_a_gap_in_a_topic_is_a_loss() -> None:
    size = ENTRY_FIXED_BYTES + 1
    rest = ENTRY_REST.pack(size, KIND_ENTRY, RECORD_VERSION, 0, 1, 1, 1, 5, 0, 0) + b"x"
    state = LogState(topics={1: TopicLog(1)})
    found = Replay(state, [1])
    data = segment(CRC.pack(crc32c(rest)) + rest)
    found.segment(data, 1, len(data))
    assert found.assessment.mark_damaged()
    named = "before 0000000000000001.log offset 144: what belongs before entry 5 is lost"
    assert state.topics[1].damage == named


def test_an_empty_segment_is_no_damage() -> None:
    state, end = replay(segment_header(1, 9) + bytes(500))
    assert (end, state.replayed_records) == (64, 0)
    assert replay(b"")[1] == 64


def test_a_first_batch_that_follows_another_is_damage() -> None:
    state = LogState()
    found = Replay(state, [1])
    data = segment(number=9, previous=8)
    found.segment(data, 1, len(data))
    assert found.damaged_places == ["before 0000000000000001.log offset 64"]
    assert found.assessment.topics == {1: "before 0000000000000001.log offset 64"}


def test_tries_to_correct_records_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a long range is garbage, a start must not spend minutes on it."""
    tried: list[int] = []
    monkeypatch.setattr(replay_module, "CORRECTION_TRIES_MAX", 3)
    monkeypatch.setattr(replay_module, "corrected_record", lambda _data, at, *_: tried.append(at))
    sound = record(KIND_DELETE, bytes(8), 1)
    broken = sound[:-1] + b"?"
    data = segment(*[broken, sound] * 6)
    state = LogState(topics={1: TopicLog(1)})
    found = Replay(state, [1], flush_position=(1, len(data)))
    found.segment(data, 1, len(data))
    assert len(tried) == 3


def test_a_footer_is_gone_through_once_however_many_records_are_damaged() -> None:
    """Else a start with a damaged batch takes the square of its messages."""

    class Counted(dict[int, FooterEntry]):
        walks = 0

        def __iter__(self) -> Iterator[int]:
            self.walks += 1
            return super().__iter__()

    class Listed:
        def entries(self) -> dict[int, FooterEntry]:
            return listed

    size = 40
    listed = Counted(
        (at, FooterEntry(1, ordinal, at, 1, size, 0, 0))
        for ordinal, at in enumerate(range(144 + 60, 144 + 60 + 200 * 160, 160))
    )
    data = segment(bytes(60 + 200 * 160))
    found = Replay(LogState(topics={1: TopicLog(1)}), [1])
    found.segment(data, 1, len(data), footer=Listed())  # type: ignore[arg-type]
    assert len(found.damaged_places) > 200
    assert listed.walks == 1
