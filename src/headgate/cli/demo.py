"""``headgate demo``."""

from __future__ import annotations

import sys

import click
from rich.console import Console

_WIDTH = 100


@click.command("demo")
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="How long the situations develop before they are judged.",
)
@click.option(
    "--spark/--no-spark",
    default=True,
    show_default=True,
    help="Run the pipeline too; without Spark or Java it is left out by itself.",
)
@click.option(
    "--tables", "tables_path", metavar="DIR", type=click.Path(file_okay=False),
    help="Folder of the pipeline's tables; a new one among the temporary files when left out.",
)  # fmt: skip
def demo_command(seconds: float, spark: bool, tables_path: str | None) -> None:
    """Build seven kinds of backlog, explain each one, and repair one.

    Needs headgate[demo]; headgate[spark] and Java 17 add the pipeline. Takes about two minutes.
    The exit status is 1 when a verdict is not what its situation was built to be.
    """
    from headgate.demo.run import DemoOptions, run_demo

    console = Console(highlight=False)
    if not console.is_terminal or console.width > _WIDTH:
        console = Console(highlight=False, width=_WIDTH)
    sys.exit(run_demo(DemoOptions(seconds, spark, tables_path), console))
