"""What a check and a repair make of segment files with wrong names."""

from __future__ import annotations

import pytest

from headgate.fs import FaultyFs, MemFs
from headgate.ledger.tools.dump import DumpChoice, dump_log
from headgate.ledger.tools.repair import plan_repairs, repair_log
from tests.sim.test_ledger_power_cuts import PowerCutError, cut_at
from tests.unit.ledger.recovery.test_file_names import BODIES, log_of_segments, swap
from tests.unit.ledger.support import DIRECTORY, bodies_of, content, open_log, path
from tests.unit.ledger.tools.test_verify import NAMES, verify

ASIDE = "/aside"


def test_a_repair_gives_swapped_files_their_names_back() -> None:
    whole = log_of_segments(closed=False)
    fs = whole.crash_clone()
    swap(fs, 1, 2)
    swap(fs, 2, 3)
    report = verify(fs)
    assert [finding.refuses_start for finding in report.damage] == [True] * 3
    assert not any(finding.costs for finding in report.damage)
    assert report.entries == verify(whole).entries == len(BODIES)
    assert list(dump_log(fs, DIRECTORY, DumpChoice())) == list(
        dump_log(whole, DIRECTORY, DumpChoice())
    )
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert report.damage == []
    assert len(repairs) == 6
    assert not any(repair.copy for repair in repairs)
    for segment in (1, 2, 3):
        assert content(fs, path(segment)) == content(whole, path(segment))
    assert bodies_of(open_log(fs), 1) == BODIES


def test_a_file_with_a_free_name_is_renamed_at_once() -> None:
    fs = log_of_segments(closed=True)
    fs.rename(path(2), path(9))
    (repair,) = plan_repairs(fs, DIRECTORY, verify(fs))
    assert repair.mend.what == "rename it to 0000000000000002.log"
    repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert bodies_of(open_log(fs), 1) == BODIES


def test_a_segment_that_was_copied_over_another_one_is_moved_away() -> None:
    fs = log_of_segments(closed=False)
    first = content(fs, path(1))
    file = fs.create(path(2))
    file.write_at(0, [first])
    file.sync_data()
    fs.sync_directory(DIRECTORY)
    finding = next(found for found in verify(fs).damage if found.file == "0000000000000002.log")
    assert "0000000000000001.log is a file of that segment, too" in finding.what
    repairs, report = repair_log(fs, DIRECTORY, ASIDE, NAMES)
    assert repairs[0].mend.what == "move it away"
    assert not any(finding.refuses_start for finding in report.damage)
    assert content(fs, f"{ASIDE}/0000000000000002.log") == first
    log = open_log(fs)
    assert log.topic(1).damage


def test_an_interrupted_repair_is_continued() -> None:
    before = log_of_segments(closed=False)
    swap(before, 1, 2)
    probe = FaultyFs(before.crash_clone())
    assert len(repair_log(probe, DIRECTORY, ASIDE, NAMES)[0]) == 4
    for step in range(probe.operations_count):
        cut = cut_at(step)
        cut.inner = before.crash_clone()
        with pytest.raises(PowerCutError):
            repair_log(cut, DIRECTORY, ASIDE, NAMES)
        assert isinstance(cut.inner, MemFs)
        fs = cut.inner.crash_clone(step)
        repair_log(fs, DIRECTORY, ASIDE, NAMES)
        assert verify(fs).damage == []
        assert bodies_of(open_log(fs), 1) == BODIES
