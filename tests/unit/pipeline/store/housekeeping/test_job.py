"""``compact``: the order of its steps, and dry runs."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.options import CompactOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.housekeeping import job
from headgate.pipeline.store.housekeeping.job import run_compact
from headgate.pipeline.store.scan import TableScan
from headgate.pipeline.store.table_leases import (
    Hold,
    fill_leases,
    housekeeping_lease,
    patient_lease,
)
from tests.unit.pipeline.report.folder import quota_row, write


class Maintenance:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.did: list[tuple[object, ...]] = []

    def compact(
        self, root: str, tables: Iterable[str], progress: Progress, *, dry_run: bool, hold: Hold
    ) -> int:
        self.did.append(("compact", root, tuple(tables), dry_run))
        return 0

    def vacuum(self, root: str, retain_hours: int, dry_run: bool, *, hold: Hold) -> list[str]:
        self.did.append(("vacuum", root, retain_hours, dry_run))
        return ["a", "b"]

    def drop_before(self, root: str, days: int, *, dry_run: bool, hold: Hold) -> int:
        self.did.append(("drop", root, days, dry_run))
        return 3


def compacted(root: Path, **options: object) -> tuple[list[tuple[object, ...]], str]:
    maintenance, err = Maintenance(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        for act in ("compact", "vacuum", "drop_before"):
            patch.setattr(job, act, getattr(maintenance, act))
        run_compact(CompactOptions(str(root), **options), err)  # type: ignore[arg-type]
    return maintenance.did, err.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".lock").touch()
    write(tmp_path, "quota_usage", [quota_row(0)])
    return tmp_path


def test_by_default_the_job_only_compacts(root: Path) -> None:
    assert compacted(root) == ([("compact", str(root), ("quota_usage",), False)], "")


def test_retention_runs_first_and_vacuum_last(root: Path) -> None:
    did, said = compacted(root, retain_days=7, vacuum=True, vacuum_hours=5)
    assert [act[0] for act in did] == ["drop", "compact", "vacuum"]
    assert did[2] == ("vacuum", str(root), 5, False)
    assert "Dropping rows older than 7 days ... 3 files" in said
    assert "Deleting files unused for 5 h ... 2 files" in said


def test_a_dry_run_takes_no_lease(root: Path) -> None:
    with housekeeping_lease(str(root), "quota_usage"):
        did, said = compacted(root, retain_days=7, vacuum=True, is_dry_run=True)
    assert [(act[0], act[-1]) for act in did] == [
        ("drop", True),
        ("compact", True),
        ("vacuum", True),
    ]
    lines = said.splitlines()
    assert lines[0].startswith("Looking for rows older than 7 days ... 3 files would be dropped")
    assert lines[1].startswith("Looking for files unused for 24 h ... 2 files would be deleted")
    assert lines[2] == "Nothing was changed."


def test_the_job_runs_while_a_stream_fills_the_tables(root: Path) -> None:
    for _ in range(3):
        write(root, "quota_usage", [quota_row(0)])
    err = io.StringIO()
    with fill_leases(str(root)):
        options = CompactOptions(str(root), retain_days=2, vacuum=True, vacuum_hours=0)
        run_compact(options, err)
    assert "Dropping rows older than 2 days ... 4 files" in err.getvalue()
    assert TableScan(str(root), "quota_usage").row_count == 0


def test_the_job_waits_for_other_housekeeping_then_names_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "_HOLD", partial(patient_lease, patience_s=0))
    write(root, "quota_usage", [quota_row(0)])
    with (
        housekeeping_lease(str(root), "quota_usage"),
        pytest.raises(InputError, match=r"table quota_usage .* another job"),
    ):
        run_compact(CompactOptions(str(root)), io.StringIO())


def test_the_folder_must_have_tables(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tables"):
        compacted(tmp_path)
    assert list(tmp_path.iterdir()) == []
