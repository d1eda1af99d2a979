"""Copies by the real process: the same files as without it, and what follows when it fails."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.app.segment_copying.copy_process import IDLE_S_MAX, CopyProcess
from headgate.base.errors import StorageError
from headgate.base.units import NS_PER_S
from headgate.fs import OsFs
from headgate.ledger import CommitLog
from headgate.ledger.space.rewriting import RETRY_NS
from tests.unit.ledger.support import SPARSE, check_space, facts, open_log, sparse_log


class Case:
    """A log with segments to rewrite, and the process."""

    def __init__(self, folder: Path) -> None:
        self.now_s = 0.0
        self.digest = "as at the start"
        self.directory = str(folder / "log")
        OsFs().make_directory(self.directory)
        self.log = sparse_log(OsFs(), directory=self.directory)
        self.before = facts(self.log)
        self.process = self.use(CopyProcess(clock_s=lambda: self.now_s, digest=lambda: self.digest))

    def use(self, process: CopyProcess) -> CopyProcess:
        self.process = process
        self.log.copy_segments_with(process)
        return process

    def kill(self) -> None:
        assert self.process.process_id is not None
        os.kill(self.process.process_id, signal.SIGKILL)


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    found = Case(tmp_path)
    yield found
    found.log.close()
    found.process.close()


def files_of(directory: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(directory).glob("*.log*")}


def rewritten(log: CommitLog) -> int:
    return log.statistics().segments_rewritten


def test_the_files_are_those_of_a_copy_without_the_process(case: Case, tmp_path: Path) -> None:
    case.log.run_rewriting()
    assert rewritten(case.log) > 2
    assert facts(case.log) == case.before
    assert case.log.written_bytes().rewritten > 0
    check_space(case.log)
    other = str(tmp_path / "other")
    OsFs().make_directory(other)
    own = sparse_log(OsFs(), directory=other)
    own.run_rewriting()
    assert files_of(other) == files_of(case.directory)
    assert own.written_bytes() == case.log.written_bytes()
    own.close()


def test_what_a_start_finds_is_what_was_there(case: Case) -> None:
    case.log.run_rewriting()
    case.log.run_maintenance()
    case.log.close()
    case.log = open_log(OsFs(), settings=SPARSE, directory=case.directory)
    assert facts(case.log) == case.before


def test_a_process_that_dies_costs_one_attempt(case: Case) -> None:
    job = None
    while case.process.process_id is None:
        job = case.log.rewriting_step()
        if job is not None:
            job.run()
            case.log.finish_rewriting_job(job)
    case.kill()
    with pytest.raises(StorageError, match="the process that copies segments has ended"):
        case.log.run_rewriting()
    assert case.process.process_id is None
    case.log.run_rewriting()  # gives the attempt up
    assert rewritten(case.log) == 0
    assert not any(name.endswith(".tmp") for name in files_of(case.directory))
    assert facts(case.log) == case.before
    case.log._maintenance.now_ns += RETRY_NS + NS_PER_S
    case.log.run_rewriting()
    assert rewritten(case.log) > 2
    assert facts(case.log) == case.before


def test_a_log_that_closes_in_the_middle_ends_the_copy(case: Case) -> None:
    while case.process.process_id is None:
        job = case.log.rewriting_step()
        if job is not None:
            job.run()
            case.log.finish_rewriting_job(job)
    case.log.close()
    assert case.process.process_id is None
    assert not any(name.endswith(".tmp") for name in files_of(case.directory))
    case.log = open_log(OsFs(), settings=SPARSE, directory=case.directory)
    assert facts(case.log) == case.before


def test_an_error_of_a_copy_is_reported_and_the_process_stays(case: Case) -> None:
    segments = [*case.log._state.segments]
    with Path(case.directory, f"{segments[1]:016x}.log").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(StorageError, match="rewriting"):
        case.log.run_rewriting()
    assert case.process.process_id is not None
    case.log.run_rewriting()
    assert not any(name.endswith(".tmp") for name in files_of(case.directory))


def test_it_ends_after_a_minute_without_a_copy(case: Case) -> None:
    case.log.run_rewriting()
    first = case.process.process_id
    assert first is not None
    case.now_s = IDLE_S_MAX - 1
    case.log.rest_rewriting()
    assert case.process.process_id == first
    case.now_s = IDLE_S_MAX + 1
    case.log.rest_rewriting()
    assert case.process.process_id is None
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_it_does_not_rest_in_the_middle_of_a_copy(case: Case) -> None:
    while case.process.process_id is None:
        job = case.log.rewriting_step()
        if job is not None:
            job.run()
            case.log.finish_rewriting_job(job)
    case.now_s = 10 * IDLE_S_MAX
    case.log.rest_rewriting()
    case.log.run_rewriting()
    assert rewritten(case.log) > 2


@pytest.mark.parametrize(
    "command",
    [
        ("/nowhere/python",),
        (sys.executable, "-c", "pass"),
    ],
)
def test_without_a_process_the_copy_is_made_here(
    case: Case, command: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    case.use(CopyProcess(command))
    with caplog.at_level(logging.WARNING):
        case.log.run_rewriting()
    assert rewritten(case.log) > 2
    assert facts(case.log) == case.before
    (line,) = {record.getMessage() for record in caplog.records}
    assert line.startswith("segments are rewritten in the broker's own process")
    assert len(caplog.records) == 1


def test_code_that_changed_since_the_start_is_not_run(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    case.digest = "of another version"
    case.log.run_rewriting()
    assert rewritten(case.log) > 2
    assert case.process.process_id is None
    assert "have changed since the broker started" in caplog.text
