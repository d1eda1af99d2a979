"""F3: the last batch is torn at any byte, zeroed or followed by what lay on the disk before.

A start cuts at the last good record, and what had a receipt before is there.
"""

from __future__ import annotations

import pytest

from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.format.flush_position import FLUSH_POSITION_NAME
from headgate.ledger.format.records import BATCH_MAGIC, ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    bodies_of,
    commit,
    content,
    open_log,
    overwrite,
    path,
    use_old_files,
)

PAGE_BYTES = 512
BIG = 5_000
"""Two entries of this size do not fit in one segment."""


KINDS = ["new", "old"]
"""The last segment is in a new file, or in one of a deleted segment."""


def begun(kind: str) -> tuple[MemFs, CommitLog, int]:
    """A disk, an empty topic 1 in its log, and the segment that the next batch goes to."""
    fs = MemFs()
    log = open_log(fs)
    if kind == "old":
        use_old_files(log)
    return fs, log, log.active_segment()


def crashed(fs: MemFs) -> MemFs:
    """The disk after a power cut."""
    return fs.crash_clone()


def data_end(log: CommitLog) -> int:
    """Where the content of the last segment ends."""
    return log._state.segments[log.active_segment()].data_end


@pytest.mark.parametrize("kind", KINDS)
def test_a_tail_torn_at_every_byte_is_cut_at_the_last_good_record(kind: str) -> None:
    fs, log, segment = begun(kind)
    append(log, 1, b"first")
    start = data_end(log)
    before = content(fs, path(segment))
    topic = log.topic(1)
    for body in (b"one", b"two" * 20):
        log.stage_entry(topic, 1, 1, 0, body)
    commit(log)
    end = data_end(log)
    last_record = end - ENTRY_HEAD_BYTES - 60
    whole = content(fs, path(segment))
    for cut in range(start, end):
        for rest in {bytes(end - cut), b"\xa5" * (end - cut), before[cut:end]}:
            torn = crashed(fs)
            overwrite(torn, path(segment), cut, rest)
            if rest.startswith(whole[cut:end]) or whole[cut:end] == rest:
                continue
            kept = [b"first"]
            if cut >= last_record:
                kept.append(b"one")
            again = open_log(torn)
            found = bodies_of(again, 1)
            assert found[: len(kept)] == kept
            assert found in ([b"first"], [b"first", b"one"], [b"first", b"one", b"two" * 20])
            assert len(found) <= len(kept) + (whole[cut:end].strip(b"\0") == b"")
            append(again, 1, b"next")
            assert bodies_of(open_log(torn.crash_clone()), 1) == [*found, b"next"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_stale_tail_of_another_life_is_not_content(kind: str) -> None:
    """What another file of the same number left on the blocks bears another stamp."""
    fs, log, segment = begun(kind)
    append(log, 1, b"good")
    start = data_end(log)
    old = MemFs()
    other = open_log(old, entropy=lambda size: b"\x77" * size)
    for at in range(5):
        append(other, 1, b"stale%d" % at, b"more")
    stale = content(old, path())
    torn = crashed(fs)
    overwrite(torn, path(segment), start, stale[SEGMENT_HEADER_BYTES:][:2000])
    assert bodies_of(open_log(torn), 1) == [b"good"]


def test_a_whole_segment_of_before_behind_the_tail_is_not_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An old file has sound batches of this start behind its zeros, and nothing was torn."""
    fs, log, segment = begun("old")
    append(log, 1, b"good")
    assert content(fs, path(segment)).count(BATCH_MAGIC) > 1
    again = open_log(crashed(fs))
    assert (bodies_of(again, 1), again.topic(1).damage) == ([b"good"], "")
    assert "left over from" not in caplog.text


def torn_across_segments(kind: str) -> tuple[MemFs, list[bytes], list[tuple[str, int, int]]]:
    """A log whose last batch spans segments: its disk before the batch was known to be durable,
    what it holds, and where the parts of the batch lie."""
    fs, log, last = begun(kind)
    append(log, 1, b"first")
    log._writer.flush_position.sync()
    known = content(fs, f"{DIRECTORY}/{FLUSH_POSITION_NAME}")
    start = data_end(log)
    topic = log.topic(1)
    bodies = [b"%d" % at * BIG for at in range(3)]
    for body in bodies:
        log.stage_entry(topic, 1, 1, 0, body)
    commit(log)
    left = fs.crash_clone()
    overwrite(left, f"{DIRECTORY}/{FLUSH_POSITION_NAME}", 0, known)
    ends = {s: info.data_end for s, info in log._state.segments.items() if s >= last}
    parts = [(path(s), start if s == last else 0, end) for s, end in sorted(ends.items())]
    return left, [b"first", *bodies], parts


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_several_segments_torn_in_each_is_cut_there(kind: str) -> None:
    left, bodies, parts = torn_across_segments(kind)
    assert len(parts) == 3
    for at, (name, start, end) in enumerate(parts):
        places = {start, start + 1, end - 1, *range(start, end, 211)}
        for cut in sorted(places):
            torn = left.crash_clone()
            for later, begin, stop in parts[at:]:
                first = cut if later == name else begin
                overwrite(torn, later, first, bytes(stop - first))
            again = open_log(torn)
            found = bodies_of(again, 1)
            assert found == bodies[: len(found)]
            assert 1 <= len(found) <= at + 1 + (cut == end - 1)
            append(again, 1, b"next")
            assert bodies_of(open_log(torn.crash_clone()), 1) == [*found, b"next"]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_of_the_last_batch_that_did_not_reach_the_disk(kind: str) -> None:
    """Any page of an unsynced batch may be zero while later ones are there."""
    left, bodies, parts = torn_across_segments(kind)
    name, start, end = parts[0]
    for page in range(start // PAGE_BYTES, -(-end // PAGE_BYTES)):
        torn = left.crash_clone()
        first, stop = max(page * PAGE_BYTES, start), min((page + 1) * PAGE_BYTES, end)
        overwrite(torn, name, first, bytes(stop - first))
        again = open_log(torn)
        found = [] if again.topic(1).damage else bodies_of(again, 1)
        assert found == bodies[: len(found)]
        if again.topic(1).damage == "":
            append(again, 1, b"next")
            assert bodies_of(open_log(torn.crash_clone()), 1) == [*found, b"next"]


@pytest.mark.parametrize("size", [1, 64, 4096, 100_000])
def test_a_zero_filled_tail_is_no_content(size: int) -> None:
    """Blocks that the file system gave the file and that were never written."""
    fs = MemFs()
    log = open_log(fs)
    append(log, 1, b"good", b"better")
    torn = crashed(fs)
    overwrite(torn, path(), content(torn, path()).rstrip(b"\0").__len__(), bytes(size))
    again = open_log(torn)
    assert (bodies_of(again, 1), again.topic(1).damage) == ([b"good", b"better"], "")
    append(again, 1, b"next")
    assert bodies_of(open_log(torn.crash_clone()), 1) == [b"good", b"better", b"next"]
