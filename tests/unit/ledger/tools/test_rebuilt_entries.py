"""Entries whose block of a footer is damaged: found by their records, or named as lost."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from headgate.fs import MemFs
from headgate.ledger.format.records import ENTRY_HEAD_BYTES, segment_name
from headgate.ledger.index.footer import TRAILER_BYTES, read_directory
from headgate.ledger.index.stored_run import StoredRun
from headgate.ledger.tools.findings import CostKind, Report
from headgate.ledger.tools.rebuilt_entries import rebuild_entries
from tests.unit.ledger.support import DIRECTORY, content, open_log, overwrite, path
from tests.unit.ledger.tools.test_footer_repair import MANY, footer_of, log_with_blocks
from tests.unit.ledger.tools.test_verify import check_costs, unreadable, verify


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def runs_of(fs: MemFs) -> list[StoredRun]:
    file = fs.open(path())
    directory = read_directory(file, 1, file.size())
    assert directory is not None
    return directory.runs


def offsets_of(fs: MemFs) -> list[int]:
    """Where the records of topic 1 are."""
    return list(footer_of(fs).runs[0].columns.offsets)


def losses(report: Report) -> list[tuple[int, int, int, int]]:
    """Where each loss is reported, and which entries of which topic are lost."""
    return [
        (finding.offset, cost.topic, cost.first, cost.stop)
        for finding in report.damage
        for cost in finding.costs
        if cost.kind is CostKind.LOST
    ]


def test_sound_records_give_all_entries_of_each_block() -> None:
    fs = log_with_blocks()
    run, *_ = runs_of(fs)
    assert run.blocks > 1
    columns = footer_of(fs).runs[0].columns
    for block in range(run.blocks):
        found = rebuild_entries(content(fs, path()), run, block)
        first = run.first_of(block) - run.first
        assert found.columns.offsets == columns.offsets[first : first + run.count_of(block)]
        assert found.lost == ()


@pytest.mark.parametrize("lost", [0, 5, 127, 128, 160])
def test_an_entry_without_a_sound_record_is_lost(lost: int) -> None:
    fs = log_with_blocks()
    run, *_ = runs_of(fs)
    offset = offsets_of(fs)[lost]
    overwrite(fs, path(), offset + ENTRY_HEAD_BYTES, b"??")
    for block in range(run.blocks):
        first = run.first_of(block)
        wanted = (lost,) if first <= lost < first + run.count_of(block) else ()
        assert rebuild_entries(content(fs, path()), run, block).lost == wanted


@pytest.mark.parametrize(("first", "stop"), [(0, 3), (5, 6), (5, 9), (126, 128)])
def test_verify_names_what_a_damaged_block_and_damaged_records_cost(first: int, stop: int) -> None:
    """No record tells which entries were there, so the block is named with the loss."""
    fs = log_with_blocks()
    offsets, block = offsets_of(fs), runs_of(fs)[0].place
    damaged = range(offsets[first], offsets[stop - 1] + ENTRY_HEAD_BYTES)
    overwrite(fs, path(), damaged.start, bytes(len(damaged)))
    overwrite(fs, path(), block, b"?" * 9)
    report, log = verify(fs), open_log(fs.crash_clone(), settings=MANY)
    assert unreadable(log, 1) == set(range(first, stop))
    assert (block, 1, first, stop) in losses(report)
    check_costs(report, log)


def test_a_block_elsewhere_in_the_footer_does_not_make_a_damaged_record_uncertain() -> None:
    fs = log_with_blocks()
    offset, block = offsets_of(fs)[5], runs_of(fs)[1].place
    overwrite(fs, path(), offset, bytes(ENTRY_HEAD_BYTES))
    overwrite(fs, path(), block, b"?" * 9)
    report = verify(fs)
    assert losses(report) == [(offset, 1, 5, 6)]
    check_costs(report, open_log(fs.crash_clone(), settings=MANY))


def test_a_footer_with_a_damaged_end_is_not_used_at_all() -> None:
    fs = log_with_blocks()
    offsets = offsets_of(fs)
    overwrite(fs, path(), offsets[5], bytes(offsets[7] - offsets[5]))
    overwrite(fs, path(), len(content(fs, path())) - TRAILER_BYTES + 25, b"?")
    report, log = verify(fs), open_log(fs.crash_clone(), settings=MANY)
    assert log.topic(1).damage
    assert not any("no start reads it" in finding.what for finding in report.damage)
    check_costs(report, log)


def test_a_replayed_segment_is_read_by_its_records_if_a_block_is_damaged() -> None:
    fs = log_with_blocks()
    for name in fs.list_directory(DIRECTORY):
        if "checkpoint" in name:
            fs.remove(f"{DIRECTORY}/{name}")
    overwrite(fs, path(), runs_of(fs)[0].place, b"?" * 9)
    report, log = verify(fs), open_log(fs.crash_clone(), settings=MANY)
    (finding,) = (f for f in report.damage if f.file == segment_name(1))
    assert finding.costs == []
    assert unreadable(log, 1) == set()
