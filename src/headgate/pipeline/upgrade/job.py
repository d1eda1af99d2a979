"""``headgate pipeline upgrade``: brings the tables of a folder to this release."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TextIO

from pyspark.sql import SparkSession

from headgate.pipeline.derived.catalogue import DERIVED
from headgate.pipeline.job_session import query_session
from headgate.pipeline.jobs import create_tables
from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import UpgradeOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.refresh import recompute_hours, refresh
from headgate.pipeline.store.delta_log import LAYOUT_VERSION
from headgate.pipeline.store.housekeeping.compact import compact
from headgate.pipeline.store.housekeeping.job import PATIENCE_S
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.store.storage_failures import plain_storage_failures
from headgate.pipeline.store.table_leases import fill_leases, patient_lease
from headgate.pipeline.upgrade.plan import (
    TablePlan,
    check_versions,
    computable_hours,
    hours_of,
    incomplete_files,
    upgrade_plan,
)
from headgate.pipeline.upgrade.plan_text import plan_lines

Session = Callable[[str, Progress], AbstractContextManager[SparkSession]]
"""A session of Spark over a folder."""


def run_upgrade(
    options: UpgradeOptions, out: TextIO, err: TextIO, *, session: Session | None = None
) -> None:
    """Add what the tables lack, recompute rows of earlier releases, and merge their small files.

    The plan goes to ``out``, progress to ``err``. A dry run changes nothing and takes no lease. The
    job holds the leases of the tables that it fills; it may be killed at any time, and the next one
    continues. ``session`` replaces Spark's start, for tests.

    Raises:
        InputError: the folder has no tables, is of a newer release, or another job fills it.
        PipelineError: a table cannot be read or written.
    """
    root, progress = resolved_root(options.out), Progress(err)
    existing_tables(options.out)
    with plain_storage_failures(_failed(root)):
        check_versions(root)
        plans = _planned(root, progress)
    todo = [plan for plan in plans if not plan.is_empty]
    if options.is_dry_run or not todo:
        for line in plan_lines(plans):
            out.write(f"{line}\n")
    if not todo:
        progress.say(f"{options.out} is up to date (layout {LAYOUT_VERSION}).")
        return
    if options.is_dry_run:
        progress.say("Nothing was changed.")
        return

    def start(name: str, said: Progress) -> AbstractContextManager[SparkSession]:
        return query_session(root, name, said, options.spark)

    with fill_leases(root, progress.say):
        _upgrade(root, todo, progress, start if session is None else session)
    progress.say(f"{options.out} is up to date (layout {LAYOUT_VERSION}).")


def _failed(root: str) -> str:
    return f"folder {root} cannot be upgraded"


def _planned(root: str, progress: Progress) -> list[TablePlan]:
    with progress.stage(f"Looking at the tables of {root}"):
        return upgrade_plan(root)


def _upgrade(root: str, plans: list[TablePlan], progress: Progress, session: Session) -> None:
    with plain_storage_failures(_failed(root)), progress.stage("Adding tables and columns"):
        create_tables(root)
    # After the columns are added, and before rows are merged: a merged file would have them.
    if any(plan.recomputed for plan in plans):
        with session("headgate pipeline upgrade", progress) as spark:
            _recompute(spark, root, progress)
    with plain_storage_failures(_failed(root)):
        hold = partial(patient_lease, patience_s=PATIENCE_S)
        compact(root, [plan.name for plan in plans if plan.small], progress, hold=hold)


def _recompute(spark: SparkSession, root: str, progress: Progress) -> None:
    """Recompute rows that lack columns; a table is done after those that it follows from."""
    for derived in DERIVED:
        with progress.stage(f"Recomputing {derived.name}") as stage:
            # What was recomputed of its source touches rows, too; these are complete then.
            refresh(spark, root, derived, stage.on_progress)
            old = hours_of(incomplete_files(root, derived.table))
            hours = computable_hours(root, derived, old)
            recompute_hours(spark, root, derived, hours, stage.on_progress)
            stage.result = f"{len(hours):,} hours" if hours else "up to date"
            if len(hours) < len(old):
                kept = len(old) - len(hours)
                stage.result += f"; {kept:,} without telemetry stay as they are"
