"""The command ``headgate pipeline forecast``, which predicts when quotas are reached."""

from __future__ import annotations

import sys
from typing import Any

import click

from headgate.cli import terminal
from headgate.cli.pipeline.common import (
    EXIT_FOUND,
    folder_option,
    format_option,
    interruptible,
    load,
    range_options,
    spark_options,
)
from headgate.pipeline.options import FolderOptions, ForecastOptions
from headgate.pipeline.spark_options import SparkOptions


@click.command("forecast", short_help="Predict when backlog quotas are reached.")
@folder_option
@click.option(
    "--at", metavar="TIME",
    help="Time to forecast from, written as --since; the newest minute by default.",
)  # fmt: skip
@click.option(
    "--score", is_flag=True,
    help="Score the forecasts from --since to --until instead (pinball loss, coverage); a range"
    " needs this option.",
)  # fmt: skip
@range_options
@format_option
@spark_options
@click.option(
    "--fail-within", metavar="DURATION",
    help="End with status 3 if a quota is reached now (it evicts, holds or refuses) or probably"
    " within this time: 30s, 15m, 2h, 1d.",
)  # fmt: skip
def forecast_command(
    out: str,
    at: str | None,
    score: bool,
    since: str | None,
    until: str | None,
    format_: Any,
    fail_within: str | None,
    spark: SparkOptions,
) -> None:
    """Predict from the tables when each topic reaches its backlog quota.

    Example: headgate pipeline forecast --out tables --fail-within 1h
    """
    if not score and (since or until):
        raise click.UsageError("--since and --until need --score; --at is the time of a forecast.")
    if score and (at or fail_within):
        raise click.UsageError("--score takes neither --at nor --fail-within.")
    options = ForecastOptions(
        FolderOptions(out, since, until, format_, terminal.width(), terminal.has_color(), spark),
        at,
        score,
        fail_within,
    )
    queries = load("queries.forecast")
    with interruptible():
        near = queries.run_forecast(options, sys.stdout, sys.stderr)
    if near:
        quotas = "quota is" if near == 1 else "quotas are"
        click.echo(
            f"--fail-within: {near:,} {quotas} reached now, or likely within {fail_within}.",
            err=True,
        )
        sys.exit(EXIT_FOUND)
