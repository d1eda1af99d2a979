"""Log lines about what a start found."""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.format.records import (
    BATCH_RECORD_BYTES,
    ENTRY_HEAD_BYTES,
    RECORD_VERSION,
)
from tests.unit.ledger.support import (
    append,
    bodies_of,
    content,
    open_log,
    overwrite,
    path,
)


def crashed(fs: MemFs) -> MemFs:
    return fs.crash_clone()


def data_end(log: CommitLog) -> int:
    return log._state.segments[1].data_end


def test_every_flipped_byte_of_the_records_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one", b"two")
    append(log, 1, b"three")
    append(log, 1, b"four")
    good = content(fs, path())
    last = data_end(log) - BATCH_RECORD_BYTES - ENTRY_HEAD_BYTES - 4
    for at in range(data_end(log)):
        damaged = crashed(fs)
        overwrite(damaged, path(), at, bytes([good[at] ^ 0x40]))
        caplog.clear()
        again = open_log(damaged)
        topic = again.topic(1)
        assert not again.topic(2).damage
        if at >= last:
            assert bodies_of(again, 1)[:3] == [b"one", b"two", b"three"]
            assert "cut " in caplog.text or "corrected" in caplog.text
        elif topic.damage:
            assert "0000000000000001.log offset" in topic.damage
            assert topic.end == 4
            assert len(topic.lost) == 1
            assert "is damaged in 1 places: 0000000000000001.log offset" in caplog.text
        else:
            assert bodies_of(again, 1) == [b"one", b"two", b"three", b"four"]
            assert "corrected one flipped bit in each of 1 places" in caplog.text


def test_an_entry_that_is_lost_is_not_called_corrected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    version_at = data_end(log) + BATCH_RECORD_BYTES + 9
    append(log, 1, b"two")
    append(log, 1, b"three")
    damaged = crashed(fs)
    overwrite(damaged, path(), version_at, bytes([RECORD_VERSION ^ 1]))
    assert open_log(damaged).topic(1).damage.endswith("is damaged: entry 1 is lost")
    assert "corrected" not in caplog.text
