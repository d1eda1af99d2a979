"""A rewritten segment: readable by its footer and by its records, and damage stays visible."""

from __future__ import annotations

import pytest

from headgate.base.errors import CorruptionError
from headgate.fs import MemFs
from headgate.ledger import CommitLog
from headgate.ledger.format.records import SEGMENT_HEADER_BYTES, segment_of_checkpoint
from headgate.ledger.index.footer import read_footer
from headgate.ledger.recovery.batch_head import first_head
from headgate.ledger.tools.dump import DumpChoice, dump_log
from headgate.ledger.tools.verify import verify_log
from tests.unit.ledger.support import (
    DIRECTORY,
    SPARSE,
    bodies_of,
    check_space,
    content,
    facts,
    open_log,
    overwrite,
    path,
    sparse_log,
)


def rewritten_log(fs: MemFs) -> tuple[CommitLog, int]:
    log = sparse_log(fs)
    before = facts(log)
    log.run_rewriting()
    assert log.statistics().segments_rewritten > 2
    assert facts(log) == before
    return log, rewritten_segment(fs)


def rewritten_segment(fs: MemFs) -> int:
    for name in fs.list_directory(DIRECTORY):
        if name.endswith(".log"):
            segment = int(name[:16], 16)
            head = first_head(content(fs, f"{DIRECTORY}/{name}")[:200], segment)
            if head is not None and head.is_rewritten:
                return segment
    raise AssertionError("no segment is rewritten")


def test_entries_keep_bodies_times_ids_and_ledgers() -> None:
    fs = MemFs()
    log, _ = rewritten_log(fs)
    check_space(log)
    before = facts(log)
    log.run_maintenance()  # deletes the others
    assert facts(log) == before
    again = open_log(fs.crash_clone(), settings=SPARSE)
    assert facts(again) == before
    check_space(again)


def test_the_file_is_found_by_its_records_if_the_footer_is_damaged() -> None:
    fs = MemFs()
    log, segment = rewritten_log(fs)
    log.run_maintenance()
    before = facts(log)
    left = fs.crash_clone()
    overwrite(left, path(segment), len(content(left, path(segment))) - 3, b"\xff\xff")
    again = open_log(left, settings=SPARSE)
    assert facts(again) == before
    assert not again.topic(1).damage
    names = {1: "one", 2: "two"}
    damage = verify_log(fs.crash_clone(), DIRECTORY, names).damage
    assert damage == []


def test_the_entries_are_those_bytes_that_were_published() -> None:
    fs = MemFs()
    log = sparse_log(fs)
    old = b"".join(content(fs, path(segment)) for segment in log._state.segments)
    log.run_rewriting()
    segment = rewritten_segment(fs)
    data = content(fs, path(segment))
    file = fs.open(path(segment))
    footer = read_footer(file, segment, file.size())
    assert footer is not None
    entries = footer.entries()
    assert len(entries) > 3
    for offset, entry in entries.items():
        record = data[offset : offset + 44 + entry.size_bytes]
        assert record in old


def test_a_damaged_entry_stays_a_damaged_entry() -> None:
    fs = MemFs()
    log = sparse_log(fs)
    plan = log.locate(log.topic(1), 2, 1, 1)
    overwrite(fs, path(plan.segment), plan.offset + plan.needed_bytes - 2, b"\xff")
    log.run_rewriting()
    moved = log.locate(log.topic(1), 2, 1, 1)
    assert moved.version == 1 or moved.segment != plan.segment
    with pytest.raises(CorruptionError, match=r"entry 2 of topic number 1.*checksum"):
        log.read(moved)
    log.run_maintenance()  # deletes the others
    (finding,) = verify_log(fs.crash_clone(), DIRECTORY, {1: "one", 2: "two"}).damage
    assert [(cost.topic, cost.first, cost.stop) for cost in finding.costs] == [(1, 2, 3)]


def test_dump_lists_what_the_file_holds() -> None:
    fs = MemFs()
    log, segment = rewritten_log(fs)
    rows = list(dump_log(fs, DIRECTORY, DumpChoice(segment=segment, with_bodies=True)))
    assert rows[0]["kind"] == "batch"
    assert rows[0]["isRewritten"] is True
    entries = [row for row in rows if row["kind"] == "entry"]
    assert not [row for row in rows if "damage" in row]
    for row in entries:
        number, ordinal = row["topicNumber"], row["ordinal"]
        assert isinstance(number, int)
        assert isinstance(ordinal, int)
        position = log.topic(number).position(ordinal)
        assert row["messageId"] == f"{position.ledger_id}:{position.entry_id}"


def test_without_any_checkpoint_the_messages_are_there_and_cursors_are_doubted() -> None:
    fs = MemFs()
    log, _ = rewritten_log(fs)
    log.run_maintenance()
    bodies = {number: bodies_of(log, number) for number in (1, 2)}
    left = fs.crash_clone()
    for name in left.list_directory(DIRECTORY):
        if segment_of_checkpoint(name) is not None:
            left.remove(f"{DIRECTORY}/{name}")
    again = open_log(left, settings=SPARSE)
    for number, expected in bodies.items():
        assert bodies_of(again, number)[-len(expected) :] == expected
        assert "is rewritten: a subscription of this topic may" in again.topic(number).damage


def test_a_crash_before_the_others_are_deleted_does_no_harm() -> None:
    fs = MemFs()
    log, segment = rewritten_log(fs)
    before = facts(log)
    left = fs.crash_clone()
    assert len([n for n in left.list_directory(DIRECTORY) if n.endswith(".log")]) > 5
    again = open_log(left, settings=SPARSE)
    assert facts(again) == before
    check_space(again)
    again.run_maintenance()
    assert facts(again) == before
    names = [n for n in left.list_directory(DIRECTORY) if n.endswith(".log")]
    assert min(int(name[:16], 16) for name in names) == segment


def test_the_head_names_the_batches_that_it_replaces() -> None:
    fs = MemFs()
    log = sparse_log(fs)
    first = first_head(content(fs, path(1)), 1)
    assert first is not None
    log.run_rewriting()
    segment = rewritten_segment(fs)
    head = first_head(content(fs, path(segment)), segment)
    after = first_head(content(fs, path(segment + 1)), segment + 1)
    assert head is not None
    assert after is not None
    assert (head.previous, head.number) == (first.previous, after.previous)
    assert head.size_bytes + SEGMENT_HEADER_BYTES == log._state.segments[segment].data_end
