"""``headgate pipeline compact``: housekeeping of a folder, also while a job fills its tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, TextIO

from headgate.pipeline.location import resolved_root
from headgate.pipeline.options import CompactOptions
from headgate.pipeline.progress import Progress
from headgate.pipeline.store.delta_log import check_layout
from headgate.pipeline.store.housekeeping.compact import compact
from headgate.pipeline.store.housekeeping.retention import drop_before
from headgate.pipeline.store.housekeeping.vacuum import vacuum
from headgate.pipeline.store.scan import existing_tables
from headgate.pipeline.store.storage_failures import plain_storage_failures
from headgate.pipeline.store.table_leases import patient_lease
from headgate.pipeline.store.table_store import store_of, table_names
from headgate.pipeline.tables.catalogue import TABLES

PATIENCE_S: Final = 30.0
"""How long the job waits for a table that a stream keeps in order; a turn of a stream is short."""

_HOLD: Final = partial(patient_lease, patience_s=PATIENCE_S)


def run_compact(options: CompactOptions, err: TextIO) -> None:
    """Drop old rows, merge small files, delete unreferenced files.

    In this order, so that no row is rewritten and then dropped. Progress goes to ``err``. The job
    holds the housekeeping lease of one table at a time. A dry run takes none, changes nothing and
    writes what it would do.

    Raises:
        InputError: the folder cannot be used, or is of another layout, or a time is not allowed.
        PipelineError: a table cannot be read or written.
    """
    root, progress = resolved_root(options.out), Progress(err)
    tables = existing_tables(options.out)
    with plain_storage_failures(f"folder {root} cannot be compacted"):
        check_layouts(root)
    with plain_storage_failures(f"folder {root} cannot be compacted"):
        _run(root, tables, options, progress)
    if options.is_dry_run:
        progress.say("Nothing was changed.")


def check_layouts(root: str) -> None:
    """Check that this version can read every table of a folder, before one is changed.

    Raises:
        InputError: one has another layout version.
    """
    store = store_of(root)
    for name in table_names(root):
        if name in TABLES:
            check_layout(store.delta(name), store.uri(name))


def _run(root: str, tables: Sequence[str], options: CompactOptions, progress: Progress) -> None:
    dry_run = options.is_dry_run
    if options.retain_days is not None:
        verb = "Looking for" if dry_run else "Dropping"
        with progress.stage(f"{verb} rows older than {options.retain_days} days") as stage:
            dropped = drop_before(root, options.retain_days, dry_run=dry_run, hold=_HOLD)
            stage.result = f"{dropped:,} files" + " would be dropped" * dry_run
    compact(root, tables, progress, dry_run=dry_run, hold=_HOLD)
    if options.vacuum:
        verb = "Looking for" if dry_run else "Deleting"
        with progress.stage(f"{verb} files unused for {options.vacuum_hours} h") as stage:
            dead = vacuum(root, options.vacuum_hours, dry_run, hold=_HOLD)
            stage.result = f"{len(dead):,} files" + " would be deleted" * dry_run
