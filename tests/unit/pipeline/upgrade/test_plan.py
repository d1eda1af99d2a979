"""The files say what a folder of an earlier release lacks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType

from headgate.base.errors import InputError
from headgate.pipeline.store.delta_log import ensure_table
from headgate.pipeline.store.housekeeping.compact import compact_table
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.tables.bronze import BRONZE_SAMPLES
from headgate.pipeline.tables.catalogue import TABLES
from headgate.pipeline.tables.intervals import INTERVALS
from headgate.pipeline.upgrade.plan import (
    TablePlan,
    check_versions,
    hours_of,
    incomplete_files,
    upgrade_plan,
)
from tests.unit.pipeline.play import bronze, play
from tests.unit.pipeline.store.old_folder import old_table
from tests.unit.pipeline.upgrade.old_tables import interval_rows, old_folder


def plan_of(root: Path, name: str) -> TablePlan:
    return next(plan for plan in upgrade_plan(str(root)) if plan.name == name)


def test_columns_and_the_hours_without_them(tmp_path: Path) -> None:
    old_folder(tmp_path)
    assert [plan.name for plan in upgrade_plan(str(tmp_path))] == [*TABLES]
    plan = plan_of(tmp_path, INTERVALS.name)
    assert plan.columns == ("gaps",)
    assert len(hours_of(plan.recomputed)) == 2
    assert plan.input_bytes > 0
    assert (plan.kept, plan.small, plan.is_empty) == ((), (), False)
    assert plan_of(tmp_path, BRONZE_SAMPLES.name).is_empty
    assert plan_of(tmp_path, "attribution").is_absent


def test_a_table_that_has_its_columns_still_has_files_without_them(tmp_path: Path) -> None:
    """As after a run of this release, which adds columns and recomputes nothing."""
    old_folder(tmp_path)
    ensure_table(str(tmp_path), INTERVALS)
    plan = plan_of(tmp_path, INTERVALS.name)
    assert plan.columns == ()
    assert len(plan.recomputed) == 2


def test_files_that_were_merged_are_still_found(tmp_path: Path) -> None:
    old_folder(tmp_path, 1)
    rows = interval_rows(1).drop_columns(["gaps"])
    write_deltalake(tmp_path / INTERVALS.name, rows, mode="append")
    ensure_table(str(tmp_path), INTERVALS)
    assert len(incomplete_files(str(tmp_path), INTERVALS)) == 2
    assert plan_of(tmp_path, INTERVALS.name).small == ()
    assert compact_table(str(tmp_path), INTERVALS.name).added == 1
    assert len(incomplete_files(str(tmp_path), INTERVALS)) == 1


def test_bronze_is_never_recomputed(tmp_path: Path) -> None:
    old_table(tmp_path, BRONZE_SAMPLES, ["evidence"], bronze(play(4)))
    plan = plan_of(tmp_path, BRONZE_SAMPLES.name)
    assert (plan.columns, plan.recomputed, plan.kept) == (("evidence",), (), ())
    ensure_table(str(tmp_path), BRONZE_SAMPLES)
    assert plan_of(tmp_path, BRONZE_SAMPLES.name).is_empty


def test_hours_whose_telemetry_was_dropped_stay(tmp_path: Path) -> None:
    old_folder(tmp_path, 30)
    assert len(plan_of(tmp_path, INTERVALS.name).recomputed) == 30
    drop_before(str(tmp_path), 2)
    plan = plan_of(tmp_path, INTERVALS.name)
    assert plan.recomputed == ()


def test_hours_whose_source_has_no_rows_stay(tmp_path: Path) -> None:
    """Whatever deleted them: computed anew, the hour would be empty."""
    old_folder(tmp_path)
    write_deltalake(tmp_path / INTERVALS.name, late_rows(), mode="append")
    plan = plan_of(tmp_path, INTERVALS.name)
    assert (len(plan.recomputed), len(plan.kept)) == (2, 1)


def late_rows() -> pa.Table:
    return interval_rows(10).slice(9).drop_columns(["gaps"])


def test_what_a_newer_release_wrote_is_refused(tmp_path: Path) -> None:
    old_folder(tmp_path)
    check_versions(str(tmp_path))
    DeltaTable(tmp_path / INTERVALS.name).alter.add_columns(
        [Field("of_tomorrow", PrimitiveType("long"))]
    )
    with pytest.raises(InputError) as found:
        check_versions(str(tmp_path))
    assert str(found.value) == (
        f"{tmp_path / INTERVALS.name} has the column of_tomorrow, of a newer release: upgrade the "
        "folder with that one"
    )
