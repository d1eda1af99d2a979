"""The command ``headgate pipeline serve``, which serves the page over the tables."""

from __future__ import annotations

import sys

import click

from headgate.cli.pipeline.common import folder_option, load
from headgate.pipeline.options import SERVE_PORT, ServeOptions


@click.command("serve", short_help="Serve the page over the tables, to look at the past.")
@folder_option
@click.option(
    "--port", metavar="PORT", type=click.IntRange(0, 65_535), default=SERVE_PORT,
    show_default=True, help="Port of the page; 0 takes a free one.",
)  # fmt: skip
@click.option(
    "--address", "host", metavar="ADDRESS", default="127.0.0.1", show_default=True,
    help="Address to listen on.",
)  # fmt: skip
@click.option(
    "--insecure-listen",
    is_flag=True,
    help="Allow an address that other machines reach. The page asks for no credentials.",
)
def serve_command(out: str, port: int, host: str, insecure_listen: bool) -> None:
    """Serve a page over the tables: past backlogs, their causes by minute, forecasts, backtests.

    It only reads, needs no Spark, and shows what a running job writes meanwhile.

    Example: headgate pipeline serve --out tables
    """
    load("serve.server").run_serve(ServeOptions(out, host, port, insecure_listen), sys.stderr)
