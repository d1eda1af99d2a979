"""``headgate pipeline compact``: fewer files, and no more history than wanted."""

from __future__ import annotations

import sys

import click

from headgate.cli.pipeline.common import check_needed, folder_option, interruptible, load
from headgate.pipeline.options import RETAIN_DAYS_MIN, VACUUM_HOURS, CompactOptions


@click.command("compact", short_help="Tidy up the folder of the tables.")
@folder_option
@click.option(
    "--retain", "retain_days", metavar="DAYS", type=click.IntRange(RETAIN_DAYS_MIN),
    help="Forget rows that are older than so many days; without it none are.",
)  # fmt: skip
@click.option("--vacuum", is_flag=True, help="Delete files that no table refers to any more.")
@click.option(
    "--vacuum-hours", metavar="N", type=click.IntRange(0), default=VACUUM_HOURS, show_default=True,
    help="Leave files that were in use so many hours ago, for those who still read them. With 0,"
    " who reads a table meanwhile may find a file gone and has to ask again; rows are not lost.",
)  # fmt: skip
@click.option(
    "--dry-run", is_flag=True,
    help="Change nothing and say what would be done, also while another job writes.",
)  # fmt: skip
def compact_command(
    out: str, retain_days: int | None, vacuum: bool, vacuum_hours: int, dry_run: bool
) -> None:
    """Put the many small files of each table together.

    For a schedule, once a day. Rows stay as they are, but for those that --retain drops. No other
    job may write the folder meanwhile, so a stream has to be stopped.

    Example: headgate pipeline compact --out tables --vacuum --dry-run
    """
    check_needed("vacuum_hours", "--vacuum", is_given=vacuum)
    options = CompactOptions(out, retain_days, vacuum, vacuum_hours, dry_run)
    upkeep = load("upkeep")
    with interruptible():
        upkeep.run_compact(options, sys.stderr)
