"""One job fills a table, and another may keep its files in order; readers need no lease."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.store.delta_log import commit_append, commit_replace
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.lease import TableHeldError
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.store.table_leases import (
    HOUSEKEEPING_POLL_S,
    fill_leases,
    housekeeping_lease,
    patient_lease,
)
from headgate.pipeline.tables.catalogue import FILLED, TABLES
from headgate.pipeline.tables.columns import HOUR_NS
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.tables.policy_backtest import POLICY_BACKTEST
from tests.unit.pipeline.store.test_delta_log import HOUR, appended, files
from tests.unit.pipeline.store.test_lease import Time


def test_a_second_job_that_fills_the_same_tables_is_refused(tmp_path: Path) -> None:
    out = str(tmp_path / "tables")
    holder = f"another job \\(process {os.getpid()} on {socket.gethostname()}, since 2"
    with fill_leases(out), pytest.raises(TableHeldError, match=holder), fill_leases(out):
        pass
    with fill_leases(out):
        assert (tmp_path / "tables").is_dir()


def test_a_link_in_place_of_a_lease_empties_no_other_file(tmp_path: Path) -> None:
    """Others may write to the folder."""
    with fill_leases(str(tmp_path / "tables"), tables=["a"]):
        pass
    (lease,) = (tmp_path / "tables").rglob("a")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lease.unlink()
    lease.symlink_to(victim)
    leases = fill_leases(str(tmp_path / "tables"), tables=["a"])
    with pytest.raises(InputError, match="symbolic links"), leases:
        pass
    assert victim.read_text() == "mine"


def test_a_refused_job_gives_back_what_it_took(tmp_path: Path) -> None:
    out = str(tmp_path)
    with fill_leases(out, tables=["b"]):
        with pytest.raises(TableHeldError, match="table b"), fill_leases(out, tables=["a", "b"]):
            pass
        with fill_leases(out, tables=["a"]):
            pass


def test_a_backtest_and_housekeeping_run_while_a_stream_fills_the_rest(tmp_path: Path) -> None:
    """The stream goes on, too, and nothing that is alive is lost."""
    root = str(tmp_path)
    assert {*FILLED} == TABLES.keys() - {POLICY_BACKTEST.name}
    for hour in (8, 9, 10, 10):
        commit_append(root, INTERVALS, files(tmp_path, (hour, hour)), None)
    now_ns = (HOUR - 1 + 48) * HOUR_NS
    with fill_leases(root), fill_leases(root, tables=[POLICY_BACKTEST.name]):
        assert drop_before(root, 2, now_ns=now_ns) == 1
        assert compact_table(root, INTERVALS.name).replaced == 2
        assert TableScan(root, INTERVALS.name).row_count == 3
        assert commit_replace(root, INTERVALS, files(tmp_path, (10, 11)), [HOUR], None)
    assert appended(tmp_path) == [9, 11]


def test_two_jobs_do_not_keep_a_table_in_order_at_once(tmp_path: Path) -> None:
    root = str(tmp_path)
    for _ in range(2):
        commit_append(root, INTERVALS, files(tmp_path, (10, 1)), None)
    with housekeeping_lease(root, INTERVALS.name):
        with pytest.raises(TableHeldError, match="files are being merged or deleted"):
            compact_table(root, INTERVALS.name)
        with pytest.raises(TableHeldError):
            drop_before(root, 2)
        with housekeeping_lease(root, POLICY_BACKTEST.name):
            pass
    assert compact_table(root, INTERVALS.name).replaced == 2


def test_a_patient_job_waits_for_the_end_of_a_turn(tmp_path: Path) -> None:
    root, turn = str(tmp_path), housekeeping_lease(str(tmp_path), "a")
    turn.__enter__()
    time = Time((3.0, lambda: turn.__exit__(None, None, None)))
    with patient_lease(root, "a", 10, monotonic=time.monotonic, wait=time.wait):
        assert 3.0 <= time.now_s <= 3.0 + HOUSEKEEPING_POLL_S
        other = patient_lease(root, "a", 10, monotonic=time.monotonic, wait=time.wait)
        with pytest.raises(TableHeldError), other:
            pass
        assert 13.0 <= time.now_s <= 14.0


def test_a_job_of_an_earlier_release_is_respected(tmp_path: Path) -> None:
    with open(tmp_path / ".lock", "w+") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with (
            pytest.raises(InputError, match=r"process 4711\) of an earlier release; stop it"),
            fill_leases(str(tmp_path)),
        ):
            pass
    with (
        fill_leases(str(tmp_path)),
        open(tmp_path / ".lock") as lock,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Not a directory"), fill_leases(str(tmp_path / "file/x")):
        pass


def test_a_foreign_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with (
        pytest.raises(InputError, match=r"holds 'thesis.txt' and no tables"),
        fill_leases(str(tmp_path)),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    (tmp_path / "bronze_samples").mkdir()
    with fill_leases(str(tmp_path)):
        assert (tmp_path / ".leases" / "bronze_samples").exists()


def test_hidden_files_do_not_make_a_folder_foreign(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*")
    for _ in range(2):
        with fill_leases(str(tmp_path)):
            (tmp_path / "_spark.log").touch()
