"""A checkpoint for the space behind it: worth its bytes, overdue, or on a full disk."""

from __future__ import annotations

import pytest

from headgate.base.units import KIB, NS_PER_S
from headgate.fs import MemFs
from headgate.ledger import LedgerSettings
from headgate.ledger.space.early_checkpoint import WAIT_NS_MAX, EarlyCheckpoint
from tests.unit.ledger.space.test_maintenance import drain
from tests.unit.ledger.support import append, open_log

SEGMENT = 64 * KIB


@pytest.mark.parametrize(
    ("freeable_bytes", "checkpoint_bytes", "is_full", "is_wanted"),
    [
        pytest.param(0, 0, True, False, id="nothing to free"),
        pytest.param(SEGMENT // 2, 1_000, False, True, id="half a segment"),
        pytest.param(SEGMENT // 2 - 1, 1_000, False, False, id="less"),
        pytest.param(1, 1_000, True, True, id="any byte on a full disk"),
        pytest.param(3 * SEGMENT, SEGMENT, False, False, id="less than four checkpoints"),
        pytest.param(4 * SEGMENT, SEGMENT, False, True, id="four checkpoints"),
    ],
)
def test_what_is_worth_a_checkpoint(
    freeable_bytes: int, checkpoint_bytes: int, is_full: bool, is_wanted: bool
) -> None:
    early = EarlyCheckpoint(SEGMENT)
    assert early.is_wanted(freeable_bytes, checkpoint_bytes, 5, is_full=is_full) is is_wanted


def test_small_gains_wait_for_a_while() -> None:
    early = EarlyCheckpoint(SEGMENT)
    assert not early.is_wanted(9, 9, 100, is_full=False)
    assert not early.is_wanted(9, 9, 99 + WAIT_NS_MAX, is_full=False)
    assert early.is_wanted(9, 9, 100 + WAIT_NS_MAX, is_full=False)
    early.begun()
    assert not early.is_wanted(9, 9, 101 + WAIT_NS_MAX, is_full=False)
    assert not early.is_wanted(0, 9, 101 + 2 * WAIT_NS_MAX, is_full=False)
    assert not early.is_wanted(9, 9, 102 + 2 * WAIT_NS_MAX, is_full=False)


def test_large_checkpoints_are_rare_although_segments_die_one_by_one() -> None:
    """The checkpoint has 2,000 topics, and segments are as large as a checkpoint: at one for each
    dead segment, checkpoints would be half of what is written."""
    fs = MemFs()
    topics = list(range(1, 2_001))
    settings = LedgerSettings(segment_bytes=256 * KIB, slice_items=5_000)
    log = open_log(fs, topics=topics, settings=settings)
    for number in topics:
        append(log, number, b"first")
    busy = log.topic(1)
    written_bytes = checkpoint_bytes = 0
    for second in range(200):
        log.note_time(second * NS_PER_S // 100)
        append(log, 1, bytes(50_000))
        written_bytes += 50_000
        log.stage_trim(busy, busy.end)
        drain(log)
        checkpoint_bytes = max(checkpoint_bytes, log.space_use().checkpoint_bytes)
    assert checkpoint_bytes > 100_000
    assert log.statistics().checkpoints * checkpoint_bytes <= written_bytes / 4 + checkpoint_bytes
    log.note_time(60 * NS_PER_S)
    drain(log)
    assert log.space_use().dead_bytes == 0
