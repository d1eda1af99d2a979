"""The command ``headgate pipeline upgrade``: tables of an earlier release come up to date."""

from __future__ import annotations

import sys

import click

from headgate.cli.pipeline.common import folder_option, interruptible, load, spark_options
from headgate.pipeline.options import UpgradeOptions
from headgate.pipeline.spark_options import SparkOptions


@click.command("upgrade", short_help="Bring tables of an earlier release up to date.")
@folder_option
@click.option(
    "--dry-run", is_flag=True,
    help="Print what would be done to each table, with its files and bytes, and change nothing.",
)  # fmt: skip
@spark_options
def upgrade_command(out: str, dry_run: bool, spark: SparkOptions) -> None:
    """Add tables and columns that an earlier release lacked, recompute rows without them, and merge
    small files.

    Rows that follow from telemetry which is not there any more stay as they are. The command may be
    interrupted at any time; the next one continues. It starts Spark only to recompute rows, and
    it is refused while another job fills the tables.

    Example: headgate pipeline upgrade --out tables --dry-run
    """
    upgrade = load("upgrade.job")
    with interruptible():
        upgrade.run_upgrade(UpgradeOptions(out, dry_run, spark), sys.stdout, sys.stderr)
