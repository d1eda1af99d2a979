"""``headgate pipeline forecast``: when will quotas be reached, and were the forecasts right?"""

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
)
from headgate.pipeline.options import FolderOptions, ForecastOptions


@click.command("forecast", short_help="Say when quotas will be reached.")
@folder_option
@click.option(
    "--at", metavar="TIME",
    help="Forecast from here, written as --since; the newest minute by default.",
)  # fmt: skip
@click.option(
    "--score", is_flag=True,
    help="Instead: how right the forecasts of --since to --until were (pinball loss, coverage);"
    " a range needs this.",
)  # fmt: skip
@range_options
@format_option
@click.option(
    "--fail-within", metavar="DURATION",
    help="End with status 3 when a quota is reached now (it evicts, holds or refuses), or likely"
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
) -> None:
    """Say for each topic with a backlog quota when it will be reached, as the tables have it.

    Example: headgate pipeline forecast --out tables --fail-within 1h
    """
    if not score and (since or until):
        raise click.UsageError("--since and --until need --score; --at says when to forecast from.")
    if score and (at or fail_within):
        raise click.UsageError("--score takes neither --at nor --fail-within.")
    options = ForecastOptions(
        FolderOptions(out, since, until, format_, terminal.width(), terminal.has_color()),
        at,
        score,
        fail_within,
    )
    answers = load("answers")
    with interruptible():
        near = answers.run_forecast(options, sys.stdout, sys.stderr)
    if near:
        quotas = "quota is" if near == 1 else "quotas are"
        click.echo(
            f"--fail-within: {near:,} {quotas} reached now, or likely within {fail_within}.",
            err=True,
        )
        sys.exit(EXIT_FOUND)
