"""The command ``headgate pipeline compact``, which merges small files of the tables."""

from __future__ import annotations

import sys

import click

from headgate.cli.pipeline.common import (
    check_needed,
    folder_option,
    interruptible,
    load,
    retention_option,
)
from headgate.pipeline.options import VACUUM_HOURS, CompactOptions


@click.command("compact", short_help="Merge small files of the tables.")
@folder_option
@retention_option
@click.option("--vacuum", is_flag=True, help="Delete files that no table refers to any more.")
@click.option(
    "--vacuum-hours", metavar="N", type=click.IntRange(0), default=VACUUM_HOURS, show_default=True,
    help="Keep files that were in use within this many hours, for running queries. With 0 such a"
    " query may miss a file and must be repeated; no row is lost.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True,
    help="Print what would be done and change nothing; works while another job writes.",
)  # fmt: skip
def compact_command(
    out: str, retain_days: int | None, vacuum: bool, vacuum_hours: int, dry_run: bool
) -> None:
    """Merge the many small files of each table.

    Made for a daily schedule. Rows stay the same, except those that --retain deletes. A stream may
    run meanwhile.

    Example: headgate pipeline compact --out tables --vacuum --dry-run
    """
    check_needed("vacuum_hours", "--vacuum", is_given=vacuum)
    options = CompactOptions(out, retain_days, vacuum, vacuum_hours, dry_run)
    housekeeping = load("store.housekeeping.job")
    with interruptible():
        housekeeping.run_compact(options, sys.stderr)
