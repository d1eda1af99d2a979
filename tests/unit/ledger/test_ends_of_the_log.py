"""A torn end is cut with a line, a lost one refused; forged heads."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.records import (
    BATCH,
    BATCH_MAGIC,
    BATCH_RECORD_BYTES,
    ENTRY_HEAD_BYTES,
    KIND_BATCH,
    SEGMENT_HEADER_BYTES,
    record,
)
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    bodies_of,
    content,
    open_log,
    overwrite,
    path,
)

END = f"{DIRECTORY}/{FLUSH_POSITION_NAME}"


def forged_head(stamp: int) -> bytes:
    """What a producer makes that knows the format: a head that proves a loss before it."""
    payload = BATCH.pack(BATCH_MAGIC, 900, 899, 1, 1, 1, stamp, 1, 500)
    return record(KIND_BATCH, payload, 900)


def stamp_of(data: bytes) -> int:
    return int.from_bytes(data[24:32], "little")


@pytest.mark.parametrize("torn", ["head", "body"])
@pytest.mark.parametrize("known", ["wall clock", "zero", "a copy of the segment"])
def test_a_payload_cannot_turn_a_torn_tail_into_damage(torn: str, known: str) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    append(log, 1, b"two")
    start = log._state.segments[1].data_end
    if known == "a copy of the segment":
        payload = content(fs, path())[:start]
    else:
        payload = forged_head(1_790_000_000_000 if known == "wall clock" else 0) * 3
    append(log, 1, payload)
    end = log._state.segments[1].data_end
    after = fs.crash_clone()
    after.remove(END)
    overwrite(after, path(), start if torn == "head" else end - 3, b"\xee\xee\xee")
    assert bodies_of(open_log(after), 1) == [b"one", b"two"]


def test_a_head_in_a_message_behind_a_whole_torn_head_is_not_even_looked_at() -> None:
    """Also where its producer should know the stamp."""
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    start = log._state.segments[1].data_end
    append(log, 1, forged_head(stamp_of(content(fs, path()))))
    after = fs.crash_clone()
    overwrite(after, path(), start + BATCH_RECORD_BYTES + 90, b"\xee")
    assert bodies_of(open_log(after), 1) == [b"one"]


def test_a_cut_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    start = log._state.segments[1].data_end
    append(log, 1, b"two", b"three")
    end = log._state.segments[1].data_end
    after = fs.crash_clone()
    overwrite(after, path(), end - 1, b"\xee")
    assert bodies_of(open_log(after), 1) == [b"one", b"two"]
    kept = start + BATCH_RECORD_BYTES + ENTRY_HEAD_BYTES + 3
    (line,) = caplog.messages
    assert line == (
        f"/data/0000000000000001.log: cut {end - kept} bytes behind offset {kept}, left over from "
        "batch 2 with 2 records that was being written when the broker or the machine went down: "
        "it may have held messages without a receipt, and acknowledgements and subscriptions that "
        "were not confirmed"
    )
    caplog.clear()
    open_log(after.crash_clone())
    assert not caplog.messages


def test_nothing_is_said_of_a_sound_end(caplog: pytest.LogCaptureFixture) -> None:
    fs = MemFs()
    log = open_log(fs)
    for at in range(9):
        append(log, 1, b"%d" % at * 3000)
    open_log(fs.crash_clone())
    log.close()
    open_log(fs)
    assert not caplog.messages


@pytest.mark.parametrize("loss", ["missing", "empty", "zeros"])
def test_a_lost_end_is_refused_and_named(loss: str) -> None:
    fs = MemFs()
    log = open_log(fs)
    for at in range(5):
        append(log, 1, b"%d" % at * 3000)
    last = max(log._state.segments)
    after = fs.crash_clone()
    if loss == "missing":
        after.remove(path(last))
    else:
        file = after.open(path(last), writable=True)
        file.truncate(0 if loss == "empty" else SEGMENT_HEADER_BYTES)
        file.truncate(8192)
        file.sync_data()
    what = {"missing": "is missing"}.get(loss, "is empty")
    with pytest.raises(CorruptionError, match=rf"{last:016x}\.log {what}, and batch \d+, which"):
        open_log(after)
    after.remove(END)
    assert len(bodies_of(open_log(after), 1)) < 5


@pytest.mark.parametrize("cut", ["in the middle", "between batches"])
def test_an_end_that_is_cut_short_is_damage_of_who_may_have_been_there(cut: str) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    append(log, 2, b"two")
    start = log._state.segments[1].data_end
    append(log, 1, b"three" * 300)
    log._writer.flush_position.sync()
    after = fs.crash_clone()
    file = after.open(path(), writable=True)
    file.truncate(start + (300 if cut == "in the middle" else 0))
    file.sync_data()
    for _ in range(2):
        again = open_log(after)
        assert bodies_of(again, 2) == [b"two"]
        for number in (1, 2):
            assert again.topic(number).damage.startswith("0000000000000001.log offset")
        after = after.crash_clone()


def test_a_lost_record_of_the_end_is_made_anew(caplog: pytest.LogCaptureFixture) -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    for spoil in ("missing", "zeros"):
        after = fs.crash_clone()
        if spoil == "missing":
            after.remove(END)
        else:
            overwrite(after, END, 0, bytes(8192))
        again = open_log(after)
        assert bodies_of(again, 1) == [b"one"]
        (line,) = caplog.messages
        assert line.startswith("/data/durable_end was missing or damaged and is made anew")
        caplog.clear()
        append(again, 1, b"two")
        assert bodies_of(open_log(after.crash_clone()), 1) == [b"one", b"two"]
        assert not caplog.messages


def test_an_older_record_of_the_end_harms_nothing() -> None:
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"one")
    old = content(fs, END)
    for at in range(9):
        append(log, 1, b"%d" % at * 3000)
    log.close()
    overwrite(fs, END, 0, old)
    assert len(bodies_of(open_log(fs), 1)) == 10


def test_an_end_in_a_segment_that_is_deleted_is_proven_by_the_checkpoint() -> None:
    fs = MemFs()
    log = open_log(fs)
    topic = append(log, 1, b"one")
    log.stage_trim(topic, 1)
    append(log, 1)
    log.close()
    log = open_log(fs)
    log.run_maintenance()
    assert not log._state.segments
    assert open_log(fs.crash_clone()).topic(1).end == 1
