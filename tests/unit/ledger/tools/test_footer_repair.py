"""A damaged footer is written anew from the blocks and records that are sound, and only then."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from headgate.base.ack_set import AckSet
from headgate.fs import FaultyFs, MemFs
from headgate.ledger import CommitLog
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, SEGMENT_HEADER_BYTES, segment_name
from headgate.ledger.index.footer import TRAILER_BYTES, Footer, read_footer
from headgate.ledger.tools.repair import repair_log
from headgate.ledger.tools.verify import verify_log
from tests.sim.test_ledger_power_cuts import PowerCutError, cut_at
from tests.unit.ledger.space.test_hole_punching import SETTINGS as PUNCHING
from tests.unit.ledger.space.test_hole_punching import filled, give_up
from tests.unit.ledger.space.test_maintenance import drain
from tests.unit.ledger.space.test_segment_copy import rewritten_log
from tests.unit.ledger.support import (
    DIRECTORY,
    append,
    bodies_of,
    content,
    footer_without_blocks,
    open_log,
    overwrite,
    path,
    times_of,
)
from tests.unit.ledger.support import SPARSE as REWRITING
from tests.unit.ledger.tools.test_verify import NAMES, TINY, check_costs, flipped, verify

ASIDE = "/aside"
MANY = replace(TINY, segment_bytes=65536, extent_bytes=4096, checkpoint_bytes=1 << 20)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def log_with_blocks() -> MemFs:
    """A sealed segment before a checkpoint with several blocks of topic 1, and some of topic 2."""
    fs = MemFs()
    log = open_log(fs, settings=MANY)
    log.create_cursor(1, "reader", AckSet(), {})
    for turn in range(16):
        append(log, 1, *[b"%d of one" % at for at in range(10)], received_ms=1000 + turn)
        append(log, 2, b"of two" * 9, received_ms=1000 + turn)
    append(log, 1, b"x" * 40_000)
    append(log, 2, b"y" * 40_000)
    log.checkpoint()
    log.run_maintenance()
    return fs.crash_clone()


def footer_of(fs: MemFs, segment: int = 1) -> Footer:
    file = fs.open(path(segment))
    footer = read_footer(file, segment, file.size())
    assert footer is not None
    return footer


def facts(log: CommitLog) -> object:
    return [
        (bodies_of(log, number), times_of(log, number), log.topic(number).damage)
        for number in NAMES
    ]


def repaired(fs: MemFs) -> None:
    """Repair, and find nothing damaged afterwards."""
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert repairs
    assert report.damage == []


def test_each_damaged_byte_of_a_footer_is_repaired() -> None:
    whole = log_with_blocks()
    name, data = segment_name(1), content(whole, path())
    end = footer_of(whole).data_end
    assert len(footer_of(whole).runs[0].columns.offsets) > 128
    seen = facts(open_log(whole.crash_clone(), settings=MANY))
    places = [*range(end, len(data) - 200, 911), *range(len(data) - 200, len(data), 5)]
    for at in places:
        fs = flipped(whole, name, at, 0xFF)
        assert verify(fs).damage
        repaired(fs)
        assert content(fs, path()) == data, at
        assert content(fs, f"{ASIDE}/{name}.offset-{end}")[at - end] == data[at] ^ 0xFF
        assert facts(open_log(fs, settings=MANY)) == seen


@pytest.mark.parametrize("kept", [4, 5, 900])
def test_a_range_of_zeros_in_a_footer_is_repaired(kept: int) -> None:
    whole = log_with_blocks()
    data, end = content(whole, path()), footer_of(whole).data_end
    seen = facts(open_log(whole.crash_clone(), settings=MANY))
    fs = whole.crash_clone()
    overwrite(fs, path(), end + kept, bytes(len(data) - end - kept - TRAILER_BYTES))
    repaired(fs)
    assert content(fs, path()) == data
    assert facts(open_log(fs, settings=MANY)) == seen


def test_the_footer_of_a_rewritten_segment_is_repaired() -> None:
    fs = MemFs()
    log, segment = rewritten_log(fs)
    log.run_maintenance()
    whole = fs.crash_clone()
    seen = facts(open_log(whole.crash_clone(), settings=REWRITING))
    data, end = content(whole, path(segment)), footer_of(whole, segment).data_end
    for at in range(end, len(data), 13):
        fs = flipped(whole, segment_name(segment), at, 0xFF)
        repaired(fs)
        assert content(fs, path(segment)) == data
        assert facts(open_log(fs, settings=REWRITING)) == seen


def punched() -> tuple[MemFs, int]:
    """A log with holes between the messages of topics 2 and 3, and a segment that has some."""
    fs = MemFs()
    log = filled(fs)
    give_up(log)
    drain(log)
    log.close()
    return fs, log.locate(log.topic(2), 5, 1, 1).segment


THREE = {1: "one", 2: "two", 3: "three"}


def test_the_footer_of_a_segment_with_holes_is_repaired_from_its_blocks() -> None:
    whole, segment = punched()
    log = open_log(whole.crash_clone(), topics=THREE, settings=PUNCHING)
    seen = [bodies_of(log, number) for number in (2, 3)]
    data, footer = content(whole, path(segment)), footer_of(whole, segment)
    assert bytes(4096) in data[: footer.data_end]
    for at in [*range(footer.data_end, len(data), 97), *range(len(data) - 90, len(data), 9)]:
        fs = flipped(whole, segment_name(segment), at, 0xFF)
        before = verify_log(fs, DIRECTORY, THREE)
        start = open_log(fs.crash_clone(), topics=THREE, settings=PUNCHING)
        check_costs(before, start, THREE)
        repairs, report = repair_log(fs, DIRECTORY, f"{ASIDE}-{at}", THREE)
        assert repairs, at
        assert report.damage == [], at
        log = open_log(fs, topics=THREE, settings=PUNCHING)
        assert [bodies_of(log, number) for number in (2, 3)] == seen


def test_a_damaged_record_is_repaired_before_the_footer_that_needs_it() -> None:
    whole = log_with_blocks()
    data, footer = content(whole, path()), footer_of(whole)
    fs = whole.crash_clone()
    at = footer.runs[0].columns.offsets[5] + ENTRY_HEAD_BYTES - 20  # in its ordinal
    overwrite(fs, path(), at, bytes([data[at] ^ 1]))
    overwrite(fs, path(), footer.data_end, b"?" * 9)
    overwrite(fs, path(), len(data) - TRAILER_BYTES - 40, b"?" * 9)
    assert not any(mend.to_end for finding in verify(fs).damage for mend in finding.mends)
    repaired(fs)
    assert content(fs, path()) == data


def test_what_no_source_tells_is_not_left_out() -> None:
    """A message whose record and whose block are damaged stays a loss that verify names."""
    whole = log_with_blocks()
    data, footer = content(whole, path()), footer_of(whole)
    fs = whole.crash_clone()
    offset = footer.runs[0].columns.offsets[5]
    overwrite(fs, path(), offset + ENTRY_HEAD_BYTES, b"????")
    overwrite(fs, path(), footer.data_end, b"?" * 9)
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert repairs == []
    assert content(fs, path())[:SEGMENT_HEADER_BYTES] == data[:SEGMENT_HEADER_BYTES]
    assert [(c.topic, c.first, c.stop) for f in report.damage for c in f.costs] == [(1, 5, 6)]
    check_costs(report, open_log(fs, settings=MANY))


def test_a_damaged_body_does_not_keep_the_directory_from_being_written_anew() -> None:
    whole = log_with_blocks()
    data, footer = content(whole, path()), footer_of(whole)
    fs = whole.crash_clone()
    offset = footer.runs[0].columns.offsets[5]
    overwrite(fs, path(), offset + ENTRY_HEAD_BYTES, b"????")
    overwrite(fs, path(), len(data) - TRAILER_BYTES - 40, b"?" * 9)
    (repair,), report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert repair.mend.to_end
    assert content(fs, path())[footer.data_end :] == data[footer.data_end :]
    assert [(c.topic, c.first, c.stop) for f in report.damage for c in f.costs] == [(1, 5, 6)]


def test_a_footer_of_the_version_before_becomes_one_of_this_version() -> None:
    fs = log_with_blocks()
    log = open_log(fs.crash_clone(), settings=MANY)
    seen = facts(log)
    footer = footer_of(fs)
    old = footer_without_blocks(1, footer.data_end, [log.topic(1), log.topic(2)])
    data = content(fs, path())[: footer.data_end] + b"".join(old)
    file = fs.create(path())
    file.write_at(0, [data])
    file.sync_data()
    assert verify(fs).damage == []
    overwrite(fs, path(), footer.data_end + 30, b"????")
    repaired(fs)
    assert footer_of(fs) == footer
    assert facts(open_log(fs, settings=MANY)) == seen


def test_a_power_cut_at_any_step_leaves_the_copy_and_a_second_repair_finishes() -> None:
    whole = log_with_blocks()
    name, data = segment_name(1), content(whole, path())
    end = footer_of(whole).data_end
    before = flipped(whole, name, end + 20, 0xFF)
    probe = FaultyFs(before.crash_clone())
    repair_log(probe, DIRECTORY, ASIDE, NAMES)
    for step in range(probe.operations_count):
        cut = cut_at(step)
        cut.inner = before.crash_clone()
        with pytest.raises(PowerCutError):
            repair_log(cut, DIRECTORY, ASIDE, NAMES)
        assert isinstance(cut.inner, MemFs)
        fs = cut.inner.crash_clone(step)
        now = content(fs, path())
        assert now in (data, content(before, path()))
        if now == data:
            assert content(fs, f"{ASIDE}/{name}.offset-{end}") == content(before, path())[end:]
        repair_log(fs, DIRECTORY, ASIDE, NAMES)
        assert verify(fs).damage == []
        assert content(fs, path()) == data
