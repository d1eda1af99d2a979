"""Segments that are missing, or whose footer is damaged."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.recovery import segment_load
from tests.unit.ledger.support import (
    append,
    bodies_of,
    footer_without_blocks,
    open_log,
    overwrite,
    path,
)


def crashed(fs: MemFs) -> MemFs:
    return fs.crash_clone()


def data_end(log: CommitLog) -> int:
    return log._state.segments[1].data_end


def test_a_missing_segment_is_damage() -> None:
    fs = MemFs()
    log = open_log(fs)
    for at in range(9):
        append(log, 1, b"%d" % at * 3000)
    assert len(log._state.segments) > 3
    damaged = crashed(fs)
    damaged.remove(path(2))
    with pytest.raises(CorruptionError, match=r"^/data/0{15}2\.log is missing: batch 2 is"):
        open_log(damaged)
    damaged.create(path(2))
    again = open_log(damaged)
    assert again.topic(1).damage.startswith("before 0000000000000003.log offset 144")
    assert again.topic(2).damage


def test_a_segment_of_holes_without_end_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a data directory from elsewhere: a terabyte of holes takes no room."""
    fs = MemFs()
    append(open_log(fs), 1, b"x" * 3000)
    monkeypatch.setattr(segment_load, "READ_BYTES_MAX", 2_000)
    with pytest.raises(
        CorruptionError, match=r"1\.log has [\d,]+ bytes of records, where 2,000 are"
    ):
        open_log(crashed(fs))


def test_a_missing_sealed_segment_is_damage() -> None:
    fs = MemFs()
    log = open_log(fs)
    for at in range(9):
        append(log, 1, b"%d" % at * 3000)
    log.close()
    fs.remove(path(1))
    again = open_log(fs)
    assert again.topic(1).damage == "entries 0 to 1 are missing: a segment file is gone"
    assert not again.topic(2).damage


def test_a_damaged_footer_is_rebuilt_from_the_records() -> None:
    fs = MemFs()
    log = open_log(fs)
    bodies = [b"%d" % at * 2000 for at in range(9)]
    for body in bodies:
        append(log, 1, body)
    log.close()
    size = fs.open(path(1)).size()
    end = data_end(log)
    for at in range(end, size, 13):
        damaged = fs.crash_clone()
        overwrite(damaged, path(1), at, b"\xee")
        again = open_log(damaged)
        assert bodies_of(again, 1) == bodies
        assert again.topic(1).bytes_before(9) == sum(map(len, bodies))


def test_footers_of_version_2_are_read() -> None:
    fs = MemFs()
    log = open_log(fs)
    bodies = [b"%d" % at * 2000 for at in range(9)]
    for at, body in enumerate(bodies):
        append(log, 1 + at % 2, body)
    log.close()
    topics = [log.topic(1), log.topic(2)]
    for info in log._state.segments.values():
        file = fs.open(path(info.segment), writable=True)
        footer = footer_without_blocks(info.segment, info.data_end, topics)
        file.truncate(info.data_end)
        file.write_at(info.data_end, footer)
        file.sync_data()
    again = open_log(fs)
    assert bodies_of(again, 1) == bodies[::2]
    assert bodies_of(again, 2) == bodies[1::2]
    for number in (1, 2):
        assert again.topic(number).totals(1) == log.topic(number).totals(1)
        assert not again.topic(number).damage
    append(again, 1, b"more")
    again.close()
    assert bodies_of(open_log(fs), 1) == [*bodies[::2], b"more"]
