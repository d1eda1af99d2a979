"""Runs of ``headgate pipeline upgrade`` that need no Spark, and one that is killed before it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import InputError
from headgate.pipeline.jobs import create_tables
from headgate.pipeline.options import UpgradeOptions
from headgate.pipeline.store.lease import TableHeldError
from headgate.pipeline.store.table_leases import fill_leases
from headgate.pipeline.store.table_store import table_names
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.upgrade.job import run_upgrade
from headgate.pipeline.upgrade.plan import upgrade_plan
from tests.unit.pipeline.play import bronze, play
from tests.unit.pipeline.store.old_folder import old_table
from tests.unit.pipeline.upgrade.old_tables import old_folder


class KilledError(BaseException):
    """The job ends at once."""


@contextmanager
def killed(*_: Any) -> Iterator[Any]:
    raise KilledError
    yield


def upgrade(root: Path, **more: Any) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    run_upgrade(UpgradeOptions(str(root), **more), out, err, session=killed)
    return out.getvalue(), err.getvalue()


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    old_folder(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    out, err = upgrade(tmp_path, is_dry_run=True)
    assert "intervals            add 1 column: gaps\n" in out
    assert "intervals            recompute 2 hours: replace 2 files (" in out
    assert "attribution          create the table\n" in out
    assert "bronze_samples       up to date\n" in out
    assert err.endswith("Nothing was changed.\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_without_old_rows_no_spark_is_needed(tmp_path: Path) -> None:
    old_table(tmp_path, BRONZE_SAMPLES, ["evidence"], bronze(play(4)))
    out, err = upgrade(tmp_path)
    assert out == ""
    assert err.endswith(f"{tmp_path} is up to date (layout 1).\n")
    assert {*table_names(str(tmp_path))} == {*TABLES}
    assert all(plan.is_empty for plan in upgrade_plan(str(tmp_path)))


def test_a_folder_that_is_up_to_date_says_so(tmp_path: Path) -> None:
    create_tables(str(tmp_path))
    out, err = upgrade(tmp_path)
    assert out.splitlines() == [f"{name:<19}  up to date" for name in TABLES]
    assert err.endswith(f"{tmp_path} is up to date (layout 1).\n")


def test_a_job_that_was_killed_is_continued(tmp_path: Path) -> None:
    """Before Spark it has added tables and columns; the old rows are still found."""
    old_folder(tmp_path)
    for _ in range(2):
        with pytest.raises(KilledError):
            upgrade(tmp_path)
    plans = {plan.name: plan for plan in upgrade_plan(str(tmp_path))}
    assert plans["intervals"].columns == ()
    assert len(plans["intervals"].recomputed) == 2
    assert not plans["attribution"].is_absent


def test_beside_a_job_that_fills_the_tables_it_is_refused(tmp_path: Path) -> None:
    old_folder(tmp_path)
    with fill_leases(str(tmp_path)):
        assert upgrade(tmp_path, is_dry_run=True)[0]
        with pytest.raises(TableHeldError):
            upgrade(tmp_path)


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tables of this pipeline"):
        upgrade(tmp_path)
