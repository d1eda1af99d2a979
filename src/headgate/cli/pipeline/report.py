"""The command ``headgate pipeline report``, which writes one page about a time range."""

from __future__ import annotations

import sys

import click

from headgate.cli.pipeline.common import folder_option, load, range_options
from headgate.pipeline.options import TOP_MAX, ReportOptions


@click.command("report", short_help="Write one page about a time range.")
@folder_option
@range_options
@click.option(
    "--html", metavar="FILE", type=click.Path(dir_okay=False),
    help="File of the page; report.html in the folder of the tables by default. Required if that"
    " folder is in S3.",
)  # fmt: skip
@click.option(
    "--count", metavar="N", type=click.IntRange(1, TOP_MAX), default=10, show_default=True,
    help="Number of rows in each top list.",
)  # fmt: skip
def report_command(
    out: str, since: str | None, until: str | None, html: str | None, count: int
) -> None:
    """Write one HTML page about a time range: backlogs, their causes, held producers, forecasts.

    The page opens without a network. The command starts no Spark.

    Example: headgate pipeline report --out tables --since 1d
    """
    options = ReportOptions(out, since, until, html, count)
    load("report.job").run_report(options, sys.stderr)
