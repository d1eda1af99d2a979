"""The command ``headgate pipeline backtest``, which replays other limits and quotas."""

from __future__ import annotations

import sys
from typing import Any

import click

from headgate.cli import terminal
from headgate.cli.pipeline.common import (
    folder_option,
    format_option,
    interruptible,
    lineage_option,
    load,
    range_options,
    spark_options,
)
from headgate.pipeline.lineage_options import LineageOptions
from headgate.pipeline.options import BacktestOptions, FolderOptions
from headgate.pipeline.spark_options import SparkOptions


@click.command("backtest", short_help="Replay other limits and quotas over the past.")
@folder_option
@click.option(
    "--grid", metavar="FILE", required=True, type=click.Path(dir_okay=False),
    help="The settings to try, in TOML; conf/backtest.toml in the sources is an example.",
)  # fmt: skip
@range_options
@click.option(
    "--run-id",
    metavar="NAME",
    help="Name of the run, which replaces its earlier rows; a new name by default.",
)
@format_option
@spark_options
@lineage_option
def backtest_command(
    out: str,
    grid: str,
    since: str | None,
    until: str | None,
    run_id: str | None,
    format_: Any,
    spark: SparkOptions,
    lineage: LineageOptions,
) -> None:
    """Replay the broker's own laws with other settings over the tables.

    The command writes one row for each grid point and topic to the table policy_backtest. It prints
    the rows of this run, the best first, and the commands that set the best.

    Example: headgate pipeline backtest --out tables --grid grid.toml --since 1d
    """
    options = BacktestOptions(
        FolderOptions(out, since, until, format_, terminal.width(), terminal.has_color(), spark),
        grid,
        run_id,
        lineage,
    )
    queries = load("queries.backtest")
    with interruptible():
        queries.run_backtest(options, sys.stdout, sys.stderr)
